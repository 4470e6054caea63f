// Residues to integers: the Chinese remainder theorem with natural numbers of any size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jali/backend/ref/natural.h"

namespace jali::backend::ref {

/// The integer `value - (negative ? D : 0)`, value in [0, D).
struct Lift {
  Natural value;
  bool negative = false;
};

/// Distinct primes q_i with product D; none is allowed, and D = 1 then.
class Basis {
 public:
  explicit Basis(std::vector<std::uint64_t> primes);

  const Natural& product() const { return product_; }

  /// The integer in [0, D) with these residues.
  Natural compose(std::span<const std::uint64_t> residues) const;

  /// The centred lift of rlwe_ops.h. D is odd, so it lies in (-D/2, D/2); but if the value is so
  /// near D/2 that the double sum of the definition rounds to the other side, the lift does as
  /// well. The sum's error is proved to be the only reason: InternalError otherwise.
  Lift centred(std::span<const std::uint64_t> residues) const;

 private:
  std::vector<std::uint64_t> primes_;
  std::vector<Natural> cofactors_;                // D / q_i
  std::vector<std::uint64_t> cofactor_inverses_;  // (D / q_i)^-1 mod q_i
  Natural product_ = 1;
};

/// The integer modulo q.
std::uint64_t residue(const Lift& lift, const Natural& product, std::uint64_t q);

}  // namespace jali::backend::ref
