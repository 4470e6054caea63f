// The devices of this machine.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arguments.h"
#include "binding.h"
#include "jali/device/tuning.h"

namespace jali::python {

using namespace nb::literals;

namespace {

/// (device, variants, warning)
using Resolved = std::tuple<std::string, backend::Variants, std::string>;

Resolved resolve(const std::string& name, const std::optional<std::string>& word, int log_n) {
  if (!word) {
    const auto r = device::resolve(name);
    return {r.device, {}, r.warning};
  }
  const auto r = backend::resolve(name, parsed_word(*word), log_n);
  return {r.device, r.variants, r.warning};
}

std::map<std::string, std::vector<std::string>> variant_families(const std::string& device) {
  std::map<std::string, std::vector<std::string>> families;
  for (const auto& f : backend::variant_families(device)) families[f.family] = f.names;
  return families;
}

}  // namespace

void bind_device(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  m.def(
      "resolve", &resolve, "name"_a, "word"_a = nb::none(), "log_n"_a = 0, nogil(),
      "(device, variants, warning): \"cpu\" or \"cuda:K\" for \"auto\" and \"cuda\"; of a word and "
      "log2 N also what jali tune found fastest there, by family; what to warn of, or \"\".");
  m.def("device_name", &device::device_name, "device"_a, nogil(),
        "A GPU's name, empty where there is none; else the processor's model and cores.");
  m.def("cpu_isas", &backend::cpu_isas,
        "The instruction sets of the CPU engine that this machine can run, best first.");
  m.def("cuda_device_count", &backend::cuda_device_count,
        "How many NVIDIA GPUs device=\"cuda\" can use; 0 without a driver, or in a build without "
        "the CUDA engine.");
  m.def("cuda_trouble", &backend::cuda_trouble,
        "Why cuda_device_count() is 0 although there are a driver and a GPU; otherwise empty.");
  m.def(
      "variant_families", &variant_families, "device"_a,
      "What variants= may choose on a device, by family. The first name is the engine's default.");
  m.def(
      "tuning_file", [] { return device::tuning_file().string(); },
      "The file of jali tune; empty for a user without a home.");
  m.def(
      "measured",
      [](const std::string& device) {
        return device::Tuning::read(device::tuning_file()).measured(device::hardware(device));
      },
      "device"_a, nogil(),
      "What jali tune found on a device: choices by (word, log2 N). Raises InvalidArgument if the "
      "file is damaged.");
  m.def(
      "keep_measured",
      [](const std::string& device, const device::Measured& found) {
        return device::keep(device, found).string();
      },
      "device"_a, "found"_a, nogil(),
      "Adds to the tuning file and returns its name. A damaged file is replaced. Raises "
      "Unsupported "
      "if it cannot be written.");
  m.def("default_threads", &default_threads,
        "JALI_NUM_THREADS, or the number of cores this process may use.");
}

}  // namespace jali::python
