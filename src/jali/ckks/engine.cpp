#include "jali/ckks/engine.h"

#include <utility>

#include "jali/backend/engines.h"
#include "jali/base/error.h"
#include "jali/device/resolve.h"

namespace jali::ckks {

std::unique_ptr<backend::Engine> make_engine(backend::Config config, std::string device) {
  if (device == "ref") return backend::make_ref_engine(std::move(config));
  if (device == "cpu/apart") return backend::make_apart_engine(std::move(config));
  device = device::resolve(device).device;
  if (const auto gpu = device::gpu_number(device)) {
    return backend::make_cuda_engine(std::move(config), *gpu);
  }
  if (device.starts_with("cpu/")) {
    config.isa = device.substr(4);
  } else {
    require<NoDevice>(device == "cpu", [&] {
      return "unknown device \"" + device + "\": use \"auto\", \"cpu\" or \"cuda\"";
    });
  }
  return backend::make_cpu_engine(std::move(config));
}

std::shared_ptr<const ring::Ring> make_ring(const Params& params, const std::string& device,
                                            int threads,
                                            std::map<std::string, std::string> variants,
                                            Checkpoint checkpoint) {
  backend::Config config;
  config.word = params.word();
  config.n = params.n();
  config.primes.assign(params.primes().begin(), params.primes().end());
  config.threads = threads;
  config.variants = std::move(variants);
  return std::make_shared<const ring::Ring>(make_engine(std::move(config), device),
                                            std::move(checkpoint));
}

}  // namespace jali::ckks
