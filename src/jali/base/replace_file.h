// Writing a file: it is replaced at once, or stays as it was. Everything that Jali writes to a path
// goes through here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

namespace jali {

/// Takes the next bytes of an object. If it throws, the writing ends.
using Sink = std::function<void(std::span<const std::uint8_t>)>;

/// Who may read the file.
enum class Readers {
  umask,  // a new file: everybody whom the umask lets; a file that is replaced: as before
  owner,  // its owner alone (mode 0600), whatever it was before
};

/// Makes a file, or replaces it at once: the bytes go to a new file in the same folder, reach the
/// disk, and get the name last. If `write` throws, or anything else fails, the file of this name is
/// what it was before and the new one is removed. A process that is killed may leave the new one,
/// whose name ends with ".new". Nothing that is there already is opened, so a link or a file that
/// somebody planted under that name is neither followed nor changed; another name is taken. If the
/// path is a symbolic link, the file that it names is replaced. Permissions of a file that is
/// replaced are kept (for Readers::umask), and its owner and group if the process may give them.
/// Folders, devices, FIFOs and sockets are refused. Throws FileError, before `write` is called if
/// that can be known.
void replace_file(const std::filesystem::path& path, Readers readers,
                  const std::function<void(const Sink&)>& write);

/// Throws the FileError that replace_file would throw before it calls `write`: for callers that
/// work long before they write. It makes a new file in the folder for that, and removes it.
void check_replaceable(const std::filesystem::path& path);

/// "FILE cannot be written: No space left on device". error: a value of errno. Throws FileError.
[[noreturn]] void fail_file(const std::filesystem::path& path, const char* what, int error);

}  // namespace jali
