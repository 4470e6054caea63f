// The choices that `jali tune` made among an engine's implementations, all of which give the same
// results. They are in a file in the user's cache folder. Each line has tab-separated fields:
//
//   jali tune 2
//   NVIDIA H100 80GB HBM3, jali 0.1.0    w32    16    conversion=tensor    ntt=cluster
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace jali::device {

using Choices = std::map<std::string, std::string>;  // by family
using Measured = std::map<std::pair<std::string, int>, Choices>;  // by word ("w32") and log2 N

class Tuning {
 public:
  /// Empty if there is no such file. Throws InvalidArgument, which names the line, if the file is
  /// damaged.
  static Tuning read(const std::filesystem::path& file);
  /// The warning about a file that cannot be used, and why.
  static std::string unusable(const std::filesystem::path& file, const std::string& why);
  bool empty() const { return choices_.empty(); }
  /// All that was measured on a machine. hardware: the name that hardware() gives.
  Measured measured(const std::string& hardware) const;
  /// Empty if this was not measured.
  Choices chosen(const std::string& hardware, const std::string& word, int log_n) const;
  /// Throws InvalidArgument for names that the file cannot hold: empty ones, names with tabs or
  /// line breaks, and families with "=".
  void choose(const std::string& hardware, const std::string& word, int log_n, Choices choices);
  /// Replaces the whole file, and makes its folder. If that is not possible, throws Unsupported and
  /// leaves the file as it was.
  void write(const std::filesystem::path& file) const;

 private:
  std::map<std::tuple<std::string, std::string, int>, Choices> choices_;
};

/// $XDG_CACHE_HOME/jali/tune.tsv, or ~/.cache/jali/tune.tsv. Empty if the user has no home.
std::filesystem::path tuning_file();
/// The hardware for which choices are made: the device's name (device_name) and the version of
/// Jali. device: e.g. "cuda:0" or "cpu".
std::string hardware(const std::string& device);
/// Adds what was found on a device to the user's file, which it returns; a damaged file is
/// replaced. Throws Unsupported if it cannot be written.
std::filesystem::path keep(const std::string& device, const Measured& found);

}  // namespace jali::device
