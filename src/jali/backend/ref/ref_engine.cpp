#include "jali/backend/ref/ref_engine.h"

#include <memory>
#include <utility>

#include "jali/backend/engines.h"
#include "jali/backend/ref/modular.h"

namespace jali::backend {

namespace ref {

RefEngine::RefEngine(Config config) : config_(std::move(config)) {
  check_config(config_);
  for (const u64 q : config_.primes) roots_.push_back(smallest_root(q, config_.n));
}

}  // namespace ref

std::unique_ptr<Engine> make_ref_engine(Config config) {
  return std::make_unique<ref::RefEngine>(std::move(config));
}

}  // namespace jali::backend
