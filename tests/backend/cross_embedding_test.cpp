// Slots to residues and back: every CPU engine gives the bits of the definition, computed on the
// oracle.
#include <bit>
#include <cmath>

#include "cross.h"
#include "jali/backend/embedding.h"

namespace jali::backend::test {
namespace {

using i128 = __int128;

class CrossEmbedding : public Cross {
 protected:
  const Embedding embedding_{n() / 2};

  int full() const { return std::countr_zero(n()) - 1; }
  std::vector<int> log_slots() const {
    if (large()) return {4, full()};
    return {0, 1, 2, 3, 4, 5, full() - 1, full()};
  }
  double uniform() { return std::ldexp(static_cast<double>(rng_()), -63) - 1; }

  void set(Block& x, std::size_t b, std::size_t k, i128 value) const {
    for (std::size_t i = 0; i < x.primes().size(); ++i) {
      const auto q = static_cast<i128>(x.prime(i));
      x.set(i, b, k, static_cast<u64>((value % q + q) % q));
    }
  }

  void expect_slots(const Block& x, const std::string& what) { expect_slots(engines_, x, what); }
  void expect_slots(const Engines& engines, const Block& x, const std::string& what) {
    for (const int log : log_slots()) {
      const double divisor = std::ldexp(1 + std::fabs(uniform()), 30);
      const auto slots_of = [&](const Engine& engine) {
        std::vector<Complex> out(x.batch() << log, Complex{7, 7});
        engine.embedding().unembed(out, embedding_, x, log, divisor);
        return out;
      };
      const auto want = slots_of(engines.ref());
      for (const auto& engine : engines.cpu()) {
        EXPECT_EQ(slots_of(*engine), want)
            << engine_name(*engine) << ", " << what << ", log_slots " << log;
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Rings, CrossEmbedding,
                         testing::Combine(testing::ValuesIn(kWords), testing::ValuesIn(kSizes)),
                         [](const auto& info) {
                           return std::string(word_name(std::get<0>(info.param))) + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST_P(CrossEmbedding, SlotsToResidues) {
  for (const std::size_t batch : {1, 3}) {
    for (const int log : log_slots()) {
      const std::size_t slots = std::size_t{1} << log;
      for (const std::size_t count : {slots, (slots + 1) / 2}) {
        // The factors make coefficients that are small, that end in one half, and that reach 2^61.
        for (const double factor : {0x1.8p20, 0.5, 0x1p59}) {
          std::vector<Complex> values(batch * count);
          for (Complex& z : values) {
            z = factor == 0.5
                    ? Complex(static_cast<double>(rng_() % 64), static_cast<double>(rng_() % 64))
                    : Complex(uniform(), uniform());
          }
          const double scaled = factor == 0.5 ? factor : factor / static_cast<double>(slots);
          engines_.expect_same(
              describe("slots", slots, "count", count, "factor", std::log2(factor)),
              [&](const Engine& engine) {
                std::vector<Block> out{Block(config(), {1, 2, 4, 7}, batch)};
                engine.embedding().embed(out[0], embedding_, values, log, scaled);
                return out;
              });
        }
      }
    }
  }
}

TEST_P(CrossEmbedding, ResiduesOfSmallIntegersToSlots) {
  for (const auto& [limbs, batch] : shapes()) {
    Block x(config(), scattered(limbs), batch);
    double room = -1;
    for (std::size_t i = 0; i < limbs; ++i) room += std::log2(static_cast<double>(x.prime(i)));
    for (const int bits : {8, 40, 62, 63, 66, 90, 96, 110, 124}) {
      if (bits >= room) break;
      for (std::size_t b = 0; b < batch; ++b) {
        for (std::size_t k = 0; k < n(); ++k) {
          const i128 v = static_cast<i128>(
              (static_cast<unsigned __int128>(rng_()) << 64 | rng_()) >> (128 - bits));
          set(x, b, k, k % 3 == 0 ? v >> (rng_() % static_cast<u64>(bits)) : k % 3 == 1 ? -v : v);
        }
      }
      expect_slots(x, describe("limbs", limbs, "batch", batch, "bits", bits));
    }
  }
}

// Integers near plus and minus half the product of the first k primes, for every k. A decoder that
// uses only some primes changes its path there.
TEST_P(CrossEmbedding, ResiduesOfIntegersAtTheEndsOfARangeToSlots) {
  if (n() > 1024) return;
  for (const std::size_t limbs : {1, 2, 3, 5, 8}) {
    Block x(config(), scattered(limbs), 1);
    i128 product = 1;
    for (std::size_t head = 0;
         head < limbs && product < i128{1} << 126 >> std::bit_width(x.prime(head)); ++head) {
      product *= static_cast<i128>(x.prime(head));
      const i128 half = product / 2;
      for (std::size_t k = 0; k < n(); ++k) set(x, 0, k, static_cast<i128>(k) - 512);
      for (const i128 v : {-half - 1, -half, half, half + 1, product - 1, product}) {
        set(x, 0, rng_() % n(), v);
        expect_slots(x, describe("limbs", limbs, "head", head));
      }
    }
  }
}

TEST_P(CrossEmbedding, AnyResiduesToSlots) {
  for (const auto& [limbs, batch] : shapes()) {
    for (const Fill fill : fills()) {
      Block x = block(scattered(limbs), batch, fill);
      expect_slots(x, describe("limbs", limbs, "batch", batch, "fill", static_cast<int>(fill)));
      // A single coefficient of a single limb is not zero.
      x.fill(Fill::zero, rng_).set(limbs - 1, batch - 1, rng_() % n(), 1);
      expect_slots(x, describe("one residue of limb", limbs - 1));
    }
  }
}

TEST_P(CrossEmbedding, ManyLimbsToSlots) {
  if (n() > 1024) return;
  // Doubles hold 2^1024.
  const auto limbs = static_cast<std::size_t>(960 / word_prime_bits(word()));
  const Engines engines({word(), n(), primes_for(word(), n(), limbs), 1, ""});
  Block x(engines.config(), range(0, limbs), 1);
  expect_slots(engines, x.random(rng_), "random");
  for (std::size_t k = 0; k < n(); ++k)
    set(x, 0, k, static_cast<i128>(rng_()) * (k % 2 == 0 ? 1 : -5));
  expect_slots(engines, x, "small");
}

}  // namespace
}  // namespace jali::backend::test
