#include "jali/base/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <random>
#include <string>
#include <system_error>

#include "jali/base/error.h"

namespace jali {

namespace {

namespace fs = std::filesystem;

/// A new file that is removed again unless it gets its name.
class NewFile {
 public:
  /// mode: as of open(), before the umask.
  NewFile(const fs::path& path, mode_t mode) : path_(path) {
    // Two writers of one path have files of their own; the last one to finish wins. Nobody can take
    // all names before, as they are drawn at random.
    std::string leaf = path.filename().string();
    leaf.resize(std::min(leaf.size(), kLongestLeaf));
    leaf.append(".").append(std::to_string(::getpid())).append("-");
    std::random_device draw;
    for (int attempt = 0; descriptor_ < 0; ++attempt) {
      std::string name = leaf;  // in steps, because GCC 12 warns of chained sums
      name.append(std::to_string(draw())).append(".new");
      name_ = path.parent_path() / name;
      descriptor_ =
          ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
      if (descriptor_ < 0 && (errno != EEXIST || attempt == 100))
        fail_file(path_, "written", errno);
    }
  }
  ~NewFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!named_) ::unlink(name_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Gives it the owner, the group and the permissions of the file that it replaces. If the process
  /// may not give the group, another group would get what was meant for that one: then no group has
  /// any.
  void take_access(const struct stat& old) {
    mode_t mode = old.st_mode & 0777;
    const bool has_group = ::fchown(descriptor_, old.st_uid, old.st_gid) == 0 ||
                           ::fchown(descriptor_, static_cast<uid_t>(-1), old.st_gid) == 0;
    if (!has_group) mode &= ~static_cast<mode_t>(070);
    (void)!::fchmod(descriptor_,
                    mode);  // where a file system has no permissions, its owner alone has them
  }

  void write(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
      if (done < 0 && errno != EINTR) fail_file(path_, "written", errno);
      if (done > 0) bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
  }

  void give_name() {
    if (::fsync(descriptor_) != 0) fail_file(path_, "written", errno);
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0 && errno != EINTR) fail_file(path_, "written", errno);
    if (::rename(name_.c_str(), path_.c_str()) != 0) fail_file(path_, "written", errno);
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
  /// A name has at most 255 bytes, and the ending needs some of them.
  static constexpr std::size_t kLongestLeaf = 200;

  fs::path path_, name_;
  int descriptor_ = -1;
  bool named_ = false;
};

/// The path at the end of symbolic links, which need not exist.
fs::path resolved(fs::path path) {
  std::error_code error;
  for (int links = 0; links < 40 && fs::is_symlink(path, error); ++links) {
    // An absolute link replaces the folder.
    path = path.parent_path() / fs::read_symlink(path, error);
    if (error) break;
  }
  return path;
}

/// The state of the file that is there already, if there is one. Throws FileError for what is no
/// file.
std::optional<struct stat> old_file(const fs::path& path) {
  require<FileError>(!path.empty(), "an empty path names no file");
  // The system follows the links of the path as it was given: it refuses those that others planted
  // in a shared folder.
  struct stat old{};
  if (::stat(path.c_str(), &old) != 0) {
    if (errno != ENOENT) fail_file(path, "written", errno);
    return std::nullopt;
  }
  require<FileError>(S_ISREG(old.st_mode), [&] {
    return path.string() + " cannot be written: it is a folder or a device, not a file";
  });
  return old;
}

}  // namespace

void fail_file(const fs::path& path, const char* what, int error) {
  throw FileError(path.string() + " cannot be " + what + ": " +
                  std::generic_category().message(error));
}

void replace_file(const fs::path& path, Readers readers,
                  const std::function<void(const Sink&)>& write) {
  const std::optional<struct stat> old = old_file(path);
  const bool kept = old && readers == Readers::umask;
  NewFile file(resolved(path), kept || readers == Readers::owner ? 0600 : 0666);
  if (kept) file.take_access(*old);
  write([&](std::span<const std::uint8_t> bytes) { file.write(bytes); });
  file.give_name();
}

void check_replaceable(const fs::path& path) {
  (void)old_file(path);
  const NewFile probe(resolved(path), 0600);  // is removed again
}

}  // namespace jali
