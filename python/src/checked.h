// Functions whose wrong arguments are refused in a sentence that names them. nanobind would print all its signatures.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <complex>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "arguments.h"

namespace jali::python {

/// A parameter of a function of Python. It is needed if it has no default.
struct Parameter {
  const char* name;
  std::optional<nb::object> fallback = std::nullopt;
};

/// The parameters of one function, in order.
class Call {
 public:
  /// name: e.g. "Params.create". positional: how many of the parameters may be given without their name.
  Call(std::string name, std::size_t positional, std::vector<Parameter> parameters)
      : name_(std::move(name)), positional_(positional), parameters_(std::move(parameters)) {}

  /// The argument of each parameter. Raises WrongCall if there are too many, too few or unknown ones.
  std::vector<nb::object> bind(const nb::args& args, const nb::kwargs& kwargs) const;
  /// "max_bytes of Ciphertext.from_bytes"
  std::string what(std::size_t parameter) const;

 private:
  std::string listed(std::size_t count) const;

  std::string name_;
  std::size_t positional_;
  std::vector<Parameter> parameters_;
};

/// What a parameter of type T must be, for a message.
template <class T>
struct Wanted {
  static std::string text() {  // "a tfhe.Params"
    const auto of = [](const char* attribute) {
      return nb::cast<std::string>(nb::type<T>().attr(attribute));
    };
    const std::string module = of("__module__");
    return "a " + module.substr(module.rfind('.') + 1) + "." + of("__name__");
  }
};
template <class T>
  requires std::is_integral_v<T>
struct Wanted<T> {
  static std::string text() {
    return std::is_unsigned_v<T> ? "a whole number of at least 0" : "a whole number";
  }
};
template <>
struct Wanted<bool> {
  static std::string text() { return "True or False"; }
};
template <>
struct Wanted<double> {
  static std::string text() { return "a number"; }
};
template <>
struct Wanted<std::complex<double>> {
  static std::string text() { return "a number"; }
};
template <>
struct Wanted<std::string> {
  static std::string text() { return "a string"; }
};
template <>
struct Wanted<nb::dict> {
  static std::string text() { return "a dict"; }
};
template <>
struct Wanted<std::pair<double, double>> {
  static std::string text() { return "two numbers (low, high)"; }
};
template <>
struct Wanted<std::function<double(double)>> {
  static std::string text() { return "a function of a number"; }
};
template <class T>
struct Wanted<std::vector<T>> {
  static std::string text() { return "a sequence, each " + Wanted<T>::text(); }
};
template <class T>
struct Wanted<std::optional<T>> {
  static std::string text() { return Wanted<T>::text() + ", or None"; }
};

/// The argument as a T, or a reference to it if T is a class of this extension. Throws InvalidArgument for other types.
template <class T>
decltype(auto) converted(const nb::object& value, const Call& call, std::size_t parameter) {
  using Plain = std::remove_cvref_t<T>;
  const auto wrong = [&] {
    refuse(call.what(parameter).c_str(), Wanted<Plain>::text().c_str(), value);
  };
  if constexpr (std::is_same_v<Plain, nb::handle>) {
    return nb::handle(value);
  } else if constexpr (nb::detail::is_base_caster_v<nb::detail::make_caster<Plain>>) {
    if (!nb::isinstance<Plain>(value)) wrong();
    return static_cast<const Plain&>(*nb::inst_ptr<Plain>(value));
  } else {
    Plain out{};
    // A bool is no number here, and a text no sequence.
    if ((PyBool_Check(value.ptr()) && !std::is_same_v<Plain, bool>) ||
        (PyUnicode_Check(value.ptr()) && !std::is_same_v<Plain, std::string>) ||
        !nb::try_cast(value, out, !std::is_same_v<Plain, bool>)) {
      wrong();
    }
    return out;
  }
}

namespace detail {

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class C, class R, class... Args>
struct Signature<R (C::*)(Args...) const> {
  using Arguments = std::tuple<Args...>;
};
template <class R, class... Args>
struct Signature<R (*)(Args...)> {
  using Arguments = std::tuple<Args...>;
};

/// Calls work(self..., arguments of the call...).
template <class Work, class... Self>
decltype(auto) bound_call(const Call& call, const Work& work, const nb::args& args,
                          const nb::kwargs& kwargs, Self&&... self) {
  using All = typename Signature<Work>::Arguments;
  constexpr std::size_t kOwn = sizeof...(Self);
  const std::vector<nb::object> values = call.bind(args, kwargs);
  return [&]<std::size_t... i>(std::index_sequence<i...>) -> decltype(auto) {
    return work(std::forward<Self>(self)...,
                converted<std::tuple_element_t<kOwn + i, All>>(values[i], call, i)...);
  }(std::make_index_sequence<std::tuple_size_v<All> - kOwn>());
}

}  // namespace detail

/// A static function, for def_static or def.
template <class Work>
auto checked(Call call, Work work) {
  return [call = std::move(call), work](const nb::args& args, const nb::kwargs& kwargs) {
    return detail::bound_call(call, work, args, kwargs);
  };
}
/// A method whose first parameter is a Self&, or an __init__ whose first one is a Self*.
template <class Self, class Work>
auto checked_method(Call call, Work work) {
  return [call = std::move(call), work](Self self, const nb::args& args, const nb::kwargs& kwargs) {
    return detail::bound_call(call, work, args, kwargs, self);
  };
}

}  // namespace jali::python
