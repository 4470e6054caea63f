// Finds the device that a name means.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace jali::device {

/// What resolve looks at. It asks for GPUs only if nothing names a device, because asking wakes their driver. A process must
/// not do that before it forks.
struct Surroundings {
  std::string wanted;  // the environment's JALI_DEVICE; may be empty
  std::function<int()> gpus;  // cuda_device_count
  std::function<std::string()> trouble;  // cuda_trouble
  std::string tuning_file;  // may be empty, or name no file

  /// Those of this process on this machine.
  static Surroundings here();
};

struct Resolved {
  /// "cpu", "cpu/avx2", "cuda:1": never "auto" and never "cuda".
  std::string device;
  /// For an engine's config: for each family of operations the implementation that `jali tune` found to be the fastest.
  std::map<std::string, std::string> variants;
  /// For the user: that a GPU is here but cannot be used, or that the tuning file cannot be read. Otherwise empty.
  std::string warning;
};

/// "auto" is the device that JALI_DEVICE names. If it names none, "auto" is the first GPU that this build can use, and if
/// there is none, the CPU. "cuda" is "cuda:0". Other names stay as they are; opening the device shows whether it exists.
/// Throws InvalidArgument if "cuda:" is followed by anything but a number.
Resolved resolve(const std::string& name, const Surroundings& around = Surroundings::here());
/// Also looks up what the tuning file says about that device for a word, e.g. "w32", and a ring: the variants of a GPU's
/// engine, or an instruction set, so that "cpu" becomes "cpu/avx2". A name that already has an instruction set stays as it
/// is.
Resolved resolve(const std::string& name, const std::string& word, int log_n,
                 const Surroundings& around = Surroundings::here());

/// K for "cuda:K", 0 for "cuda", and nothing for the name of another device. Throws InvalidArgument if K is not a number.
std::optional<int> gpu_number(const std::string& name);

}  // namespace jali::device
