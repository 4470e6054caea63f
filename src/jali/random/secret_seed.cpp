#include "jali/random/secret_seed.h"

#include "jali/base/declassify.h"
#include "jali/base/error.h"

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

void SeedSource::fill_public(std::span<std::uint8_t> out) {
  require<InvalidArgument>(out.size() <= sizeof(Seed), "at most 32 public bytes are drawn at once");
  if (!root_) {
    os_fill(out);
    return;
  }
  Prng prng(root_->bytes(), ~std::uint64_t{0});
  prng.seek(published_++ * sizeof(Seed));
  prng.fill(out);
  declassify(out.data(), out.size());
}

}  // namespace jali::random
