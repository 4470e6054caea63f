// Records of the logger "jali" (python/jali/_core/log.py).
#pragma once

#include <nanobind/nanobind.h>

#include <type_traits>

namespace jali::python {

/// Python's logger.info(format, numbers...). Needs the interpreter's lock. Numbers alone, so that
/// no secret gets there.
template <class... Numbers>
void log_info(const char* format, Numbers... numbers) {
  static_assert((std::is_arithmetic_v<Numbers> && ...));
  nanobind::module_::import_("jali._core.log").attr("logger").attr("info")(format, numbers...);
}

}  // namespace jali::python
