#include "jali/backend/ref/crt.h"

#include <cmath>
#include <utility>

#include "jali/backend/ref/modular.h"
#include "jali/base/error.h"

namespace jali::backend::ref {

using u64 = std::uint64_t;

Basis::Basis(std::vector<u64> primes) : primes_(std::move(primes)) {
  for (const u64 q : primes_) product_ *= q;
  for (const u64 q : primes_) {
    Natural cofactor = product_;
    require<InternalError>(cofactor.divide(q) == 0, "ref: a product is not divisible by its prime");
    cofactor_inverses_.push_back(inverse(cofactor % q, q));
    cofactors_.push_back(std::move(cofactor));
  }
}

Natural Basis::compose(std::span<const u64> residues) const {
  // sum_i [x_i (D/q_i)^-1]_{q_i} (D/q_i) is x + k D with 0 <= k < number of primes.
  Natural sum;
  for (std::size_t i = 0; i < primes_.size(); ++i) {
    sum += cofactors_[i] * mul(residues[i], cofactor_inverses_[i], primes_[i]);
  }
  while (sum >= product_) sum -= product_;
  return sum;
}

Lift Basis::centred(std::span<const u64> residues) const {
  Lift lift{compose(residues), false};
  const bool above = lift.value + lift.value >= product_;

  // rlwe_ops.h: the lift is sum_i y_i (D/q_i) - v D; the sum is value + k D, so v = k or k + 1.
  Natural sum;
  double s = 0.5;
  for (std::size_t i = 0; i < primes_.size(); ++i) {
    const u64 y = mul(residues[i], cofactor_inverses_[i], primes_[i]);
    sum += cofactors_[i] * y;
    s = std::fma(static_cast<double>(y), 1.0 / static_cast<double>(primes_[i]), s);
  }
  u64 k = 0;
  for (; sum >= product_; ++k) sum -= product_;
  const u64 v = static_cast<u64>(std::floor(s));
  require<InternalError>(v == k || v == k + 1, "ref: the rounded quotient is off by more than one");
  lift.negative = v == k + 1;

  if (lift.negative != above) {
    // m terms below 1, sums below m + 1, three roundings a term: the error of s is below
    // m (m + 3) 2^-53, so |value / D - 1/2| is: |2 value - D| 2^53 <= 2 m (m + 3) D.
    const Natural twice = lift.value + lift.value;
    const Natural distance = above ? twice - product_ : product_ - twice;
    const u64 m = primes_.size();
    require<InternalError>(distance * (u64{1} << 53) <= product_ * (2 * m * (m + 3)),
                           "ref: a lift is not centred and rounding does not explain it");
  }
  return lift;
}

u64 residue(const Lift& lift, const Natural& product, u64 q) {
  const u64 r = lift.value % q;
  return lift.negative ? sub(r, product % q, q) : r;
}

}  // namespace jali::backend::ref
