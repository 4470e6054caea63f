// Small rings with bootstrapping. They are not secure, they are quick, and otherwise they are like
// the presets.
#pragma once

#include "../schemes/ckks/fixture.h"
#include "../seeded.h"
#include "jali/bootstrap/bootstrapper.h"
#include "jali/bootstrap/secret/evaluation_keys.h"
#include "jali/params/ckks/presets.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/ckks/secret/decryptor.h"
#include "jali/schemes/ckks/secret/encryptor.h"

namespace jali::bootstrap::testing {

using jali::testing::Complex;
using params::BootstrapLiteral;
using params::BootstrapOrder;

struct Case {
  std::string label;
  Word word = Word::w64;
  double scale_bits = 45;
  int depth = 3;
  BootstrapLiteral bootstrap{};
  int log_n = 10;
};

inline void PrintTo(const Case& s, std::ostream* out) { *out << s.label; }

inline ckks::Literal literal_of(const Case& s) {
  ckks::Literal literal;
  literal.name = "insecure_test";
  literal.security = 0;
  literal.depth = s.depth;
  literal.scale_bits = s.scale_bits;
  literal.integer_bits = 58 - s.scale_bits;
  literal.log_n = s.log_n;
  literal.word = s.word;
  literal.bootstrap = s.bootstrap;
  return literal;
}

/// A reduction so precise that the measured error is noise, not the sine's error.
inline BootstrapLiteral precise(BootstrapOrder order, int cts, int stc, double stc_bits = 45) {
  BootstrapLiteral b;
  b.order = order;
  b.degree = 62;
  b.doublings = 2;
  b.inverse_sine = 7;
  b.cts_levels = cts;
  b.stc_levels = stc;
  b.stc_bits = stc_bits;
  return b;
}

/// A request that leaves two levels on a small ring.
inline params::BootstrapRequest small_request(BootstrapOrder order, std::optional<Word> word,
                                              double precision_bits, int log_n = 10) {
  params::BootstrapRequest request;
  request.name = "insecure_test";
  request.security = 0;
  request.log_n = log_n;
  request.order = order;
  request.word = word;
  request.precision_bits = precision_bits;
  request.levels_after = 2;
  return request;
}

/// The circuit of a preset (its cosine, head bits and digits) on a small ring, with fewer levels
/// left.
inline ckks::Literal shipped(const params::BootstrapPreset& p, BootstrapOrder order, Word word,
                             int cts_levels = 4, int stc_levels = 3, int log_n = 10) {
  auto request = small_request(order, word, p.precision_bits, log_n);
  request.scale_bits = p.scale_bits;
  request.cts_levels = cts_levels;
  request.stc_levels = stc_levels;
  auto literal = params::bootstrap_literal(request, log_n);
  literal.dnum = static_cast<int>((word == Word::w32 ? p.w32 : p.w52).digits);
  return literal;
}

/// The keys and the bootstrapper for one packing.
struct World {
  ckks::ParamsPtr params;
  std::shared_ptr<const ring::Ring> ring;
  std::shared_ptr<const rlwe::SecretKey> sk;
  std::shared_ptr<const ckks::Evaluator> evaluator;
  std::unique_ptr<Bootstrapper> bootstrapper;
  std::unique_ptr<ckks::SecretEncryptor> encryptor;
  std::unique_ptr<ckks::Decryptor> decryptor;
  int log_slots = 0;  // of what encrypt() makes
  std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random{seed};

  World(const Case& setup, const BootstrapperOptions& options, bool prepare = false)
      : World(ckks::Params::create(literal_of(setup)), options, prepare) {}

  World(ckks::ParamsPtr made, const BootstrapperOptions& options, bool prepare = false)
      : params(std::move(made)) {
    ring = ckks::make_ring(*params, "cpu", 1);
    BootstrapPlan plan(params, options);
    log_slots = options.log_slots < 0 ? params->log_n() - 1 : options.log_slots;
    rlwe::KeyGenerator keygen(params, ring);
    sk = std::make_shared<const rlwe::SecretKey>(keygen.secret_key());
    auto keys = evaluation_keys(keygen, *sk, {&plan, 1});
    EXPECT_EQ(keys.bytes(), key_bytes(*params, {&plan, 1}));
    std::size_t expanded = 2 * (keys.encapsulation->bytes() - 2 * sizeof(random::Seed));
    expanded += rlwe::expand(*ring, *params, *keys.relinearisation).data.bytes();
    for (const auto& [element, key] : keys.galois) {
      expanded += rlwe::expand(*ring, *params, key).data.bytes();
    }
    EXPECT_EQ(expanded, expanded_key_bytes(*params, {&plan, 1}));
    evaluator = std::make_shared<const ckks::Evaluator>(
        params, ring, std::make_shared<const rlwe::EvaluationKeys>(std::move(keys)));
    bootstrapper = std::make_unique<Bootstrapper>(evaluator, std::move(plan));
    if (prepare) bootstrapper->prepare();
    encryptor = std::make_unique<ckks::SecretEncryptor>(sk, ring);
    decryptor = std::make_unique<ckks::Decryptor>(sk, ring);
  }

  std::vector<Complex> vector(std::size_t count, bool real = false) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::vector<Complex> v(count);
    for (auto& z : v) z = {uniform(random), real ? 0 : uniform(random)};
    return v;
  }

  ckks::Ciphertext encrypt(const std::vector<Complex>& v, int level, double scale = 0,
                           std::size_t batch = 1,
                           const params::Declared& declared = jali::testing::kMagnitude) {
    if (scale == 0) scale = params->scale(level);
    return encryptor->encrypt(evaluator->encoder().encode(v, batch, level, scale, log_slots),
                              declared);
  }

  std::vector<Complex> decrypt(const ckks::Ciphertext& c) {
    return evaluator->encoder().decode(decryptor->decrypt(c));
  }

  /// The precision in bits: -log2 of the standard deviation of the error's real and imaginary
  /// parts.
  static double precision(const std::vector<Complex>& got, const std::vector<Complex>& expected) {
    double sum = 0;
    for (std::size_t j = 0; j < got.size(); ++j) sum += std::norm(got[j] - expected[j]);
    return -std::log2(std::sqrt(sum / (2.0 * static_cast<double>(got.size()))));
  }
};

}  // namespace jali::bootstrap::testing
