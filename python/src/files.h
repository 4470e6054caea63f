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
#include "methods.h"

namespace jali::python {

namespace nb = nanobind;

inline constexpr const char* kFileType = "str | os.PathLike[str] | typing.BinaryIO";
inline constexpr const char* kToBytes =
    "Bytes for transport or storage. They are not authenticated.";
inline constexpr const char* kSave = R"(Write to_bytes() to a path, or to a file opened with "wb".

A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.)";

/// The path that a str, bytes or os.PathLike is. Throws InvalidArgument, which says that `wanted`
/// must be given.
std::filesystem::path path_of(nb::handle file, const char* wanted);

/// Calls write(sink) without the interpreter's lock. file: a path, which is replaced at once, or an
/// object with write(bytes). Throws InvalidArgument for a stream of text, and for one that is
/// closed or cannot be written, before it calls write.
void save_to(nb::handle file, const std::function<void(const wire::Sink&)>& write);

/// The source that reads an object with read(count). It may be used without the interpreter's lock.
/// Throws InvalidArgument for a stream of text, and for one that is closed or cannot be read.
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

/// Adds save(file). bytes(x) runs without the interpreter's lock.
template <class T, class Bytes>
void add_save(nb::class_<T>& type, Bytes bytes) {
  method(
      type, "save", 1, {{"file", std::nullopt, kFileType}},
      [bytes](const T& x, nb::handle file) {
        save_to(file, [&](const wire::Sink& sink) { sink(bytes(x)); });
      },
      kSave);
}
/// Adds to_bytes(). bytes: as for add_save.
template <class T, class Bytes>
void add_to_bytes(nb::class_<T>& type, Bytes bytes, const char* doc = kToBytes) {
  method(
      type, "to_bytes", 0, {},
      [bytes](const T& x) { return to_python_bytes([&] { return bytes(x); }); }, doc);
}

}  // namespace jali::python
