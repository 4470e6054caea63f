// The choices that `jali tune` made among an engine's implementations, all of which give the same results. They are in a
// file in the user's cache folder. Each line has tab-separated fields:
//
//   jali tune 2
//   NVIDIA H100 80GB HBM3, jali 0.1.0    w32    16    conversion=tensor    ntt=cluster
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <tuple>

namespace jali::device {

using Choices = std::map<std::string, std::string>;  // by family

class Tuning {
 public:
  /// Empty if there is no such file. Throws InvalidArgument, which names the line, if the file is damaged.
  static Tuning read(const std::filesystem::path& file);
  /// Empty if this was not measured. hardware: the name that hardware() gives.
  Choices chosen(const std::string& hardware, const std::string& word, int log_n) const;
  /// Throws InvalidArgument for names that the file cannot hold: empty ones, names with tabs or line breaks, and families
  /// with "=".
  void choose(const std::string& hardware, const std::string& word, int log_n, Choices choices);
  /// Replaces the whole file, and makes its folder. If that is not possible, throws Unsupported and leaves the file as it
  /// was.
  void write(const std::filesystem::path& file) const;

 private:
  std::map<std::tuple<std::string, std::string, int>, Choices> choices_;
};

/// $XDG_CACHE_HOME/jali/tune.tsv, or ~/.cache/jali/tune.tsv. Empty if the user has no home.
std::filesystem::path tuning_file();
/// The hardware for which choices are made. For a GPU it is the GPU's name, otherwise the model of the processor and the
/// number of cores that this process may use. The version of Jali follows. device: e.g. "cuda:0" or "cpu".
std::string hardware(const std::string& device);

}  // namespace jali::device
