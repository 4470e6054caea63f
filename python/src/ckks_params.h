// The binding of ckks.Params, one function for each file that has a part of it; and what parameters
// of every scheme share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "binding.h"

namespace jali::python {

void bind_params_create(nb::class_<Params>& type);
void bind_params_bootstrap(nb::class_<Params>& type);
void bind_params_bytes(nb::class_<Params>& type);

/// Parameters are equal if their hashes are. T has a `ptr` to parameters.
template <class T>
void share_identity(nb::class_<T>& type) {
  type.def_prop_ro(
      "fingerprint",
      [](const T& p) {
        constexpr const char* hex = "0123456789abcdef";
        std::string out;
        for (const std::uint8_t byte : p.ptr->hash()) {
          out += hex[byte >> 4];
          out += hex[byte & 15];
        }
        return out;
      },
      "SHA-256, in hexadecimal, of everything that computation depends on. Every serialised object "
      "of these parameters "
      "carries it.");
  type.def(
      "__eq__",
      [](const T& a, nb::handle b) {
        return nb::isinstance<T>(b) && nb::cast<const T&>(b).ptr->hash() == a.ptr->hash();
      },
      nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"));
  type.def("__hash__", [](const T& p) {
    std::int64_t head = 0;
    std::memcpy(&head, p.ptr->hash().data(), sizeof(head));
    return head;
  });
}

/// The names of presets, and what each is for.
template <class Presets>
void add_purposes(nb::dict& names, const Presets& presets) {
  for (const auto& preset : presets) {
    names[nb::str(preset.name.data(), preset.name.size())] =
        nb::str(preset.purpose.data(), preset.purpose.size());
  }
}

}  // namespace jali::python
