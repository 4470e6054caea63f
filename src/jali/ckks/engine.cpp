#include "jali/ckks/engine.h"

#include "jali/base/error.h"

namespace jali::ckks {

std::shared_ptr<const ring::Ring> make_ring(const params::CkksParams& params,
                                            const std::string& device, int threads) {
  backend::Config config;
  config.word = params.word();
  config.n = params.n();
  config.primes.assign(params.primes().begin(), params.primes().end());
  config.threads = threads;
  if (device == "ref") {
    return std::make_shared<const ring::Ring>(
        std::shared_ptr<const backend::Ops>(backend::make_ref_ops(std::move(config))));
  }
  require<NoDevice>(!device.starts_with("cuda"),
                    "this build has no CUDA backend: use device=\"cpu\" or \"auto\"");
  if (device.starts_with("cpu/")) {
    config.isa = device.substr(4);
  } else {
    require<NoDevice>(device == "cpu" || device == "auto",
                      [&] { return "unknown device \"" + device + "\": use \"auto\" or \"cpu\""; });
  }
  return std::make_shared<const ring::Ring>(
      std::shared_ptr<const backend::Ops>(backend::make_cpu_ops(std::move(config))));
}

}  // namespace jali::ckks
