// Engines, which the evaluators of many clients share.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "ckks_server.h"
#include "commit.h"
#include "interrupts.h"
#include "refusals.h"
#include "trace.h"

namespace jali::python {

using namespace nb::literals;

Engine make_engine(const ckks::ParamsPtr& params, const std::string& device, int threads,
                   bool trace, const backend::Variants& variants, bool dry) {
  Engine made;
  made.params = params;
  made.checkpoints = std::make_shared<Checkpoints>();
  const Checkpoint checkpoint = [signals = interrupts(), checkpoints = made.checkpoints] {
    signals();
    (*checkpoints)();
  };
  if (dry && device == "dry") {
    made.ring = ckks::make_dry_ring(*params, checkpoint);
  } else {
    made.ring = ckks::make_ring(*params, device, threads == 0 ? default_threads() : threads,
                                variants, checkpoint);
  }
  made.engine = made.ring->engine().name();
  if (trace) {
    made.trace = std::make_shared<backend::Trace>(commit());
    made.ring = traced(made.ring, *params, made.trace);
  }
  made.shared = ckks::Engine::make(params, made.ring);
  made.plans = std::make_shared<const bootstrap::Plans>(made.shared);
  made.probe = std::make_shared<const device::Buffer>(made.ring->scratch(64));
  return made;
}

void bind_engine(nb::module_& m) {
  nb::class_<Engine>(m, "EngineCore", "See jali.ckks.Engine.")
      .def(
          "__init__",
          [](Engine* self, const Params& params, const std::string& device, int threads, bool trace,
             const backend::Variants& variants) {
            const nb::gil_scoped_release release;
            new (self) Engine(make_engine(params.ptr, device, threads, trace, variants));
          },
          "params"_a, "device"_a, "threads"_a, "trace"_a, "variants"_a)
      .def_prop_ro(
          "params", [](const Engine& e) { return Params{e.params}; }, "Its parameters.")
      .def_prop_ro(
          "engine", [](const Engine& e) { return e.engine; }, "Backend and instruction set.")
      .def_prop_ro(
          "threads", [](const Engine& e) { return e.ring->engine().threads(); },
          "The number of threads that it computes with.")
      .def_prop_ro(
          "bytes_in_use", [](const Engine& e) { return e.ring->pool()->bytes_in_use(); },
          "The bytes of its pool that are in use.")
      .def(
          "exchange_checkpoint",
          [](const Engine& e, nb::object function) {
            return e.checkpoints->exchange(std::move(function));
          },
          "function"_a.none(),
          "Sets the function that long work of this thread calls, or None; returns the one "
          "before.");
}

}  // namespace jali::python
