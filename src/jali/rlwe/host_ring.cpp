#include "jali/rlwe/host_ring.h"

#include <utility>

#include "jali/backend/engines.h"

namespace jali::rlwe {

backend::Config engine_config(const Params& params) {
  backend::Config config;
  config.word = params.word();
  config.n = params.n();
  config.primes.assign(params.ring_primes().begin(), params.ring_primes().end());
  return config;
}

std::shared_ptr<const ring::Ring> make_host_ring(const Params& params, int threads,
                                                 Checkpoint checkpoint) {
  backend::Config config = engine_config(params);
  config.threads = threads;
  return std::make_shared<const ring::Ring>(backend::make_cpu_engine(std::move(config)),
                                            std::move(checkpoint));
}

}  // namespace jali::rlwe
