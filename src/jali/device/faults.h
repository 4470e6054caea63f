// Faults put in by tests: what a driver rarely does on its own.
#pragma once

namespace jali::device {

/// What an engine asks of its driver that can fail.
enum class Call { allocate, copy, launch, synchronize };
enum class Fault { none, out_of_memory, launch_failed, device_lost };

/// Asked before every such call; its answer is taken for the driver's. Called from any thread.
class Faults {
 public:
  virtual ~Faults() = default;
  virtual Fault before(Call call) = 0;
};

}  // namespace jali::device
