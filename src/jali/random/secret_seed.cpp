#include "jali/random/secret_seed.h"

namespace jali::random {

SeedSource::SeedSource(const std::optional<Seed>& root, Order order) : order_(order) {
  if (root) root_.emplace(*root);
}

SecretSeed SeedSource::next() {
  SecretSeed seed;
  if (!root_) {
    os_fill(seed.bytes());
    return seed;
  }
  const std::uint64_t k = given_++;
  Prng prng(root_->bytes(), order_ == Order::streams ? k : 0);
  if (order_ == Order::bytes) prng.seek(k * sizeof(Seed));
  prng.fill(seed.bytes());
  return seed;
}

}  // namespace jali::random
