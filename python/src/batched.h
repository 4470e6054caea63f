// What the batchers of all schemes tell Python, and hear from it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "binding.h"
#include "counters.h"
#include "jali/base/error.h"
#include "log.h"

namespace jali::python {

/// If a smaller batch may help against the error, throws it as an error of the core, so that its
/// batcher tries one. Otherwise it does nothing. Needs the GIL.
inline void rethrow_too_large(const nb::python_error& error) {
  const nb::object unsupported = nb::module_::import_("jali.errors").attr("Unsupported");
  const auto message = [&] { return std::string(nb::str(error.value()).c_str()); };
  if (error.matches(PyExc_MemoryError)) throw OutOfMemory(message());
  if (error.matches(unsupported)) throw Unsupported(message());
}

/// A ring::Batching::Smaller that counts and logs the batches that were refused.
inline auto tells_smaller(std::shared_ptr<Counters> counters) {
  return [counters = std::move(counters)](std::size_t refused, std::size_t largest) {
    count(counters->fallbacks);
    const nb::gil_scoped_acquire gil;
    log_info("a batch of %d has no memory, or is too large: batches of up to %d from now on",
             refused, largest);
  };
}

}  // namespace jali::python
