// Where Python's objects are saved and read: paths, file objects and bytes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "bytes.h"
#include "jali/wire/file.h"

namespace jali::python {

namespace nb = nanobind;

inline constexpr const char* kSaveSignature =
    "def save(self, file: str | os.PathLike[str] | typing.BinaryIO) -> None";
inline constexpr const char* kSave = R"(Write to_bytes() to a path, or to a file opened with "wb".

A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.)";

/// The path that a str, bytes or os.PathLike is. Throws InvalidArgument, which says that `wanted` must be given.
std::filesystem::path path_of(nb::handle file, const char* wanted);

/// Calls write(sink) without the interpreter's lock. file: a path, which is replaced at once, or an object with write(bytes).
void save_to(nb::handle file, const std::function<void(const wire::Sink&)>& write);

/// The source that reads an object with read(count). It may be used without the interpreter's lock.
wire::Source source_of(nb::handle file);
bool is_readable(nb::handle file);

/// What an object is loaded from: a path, an object with read(count), or bytes.
/// of_bytes(span) and of_source(source) run without the interpreter's lock.
template <class OfBytes, class OfSource>
auto load_from(nb::handle file, const OfBytes& of_bytes, const OfSource& of_source) {
  if (PyObject_CheckBuffer(file.ptr()) != 0) {
    const BytesView view(file);
    const nb::gil_scoped_release release;
    return of_bytes(view.span());
  }
  if (is_readable(file)) {
    const wire::Source source = source_of(file);
    const nb::gil_scoped_release release;
    return of_source(source);
  }
  const std::filesystem::path path = path_of(file, "a path, a file opened with \"rb\", or bytes");
  const nb::gil_scoped_release release;
  return wire::read_file(path, of_source);
}

}  // namespace jali::python
