// A scheme for tests: whole numbers as coefficients of polynomials, at a scale that follows the
// modulus from level to level. It is what a scheme has to add to rlwe/ to compute sums, products
// and rotations, and to circuits/common to compute baby and giant steps. It knows no bounds and
// refuses nothing: it is not for use.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "jali/arith/primes.h"
#include "jali/backend/engines.h"
#include "jali/circuits/common/baby_giant.h"
#include "jali/rlwe/evaluator.h"
#include "jali/rlwe/host_ring.h"
#include "jali/rlwe/secret/decryptor.h"
#include "jali/rlwe/secret/encryptor.h"
#include "jali/rlwe/secret/key_generator.h"

namespace jali::plain {

using Integers = std::vector<std::int64_t>;  // coefficients, for each vector of a batch
using rlwe::Ciphertext;
using rlwe::Extended;
using rlwe::Rotation;

inline constexpr int kLogN = 10;
inline constexpr std::size_t kN = std::size_t{1} << kLogN;

/// Four q primes in two digits, three p primes, and three levels.
inline std::shared_ptr<const rlwe::Params> make_params(Word word) {
  rlwe::ParamsSpec s;
  s.log_n = kLogN;
  s.word = word;
  std::uint64_t bound = std::uint64_t{1} << (word_prime_bits(word) - 1);
  const auto next = [&] { return bound = *arith::prime_below(bound, 2 * kN); };
  s.p = {next(), next(), next()};  // the largest, so that P is above every digit
  s.q = {next(), next(), next(), next()};
  s.levels = {{1}, {0, 1}, {0, 1, 2, 3}};
  s.digit_begin = {0, 2, 4};
  return std::make_shared<const rlwe::Params>(s);
}

/// A ring on an engine: cpu/ or, if `oracle`, ref/.
inline std::shared_ptr<const ring::Ring> make_ring(const rlwe::Params& params, bool oracle) {
  backend::Config c = rlwe::engine_config(params);
  return std::make_shared<const ring::Ring>(std::shared_ptr<const backend::Engine>(
      oracle ? backend::make_ref_engine(std::move(c)) : backend::make_cpu_engine(std::move(c))));
}

/// Keys and encodings.
struct Client {
  std::shared_ptr<const rlwe::Params> params;
  std::shared_ptr<const ring::Ring> ring;
  rlwe::KeyGenerator generator{params, ring};
  std::shared_ptr<const rlwe::SecretKey> secret =
      std::make_shared<const rlwe::SecretKey>(generator.secret_key());

  /// Q_level / 2^26, up to a factor of 2 that is the same at every level.
  double scale(int level) const {
    double s = std::exp2(std::floor(params->level(params->top()).log_q) - 26);
    std::map<PrimeIndex, int> lost;
    for (const PrimeIndex i : params->level(params->top()).primes) ++lost[i];
    for (const PrimeIndex i : params->level(level).primes) --lost[i];
    for (const auto& [i, times] : lost) s /= std::pow(static_cast<double>(ring->prime(i)), times);
    return s;
  }
  /// Polynomials over `primes`, in NTT form.
  ring::Poly encode(const Integers& x, std::span<const PrimeIndex> primes, double scale) const {
    ring::Poly out = ring->make_secret(primes, ring::Form::coeff, x.size() / kN);
    ring->ops().from_int64(out.view(), x);
    ring->ops().mul_scalar(out.view(), out.view(), ring::residues(*ring, primes, scale));
    ring->to_ntt(out);
    return out;
  }
  Ciphertext encrypt(const Integers& x) const {
    const int top = params->top();
    return rlwe::SecretEncryptor(secret, ring)
        .encrypt({encode(x, params->level(top).primes, scale(top)), top});
  }
  /// scale: of a product; otherwise that of the level.
  Integers decrypt(const Ciphertext& x, double scale = 0) const {
    rlwe::Plaintext phase = rlwe::Decryptor(secret, ring).decrypt(x);
    ring->to_coeff(phase.poly);
    Integers out;
    for (double v : ring::to_doubles(*ring, phase.poly, scale > 0 ? scale : this->scale(x.level))) {
      out.push_back(std::llround(v));
      EXPECT_LT(std::fabs(v - std::nearbyint(v)), 0.25) << "the noise has used up its room";
    }
    return out;
  }
};

/// A matrix of polynomials for baby and giant steps: its diagonal d of block (output, input).
using Diagonals = std::map<std::tuple<std::size_t, std::size_t, int>, Integers>;

/// The image of one polynomial under X -> X^(5^steps).
Integers rotated(const Integers& x, int steps);

/// What common/baby_giant.h asks of a scheme. Weights are made for one use.
struct Scheme {
  using Evaluator = rlwe::Evaluator;
  const Client& client;
  const Evaluator& evaluator;
  const circuits::BsgsPlan& plan;
  int level;
  const Diagonals& diagonals;

  struct Weights {
    const Scheme& scheme;
    std::vector<ring::Poly> made = {};
    void restart(std::size_t most) { made.clear(), made.reserve(most); }
    const ring::Poly& get(std::size_t output, std::size_t giant, std::size_t term) {
      const auto& step = scheme.plan.giants[output][giant];
      const auto& [input, baby, diagonal] = step.terms[term];
      const Integers& x = scheme.diagonals.at({output, input, diagonal});
      made.push_back(scheme.client.encode(rotated(x, -step.rotation - scheme.plan.offset),
                                          scheme.weight_primes(), 1));
      return std::as_const(made).back();
    }
    void add(const auto&, bool, const auto&, const ring::Poly&, std::size_t) const {}
  };
  Weights weights() const { return {*this}; }
  bool resident() const { return false; }
  std::vector<PrimeIndex> weight_primes() const {
    auto primes = client.params->level(level).primes;
    const auto p = client.params->p_primes();
    if (plan.hoisting == circuits::Hoisting::twice) primes.insert(primes.end(), p.begin(), p.end());
    return primes;
  }
  Ciphertext like(const Ciphertext& x) const { return {x.key_id, {}, x.level, {}}; }
  Extended like(const Extended& x) const { return {x.key_id, {}, {}, x.level}; }
  Extended like(const Rotation& x) const { return {x.source->key_id, {}, {}, x.source->level}; }
  Ciphertext zero(const Ciphertext& x, bool rescale) const {
    const Ciphertext none = evaluator.multiply_integer(x, 0);
    return rescale ? evaluator.rescale(none) : evaluator.copy(none);
  }
  void inner(std::size_t, rlwe::Ciphertext&) const {}
  void inner(std::size_t, rlwe::Extended&) const {}
  void partial(std::size_t, rlwe::Extended&) const {}
  void whole(std::size_t, rlwe::Ciphertext&) const {}
  void whole(std::size_t, rlwe::Extended&) const {}
};

}  // namespace jali::plain
