// How Python's objects of TFHE are read from bytes and files.
#pragma once

#include <string>

#include "files.h"
#include "jali/wire/frame.h"
#include "jali/wire/stream.h"
#include "methods.h"
#include "tfhe.h"

namespace jali::python {

inline constexpr const char* kTfheFromBytes = R"(Load what to_bytes made. Every byte is checked.

max_bytes: a bound on the size of the input, and also on the memory of the result.
Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.)";
inline constexpr const char* kTfheLoad =
    R"(Read what save wrote, from a path, a file opened with "rb", or bytes.

The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read.)";

inline wire::Limits limited(std::size_t max_bytes) {
  wire::Limits limits;
  limits.max_bytes = max_bytes;
  return limits;
}

/// The signatures and the parameters of from_bytes and load of a class.
inline std::string tfhe_signature(const std::string& type, const char* method, const char* input) {
  return std::string("def ") + method + "(" + input +
         ", params: Params, max_bytes: int = ...) -> " + type;
}
inline Call tfhe_reader(const std::string& type, const char* method, const char* input) {
  return {type + "." + method,
          3,
          {{input}, {"params"}, {"max_bytes", nb::int_(wire::Limits{}.max_bytes)}}};
}

/// Adds from_bytes and load, of objects that lie in memory as a whole while they are read.
/// of_bytes(span, params, limits) runs without the interpreter's lock.
template <class T, class OfBytes>
void add_readers(nb::class_<T>& type, OfBytes of_bytes) {
  const std::string name = nb::cast<std::string>(type.attr("__name__"));
  type.def_static(
      "from_bytes",
      checked(tfhe_reader(name, "from_bytes", "data"),
              [of_bytes](nb::handle data, const TfheParams& params, std::size_t max_bytes) {
                const BytesView view(data);
                const nb::gil_scoped_release release;
                return of_bytes(view.span(), params.ptr, limited(max_bytes));
              }),
      nb::sig(tfhe_signature(name, "from_bytes", "data: bytes | bytearray | memoryview").c_str()),
      kTfheFromBytes);
  type.def_static(
      "load",
      checked(tfhe_reader(name, "load", "file"),
              [of_bytes](nb::handle file, const TfheParams& params, std::size_t max_bytes) {
                const wire::Limits limits = limited(max_bytes);
                const auto read = [&](std::span<const std::uint8_t> bytes) {
                  return of_bytes(bytes, params.ptr, limits);
                };
                return load_from(file, read, [&](const wire::Source& source) {
                  return read(wire::read_object(source, limits));
                });
              }),
      nb::sig(tfhe_signature(name, "load", "file: str | os.PathLike[str] | typing.BinaryIO | bytes")
                  .c_str()),
      kTfheLoad);
}

}  // namespace jali::python
