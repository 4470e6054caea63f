#include "jali/ckks/engine.h"

#include <utility>

#include "jali/backend/engines.h"
#include "jali/base/error.h"

namespace jali::ckks {

std::unique_ptr<backend::Engine> make_engine(backend::Config config, std::string device) {
  if (device == "ref") return backend::make_ref_engine(std::move(config));
  if (device == "cpu/apart") return backend::make_apart_engine(std::move(config));
  if (device == "auto" && backend::cuda_device_count() > 0) device = "cuda";
  if (device == "cuda" || device.starts_with("cuda:")) {
    const std::string number = device == "cuda" ? "0" : device.substr(5);
    require<InvalidArgument>(
        !number.empty() && number.size() < 4 &&
            number.find_first_not_of("0123456789") == std::string::npos,
        [&] { return "unknown device \"" + device + "\": use \"cuda\" or \"cuda:0\""; });
    return backend::make_cuda_engine(std::move(config), std::stoi(number));
  }
  if (device.starts_with("cpu/")) {
    config.isa = device.substr(4);
  } else {
    require<NoDevice>(device == "cpu" || device == "auto", [&] {
      return "unknown device \"" + device + "\": use \"auto\", \"cpu\" or \"cuda\"";
    });
  }
  return backend::make_cpu_engine(std::move(config));
}

std::shared_ptr<const ring::Ring> make_ring(const params::CkksParams& params,
                                            const std::string& device, int threads,
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
