// Sums of ciphertexts times constants: operands are read where they lie, also at a higher level.
#include <algorithm>
#include <cmath>

#include "jali/base/error.h"
#include "jali/ckks/evaluator_impl.h"

namespace jali::ckks {

namespace {

/// visit(first limb of out, of x, count) for runs of out's limbs that lie together in x.
template <class Visit>
void for_runs(const ring::Poly& out, const ring::Poly& x, Visit visit) {
  const auto want = out.primes(), has = x.primes();
  for (std::size_t i = 0; i < want.size();) {
    const auto first =
        static_cast<std::size_t>(std::ranges::lower_bound(has, want[i]) - has.begin());
    std::size_t count = 0;
    while (i + count < want.size() && first + count < has.size() &&
           has[first + count] == want[i + count]) {
      ++count;
    }
    require<InvalidArgument>(count > 0, "an operand lacks limbs of the level asked for: drop_to");
    visit(i, first, count);
    i += count;
  }
}

}  // namespace

Ciphertext Evaluator::linear_combination(std::span<const Ciphertext* const> x,
                                         std::span<const double> a, int level, double scale) const {
  require<InvalidArgument>(!x.empty() && x.size() == a.size(),
                           "a linear combination needs one factor an operand, at least one");
  const auto& ops = impl_->ring->ops();
  const auto& primes = impl_->params->level(level).primes;
  Ciphertext out = impl_->shell(*x[0]);
  out.level = level;
  out.scale = scale;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const Ciphertext& c = *x[k];
    impl_->check(c);
    require<InvalidArgument>(
        c.level >= level && c.batch() == x[0]->batch() && c.parts.size() == x[0]->parts.size(),
        "operands of a linear combination have the same batch and parts, and no lower level");
    require<InvalidArgument>(std::isfinite(a[k]), "a constant operand must be finite");
    const double wanted = a[k] * (scale / c.scale), factor = std::nearbyint(wanted);
    const auto residues = ring::residues(*impl_->ring, primes, factor);
    for (std::size_t p = 0; p < c.parts.size(); ++p) {
      if (k == 0) out.parts.push_back(impl_->ring->make(primes, c.batch()));
      ring::Poly& sum = out.parts[p];
      const ring::Poly& part = c.parts[p];
      for_runs(sum, part, [&](std::size_t i, std::size_t first, std::size_t count) {
        const auto limbs = std::span<const PrimeIndex>(primes).subspan(i, count);
        const auto s = std::span(residues).subspan(i, count);
        const backend::View to{sum.row(i), limbs, c.batch()};
        const backend::ConstView from{part.row(first), limbs, c.batch()};
        if (k == 0) {
          ops.mul_scalar(to, from, s);
        } else {
          ops.mul_scalar_add(to, from, s);
        }
      });
    }
    Estimate term = impl_->noise.multiply_constant(c.estimate, std::fabs(a[k]), std::fabs(factor));
    term.variance +=
        impl_->scale_error_variance(c.estimate.message, c.scale * std::fabs(factor - wanted), 0);
    out.estimate = k == 0 ? term : impl_->noise.add(out.estimate, term);
  }
  return out;
}

}  // namespace jali::ckks
