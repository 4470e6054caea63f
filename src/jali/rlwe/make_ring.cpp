#include "jali/rlwe/make_ring.h"

#include <utility>

#include "jali/backend/engines.h"
#include "jali/backend/resolve.h"
#include "jali/rlwe/host_ring.h"

namespace jali::rlwe {

std::shared_ptr<const ring::Ring> make_ring(const Params& params, const std::string& device,
                                            int threads, std::optional<backend::Variants> variants,
                                            Checkpoint checkpoint) {
  backend::Resolved chosen{device, {}, {}};
  if (variants) {
    chosen.variants = *std::move(variants);
  } else {
    chosen = backend::resolve(device, params.word(), params.log_n());
  }
  backend::Config config = engine_config(params);
  config.threads = threads;
  config.variants = std::move(chosen.variants);
  return std::make_shared<const ring::Ring>(backend::make_engine(std::move(config), chosen.device),
                                            std::move(checkpoint));
}

std::shared_ptr<const ring::Ring> make_dry_ring(const Params& params, Checkpoint checkpoint) {
  return std::make_shared<const ring::Ring>(backend::make_dry_engine(engine_config(params)),
                                            std::move(checkpoint));
}

}  // namespace jali::rlwe
