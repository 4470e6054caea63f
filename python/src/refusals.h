// Calls that a class does not have, although many will try them: they are refused in a sentence
// that says what to do instead.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <initializer_list>
#include <string>

#include "arguments.h"

namespace jali::python {

namespace nb = nanobind;

/// Refuses the constructor. how: a sentence that says how such an object is made.
template <class T>
void refuse_constructor(nb::class_<T>& type, const char* how) {
  type.def(
      "__init__",
      [how](T* /*self*/, const nb::args&, const nb::kwargs&) { raise_python("WrongCall", how); },
      nb::sig("def __init__(self, *_: object, **__: object) -> None"));
}

/// Refuses methods, operators included. kind: of error, by its name in jali.errors.
template <class T>
void refuse_methods(nb::class_<T>& type, std::initializer_list<const char*> names,
                    const char* instead, const char* kind = "Unsupported") {
  for (const char* name : names) {
    const std::string signature =
        std::string("def ") + name + "(self, *_: object, **__: object) -> typing.NoReturn";
    type.def(
        name,
        [instead, kind](nb::handle /*self*/, const nb::args&, const nb::kwargs&) {
          raise_python(kind, instead);
        },
        nb::sig(signature.c_str()));
  }
}

/// Copies of a value that never changes are the value itself. Pickles are refused, because they
/// would be opened unchecked.
template <class T>
void share_copies(nb::class_<T>& type) {
  const std::string name = nb::cast<std::string>(type.attr("__name__"));
  const auto self = [](nb::handle value, const nb::args&) { return nb::borrow(value); };
  type.def("__copy__", self, nb::sig(("def __copy__(self) -> " + name).c_str()));
  type.def("__deepcopy__", self,
           nb::sig(("def __deepcopy__(self, memo: object, /) -> " + name).c_str()));
  refuse_methods(type, {"__reduce__"},
                 "it is not pickled: send its to_bytes(), or save() it, and read it with "
                 "from_bytes() or load(), which check every byte",
                 "NotPickled");
}

}  // namespace jali::python
