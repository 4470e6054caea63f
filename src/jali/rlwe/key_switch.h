// Hybrid key switching (Han and Ki 2020). It decomposes a polynomial into digits, lifts each digit
// to modulus Q P (ModUp), multiplies them with the key, and divides the sum by P (ModDown). See
// docs/math/key-switching.md.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "jali/backend/rlwe_ops.h"
#include "jali/params/rlwe_params.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/keys.h"

namespace jali::rlwe {

/// A pair of polynomials over the primes of a level and those of P: the result of a key product
/// before ModDown.
struct Accumulator {
  ring::Poly c0, c1;
};

/// The operations of RlweOps, with the primes, digits and constants of each level filled in.
/// Polynomials are in NTT form and, if nothing else is said, over the primes of `level`.
class KeySwitcher {
 public:
  KeySwitcher(ParamsPtr params, std::shared_ptr<const ring::Ring> ring);

  const ParamsPtr& params() const { return params_; }
  const std::shared_ptr<const ring::Ring>& ring() const { return ring_; }

  /// The primes of a level followed by P.
  std::span<const PrimeIndex> extended_primes(int level) const;

  /// ModUp: the digits of x, each lifted to extended_primes(level). Residues lie in the order
  /// (digit, prime, batch, coefficient).
  device::Buffer mod_up(const ring::Poly& x, int level) const;
  /// sum_j sigma_g(ext_j) key_j, where ext_j are the digits that mod_up lifted.
  Accumulator product(const device::Buffer& ext, std::size_t batch, int level,
                      const ExpandedKey& key, std::uint64_t g) const;
  /// RlweOps::rotated_sums over extended_primes(level).
  void rotated_sums(std::span<const backend::Rotated> operands, int level,
                    std::span<const backend::WeightedSum> sums) const;
  /// mod_up of x and then product with g = 1.
  Accumulator switch_key(const ring::Poly& x, int level, const ExpandedKey& key) const;
  /// switch_key of c2, with P c0 and P c1 added.
  Accumulator switch_add(const ring::Poly& c0, const ring::Poly& c1, const ring::Poly& c2,
                         int level, const ExpandedKey& key) const;
  /// switch_add of the three parts of c, which must contain a product.
  Accumulator switch_combination(const backend::Combination& c, std::size_t batch, int level,
                                 const ExpandedKey& key) const;

  /// Both parts of sigma_g(c0, c1) switched back from sigma_g(s) to s: ModUp of sigma_g(c1), the
  /// product with the key and ModDown, with sigma_g(c0) added to the first part.
  std::vector<ring::Poly> rotate(const ring::Poly& c0, const ring::Poly& c1, std::uint64_t g,
                                 int level, const ExpandedKey& key) const;

  /// RlweOps::outer_sum over extended_primes(level). acc receives the sum and must have its shape.
  void outer_sum(Accumulator& acc, std::span<const backend::Turned> terms, int level,
                 bool accumulate) const;

  /// x += P c, where x is over extended_primes(level) and c over the primes of the level. ModDown
  /// then divides c by P again, so that c is part of the result.
  void add_times_p(ring::Poly& x, const ring::Poly& c, int level) const;

  /// Divides x with rounding by the primes that level `to` does not have. If x is over the primes
  /// of `to` and P, this is ModDown. If x is over the primes of a higher level, it is a rescale. If
  /// x is over the primes of a higher level and P, it is both in one division. addend, over the
  /// primes of `to`, is added to the result.
  ring::Poly reduce(const ring::Poly& x, int to, const ring::Poly* addend = nullptr) const;
  /// reduce() of both parts of a ciphertext at once.
  std::vector<ring::Poly> reduce_pair(const ring::Poly& x0, const ring::Poly& x1, int to,
                                      const ring::Poly* addend0 = nullptr,
                                      const ring::Poly* addend1 = nullptr) const;

 private:
  const backend::RlweOps& ops() const { return ring_->engine().rlwe(); }

  ParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  std::vector<std::vector<PrimeIndex>> extended_;  // extended_primes by level
  std::vector<std::vector<std::uint64_t>> p_mod_q_;  // [P]_q by level
};

}  // namespace jali::rlwe
