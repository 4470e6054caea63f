// Which device a name means.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace jali::device {

/// What resolve looks at.
struct Surroundings {
  std::string wanted;  // the environment's JALI_DEVICE; may be empty
  int gpus = 0;  // cuda_device_count()
  std::string trouble;  // cuda_trouble()
  std::string tuning_file;  // may be empty, or name no file

  /// Those of this process on this machine.
  static Surroundings here();
};

struct Resolved {
  /// "cpu", "cpu/avx2", "cuda:1": never "auto" and never "cuda".
  std::string device;
  /// For an engine's config: by family, what jali tune found to be fastest there.
  std::map<std::string, std::string> variants;
  /// For the user: a GPU that is here and cannot be used, a tuning file that cannot be read; or empty.
  std::string warning;
};

/// "auto" is what JALI_DEVICE names, else the first GPU that build and machine have, else the CPU. "cuda" is "cuda:0".
/// Other names stay as they are: who opens the device says whether there is one. Throws InvalidArgument for "cuda:"
/// followed by what is no number.
Resolved resolve(const std::string& name, const Surroundings& around = Surroundings::here());
/// The same, and what the tuning file says of that device for a word ("w32") and a ring: variants of a GPU's engine, or
/// an instruction set ("cpu" becomes "cpu/avx2"). A name that already says which is left alone.
Resolved resolve(const std::string& name, const std::string& word, int log_n,
                 const Surroundings& around = Surroundings::here());

/// K of "cuda:K", 0 of "cuda", nothing of another device's name.
std::optional<int> gpu_number(const std::string& name);

}  // namespace jali::device
