// The extension module jali._jali_bench: what jali.bench measures below the level of ciphertexts. Built beside
// jali._jali, which holds none of it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/engine/call_loop.h"
#include "bench/engine/engine_bench.h"
#include "jali/backend/engines.h"
#include "jali/backend/peak.h"
#include "python/src/binding.h"
#include "python/src/bytes.h"

namespace nb = nanobind;

namespace jali::bench {

namespace {

Word word_of(const std::string& name) {
  const auto word = word_named(name);
  require<InvalidArgument>(word.has_value(),
                           [&] { return "unknown word \"" + name + "\": use w32, w52 or w64"; });
  return *word;
}

nb::dict cost_of(EngineBench& bench, const std::string& operation) {
  const auto cost = bench.cost(operation);
  nb::dict out;
  out["mults"] = cost.mults;
  out["bytes"] = cost.bytes;
  out["in_place"] = cost.in_place;
  out["stream_bytes"] = cost.stream_bytes;
  out["complex_butterflies"] = cost.complex_butterflies;
  return out;
}

}  // namespace

}  // namespace jali::bench

NB_MODULE(_jali_bench, m) {
  using namespace jali::bench;
  using namespace nb::literals;
  using jali::Word;
  namespace backend = jali::backend;
  m.doc() = "What benchmarks measure below the level of ciphertexts.";
  jali::python::register_errors(m);
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  m.def(
      "butterfly_rate",
      [](const std::string& word, const std::string& isa) {
        nb::gil_scoped_release release;
        return backend::cpu_butterfly_rate(word_of(word), isa);
      },
      "word"_a, "isa"_a = "",
      "Butterflies a second that one thread does on registers, measured now; isa: \"\" for the "
      "best.");
  m.def("complex_butterfly_rate", &backend::cpu_complex_butterfly_rate, "isa"_a = "", nogil(),
        "The same for butterflies of complex doubles.");
  m.def("read_rate", &backend::cpu_read_rate, "isa"_a, "bytes"_a, nogil(),
        "Bytes a second that one thread reads of a block of so many, over and over.");
  m.def("stream_rate", &backend::cpu_stream_rate, nogil(),
        "Bytes of a ChaCha20 stream a second that one thread makes.");
  m.def(
      "cuda_peak",
      [](const std::string& word, int device) {
        backend::CudaPeak peak;
        {
          nb::gil_scoped_release release;
          peak = backend::cuda_peak(word_of(word), device);
        }
        return std::pair(peak.butterflies, peak.bytes);
      },
      "word"_a, "device"_a = 0,
      "Butterflies a second on registers, and bytes read plus written a second by a copy: of a "
      "whole "
      "GPU, measured now.");
  nb::class_<CallLoop>(m, "CallLoop", "Calls of an evaluator's operations from C++, back to back.")
      .def(
          "__init__",
          [](CallLoop* self, nb::handle params, const std::string& device) {
            const jali::python::BytesView view(params);
            new (self) CallLoop(view.span(), device);
          },
          "params"_a, "device"_a, nb::sig("def __init__(self, params: bytes, device: str) -> None"))
      .def("seconds", &CallLoop::seconds, "operation"_a, "count"_a, nogil(),
           "Seconds of one of `count` calls of add or negate.");
  nb::class_<EngineBench>(m, "EngineBench", "The engine's operations one by one.")
      .def(
          "__init__",
          [](EngineBench* self, const std::string& device, const std::string& word, int log_n,
             int limbs, int special, int alpha, std::size_t batch, int prime_bits, int threads,
             const std::map<std::string, std::string>& variants) {
            new (self)
                EngineBench(device, word_of(word),
                            {log_n, limbs, special, alpha, batch, prime_bits}, threads, variants);
          },
          "device"_a, "word"_a, nb::kw_only(), "log_n"_a, "limbs"_a = 1, "special"_a = 0,
          "alpha"_a = 1, "batch"_a = 1, "prime_bits"_a = 0, "threads"_a = 1,
          "variants"_a = std::map<std::string, std::string>{},
          nb::sig("def __init__(self, device: str, word: str, *, log_n: int, limbs: int = 1, "
                  "special: int = 0, alpha: int = 1, batch: int = 1, prime_bits: int = 0, "
                  "threads: int = 1, variants: dict[str, str] = {}) -> None"))
      .def_static(
          "operations",
          [] {
            std::vector<std::pair<std::string, std::string>> out;
            for (const auto& o : operations()) out.emplace_back(o.name, o.about);
            return out;
          },
          "Names of what it measures, and what each is.")
      .def_prop_ro("engine", &EngineBench::engine, "Backend and instruction set.")
      .def_prop_ro("prime_bits", &EngineBench::prime_bits, "log2 of the largest prime.")
      .def("check", &EngineBench::check, "operation"_a, nogil(),
           "Whether it writes the bytes that a reference engine writes, on fresh random residues.")
      .def(
          "cost", &cost_of, "operation"_a,
          nb::sig("def cost(self, operation: str) -> dict[str, float]"),
          "mults: modular multiplications of the definition; bytes: every operand and result once; "
          "in_place: of these, what is written where it was read; stream_bytes: of ChaCha20; "
          "complex_butterflies: of the embedding.")
      .def("run", &EngineBench::run, "operation"_a, "seconds"_a, nogil(),
           "Seconds of one operation, over and over, for about this long.")
      .def(
          "steps",
          [](EngineBench& bench, const std::string& operation) {
            std::vector<std::pair<std::string, double>> out;
            for (const auto& step : bench.steps(operation)) {
              out.emplace_back(step.name, step.seconds);
            }
            return out;
          },
          "operation"_a, nogil(),
          nb::sig("def steps(self, operation: str) -> list[tuple[str, float]]"),
          "Its kernels on a GPU and the time of each alone; empty on a CPU.");
}
