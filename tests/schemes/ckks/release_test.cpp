// Released decryptions. The attack that recovers the key from raw decrypted values fails on
// released ones, even if the reply was altered on its way.
#include "jali/schemes/ckks/secret/release.h"

#include <cstring>

#include "fixture.h"
#include "jali/ring/poly.h"
#include "jali/schemes/ckks/array_evaluator.h"
#include "jali/schemes/ckks/bounds.h"
#include "jali/schemes/ckks/range.h"

namespace jali::testing {
namespace {

using ckks::BoundOrigin;
using ckks::ReleasePolicy;

/// A scale that leaves room for the noise.
Scheme wide() { return {"", Word::w64, 80, 2}; }

std::vector<Complex> release(World& w, const ckks::Ciphertext& c, const ReleasePolicy& policy) {
  return ckks::release(*w.decryptor, w.encoder(), *w.ring, c, policy);
}

ReleasePolicy derived() {
  ReleasePolicy policy;
  policy.origin = BoundOrigin::derived;
  return policy;
}

/// The same ciphertext after it was written to bytes and loaded, so that all of it is what a sender
/// claims.
ckks::Ciphertext received(World& w, const ckks::Ciphertext& c) {
  ckks::Ciphertext out = w.evaluator->copy(c);
  out.estimate.derived = false;
  return out;
}

// The attack of Li and Micciancio 2021. From the decoded slots of a fresh ciphertext the attacker
// rounds back to the exact plaintext m', and m' - c0 = c1 s gives the key.
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
  World narrow({"", Word::w52, 40}, {});
  const auto c = narrow.encrypt(narrow.vector());
  EXPECT_TRUE(key_is_recovered(narrow, c, narrow.decrypt(c)))
      << "the attack itself no longer works";
  ReleasePolicy policy = derived();
  policy.statistical_bits = 20;
  EXPECT_FALSE(key_is_recovered(narrow, c, release(narrow, c, policy)));
}

TEST(ReleaseTest, KeepsThePrecisionThatTheScaleHasLeft) {
  World w(wide(), {});
  const auto z = w.vector();
  const auto c = w.encrypt(z);
  ReleasePolicy policy = derived();
  const auto shown = release(w, c, policy);
  policy.error_bound = ckks::worst_case_noise(c);
  const double std = ckks::flooding_std(policy, z.size());
  EXPECT_LT(std, 0x1p-12);
  EXPECT_LT(max_error(shown, z), 8 * std);
}

// The 8 bytes of the reply's scale were changed. The noise, which is added to the scaled integers,
// would be 2^70 times too small.
TEST(ReleaseTest, AScaleThatIsNotTheLevelsIsRefused) {
  World w(wide(), {});
  auto c = received(w, w.encrypt(w.vector()));
  ReleasePolicy policy;
  policy.error_bound = 2 * ckks::worst_case_noise(c);
  policy.largest = 16;
  EXPECT_NO_THROW(release(w, c, policy));
  for (const double factor : {0x1p-70, 0x1p-1, 1 + 0x1p-30, 2.0, 0x1p70}) {
    auto altered = received(w, c);
    altered.scale *= factor;
    EXPECT_THROW(release(w, altered, policy), InvalidArgument) << factor;
  }
}

// If the error that the bytes state were believed, it would set the size of the noise.
TEST(ReleaseTest, AnErrorThatNoComputationHasIsRefused) {
  World w(wide(), {});
  const auto c = received(w, w.encrypt(w.vector()));
  ReleasePolicy policy;
  policy.error_bound = 2 * ckks::worst_case_noise(c);
  policy.largest = 16;
  const auto altered = [&](auto change) {
    auto x = received(w, c);
    change(x.estimate);
    return x;
  };
  for (const double tiny : {0.0, 1e-300, 1.0}) {
    EXPECT_THROW(release(w, altered([&](auto& e) { e.variance = tiny; }), policy), InvalidArgument);
    EXPECT_THROW(release(w, altered([&](auto& e) { e.noise = tiny; }), policy), InvalidArgument);
  }
  EXPECT_THROW(release(w, altered([](auto& e) { e.peak = params::kUnbounded; }), policy),
               InvalidArgument);
  EXPECT_THROW(release(w, altered([](auto& e) { e.error = e.noise = params::kUnbounded; }), policy),
               InvalidArgument);
  // An error larger than the one that the key holder declared belongs to another circuit.
  EXPECT_THROW(release(w, altered([](auto& e) { e.error *= 4, e.noise *= 4; }), policy),
               InvalidArgument);
  EXPECT_THROW(release(w, altered([](auto& e) { e.peak = 17; }), policy), InvalidArgument);
}

TEST(ReleaseTest, ABoundIsDerivedOnlyFromWhatWasComputedHere) {
  World w(wide(), {});
  const auto z = w.vector();
  const auto c = w.encrypt(z);
  const auto product = w.automatic->normalise(w.automatic->square(c));
  EXPECT_NO_THROW(release(w, product, derived()));
  EXPECT_THROW(release(w, received(w, c), derived()), InvalidArgument);
  // This also holds if only one operand came from bytes.
  const auto mixed = w.automatic->add(c, received(w, c));
  EXPECT_THROW(release(w, mixed, derived()), InvalidArgument);
  const auto mixed_product = w.automatic->normalise(w.automatic->multiply(c, received(w, c)));
  EXPECT_THROW(release(w, mixed_product, derived()), InvalidArgument);
}

// Somebody claims errors of 2^-200 and hopes that the noise that hides them becomes smaller, at
// once or in products. What they had before is what is hidden, whatever it comes from.
TEST(ReleaseTest, AClaimedPrecisionMakesNoNoiseSmaller) {
  World w(wide(), {});
  const ckks::ArrayEvaluator arrays(w.evaluator);
  const auto square = [&](const ckks::Ciphertext& x) {
    return w.automatic->normalise(w.automatic->square(x));
  };
  const auto z = w.vector();
  for (const double larger :
       {1.0, 0x1p10,
        0x1p20}) {  // errors that do not depend on keys, as of the sine in bootstrapping
    auto honest = w.encrypt(z);
    honest.estimate.error *= larger;
    const auto other = w.encrypt(z);
    for (const double bits : {5.0, 60.0, 85.0, 200.0}) {
      SCOPED_TRACE(std::to_string(larger) + ", " + std::to_string(bits) + " bits");
      const auto claimed = arrays.with_precision(honest, bits);
      const auto twice = arrays.with_precision(arrays.with_precision(honest, 200), bits);
      const auto product = [&](const ckks::Ciphertext& x, const ckks::Ciphertext& y) {
        return w.automatic->normalise(w.automatic->multiply(x, y));
      };
      const auto least = [](const ckks::Ciphertext& x) { return ckks::worst_case_noise(x); };
      for (const auto* x : {&claimed, &twice}) {
        EXPECT_GE(least(*x), least(honest));
        EXPECT_GE(least(square(*x)), least(square(honest)));
        EXPECT_GE(least(product(*x, other)), least(product(honest, other)));
        EXPECT_GE(least(product(other, *x)), least(product(other, honest)));
        EXPECT_GE(least(arrays.with_precision(square(*x), bits)), least(square(honest)));
        EXPECT_GE(least(w.evaluator->add(*x, other)), least(w.evaluator->add(honest, other)));
      }
      // What is released has that noise in it, or nothing is released.
      ReleasePolicy policy = derived();
      policy.statistical_bits = 20;
      const auto result = square(claimed);
      policy.error_bound = least(square(honest));
      const double std = ckks::flooding_std(policy, z.size());
      policy.error_bound = 0;
      std::vector<Complex> shown;
      try {
        shown = release(w, result, policy);
      } catch (const InvalidArgument&) {
        EXPECT_GT(bits, 80) << "a precision that no ciphertext has";
        continue;
      }
      double sum = 0;
      for (std::size_t i = 0; i < z.size(); ++i) sum += std::norm(shown[i] - z[i] * z[i]);
      EXPECT_GT(std::sqrt(sum / static_cast<double>(2 * z.size())), 0.8 * std);
    }
  }
}

// Products multiply noise by numbers. Numbers of 1 that are claimed to be 2^-20 would be hidden by
// 2^20 times too little, and a difference of two such products is within its range, so that no
// comparison sees it.
TEST(ReleaseTest, NoBoundIsDerivedFromAClaimedPeak) {
  World w(wide(), {});
  const ckks::ArrayEvaluator arrays(w.evaluator);
  const auto& automatic = *w.automatic;
  const auto z = w.vector();
  const auto x = w.encrypt(z), y = w.encrypt(z), fresh = w.encrypt(w.vector());
  const auto difference = [&](const ckks::Ciphertext& a, const ckks::Ciphertext& b) {
    return automatic.sub(automatic.normalise(automatic.multiply(a, fresh)),
                         automatic.normalise(automatic.multiply(b, fresh)));
  };
  EXPECT_NO_THROW(release(w, difference(x, y), derived()));
  const double tiny = 0x1p-20;
  const auto falsely = [&](const ckks::Ciphertext& a) {
    return arrays.with_magnitude(a, {tiny, tiny});
  };
  ASSERT_LT(ckks::worst_case_noise(difference(falsely(x), falsely(y))),
            ckks::worst_case_noise(difference(x, y)));
  const double peak = x.estimate.peak;
  for (const auto& claimed :
       {falsely(x), difference(falsely(x), falsely(y)), difference(falsely(x), y),
        arrays.with_magnitude(falsely(x), {1, peak}), automatic.add(falsely(x), y),
        arrays.with_precision(falsely(x), 40), w.evaluator->copy(falsely(x))}) {
    EXPECT_THROW(release(w, claimed, derived()), InvalidArgument);
  }
  // A claim that is no smaller than what is known changes nothing.
  EXPECT_NO_THROW(release(w, arrays.with_magnitude(x, {1, peak}), derived()));
  EXPECT_NO_THROW(release(w, arrays.with_magnitude(x, {1, 2 * peak}), derived()));
  EXPECT_FALSE(ckks::with_claim(w.evaluator->add(x, y, 0.1), 0.1).estimate.derived);
  EXPECT_TRUE(ckks::with_claim(w.evaluator->add(x, y, 100), 100).estimate.derived);
}

TEST(ReleaseTest, ResultsBeyondTheDeclaredRangeAreRefused) {
  World w(wide(), {});
  auto c = w.encrypt(w.vector());
  ReleasePolicy policy;
  policy.error_bound = ckks::worst_case_noise(c);
  policy.largest = 0.01;
  // Altered bytes may claim this, although it is false.
  c.estimate.peak = c.estimate.message = 0.01;
  EXPECT_THROW(release(w, c, policy), WrongDecryption);
  // Decryption with another key gives numbers beyond the range, too.
  World other(wide(), {});
  ReleasePolicy usual = derived();
  auto theirs = w.encrypt(w.vector());
  EXPECT_THROW(ckks::release(*other.decryptor, w.encoder(), *w.ring, theirs, usual), KeyMismatch);
  theirs.key_id = {};
  EXPECT_THROW(ckks::release(*other.decryptor, w.encoder(), *w.ring, theirs, usual),
               WrongDecryption);
}

TEST(ReleaseTest, NoiseThatTheLevelCannotHoldIsRefusedBeforeAnyWork) {
  World w(wide(), {});
  const auto c = w.encrypt(w.vector());
  ReleasePolicy policy = derived();
  policy.statistical_bits = 100;
  policy.releases = 1e30;
  EXPECT_THROW(release(w, c, policy), InvalidArgument);
}

TEST(ReleaseTest, FloodingHasTheStatedDeviation) {
  World w(wide(), {});
  const std::size_t batch = 3, slots = w.params->slots();
  const auto z = w.vector(1, batch * slots);
  const auto c = w.encrypt(z, -1, -1, batch);
  ReleasePolicy policy = derived();
  policy.releases = 4;
  policy.error_bound = ckks::worst_case_noise(c);
  const double stated = ckks::flooding_std(policy, slots, batch);
  EXPECT_DOUBLE_EQ(
      stated, policy.error_bound * std::sqrt(4.0 * batch * static_cast<double>(slots)) * 0x1p40);
  double sum2 = 0;
  Complex sum = 0;
  int count = 0;
  for (int round = 0; round < 10; ++round) {
    const auto shown = release(w, c, policy);
    for (std::size_t j = 0; j < shown.size(); ++j) {
      sum += shown[j] - z[j];
      sum2 += std::norm(shown[j] - z[j]);
      count += 2;
    }
  }
  EXPECT_NEAR(std::sqrt(sum2 / count) / stated, 1,
              7 / std::sqrt(2.0 * count));  // 7 standard deviations
  EXPECT_LT(std::abs(sum), 10 * stated * std::sqrt(static_cast<double>(count)));
  // With sparse packing the noise is that of the slots in use.
  const auto few = w.encrypt(w.vector(1, 8), -1, 3);
  ReleasePolicy small = derived();
  small.error_bound = ckks::worst_case_noise(few);
  const auto clear = w.decrypt(few);
  double few2 = 0;
  const int rounds = 400;
  for (int round = 0; round < rounds; ++round) {
    const auto shown = release(w, few, small);
    for (std::size_t j = 0; j < 8; ++j) few2 += std::norm(shown[j] - clear[j]);
  }
  EXPECT_NEAR(std::sqrt(few2 / (rounds * 16)) / ckks::flooding_std(small, 8), 1,
              7 / std::sqrt(rounds * 32.0));
}

// Of two computations with equal exact results, one has the error d and the other the error -d, as
// large as the bound allows. The best distinguisher compares likelihoods, that is the signs of the
// summed projections on d. Its advantage stays below the stated one.
TEST(ReleaseTest, TheAdvantageIsWhatIsStated) {
  World w(wide(), {});
  const std::size_t slots = 8, releases = 4;
  for (const int bits : {1, 2, 3, 4}) {
    ReleasePolicy policy;
    policy.statistical_bits = bits;
    policy.releases = static_cast<double>(releases);
    policy.error_bound = 1;
    const double error = 0x1p30;
    const double std = ckks::coefficient_std(policy, error, 1);
    // d has the norm `error`, spread evenly over the 2 slots coefficients of a vector.
    const double each = error / std::sqrt(2.0 * slots);
    random::Prng prng(random::os_seed(), 0);
    const int trials = 20000;
    int right = 0;
    std::vector<std::int64_t> low(2 * slots * releases), high(low.size());
    for (int t = 0; t < trials; ++t) {
      const bool minus = (w.random() & 1) != 0;
      const int shift = random::sample_wide_gaussian(prng, std, low, high);
      double projection = 0;
      for (std::size_t k = 0; k < low.size(); ++k) {
        projection += static_cast<double>(low[k]) +
                      std::ldexp(static_cast<double>(high[k]), shift) + (minus ? -each : each);
      }
      right += (projection < 0) == minus ? 1 : 0;
    }
    // Pr[right] = (1 + advantage) / 2.
    const double advantage = 2.0 * right / trials - 1, deviation = 1 / std::sqrt(trials);
    EXPECT_LT(advantage, std::exp2(-bits) + 5 * deviation) << bits << " bits, seed " << w.seed;
    // The statement is not empty: the measured advantage is at least half of the stated one.
    if (bits <= 3) {
      EXPECT_GT(advantage, std::exp2(-bits) / 2 - 5 * deviation) << bits;
    }
  }
}

TEST(ReleaseTest, RefusesAPolicyThatProtectsNothing) {
  ReleasePolicy good;
  good.error_bound = good.largest = 1;
  EXPECT_NO_THROW(ckks::check(good));
  const auto refused = [&](auto change) {
    ReleasePolicy policy = good;
    change(policy);
    EXPECT_THROW(ckks::check(policy), InvalidArgument);
  };
  for (const double bad : {0.0, -1.0, double(NAN), double(INFINITY)}) {
    refused([&](auto& p) { p.error_bound = bad; });
    refused([&](auto& p) { p.largest = bad; });
    refused([&](auto& p) { p.releases = bad; });
  }
  refused([](auto& p) { p.statistical_bits = 2; });
  refused([](auto& p) { p.statistical_bits = 101; });
}

}  // namespace
}  // namespace jali::testing
