// The engines there are: how each is made, and what this build and this machine have.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "jali/arith/word.h"
#include "jali/backend/config.h"
#include "jali/backend/engine.h"
#include "jali/device/faults.h"

namespace jali::backend {

/// cpu/: throws Unsupported if config.isa names a set this machine lacks.
std::unique_ptr<Engine> make_cpu_engine(Config config);
/// cpu/ with memory of its own that the host may not touch, as a GPU has: for tests of what crosses.
std::unique_ptr<Engine> make_apart_engine(Config config);
/// Instruction sets this machine can run, best first, e.g. {"ifma", "avx512", "avx2", "portable"}.
std::vector<std::string> cpu_isas();
/// Butterflies a second that one thread does on registers, measured now for some milliseconds: the
/// ceiling of the transforms, of which benchmarks print the fraction reached. isa as in Config.
double cpu_butterfly_rate(Word word, const std::string& isa);

/// ref/: the oracle.
std::unique_ptr<Engine> make_ref_engine(Config config);

/// cuda/: one NVIDIA GPU, on a stream of its own; views point to memory(). Throws InvalidArgument for a
/// variant that cuda_variants does not list, NoDevice when this build has no CUDA engine or this machine
/// no such GPU.
std::unique_ptr<Engine> make_cuda_engine(Config config, int device = 0);
/// How a GPU engine may be set up.
struct GpuOptions {
  int device = 0;
  std::size_t memory_cap = 0;  // bytes that its blocks may take; 0: all that the GPU has
  bool poison = false;  // freed blocks are overwritten (tests)
  std::shared_ptr<device::Faults> faults = nullptr;  // put into its calls of the driver (tests)
};
std::unique_ptr<Engine> make_cuda_engine(Config config, const GpuOptions& options);
/// What Config::variants may choose on a GPU; empty in a build without the CUDA engine. A variant that
/// does not serve a word, a ring degree or a GPU gives way to the engine's own choice there.
std::vector<VariantFamily> cuda_variants();
/// Whether this build has the CUDA engine.
bool has_cuda();
/// NVIDIA GPUs that make_cuda_engine can use, 0 .. count - 1; 0 without a driver, the engine or code for them.
int cuda_device_count();
/// Why that is 0 where there are a driver and a GPU: what make_cuda_engine would throw; else empty.
std::string cuda_trouble();
/// What a GPU does at most, measured now: butterflies a second on registers, and bytes read plus written
/// a second when its memory is copied. Floors of operations divide by these.
struct CudaPeak {
  double butterflies = 0;
  double bytes = 0;
};
CudaPeak cuda_peak(Word word, int device = 0);
/// Name of a GPU, e.g. "NVIDIA H100 80GB HBM3"; empty where there is none.
std::string cuda_device_name(int device = 0);

}  // namespace jali::backend
