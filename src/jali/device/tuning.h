// The choices that `jali tune` made among an engine's implementations, which all give the same results. They lie in the
// user's cache folder, a line of tab-separated fields each:
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
  /// Nothing, if there is no such file. Throws InvalidArgument, naming the line, for a file that is damaged.
  static Tuning read(const std::filesystem::path& file);
  /// The warning of a file that cannot be used, and why.
  static std::string unusable(const std::filesystem::path& file, const std::string& why);
  bool empty() const { return choices_.empty(); }
  /// All that was measured. hardware: as hardware() names it.
  Measured measured(const std::string& hardware) const;
  /// Nothing for what was not measured.
  Choices chosen(const std::string& hardware, const std::string& word, int log_n) const;
  /// Throws InvalidArgument for what the file could not hold: tabs, line breaks, a family with "=".
  void choose(const std::string& hardware, const std::string& word, int log_n, Choices choices);
  /// Replaces the file as a whole, and makes its folder. Throws Unsupported, and leaves the file as it was, if that
  /// cannot be done.
  void write(const std::filesystem::path& file) const;

 private:
  std::map<std::tuple<std::string, std::string, int>, Choices> choices_;
};

/// $XDG_CACHE_HOME/jali/tune.tsv, or in ~/.cache; empty for a user without a home.
std::filesystem::path tuning_file();
/// What was measured: the device (device_name), and this version of Jali.
std::string hardware(const std::string& device);
/// Adds what was found on a device to the user's file, which it returns; a damaged file is replaced. Throws Unsupported
/// if it cannot be written.
std::filesystem::path keep(const std::string& device, const Measured& found);

}  // namespace jali::device
