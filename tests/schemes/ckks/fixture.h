// Small parameters, keys and helpers for the tests of rlwe/, ckks/ and above.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../../seeded.h"
#include "jali/base/error.h"
#include "jali/rlwe/keys.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/ckks/auto_evaluator.h"
#include "jali/schemes/ckks/bounds.h"
#include "jali/schemes/ckks/encoder.h"
#include "jali/schemes/ckks/evaluator.h"
#include "jali/schemes/ckks/make_ring.h"
#include "jali/schemes/ckks/secret/decryption.h"
#include "jali/schemes/ckks/secret/decryptor.h"
#include "jali/schemes/ckks/secret/encryptor.h"
#include "jali/schemes/ckks/secret/release.h"

namespace jali::testing {

using Complex = std::complex<double>;

struct Scheme {
  std::string label;
  Word word = Word::w52;
  double scale_bits = 40;
  int depth = 3;
  int log_n = 10;
  int dnum = 0;
};

inline void PrintTo(const Scheme& s, std::ostream* out) { *out << s.label; }

/// The root mean square of the numbers of World::vector(1).
inline constexpr double kMagnitude = 0.816496580927726;

inline ckks::Literal insecure_literal(const Scheme& s) {
  ckks::Literal literal;
  literal.name = "insecure_test";
  literal.security = 0;
  literal.depth = s.depth;
  literal.scale_bits = s.scale_bits;
  literal.log_n = s.log_n;
  literal.word = s.word;
  literal.dnum = s.dnum;
  return literal;
}

/// A scheme for every word and every kind of level: one prime, several primes, rational.
inline std::vector<Scheme> all_setups() {
  return {
      {"w52_scale40", Word::w52, 40},       {"w52_scale26_dnum2", Word::w52, 26, 4, 10, 2},
      {"w52_scale48", Word::w52, 48},       {"w64_scale50", Word::w64, 50},
      {"w64_scale40", Word::w64, 40},       {"w32_scale28", Word::w32, 28},
      {"w32_rational40", Word::w32, 40, 4}, {"w32_two_primes54", Word::w32, 54},
  };
}

/// Keys, encoder and evaluators for one set of parameters.
struct World {
  ckks::ParamsPtr params;
  std::shared_ptr<const ring::Ring> ring;
  std::shared_ptr<rlwe::KeyGenerator> keygen;
  std::shared_ptr<const rlwe::SecretKey> sk;
  std::shared_ptr<const rlwe::EvaluationKeys> keys;
  std::shared_ptr<const ckks::Evaluator> evaluator;
  std::unique_ptr<ckks::AutoEvaluator> automatic;
  std::unique_ptr<ckks::SecretEncryptor> encryptor;
  std::unique_ptr<ckks::Decryptor> decryptor;
  std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random{seed};

  explicit World(const Scheme& setup, std::vector<int> rotations = {1, 2, 4, 8, -3, 17},
                 const std::string& device = "cpu", int threads = 1)
      : params(ckks::Params::create(insecure_literal(setup))) {
    ring = ckks::make_ring(*params, device, threads);
    keygen = std::make_shared<rlwe::KeyGenerator>(params, ring);
    sk = std::make_shared<const rlwe::SecretKey>(keygen->secret_key());
    keys = std::make_shared<const rlwe::EvaluationKeys>(
        keygen->evaluation_keys(*sk, rotations, /*conjugate=*/true));
    evaluator = std::make_shared<const ckks::Evaluator>(params, ring, keys);
    automatic = std::make_unique<ckks::AutoEvaluator>(evaluator);
    encryptor = std::make_unique<ckks::SecretEncryptor>(sk, ring);
    decryptor = std::make_unique<ckks::Decryptor>(sk, ring);
  }

  const ckks::Encoder& encoder() const { return evaluator->encoder(); }

  /// Numbers that are uniform in the square [-bound, bound]^2 of the complex plane.
  std::vector<Complex> vector(double bound = 1, std::size_t count = 0) {
    std::uniform_real_distribution<double> uniform(-bound, bound);
    std::vector<Complex> v(count == 0 ? params->slots() : count);
    for (auto& z : v) z = {uniform(random), uniform(random)};
    return v;
  }

  ckks::Ciphertext encrypt(const std::vector<Complex>& v, int level = -1, int log_slots = -1,
                           std::size_t batch = 1, params::Declared declared = kMagnitude) {
    if (level < 0) level = params->depth();
    return encryptor->encrypt(encoder().encode(v, batch, level, params->scale(level), log_slots),
                              declared);
  }

  std::vector<Complex> decrypt(const ckks::Ciphertext& c) {
    return ckks::decrypt(*decryptor, encoder(), c);
  }

  /// The standard deviation of the real and imaginary parts of the slots' errors, measured divided
  /// by what is expected of the average of slots whose numbers are independent. A claim is that of
  /// the slot with the most noise.
  double noise_ratio(const ckks::Ciphertext& c, const std::vector<Complex>& expected) {
    const auto got = decrypt(c);
    double sum = 0;
    for (std::size_t j = 0; j < got.size(); ++j) sum += std::norm(got[j] - expected[j]);
    const double measured = std::sqrt(sum / (2.0 * static_cast<double>(got.size())));
    params::Estimate average = c.estimate;
    average.message_shared = average.variance_shared = average.principal = 1;
    const double predicted = std::exp2(-evaluator->noise().precision_bits(average, c.scale));
    EXPECT_LE(predicted, std::exp2(-evaluator->noise().precision_bits(c.estimate, c.scale)));
    return measured / predicted;
  }

  /// Expects that the decryption is right and that the ratio of measured to estimated noise lies
  /// between low and high.
  void expect(const ckks::Ciphertext& c, const std::vector<Complex>& expected, double low = 0.5,
              double high = 2.0) {
    const double ratio = noise_ratio(c, expected);
    EXPECT_GT(ratio, low) << "seed " << seed;
    EXPECT_LT(ratio, high) << "seed " << seed;
    const double bound = ckks::worst_case_error(c);
    const auto got = decrypt(c);
    for (std::size_t j = 0; j < got.size(); ++j) {
      ASSERT_LE(std::abs(got[j] - expected[j]), bound) << "slot " << j << ", seed " << seed;
    }
  }
};

inline double max_error(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  double worst = a.size() == b.size() ? 0 : 1e300;
  for (std::size_t j = 0; j < std::min(a.size(), b.size()); ++j) {
    worst = std::max(worst, std::abs(a[j] - b[j]));
  }
  return worst;
}

}  // namespace jali::testing
