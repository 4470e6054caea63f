// Faults that tests put between engine and driver, because a driver rarely fails on its own.
#pragma once

namespace jali::device {

/// The kinds of calls to a driver that can fail.
enum class Call { allocate, copy, launch, synchronize };
enum class Fault { none, out_of_memory, launch_failed, device_lost };

/// before() is asked before every such call. Unless its answer is none, that answer is taken for
/// the driver's. Any thread may call it.
class Faults {
 public:
  virtual ~Faults() = default;
  virtual Fault before(Call call) = 0;
};

}  // namespace jali::device
