#pragma once
// The fixture of the tests that compare cpu/ with the oracle bit for bit: every operation, word,
// instruction set and thread count, on poisoned outputs.
#include <cmath>
#include <utility>

#include "engines.h"

namespace jali::backend::test {

using Digits = std::vector<u32>;

inline constexpr std::size_t kPrimes = 12;
inline const std::vector<std::size_t> kSizes =
    kSanitized ? std::vector<std::size_t>{1024, 4096}
               : std::vector<std::size_t>{1024, 2048, 4096, 8192};

/// Primes with gaps between their indices, like a basis in the middle of a chain.
inline PrimeList scattered(std::size_t count) {
  PrimeList p;
  for (std::size_t i = 0; i < kPrimes && p.size() < count; ++i) {
    if (i % 4 != 1 || kPrimes - i <= count - p.size()) p.push_back(static_cast<PrimeIndex>(i));
  }
  return p;
}

class Cross : public testing::TestWithParam<std::tuple<Word, std::size_t>> {
 protected:
  Cross() : rng_(seed_) {}

  Word word() const { return std::get<0>(GetParam()); }
  std::size_t n() const { return std::get<1>(GetParam()); }
  /// The oracle is slow, so large rings are tested only with the shapes that matter most.
  bool large() const { return n() > 1024 || kSanitized; }
  const Config& config() const { return engines_.config(); }

  Block block(PrimeList primes, std::size_t batch, Fill fill = Fill::random,
              std::size_t blocks = 1) {
    Block b(config(), std::move(primes), batch, blocks);
    b.fill(fill, rng_);
    return b;
  }
  /// A block that is filled in coefficient form and returned in NTT form.
  Block transformed(PrimeList primes, std::size_t batch, Fill fill) {
    Block b = block(std::move(primes), batch, fill);
    engines_.ref().ring().ntt(b);
    return b;
  }
  std::vector<std::pair<std::size_t, std::size_t>> shapes() const {  // (limbs, batch)
    if (large()) return {{2, 1}, {8, 3}};
    return {{1, 1}, {2, 3}, {3, 1}, {5, 3}, {8, 1}, {8, 3}};
  }
  std::vector<Fill> fills() const {
    if (large()) return {Fill::random, Fill::max};
    return {std::begin(kFills), std::end(kFills)};
  }

  const u64 seed_ = test_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "JALI_TEST_SEED=" + std::to_string(seed_)};
  std::mt19937_64 rng_;
  Engines engines_{{word(), n(), primes_for(word(), n(), kPrimes), 1, ""}};
};

}  // namespace jali::backend::test
