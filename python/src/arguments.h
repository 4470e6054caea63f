// Arguments that may have any Python type. They are checked one by one, so that an error names the
// wrong one.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "jali/arith/word.h"
#include "jali/base/error.h"
#include "jali/params/ckks/noise.h"

namespace jali::python {

namespace nb = nanobind;

/// Raises an error of Python that has no class in C++. kind: its name in jali.errors, e.g.
/// "WrongCall".
[[noreturn]] inline void raise_python(const char* kind, const std::string& message) {
  const nb::object type = nb::module_::import_("jali.errors").attr(kind);
  PyErr_SetString(type.ptr(), message.c_str());
  throw nb::python_error();
}

/// Throws InvalidArgument: "depth must be a whole number, not '2'".
[[noreturn]] inline void refuse(const char* what, const char* kind, nb::handle value) {
  const auto shown = nb::module_::import_("jali._core.checks").attr("shown")(value);
  throw InvalidArgument(std::string(what) + " must be " + kind + ", not " +
                        nb::cast<std::string>(shown));
}

/// The value as an int, from a whole number of Python or NumPy; nothing for None. Throws
/// InvalidArgument for anything else.
inline std::optional<int> whole(nb::handle value, const char* what) {
  if (value.is_none()) return std::nullopt;
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) {
    refuse(what, "a whole number", value);
  }
  const auto index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long number = PyLong_AsLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0 || number > std::numeric_limits<int>::max() ||
      number < std::numeric_limits<int>::min()) {
    refuse(what, "a whole number of 32 bits", value);
  }
  return static_cast<int>(number);
}

/// The value as a double, from a number of Python or NumPy; nothing for None. Throws
/// InvalidArgument for anything else.
inline std::optional<double> real(nb::handle value, const char* what) {
  if (value.is_none()) return std::nullopt;
  const bool text = PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr());
  const double number = text || PyBool_Check(value.ptr()) ? -1 : PyFloat_AsDouble(value.ptr());
  if (text || PyBool_Check(value.ptr()) || PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    refuse(what, "a number", value);
  }
  return number;
}

inline std::string text(nb::handle value, const char* what) {
  std::string out;
  if (!nb::try_cast(value, out, false)) refuse(what, "a string", value);
  return out;
}

inline bool flag(nb::handle value, const char* what) {
  if (!PyBool_Check(value.ptr())) refuse(what, "True or False", value);
  return value.ptr() == Py_True;
}

/// Throws InvalidArgument for other names.
inline Word parsed_word(const std::string& name) {
  const auto word = word_named(name);
  require<InvalidArgument>(word.has_value(), [&] {
    return "unknown word \"" + name + "\": use \"w32\", \"w52\", \"w64\" or \"auto\"";
  });
  return *word;
}

/// peak 0 stands for 8 times the magnitude. Throws InvalidArgument for numbers that are not finite
/// or out of range.
inline jali::params::Declared checked_declared(double magnitude, double peak) {
  require<InvalidArgument>(std::isfinite(magnitude) && magnitude > 0,
                           "magnitude must be a positive number: the root mean square of this kind "
                           "of values");
  require<InvalidArgument>(std::isfinite(peak) && (peak == 0 || peak >= magnitude),
                           "peak must be at least the magnitude: no value may be larger than it");
  return peak == 0 ? jali::params::Declared(magnitude) : jali::params::Declared(magnitude, peak);
}

/// The bound that a caller claims for a result; without a claim there is none.
inline double claimed(std::optional<double> peak) {
  require<InvalidArgument>(
      !peak || *peak > 0,
      "peak is a positive number: the largest modulus that the result can have");
  return peak.value_or(jali::params::kUnbounded);
}

}  // namespace jali::python
