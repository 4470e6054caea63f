// Objects in files: a file is replaced at once or not at all, and is read without trust.
#pragma once

#include <concepts>
#include <filesystem>
#include <functional>
#include <utility>

#include "jali/base/replace_file.h"
#include "jali/wire/keys.h"
#include "jali/wire/stream.h"

namespace jali::wire {

/// A file that is open for reading.
class InputFile {
 public:
  /// Throws FileError if it cannot be read.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Its bytes from here on; the file must outlive it. Reading throws FileError.
  Source source() const;

 private:
  std::filesystem::path path_;
  int descriptor_;
};

/// What `read` makes of the source of a file. Throws CorruptData if bytes are left over.
template <class Read>
auto read_file(const std::filesystem::path& path, const Read& read) {
  const InputFile file(path);
  const Source source = file.source();
  auto out = read(source);
  require_end(source);
  return out;
}

/// Replaces a file by these bytes; see replace_file.
void save_bytes(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);
/// The bytes of the one object in a file. Errors are FileError and those of read_object.
Bytes load_bytes(const std::filesystem::path& path, const Limits& limits);

/// Writes what to_bytes gives to a file. wire/SCHEME.h has the same for the objects of a scheme.
inline void save(const std::filesystem::path& path, const rlwe::PublicKey& key) {
  save_bytes(path, to_bytes(key));
}
/// Evaluation keys are written as they are packed, so that their bytes never lie in memory
/// together.
void save(const std::filesystem::path& path, const rlwe::EvaluationKeys& keys,
          const Progress& progress = {});

/// Reads what `save` wrote; T: rlwe::PublicKey or rlwe::EvaluationKeys. Errors are FileError and
/// those of from_bytes.
template <std::same_as<rlwe::PublicKey> T>
T load(const std::filesystem::path& path, const rlwe::ParamsPtr& params, const ring::Ring& ring,
       const Limits& limits = {}) {
  return from_bytes<T>(load_bytes(path, limits), params, ring, limits);
}
template <std::same_as<rlwe::EvaluationKeys> T>
T load(const std::filesystem::path& path, const rlwe::ParamsPtr& params, const ring::Ring& ring,
       const Limits& limits = {}, const Progress& progress = {}) {
  return read_file(path, [&](const Source& source) {
    return read_keys(source, params, ring, limits, progress);
  });
}

}  // namespace jali::wire
