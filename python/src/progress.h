// Reports the progress of long operations to a function of Python.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "binding.h"

namespace jali::python {

using Progress = nb::typed<nb::callable, nb::object(std::size_t, std::size_t)>;

/// A function that calls `progress` with the interpreter's lock. If `progress` raises, the
/// operation ends.
inline std::function<void(std::size_t, std::size_t)> with_gil(
    const std::optional<Progress>& progress) {
  if (!progress) return {};
  return [&call = *progress](std::size_t done, std::size_t total) {
    const nb::gil_scoped_acquire gil;
    call(done, total);
  };
}

}  // namespace jali::python
