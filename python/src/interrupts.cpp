#include "interrupts.h"

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <memory>

namespace jali::python {

namespace nb = nanobind;

namespace {

using Clock = std::chrono::steady_clock;
/// Short enough for a person who waits, and long enough that other threads, which must release the
/// interpreter for it, do not slow down.
constexpr Clock::duration kPeriod = std::chrono::milliseconds(100);

unsigned long main_thread() {
  const nb::gil_scoped_acquire gil;
  return nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
}

}  // namespace

Checkpoint interrupts() {
  auto due = std::make_shared<std::atomic<Clock::rep>>(0);
  return [due = std::move(due), main = main_thread()] {
    if (PyThread_get_thread_ident() != main) return;
    const Clock::duration now = Clock::now().time_since_epoch();
    if (now.count() < due->load(std::memory_order_relaxed)) return;
    due->store((now + kPeriod).count(), std::memory_order_relaxed);
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
}

}  // namespace jali::python
