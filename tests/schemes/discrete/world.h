// Small parameters, keys and helpers for the tests of discrete/.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../../seeded.h"
#include "jali/base/error.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/schemes/discrete/evaluator.h"
#include "jali/schemes/discrete/make_ring.h"
#include "jali/schemes/discrete/secret/decryptor.h"
#include "jali/schemes/discrete/secret/encryptor.h"

namespace jali::discrete {

using Numbers = std::vector<std::int64_t>;

inline constexpr int kLogN = 10;
inline constexpr std::size_t kN = std::size_t{1} << kLogN;

struct Case {
  std::string label;
  Word word = Word::w52;
  std::optional<std::uint64_t> modulus{};
  int integers = 0;
  int depth = 3;
  Multiplication multiplication = Multiplication::bgv;
  Packing packing = Packing::slots;
  int dnum = 0;
  std::string device = "cpu";
};

inline void PrintTo(const Case& s, std::ostream* out) { *out << s.label; }

inline Literal insecure_literal(const Case& s) {
  Literal l;
  l.name = "insecure_test";
  l.security = 0;
  l.log_n = kLogN;
  l.word = s.word;
  l.modulus = s.modulus;
  l.integers = s.integers;
  l.depth = s.depth;
  l.multiplication = s.multiplication;
  l.packing = s.packing;
  l.dnum = s.dnum;
  return l;
}

/// Every word, one and several primes of T and of a level, both products, one digit and many.
inline std::vector<Case> slot_setups() {
  const auto bfv = Multiplication::bfv;
  const auto slots = Packing::slots;
  return {
      {"w32", Word::w32, 65537},
      {"w52", Word::w52, 65537},
      {"w64", Word::w64, 65537, 0, 3, Multiplication::bgv, slots, 2},
      {"w32_integers40", Word::w32, {}, 40, 2, Multiplication::bgv, slots, 3},
      {"w52_integers59", Word::w52, {}, 59, 2},
      {"w64_integers32", Word::w64, {}, 32, 3},
      {"w52_small", Word::w52, 12289, 0, 2, Multiplication::bgv, slots, 3},
      {"bfv_w32", Word::w32, 65537, 0, 2, bfv},
      {"bfv_w52", Word::w52, 786433, 0, 3, bfv, slots, 2},
      {"bfv_w64_integers40", Word::w64, {}, 40, 2, bfv},
      {"ref_w52", Word::w52, 65537, 0, 1, Multiplication::bgv, slots, 0, "ref"},
      {"ref_bfv_w32", Word::w32, 12289, 0, 1, bfv, slots, 0, "ref"},
      {"portable_w32", Word::w32, 65537, 0, 2, Multiplication::bgv, slots, 0, "cpu/portable"},
      {"portable_w64", Word::w64, {}, 59, 1, Multiplication::bgv, slots, 0, "cpu/portable"},
  };
}

inline std::vector<Case> coefficient_setups() {
  const auto bgv = Multiplication::bgv;
  const auto packing = Packing::coefficients;
  return {
      {"w52_2_64", Word::w52, kTwoTo64, 0, 0, bgv, packing},
      {"w32_2_32", Word::w32, std::uint64_t{1} << 32, 0, 1, bgv, packing},
      {"w64_prime", Word::w64, 1000000007, 0, 2, bgv, packing},
      {"w52_even", Word::w52, 1000, 0, 1, bgv, packing},
      {"ref_2_63", Word::w64, std::uint64_t{1} << 63, 0, 0, bgv, packing, 0, "ref"},
  };
}

/// Keys of one client.
struct World {
  explicit World(const Case& s) : World(s, Params::create(insecure_literal(s))) {}
  explicit World(ParamsPtr p) : World(Case{}, std::move(p)) {}
  World(const Case& s, ParamsPtr p)
      : setup(s),
        params(std::move(p)),
        ring(make_ring(*params, s.device)),
        host(make_ring(*params, "cpu")),
        generator(params, ring),
        secret(std::make_shared<const rlwe::SecretKey>(generator.secret_key())),
        public_key(std::make_shared<const rlwe::PublicKey>(generator.public_key(*secret))),
        engine(Engine::make(params, ring)),
        encryptor(public_key, ring, params),
        secret_encryptor(secret, ring, params),
        decryptor(secret, host, params) {}

  /// Keys for these rotations and all else.
  std::shared_ptr<const rlwe::EvaluationKeys> keys(const std::vector<int>& rotations = {}) {
    return std::make_shared<const rlwe::EvaluationKeys>(
        generator.evaluation_keys(*secret, rotations, true, true));
  }
  Evaluator evaluator(const std::vector<int>& rotations = {}) {
    return Evaluator(engine, keys(rotations));
  }
  const Encoder& encoder() const { return engine->encoder(); }
  const NoiseModel& noise() const { return engine->noise(); }

  /// Uniform numbers of a range.
  Numbers numbers(std::mt19937_64& rng, std::int64_t low, std::int64_t high,
                  std::size_t count = kN) const {
    std::uniform_int_distribution<std::int64_t> uniform(low, high);
    Numbers out(count);
    for (auto& v : out) v = uniform(rng);
    return out;
  }
  Ciphertext encrypt(const Numbers& x, std::int64_t low, std::int64_t high, int level = -1,
                     std::size_t batch = 1) {
    return encryptor.encrypt(encoder().encode(x, batch, noise().range(low, high)), level);
  }
  Ciphertext encrypt_residues(const Numbers& x, int level = -1) {
    return encryptor.encrypt(encoder().encode(x, 1, noise().residues()), level);
  }
  Numbers decrypt(const Ciphertext& x, Check check = Check::yes) const {
    const auto out = decryptor.decrypt(x, check);
    return {out.begin(), out.end()};
  }

  const Case setup;
  const ParamsPtr params;
  const std::shared_ptr<const ring::Ring> ring, host;
  rlwe::KeyGenerator generator;
  const std::shared_ptr<const rlwe::SecretKey> secret;
  const std::shared_ptr<const rlwe::PublicKey> public_key;
  const std::shared_ptr<const Engine> engine;
  PublicEncryptor encryptor;
  SecretEncryptor secret_encryptor;
  Decryptor decryptor;
};

/// The worst message for the noise of a fresh encryption: every coefficient of w is T / 2.
inline Numbers worst_message(const World& w) {
  const PlainModulus& t = w.params->modulus();
  // m = f^-1 (T - 1) / 2 (1 + X + .. + X^(N-1)) modulo T.
  const std::uint64_t c =
      t.mul(t.inverse(w.params->factor(w.params->top())), static_cast<std::uint64_t>(t.high()));
  const std::vector<std::int64_t> coefficients(w.params->n(), t.centred(c));
  if (w.params->packing() == Packing::coefficients) return coefficients;
  ring::Poly poly = w.host->make(w.params->modulus_primes(), 1, ring::Form::coeff);
  w.host->ops().from_int64(poly.view(), coefficients);
  w.host->to_ntt(poly);
  Numbers out;
  for (const auto r : Encoder(w.params, w.host).residues(poly)) out.push_back(t.centred(r));
  return out;
}

__extension__ using Wide = __int128;

/// The residue of v modulo T that PlainModulus::centred gives.
inline std::int64_t residue(Wide v, const PlainModulus& t) {
  const Wide modulus = static_cast<Wide>(t.largest()) + 1;
  Wide r = v % modulus;
  if (r < t.low()) r += modulus;
  if (r > t.high()) r -= modulus;
  return static_cast<std::int64_t>(r);
}

/// Element by element, exactly.
template <class F>
Numbers each(const Numbers& a, const Numbers& b, F f) {
  Numbers out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    out[i] = static_cast<std::int64_t>(f(Wide{a[i]}, Wide{b[i % b.size()]}));
  }
  return out;
}
inline Numbers plus(const Numbers& a, const Numbers& b) {
  return each(a, b, [](Wide x, Wide y) { return x + y; });
}
inline Numbers minus(const Numbers& a, const Numbers& b) {
  return each(a, b, [](Wide x, Wide y) { return x - y; });
}
inline Numbers times(const Numbers& a, const Numbers& b) {
  return each(a, b, [](Wide x, Wide y) { return x * y; });
}
/// Both rows of each vector rotated to the left.
inline Numbers rotated(const Numbers& a, int steps) {
  Numbers out(a.size());
  const auto half = static_cast<int>(kN / 2);
  const int by = ((steps % half) + half) % half;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::size_t row = i / (kN / 2) * (kN / 2), at = i % (kN / 2);
    out[i] = a[row + (at + static_cast<std::size_t>(by)) % (kN / 2)];
  }
  return out;
}
inline Numbers swapped(const Numbers& a) {
  Numbers out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i / kN * kN + (i % kN + kN / 2) % kN];
  return out;
}

/// Expects that the noise is within its bounds, and that these are at most `slack` bits above it.
inline void expect_noise(const World& w, const Ciphertext& x, double slack, const char* what) {
  const auto measured = w.decryptor.measure(x);
  EXPECT_LE(measured.slot, x.estimate.slot) << what;
  EXPECT_LE(measured.coefficient, x.estimate.largest()) << what;
  EXPECT_LE(x.estimate.slot, measured.slot * std::exp2(slack)) << what;
}

}  // namespace jali::discrete
