#include "jali/wire/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace jali::wire {

namespace fs = std::filesystem;

InputFile::InputFile(const fs::path& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail_file(path_, "read", errno);
}

InputFile::~InputFile() { ::close(descriptor_); }

Source InputFile::source() const {
  struct stat facts{};
  Source out;
  if (::fstat(descriptor_, &facts) == 0 && S_ISREG(facts.st_mode)) {
    out.size = static_cast<std::uint64_t>(facts.st_size);
  }
  out.read = [this](std::span<std::uint8_t> bytes) -> std::size_t {
    for (;;) {
      const ssize_t got = ::read(descriptor_, bytes.data(), bytes.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) fail_file(path_, "read", errno);
    }
  };
  return out;
}

void save_bytes(const fs::path& path, std::span<const std::uint8_t> bytes) {
  replace_file(path, Readers::umask, [&](const Sink& sink) { sink(bytes); });
}

Bytes load_bytes(const fs::path& path, const Limits& limits) {
  return read_file(path, [&](const Source& source) { return read_object(source, limits); });
}

void save(const fs::path& path, const rlwe::EvaluationKeys& keys, const Progress& progress) {
  replace_file(path, Readers::umask, [&](const Sink& sink) { write(keys, sink, progress); });
}

}  // namespace jali::wire
