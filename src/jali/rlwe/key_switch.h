// Hybrid key switching (Han and Ki 2020): decompose into digits, lift each to Q P, multiply with the
// key, divide by P.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "jali/backend/rlwe_ops.h"
#include "jali/params/rlwe_params.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/keys.h"

namespace jali::rlwe {

/// A pair of polynomials over (level primes, P): the result of a key product before division by P.
struct Accumulator {
  ring::Poly c0, c1;
};

class KeySwitcher {
 public:
  KeySwitcher(ParamsPtr params, std::shared_ptr<const ring::Ring> ring);

  /// The primes of a level followed by P.
  std::span<const PrimeIndex> extended_primes(int level) const;

  /// Digits of x (NTT form over the level's primes), each lifted to extended_primes(level): blocks
  /// (digit, prime, batch, coefficient).
  device::Buffer mod_up(const ring::Poly& x, int level) const;
  /// sum_j sigma_g(ext_j) key_j from lifted digits.
  Accumulator product(const device::Buffer& ext, std::size_t batch, int level,
                      const ExpandedKey& key, std::uint64_t g) const;
  /// RlweOps::rotated_sums over extended_primes(level).
  void rotated_sums(std::span<const backend::Rotated> operands, int level,
                    std::span<const backend::WeightedSum> sums) const;
  /// mod_up and product in one.
  Accumulator switch_key(const ring::Poly& x, int level, const ExpandedKey& key) const;
  /// switch_key of c2, plus P c0 and P c1.
  Accumulator switch_add(const ring::Poly& c0, const ring::Poly& c1, const ring::Poly& c2,
                         int level, const ExpandedKey& key) const;
  /// switch_add of a combination that has a product.
  Accumulator switch_combination(const backend::Combination& c, std::size_t batch, int level,
                                 const ExpandedKey& key) const;

  /// sigma_g(c0) + P^-1 <digits of sigma_g(c1), key>, and the other half: a ciphertext under sigma_g, back
  /// under its own key.
  std::vector<ring::Poly> rotate(const ring::Poly& c0, const ring::Poly& c1, std::uint64_t g,
                                 int level, const ExpandedKey& key) const;

  /// RlweOps::outer_sum over extended_primes(level), into acc, which has its shape.
  void outer_sum(Accumulator& acc, std::span<const backend::Turned> terms, int level,
                 bool accumulate) const;

  /// x += P c, x over extended_primes(level), c over the level's primes: c joins the sum before the
  /// division by P.
  void add_times_p(ring::Poly& x, const ring::Poly& c, int level) const;

  /// Division with rounding of x to the primes of level `to`: ModDown when x is over (primes of `to`,
  /// P), rescale when it is over a higher level's primes, both merged when over those and P.
  /// addend, over the result's primes, is added.
  ring::Poly reduce(const ring::Poly& x, int to, const ring::Poly* addend = nullptr) const;
  /// The same for both halves of a ciphertext at once.
  std::vector<ring::Poly> reduce_pair(const ring::Poly& x0, const ring::Poly& x1, int to,
                                      const ring::Poly* addend0 = nullptr,
                                      const ring::Poly* addend1 = nullptr) const;

 private:
  const backend::RlweOps& ops() const { return ring_->engine().rlwe(); }

  ParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  std::vector<std::vector<PrimeIndex>> extended_;  // by level
  std::vector<std::vector<std::uint64_t>> p_mod_q_;  // [P]_q by level
};

}  // namespace jali::rlwe
