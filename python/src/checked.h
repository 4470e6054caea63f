// Functions whose wrong arguments are refused in a sentence that names them. nanobind would print
// all its signatures.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <complex>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "arguments.h"
#include "binding.h"

namespace jali::python {

/// A parameter of a function of Python. It is needed if it has no default.
struct Parameter {
  const char* name;
  std::optional<nb::object> fallback = std::nullopt;
  const char* type = nullptr;  // as a signature of methods.h shows it, if it is not the one of C++
};

/// The parameters of one function, in order.
class Call {
 public:
  /// name: e.g. "Params.create". positional: how many of the parameters may be given without their
  /// name.
  Call(std::string name, std::size_t positional, std::vector<Parameter> parameters)
      : name_(std::move(name)), positional_(positional), parameters_(std::move(parameters)) {}

  /// The argument of each parameter. Raises WrongCall if there are too many, too few or unknown
  /// ones.
  std::vector<nb::object> bind(const nb::args& args, const nb::kwargs& kwargs) const;
  /// "max_bytes of Ciphertext.from_bytes"
  std::string what(std::size_t parameter) const;
  /// Raises WrongCall: the method was called on an object of another class. wanted: e.g. "a
  /// ckks.Ciphertext".
  [[noreturn]] void refuse_self(const std::string& wanted) const;
  std::size_t positional() const { return positional_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

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
template <>
struct Wanted<Rotations> {
  static std::string text() { return "a sequence of whole numbers, or \"powers\""; }
};
template <class T>
struct Wanted<T*> : Wanted<std::remove_const_t<T>> {};
template <class T>
struct Wanted<std::optional<T>> {
  static std::string text() { return Wanted<T>::text() + ", or None"; }
};

/// A class of this extension.
template <class T>
inline constexpr bool kBound = nb::detail::is_base_caster_v<nb::detail::make_caster<T>>;

/// The object within an object of Python; null if that is of another class, or was never
/// constructed.
template <class T>
T* held(nb::handle object) {
  return nb::isinstance<T>(object) && nb::inst_ready(object) ? nb::inst_ptr<T>(object) : nullptr;
}

/// The argument as a T, or a reference to it if T is a class of this extension. Throws
/// InvalidArgument for other types.
template <class T>
decltype(auto) converted(const nb::object& value, const Call& call, std::size_t parameter) {
  using Plain = std::remove_cvref_t<T>;
  const auto wrong = [&] {
    refuse(call.what(parameter).c_str(), Wanted<Plain>::text().c_str(), value);
  };
  if constexpr (std::is_same_v<Plain, nb::handle>) {
    return nb::handle(value);
  } else if constexpr (kBound<Plain>) {
    Plain* const object = held<Plain>(value);
    if (object == nullptr) wrong();
    return static_cast<Plain&>(*object);
  } else {
    Plain out{};
    // A bool is no number here, and a text no sequence.
    if ((PyBool_Check(value.ptr()) && !std::is_same_v<Plain, bool>) ||
        (PyUnicode_Check(value.ptr()) && !std::is_same_v<Plain, std::string> &&
         !std::is_same_v<Plain, Rotations>) ||
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
  using Result = R;
};
template <class R, class... Args>
struct Signature<R (*)(Args...)> {
  using Arguments = std::tuple<Args...>;
  using Result = R;
};

struct NoGuard {};

/// Calls work(self..., arguments of the call...) under a guard, which sees converted arguments.
template <class Guard, class Work, class... Self>
decltype(auto) bound_call(const Call& call, const Work& work, const nb::args& args,
                          const nb::kwargs& kwargs, Self&&... self) {
  using All = typename Signature<Work>::Arguments;
  constexpr std::size_t kOwn = sizeof...(Self);
  const std::vector<nb::object> values = call.bind(args, kwargs);
  return [&]<std::size_t... i>(std::index_sequence<i...>) -> decltype(auto) {
    using Converted =
        std::tuple<decltype(converted<std::tuple_element_t<kOwn + i, All>>(values[i], call, i))...>;
    Converted arguments{converted<std::tuple_element_t<kOwn + i, All>>(values[i], call, i)...};
    [[maybe_unused]] const Guard guard;
    return work(std::forward<Self>(self)...,
                static_cast<std::tuple_element_t<i, Converted>&&>(std::get<i>(arguments))...);
  }(std::make_index_sequence<std::tuple_size_v<All> - kOwn>());
}

}  // namespace detail

/// A static function, for def_static or def.
template <class Work>
auto checked(Call call, Work work) {
  return [call = std::move(call), work](const nb::args& args, const nb::kwargs& kwargs) {
    return detail::bound_call<detail::NoGuard>(call, work, args, kwargs);
  };
}

/// A method whose first parameter is a Self&, or an __init__ whose first one is a Self*. Guard: as
/// for nb::call_guard.
template <class Self, class Guard = detail::NoGuard, class Work>
auto checked_method(Call call, Work work) {
  if constexpr (std::is_pointer_v<Self>) {
    return
        [call = std::move(call), work](Self self, const nb::args& args, const nb::kwargs& kwargs) {
          return detail::bound_call<Guard>(call, work, args, kwargs, self);
        };
  } else {
    return [call = std::move(call), work](nb::handle self, const nb::args& args,
                                          const nb::kwargs& kwargs) {
      using Plain = std::remove_cvref_t<Self>;
      Plain* const object = held<Plain>(self);
      if (object == nullptr) call.refuse_self(Wanted<Plain>::text());
      return detail::bound_call<Guard>(call, work, args, kwargs, static_cast<Self>(*object));
    };
  }
}

}  // namespace jali::python
