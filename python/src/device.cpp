// The devices of this machine.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <vector>

#include "binding.h"

namespace jali::python {

using namespace nb::literals;

void bind_device(nb::module_& m) {
  m.def("cpu_isas", &backend::cpu_isas,
        "The instruction sets of the CPU engine that this machine can run, best first.");
  m.def("cuda_device_count", &backend::cuda_device_count,
        "How many NVIDIA GPUs device=\"cuda\" can use; 0 without a driver, or in a build without "
        "the CUDA engine.");
  m.def("cuda_trouble", &backend::cuda_trouble,
        "Why cuda_device_count() is 0 although there are a driver and a GPU; otherwise empty.");
  m.def("cuda_device_name", &backend::cuda_device_name, "device"_a = 0,
        "The name of a GPU, e.g. NVIDIA H100 80GB HBM3; empty if there is no such GPU.");
  m.def(
      "cuda_variants",
      [] {
        std::map<std::string, std::vector<std::string>> families;
        for (const auto& f : backend::cuda_variants()) families[f.family] = f.names;
        return families;
      },
      "What variants= may choose on a GPU, by family. The first name is the engine's default.");
  m.def("default_threads", &default_threads,
        "JALI_NUM_THREADS, or the number of cores this process may use.");
}

}  // namespace jali::python
