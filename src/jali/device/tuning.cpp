#include "jali/device/tuning.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "jali/base/error.h"
#include "jali/base/replace_file.h"
#include "jali/device/resolve.h"

namespace jali::device {

namespace {

constexpr const char* kHeader = "jali tune 2";

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream rest(line);
  for (std::string field; std::getline(rest, field, '\t');) out.push_back(field);
  return out;
}

bool plain(const std::string& text) {
  return !text.empty() && text.find_first_of("\t\r\n") == std::string::npos;
}

}  // namespace

Tuning Tuning::read(const std::filesystem::path& file) {
  Tuning tuning;
  std::ifstream in(file);
  std::error_code unknown;
  if (file.empty() || (!in && !std::filesystem::exists(file, unknown))) return tuning;
  std::string line;
  const auto expect = [&](bool holds, int number) {
    require<InvalidArgument>(holds,
                             [&] { return unusable(file, "line " + std::to_string(number)); });
  };
  expect(std::getline(in, line) && line == kHeader, 1);
  for (int number = 2; std::getline(in, line); ++number) {
    const auto field = fields(line);
    expect(field.size() >= 3 && field[2].size() <= 2 && !field[2].empty() &&
               field[2].find_first_not_of("0123456789") == std::string::npos,
           number);
    Choices choices;
    for (std::size_t i = 3; i < field.size(); ++i) {
      const auto equals = field[i].find('=');
      expect(std::ranges::all_of(field[i], [](char c) { return c >= ' ' && c <= '~'; }), number);
      expect(equals != std::string::npos && equals > 0 && equals + 1 < field[i].size(), number);
      choices[field[i].substr(0, equals)] = field[i].substr(equals + 1);
    }
    tuning.choices_[{field[0], field[1], std::stoi(field[2])}] = std::move(choices);
  }
  return tuning;
}

std::string Tuning::unusable(const std::filesystem::path& file, const std::string& why) {
  return file.string() + " cannot be used (" + why +
         "), so every engine makes its own choices: run 'jali tune' again, or delete the file";
}

Measured Tuning::measured(const std::string& hardware) const {
  Measured out;
  for (const auto& [key, choices] : choices_) {
    const auto& [machine, word, log_n] = key;
    if (machine == hardware) out[{word, log_n}] = choices;
  }
  return out;
}

Choices Tuning::chosen(const std::string& hardware, const std::string& word, int log_n) const {
  const auto at = choices_.find({hardware, word, log_n});
  return at == choices_.end() ? Choices{} : at->second;
}

void Tuning::choose(const std::string& hardware, const std::string& word, int log_n,
                    Choices choices) {
  bool fits = plain(hardware) && plain(word) && log_n >= 0 && log_n < 100;
  for (const auto& [family, name] : choices) {
    fits = fits && plain(family) && plain(name) && family.find('=') == std::string::npos;
  }
  require<InvalidArgument>(fits, "a tuning file holds names without tabs, line breaks or \"=\"");
  choices_[{hardware, word, log_n}] = std::move(choices);
}

void Tuning::write(const std::filesystem::path& file) const {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  std::ostringstream out;
  out << kHeader << "\n";
  for (const auto& [key, choices] : choices_) {
    out << std::get<0>(key) << "\t" << std::get<1>(key) << "\t" << std::get<2>(key);
    for (const auto& [family, name] : choices) out << "\t" << family << "=" << name;
    out << "\n";
  }
  const std::string text = out.str();
  try {
    replace_file(file, Readers::umask, [&](const Sink& sink) {
      sink({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    });
  } catch (const FileError& why) {
    throw Unsupported(std::string(why.what()) +
                      ": make room for it there, or name another folder in XDG_CACHE_HOME");
  }
}

std::filesystem::path tuning_file() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return std::filesystem::path(cache) / "jali/tune.tsv";
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".cache/jali/tune.tsv";
}

std::string hardware(const std::string& device) {
  return device_name(device) + ", jali " JALI_VERSION;
}

std::filesystem::path keep(const std::string& device, const Measured& found) {
  const auto file = tuning_file();
  require<Unsupported>(!file.empty(),
                       "there is no home to keep the choices in: name a folder in XDG_CACHE_HOME");
  Tuning tuning;
  try {
    tuning = Tuning::read(file);
  } catch (const InvalidArgument&) {
    tuning = {};  // what is damaged gives way
  }
  for (const auto& [ring, choices] : found) {
    tuning.choose(hardware(device), ring.first, ring.second, choices);
  }
  tuning.write(file);
  return file;
}

}  // namespace jali::device
