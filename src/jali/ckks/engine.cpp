#include "jali/ckks/engine.h"

#include "jali/base/error.h"

namespace jali::ckks {

std::shared_ptr<const ring::Ring> make_ring(const params::CkksParams& params, std::string device,
                                            int threads) {
  backend::Config config;
  config.word = params.word();
  config.n = params.n();
  config.primes.assign(params.primes().begin(), params.primes().end());
  config.threads = threads;
  const auto over = [](std::unique_ptr<backend::Ops> ops) {
    return std::make_shared<const ring::Ring>(std::shared_ptr<const backend::Ops>(std::move(ops)));
  };
  if (device == "ref") {
    return over(backend::make_ref_ops(std::move(config)));
  }
  if (device == "auto" && backend::cuda_device_count() > 0) device = "cuda";
  if (device == "cuda" || device.starts_with("cuda:")) {
    const std::string number = device.size() > 5 ? device.substr(5) : "0";
    require<InvalidArgument>(
        !number.empty() && number.size() < 4 &&
            number.find_first_not_of("0123456789") == std::string::npos,
        [&] { return "unknown device \"" + device + "\": use \"cuda\" or \"cuda:0\""; });
    return over(backend::make_cuda_ops(std::move(config), std::stoi(number)));
  }
  if (device == "cpu/apart") return over(backend::make_apart_ops(std::move(config)));
  if (device.starts_with("cpu/")) {
    config.isa = device.substr(4);
  } else {
    require<NoDevice>(device == "cpu" || device == "auto",
                      [&] { return "unknown device \"" + device + "\": use \"auto\" or \"cpu\""; });
  }
  return over(backend::make_cpu_ops(std::move(config)));
}

}  // namespace jali::ckks
