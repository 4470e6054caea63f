// Which device a name means.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace jali::device {

/// What resolve looks at. It asks for GPUs only if nothing names a device: asking wakes their driver, which a process that
/// forks must not do before.
struct Surroundings {
  std::string wanted;  // the environment's JALI_DEVICE; may be empty
  std::function<int()> gpus;  // cuda_device_count
  std::function<std::string()> trouble;  // cuda_trouble
  std::string tuning_file;  // may be empty, or name no file; see backend::resolve

  /// Those of this process on this machine.
  static Surroundings here();
};

struct Resolved {
  std::string device;  // "cpu", "cpu/avx2", "cuda:1": never "auto" and never "cuda"
  std::string warning;  // for the user: of a GPU that is here and cannot be used; or empty
};

/// "auto" is what JALI_DEVICE names, else the first GPU that build and machine have, else the CPU. "cuda" is "cuda:0".
/// Other names stay as they are: who opens the device says whether there is one. Throws InvalidArgument for "cuda:"
/// followed by what is no number.
Resolved resolve(const std::string& name, const Surroundings& around = Surroundings::here());

/// K of "cuda:K", 0 of "cuda", nothing of another device's name.
std::optional<int> gpu_number(const std::string& name);

/// The GPU's name, empty if there is none; for other devices the processor's model and how many cores this process may
/// use, e.g. "AMD EPYC 9654 96-Core Processor, 2 cores".
std::string device_name(const std::string& device);

}  // namespace jali::device
