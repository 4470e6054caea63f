// Methods whose wrong arguments are refused in a sentence, with the signatures that Python shows:
// those of C++ in its words.
#pragma once

#include <nanobind/nanobind.h>

#include <complex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "checked.h"

namespace jali::python {

namespace detail {

/// A type of C++ as a signature of Python shows it.
template <class T>
struct Shown {
  static std::string text() {
    if constexpr (std::is_void_v<T>)
      return "None";
    else if constexpr (std::is_same_v<T, bool>)
      return "bool";
    else if constexpr (std::is_integral_v<T>)
      return "int";
    else if constexpr (std::is_floating_point_v<T>)
      return "float";
    else if constexpr (std::is_same_v<T, std::complex<double>>)
      return "complex";
    else if constexpr (std::is_same_v<T, std::string>)
      return "str";
    else if constexpr (std::is_same_v<T, nb::bytes>)
      return "bytes";
    else if constexpr (std::is_same_v<T, nb::handle>)
      return "object";
    else
      return nb::cast<std::string>(nb::type<T>().attr("__name__"));
  }
};
template <class T>
struct Shown<T*> : Shown<std::remove_const_t<T>> {};
template <class T>
struct Shown<std::optional<T>> {
  static std::string text() { return Shown<T>::text() + " | None"; }
};
template <class A, class B>
struct Shown<std::pair<A, B>> {
  static std::string text() { return "tuple[" + Shown<A>::text() + ", " + Shown<B>::text() + "]"; }
};
/// A result; a parameter may be any sequence.
template <class T>
struct Shown<std::vector<T>> {
  static std::string text() { return "list[" + Shown<T>::text() + "]"; }
};
template <class T>
struct Given : Shown<T> {};
template <class T>
struct Given<std::vector<T>> {
  static std::string text() { return "collections.abc.Sequence[" + Shown<T>::text() + "]"; }
};
template <>
struct Given<Rotations> {
  static std::string text() { return "str | collections.abc.Sequence[int]"; }
};

/// "def rotate(self, a: Ciphertext, steps: int) -> Ciphertext"
template <class Work>
std::string signature(const char* name, const Call& call) {
  using Arguments = typename Signature<Work>::Arguments;
  std::string out = std::string("def ") + name + "(self";
  const auto add = [&]<class T>(std::size_t i, std::type_identity<T>) {
    const Parameter& p = call.parameters()[i];
    if (i == call.positional()) out += ", *";
    out += std::string(", ") + p.name + ": " +
           (p.type != nullptr ? p.type : Given<std::remove_cvref_t<T>>::text());
    if (p.fallback) out += std::string(" = ") + nb::repr(*p.fallback).c_str();
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (add(i, std::type_identity<std::tuple_element_t<i + 1, Arguments>>()), ...);
  }(std::make_index_sequence<std::tuple_size_v<Arguments> - 1>());
  return out + ") -> " + Shown<std::remove_cvref_t<typename Signature<Work>::Result>>::text();
}

}  // namespace detail

/// Adds a method. positional: how many of the parameters may be given without their name. work:
/// takes a T& and then the parameters. Guard, extras: as for nb::call_guard and class_::def.
template <class Guard = detail::NoGuard, class T, class Work, class... Extras>
void method(nb::class_<T>& type, const char* name, std::size_t positional,
            std::vector<Parameter> parameters, Work work, const char* doc,
            const Extras&... extras) {
  using Self = std::tuple_element_t<0, typename detail::Signature<Work>::Arguments>;
  const std::string kind = nb::cast<std::string>(type.attr("__name__"));
  const Call call(std::string(name) == "__call__" ? "a call of a " + kind : kind + "." + name,
                  positional, std::move(parameters));
  type.def(name, checked_method<Self, Guard>(call, work),
           nb::sig(detail::signature<Work>(name, call).c_str()), doc, extras...);
}

}  // namespace jali::python
