// Released decryptions: the recovery of the key that works on raw values fails on flooded ones.
#include "jali/ckks/release.h"

#include <cstring>

#include "fixture.h"

namespace jali::testing {
namespace {

// Li and Micciancio 2021: from the decoded slots of a fresh ciphertext the attacker rounds back to
// the exact plaintext m', and m' - c0 = c1 s gives the key.
bool key_is_recovered(World& w, const ckks::Ciphertext& c, const std::vector<Complex>& shown) {
  const auto guess = w.encoder().encode(shown, 1, c.level, c.scale);
  const auto& ops = w.ring->ops();
  ring::Poly difference = w.ring->make(guess.poly.primes());
  ops.sub(difference.view(), guess.poly.view(), c.parts[0].view());
  ring::Poly product = w.ring->make(guess.poly.primes());
  const auto s = w.sk->at(*w.ring, guess.poly.primes());
  ops.mul(product.view(), c.parts[1].view(), s.view());
  return std::memcmp(product.data(), difference.data(), product.bytes()) == 0;
}

TEST(ReleaseTest, RawDecryptionGivesTheKeyAwayAndReleaseDoesNot) {
  World w({"", Word::w52, 40}, {});
  const auto c = w.encrypt(w.vector());
  auto shown = w.decrypt(c);
  EXPECT_TRUE(key_is_recovered(w, c, shown)) << "the attack itself no longer works";
  ckks::ReleasePolicy policy;
  policy.error_bound = ckks::worst_case_error(c);
  ckks::flood(shown, policy);
  EXPECT_FALSE(key_is_recovered(w, c, shown));
}

TEST(ReleaseTest, WorstCaseBoundsTheMeasuredError) {
  World w({"", Word::w52, 40}, {});
  for (int round = 0; round < 20; ++round) {
    const auto z = w.vector();
    auto c = w.encrypt(z);
    EXPECT_LT(max_error(w.decrypt(c), z), ckks::worst_case_error(c)) << "seed " << w.seed;
  }
}

TEST(ReleaseTest, FloodingHasTheStatedDeviation) {
  ckks::ReleasePolicy policy;
  policy.error_bound = 1e-9;
  policy.releases = 4;
  std::vector<Complex> slots(1 << 14, Complex(0.25, -3));
  const double stated = ckks::flooding_std(policy, slots.size());
  EXPECT_DOUBLE_EQ(stated, 1e-9 * std::sqrt(12.0 * 4 * 16384) * std::exp2(20.0));
  ckks::flood(slots, policy);
  double sum = 0, sum2 = 0;
  for (const auto& z : slots) {
    sum += z.real() - 0.25;
    sum2 += (z.real() - 0.25) * (z.real() - 0.25);
  }
  const double n = static_cast<double>(slots.size());
  EXPECT_NEAR(std::sqrt(sum2 / n) / stated, 1, 0.04);  // 7 standard deviations of the estimate
  EXPECT_LT(std::fabs(sum / n), 7 * stated / std::sqrt(n));
}

TEST(ReleaseTest, RefusesAPolicyThatProtectsNothing) {
  std::vector<Complex> slots(4);
  for (const double bound : {0.0, -1.0, double(NAN), double(INFINITY), 1.7e308, 5e-324}) {
    ckks::ReleasePolicy policy;
    policy.error_bound = bound;
    EXPECT_THROW(ckks::flood(slots, policy), InvalidArgument);
  }
  ckks::ReleasePolicy weak;
  weak.error_bound = 1;
  weak.statistical_bits = 2;
  EXPECT_THROW(ckks::flood(slots, weak), InvalidArgument);
}

}  // namespace
}  // namespace jali::testing
