// Conversion of bytes between Python and the library.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <new>
#include <span>

#include "jali/base/error.h"

namespace jali::python {

namespace nb = nanobind;

/// A view of any bytes-like object of Python, borrowed for as long as the view lives. It must be
/// made and dropped with the interpreter's lock; it may be read without. Throws InvalidArgument for
/// other objects.
class BytesView {
 public:
  explicit BytesView(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0) {
      PyErr_Clear();
      throw InvalidArgument("give bytes, a bytearray or a contiguous memoryview");
    }
  }
  ~BytesView() { PyBuffer_Release(&buffer_); }
  BytesView(const BytesView&) = delete;
  BytesView& operator=(const BytesView&) = delete;

  std::span<const std::uint8_t> span() const {
    return {static_cast<const std::uint8_t*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
  }

 private:
  Py_buffer buffer_{};
};

/// Runs make() without the interpreter's lock, and returns its bytes as a Python object.
template <class Make>
nb::bytes to_python_bytes(const Make& make) {
  decltype(make()) bytes;
  {
    nb::gil_scoped_release release;
    bytes = make();
  }
  PyObject* made = PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                             static_cast<Py_ssize_t>(bytes.size()));
  if (made == nullptr) {  // a MemoryError without a message; bad_alloc becomes jali.OutOfMemory
    PyErr_Clear();
    throw std::bad_alloc();
  }
  return nb::steal<nb::bytes>(made);
}

}  // namespace jali::python
