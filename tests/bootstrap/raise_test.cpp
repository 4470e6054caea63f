// Tests ModRaise under the sparse secret, and how often its integers leave the range of the
// reduction.
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

/// The coefficients of the phase of a raised ciphertext, divided by q_0.
std::vector<double> raised_phase(World& world, const ckks::Ciphertext& x, int level) {
  const auto raised = world.evaluator->raise(x, level);
  EXPECT_EQ(raised.level, level);
  auto plain = world.decryptor->decrypt(raised);
  world.ring->to_coeff(plain.poly);
  double q0 = 1;
  for (auto i : world.params->level(0).primes) q0 *= static_cast<double>(world.params->primes()[i]);
  return ring::to_doubles(*world.ring, plain.poly, q0);
}

Case small(Word word, int weight, int range) {
  Case c{"raise", word, word == Word::w32 ? 50.0 : 45.0, 2};
  c.bootstrap.weight = weight;
  c.bootstrap.range = range;
  c.bootstrap.cts_levels = c.bootstrap.stc_levels = 1;
  return c;
}

// The phase is that of level 0 plus q_0 times integers. Their variance is that of a sum of h + 1
// numbers that are uniform in [-1/2, 1/2).
TEST(Raise, AddsSmallMultiplesOfTheModulus) {
  for (const Word word : {Word::w64, Word::w52, Word::w32}) {
    for (const int weight : {4, 32}) {
      auto literal = literal_of(small(word, weight, 16));
      if (word == Word::w32) {
        // With 32-bit words P' leaves so little noise that a double of a larger phase would not
        // resolve it.
        literal.scale_bits = 40;
        literal.integer_bits = 8;
      }
      World world(ckks::Params::create(literal), {});
      const auto& params = *world.params;
      for (int level : {params.depth() + 1, params.top()}) {
        const auto v = world.vector(params.slots());
        const auto x = world.encrypt(v, 0);
        auto plain = world.decryptor->decrypt(x);
        world.ring->to_coeff(plain.poly);
        const auto low = ring::to_doubles(*world.ring, plain.poly, x.scale);
        const auto high = raised_phase(world, x, level);
        double variance = 0, worst = 0, error = 0;
        const double unit = std::exp2(params.level(0).log_q) / x.scale;
        for (std::size_t k = 0; k < high.size(); ++k) {
          variance += high[k] * high[k];
          worst = std::max(worst, std::fabs(high[k]));
          error += std::pow((high[k] - std::round(high[k])) * unit - low[k], 2);
        }
        variance /= static_cast<double>(high.size());
        EXPECT_NEAR(variance, (weight + 1) / 12.0, 0.2 * (weight + 1) / 12.0) << world.seed;
        EXPECT_LE(worst, (weight + 1) / 2.0);
        // The noise that ModRaise adds is neither much larger nor much smaller than the model's.
        const double predicted =
            world.evaluator->noise().encapsulation().variance / (x.scale * x.scale);
        EXPECT_NEAR(std::log2(error / static_cast<double>(high.size()) / predicted), 0, 0.6)
            << world.seed;
      }
    }
  }
}

TEST(Raise, RefusesWhatItCannotDo) {
  World world(small(Word::w64, 32, 16), {3});
  const auto v = world.vector(8);
  const auto x = world.encrypt(v, 0);
  EXPECT_THROW(world.evaluator->raise(x, world.params->depth()), InvalidArgument);
  EXPECT_THROW(world.evaluator->raise(x, world.params->top() + 1), InvalidArgument);
  EXPECT_THROW(world.evaluator->raise(world.encrypt(v, 1), world.params->top()), InvalidArgument);
  const ckks::Evaluator keyless(world.params, world.ring, nullptr);
  EXPECT_THROW(keyless.raise(x, world.params->top()), KeyMissing);
  auto plain = literal_of(small(Word::w64, 32, 16));
  plain.bootstrap.reset();
  const auto params = ckks::Params::create(plain);
  const auto ring = ckks::make_ring(*params);
  rlwe::KeyGenerator keygen(params, ring);
  EXPECT_THROW(keygen.encapsulation_keys(keygen.secret_key()), InvalidArgument);
}

// With a range that is far too small, failures are frequent enough to count. Coefficients leave the
// range no more often than the bound says, and no less often than a thirtieth of it, by which a
// Chernoff bound of such sums may overstate.
TEST(Raise, LeavesSmallRangesAsOftenAsTheBoundSays) {
  const int weight = 16;
  World world(small(Word::w64, weight, 16), {});
  const int rounds = 150;
  std::vector<int> beyond(6, 0);
  std::size_t total = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto x = world.encrypt(world.vector(world.params->slots()), 0);
    for (double phase : raised_phase(world, x, world.params->depth() + 1)) {
      ++total;
      for (int k = 1; k < 6; ++k) beyond[static_cast<std::size_t>(k)] += std::fabs(phase) >= k;
    }
  }
  for (int k = 2; k <= 4; ++k) {
    const double bound = std::exp2(params::log2_bootstrap_failure(weight, k, total));
    const double seen = beyond[static_cast<std::size_t>(k)];
    EXPECT_GT(seen, k == 4 ? 8 : 200) << k;
    EXPECT_LT(seen, bound + 5 * std::sqrt(bound)) << k;
    EXPECT_GT(seen, bound / 30) << k;
  }
}

// If a coefficient leaves the range, the whole bootstrapping is wrong: the error of a slot is far
// above all noise.
TEST(Raise, TooSmallARangeGivesWrongSlots) {
  Case c = small(Word::w64, 16, 2);
  c.bootstrap.degree = 62;  // with this degree the error grows quickly outside the range
  World world(c, {});
  const auto v = world.vector(world.params->slots());
  const auto y = world.bootstrapper->apply(world.encrypt(v, 0));
  EXPECT_GT(jali::testing::max_error(world.decrypt(y), v), 0.1) << world.seed;
}

}  // namespace
}  // namespace jali::bootstrap::testing
