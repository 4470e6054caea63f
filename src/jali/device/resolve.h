// Finds the device that a name means.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace jali::device {

/// What resolve looks at. It asks for GPUs only if nothing names a device, because asking wakes
/// their driver. A process must not do that before it forks.
struct Surroundings {
  std::string wanted;  // the environment's JALI_DEVICE; may be empty
  std::function<int()> gpus;  // cuda_device_count
  std::function<std::string()> trouble;  // cuda_trouble
  std::string tuning_file;  // may be empty, or name no file; see backend::resolve

  /// Those of this process on this machine.
  static Surroundings here();
};

struct Resolved {
  /// "cpu", "cpu/avx2", "cuda:1": never "auto" and never "cuda".
  std::string device;
  /// For the user: that a GPU is here but cannot be used. Otherwise empty.
  std::string warning;
};

/// "auto" is the device that JALI_DEVICE names. If it names none, "auto" is the first GPU that this
/// build can use, and if there is none, the CPU. "cuda" is "cuda:0". Other names stay as they are;
/// opening the device shows whether it exists. Throws InvalidArgument if "cuda:" is followed by
/// anything but a number.
Resolved resolve(const std::string& name, const Surroundings& around = Surroundings::here());

/// K for "cuda:K", 0 for "cuda", and nothing for the name of another device. Throws InvalidArgument
/// if K is not a number.
std::optional<int> gpu_number(const std::string& name);

/// The GPU's name, empty if there is none; for other devices the processor's model and how many
/// cores this process may use, e.g. "AMD EPYC 9654 96-Core Processor, 2 cores".
std::string device_name(const std::string& device);

}  // namespace jali::device
