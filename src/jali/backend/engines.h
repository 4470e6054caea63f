// The engines there are: how each is made, and what this build and this machine have.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jali/arith/word.h"
#include "jali/backend/config.h"
#include "jali/backend/engine.h"
#include "jali/device/device.h"
#include "jali/device/gpu.h"

namespace jali::backend {

/// cpu/: throws Unsupported if config.isa names a set this machine lacks.
std::unique_ptr<Engine> make_cpu_engine(Config config);
/// The same on a device that other engines share: the host (device::host_device), or
/// InvalidArgument.
std::unique_ptr<Engine> make_cpu_engine(Config config, std::shared_ptr<device::Device> device);
/// cpu/ with memory of its own that the host may not touch, as a GPU has: for tests of what
/// crosses.
std::unique_ptr<Engine> make_apart_engine(Config config);
/// Instruction sets this machine can run, best first, e.g. {"ifma", "avx512", "avx2", "portable"}.
std::vector<std::string> cpu_isas();
/// Butterflies a second that one thread does on registers, measured now for some milliseconds: the
/// ceiling of the transforms, of which benchmarks print the fraction reached. isa as in Config.
double cpu_butterfly_rate(Word word, const std::string& isa);

/// ref/: the oracle.
std::unique_ptr<Engine> make_ref_engine(Config config);

/// dry/: gives out memory that is never touched, and computes nothing. No name of a device leads to
/// it.
std::unique_ptr<Engine> make_dry_engine(Config config);

/// cuda/: one NVIDIA GPU, on a stream of its own; views point to memory(). Throws InvalidArgument
/// for a variant that cuda_variants does not list, and NoDevice if this build has no CUDA engine or
/// this machine has no such GPU.
std::unique_ptr<Engine> make_cuda_engine(Config config, int device = 0);
using device::GpuOptions;
std::unique_ptr<Engine> make_cuda_engine(Config config, const GpuOptions& options);
/// The same on a GPU that other engines share (device::gpu_device), or InvalidArgument for another
/// device.
std::unique_ptr<Engine> make_cuda_engine(Config config, std::shared_ptr<device::Device> device);
/// What Config::variants may choose on a GPU; empty in a build without the CUDA engine. A variant
/// that does not serve a word, a ring degree or a GPU gives way to the engine's own choice there.
std::vector<VariantFamily> cuda_variants();
using device::cuda_device_count;
using device::cuda_device_name;
using device::cuda_trouble;
using device::has_cuda;
/// What a GPU does at most, measured now: butterflies a second on registers, and bytes read plus
/// written a second when its memory is copied. Benchmarks divide an operation's work by these for
/// its least time.
struct CudaPeak {
  double butterflies = 0;
  double bytes = 0;
};
CudaPeak cuda_peak(Word word, int device = 0);

}  // namespace jali::backend
