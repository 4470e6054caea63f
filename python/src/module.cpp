// The extension module jali._jali.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <vector>

#include "binding.h"
#include "jali/backend/engines.h"

namespace jali::python {

namespace {

nb::dict build_info() {
  nb::dict info;
  info["version"] = JALI_VERSION;
#if defined(__clang__)
  info["compiler"] = "clang " __clang_version__;
#elif defined(__GNUC__)
  info["compiler"] = "gcc " __VERSION__;
#else
  info["compiler"] = "unknown";
#endif
  info["cuda"] = backend::has_cuda();
#ifdef NDEBUG
  info["assertions"] = false;
#else
  info["assertions"] = true;
#endif
  return info;
}

}  // namespace

}  // namespace jali::python

NB_MODULE(_jali, m) {
  using namespace jali::python;
  m.doc() = "The compiled core of Jali. Use the package jali, which wraps it.";
  register_errors(m);
  bind_params(m);
  bind_trace(m);
  bind_values(m);
  bind_client(m);
  bind_explicit(m);
  bind_circuits(m);
  bind_evaluator(m);
  bind_program(m);
  bind_bench(m);
  m.def("build_info", &build_info, nb::sig("def build_info() -> dict[str, typing.Any]"),
        "Facts about this build: version, compiler, whether a CUDA backend is in it.");
  m.def("cpu_isas", &jali::backend::cpu_isas,
        "Instruction sets of the cpu device that this machine can run, best first.");
  m.def("cuda_device_count", &jali::backend::cuda_device_count,
        "NVIDIA GPUs that device=\"cuda\" can use; 0 without a driver or in a build without it.");
  m.def("cuda_trouble", &jali::backend::cuda_trouble,
        "Why that is 0 where there are a driver and a GPU; else empty.");
  m.def("cuda_device_name", &jali::backend::cuda_device_name, nb::arg("device") = 0,
        "Its name, e.g. NVIDIA H100 80GB HBM3; empty where there is none.");
  m.def(
      "cuda_variants",
      [] {
        std::map<std::string, std::vector<std::string>> families;
        for (const auto& f : jali::backend::cuda_variants()) families[f.family] = f.names;
        return families;
      },
      "What variants= may choose on a GPU, by family; the first name is the engine's own choice.");
  m.def("default_threads", &jali::default_threads,
        "JALI_NUM_THREADS, or the number of cores this process may use.");
}
