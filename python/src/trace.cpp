#include "trace.h"

#include <nanobind/stl/string.h>

#include <string>

#include "methods.h"
#include "refusals.h"

namespace jali::python {

namespace {

nb::dict totals(const Trace& t) {
  nb::dict out;
  for (const auto& total : t.ptr->totals()) {
    nb::dict entry;
    entry["count"] = total.count;
    entry["bytes_read"] = total.bytes_read;
    entry["bytes_written"] = total.bytes_written;
    entry["mults"] = total.mults;
    entry["stream_bytes"] = total.stream_bytes;
    entry["complex_butterflies"] = total.complex_butterflies;
    entry["complex_products"] = total.complex_products;
    entry["seconds"] = total.seconds;
    out[total.op.c_str()] = entry;
  }
  return out;
}

}  // namespace

void bind_trace(nb::module_& m) {
  using nogil = nb::gil_scoped_release;
  nb::class_<Trace> trace(
      m, "Trace", R"(Every operation of the engine that an Evaluator or Client ran, in order.

It holds names, shapes, bytes and times, but no data and nothing secret.

>>> client = ckks.Client(ckks.Params.create(depth=1))
>>> server = ckks.Evaluator(client.params, client.evaluation_keys(), trace=True)
>>> product = server.bind(client.encrypt([0.5])) ** 2
>>> len(server.trace()) > 0
True)");
  refuse_constructor(trace, "a Trace is what Evaluator(..., trace=True).trace() gives");
  method<nogil>(
      trace, "json_lines", 0, {}, [](const Trace& t) { return t.ptr->json_lines(); },
      "The trace as text, schema 1 of docs/format.md: a line with a JSON object that describes "
      "the engine, then one for each operation.");
  method<nogil>(
      trace, "summary", 0, {}, [](const Trace& t) { return t.ptr->summary(); },
      "A table of the totals of each kind of operation.");
  method(trace, "clear", 0, {}, [](const Trace& t) { t.ptr->clear(); }, "Forget all records.");
  trace
      .def("totals", checked_method<const Trace&>({"Trace.totals", 0, {}}, &totals),
           nb::sig("def totals(self) -> dict[str, dict[str, float]]"),
           "The sums by operation: count, bytes_read, bytes_written, mults, stream_bytes, "
           "complex_butterflies, complex_products and seconds.")
      .def("__len__", [](const Trace& t) { return t.ptr->size(); })
      .def("__repr__", [](const Trace& t) {
        return "Trace(" + std::to_string(t.ptr->size()) + " operations)";
      });
}

}  // namespace jali::python
