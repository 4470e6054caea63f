#include "jali/wire/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "jali/base/error.h"

namespace jali::wire {

namespace {

namespace fs = std::filesystem;

/// "FILE cannot be written: No space left on device". error: a value of errno.
[[noreturn]] void fail(const fs::path& path, const char* what, int error) {
  throw FileError(path.string() + " cannot be " + what + ": " +
                  std::generic_category().message(error));
}

/// A new file that is removed again unless it gets its name.
class NewFile {
 public:
  NewFile(const fs::path& path, Readers readers) : path_(path), name_(path) {
    // Two writers of one path have files of their own; the last one to finish wins.
    for (int attempt = 0; descriptor_ < 0; ++attempt) {
      name_ = path_;
      std::string ending(".");  // in steps, because GCC 12 warns of chained sums
      ending.append(std::to_string(getpid())).append("-").append(std::to_string(attempt));
      name_ += ending.append(".new");
      descriptor_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                           readers == Readers::owner ? 0600 : 0666);
      if (descriptor_ < 0 && (errno != EEXIST || attempt == 1000)) fail(path_, "written", errno);
    }
  }
  ~NewFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!named_) ::unlink(name_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
      if (done < 0 && errno != EINTR) fail(path_, "written", errno);
      if (done > 0) bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
  }

  void give_name() {
    if (::fsync(descriptor_) != 0) fail(path_, "written", errno);
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0 && errno != EINTR) fail(path_, "written", errno);
    if (::rename(name_.c_str(), path_.c_str()) != 0) fail(path_, "written", errno);
    named_ = true;
    // The name is on the disk once the folder is. Some file systems cannot be asked for it.
    const fs::path folder = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
    const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
      ::fsync(directory);
      ::close(directory);
    }
  }

 private:
  fs::path path_, name_;
  int descriptor_ = -1;
  bool named_ = false;
};

}  // namespace

void replace_file(const fs::path& path, Readers readers,
                  const std::function<void(const Sink&)>& write) {
  std::error_code unknown;
  const fs::path target =
      fs::is_symlink(path, unknown) ? fs::weakly_canonical(path, unknown) : path;
  require<FileError>(!path.empty() && !target.empty(), "an empty path names no file");
  const fs::file_status found = fs::status(target, unknown);
  require<FileError>(!fs::exists(found) || fs::is_regular_file(found), [&] {
    return path.string() + " cannot be written: it is a folder or a device, not a file";
  });
  NewFile file(target, readers);
  write([&](std::span<const std::uint8_t> bytes) { file.write(bytes); });
  file.give_name();
}

InputFile::InputFile(const fs::path& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail(path_, "read", errno);
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
      if (errno != EINTR) fail(path_, "read", errno);
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
