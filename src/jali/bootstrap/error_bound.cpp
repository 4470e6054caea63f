#include "jali/bootstrap/error_bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "jali/params/ckks/bootstrap.h"

namespace jali::bootstrap {
namespace {

/// Integers that are rarer than this do not occur, and sums that are rarer neither.
constexpr double kBits = 129;

}  // namespace

// P(I = i) is the density at i of a sum of h + 1 numbers uniform in [-1/2, 1/2). It is less than
// delta^h / h! with delta = (h + 1)/2 - i, the volume of a simplex that contains those numbers,
// which is the better bound near the end. Elsewhere the density is convex, so that P(|I| >= i) <=
// P(|sum| >= i - 1/2).
double log2_integer_beyond(int weight, int least) {
  double ends = 0;  // the sum of the simplices, in both directions
  for (double delta = (weight + 1) / 2.0 - least; delta > 0; --delta) {
    ends += 2 * std::exp(std::min(weight * std::log(delta) - std::lgamma(weight + 1.0), 1.0));
  }
  const double simplex = ends > 0 ? std::log2(ends) : -1e6;
  return std::min({0.0, simplex, params::log2_bootstrap_failure(weight, least - 0.5, 1)});
}

// With X_i the largest error of integers up to i, Chernoff's bound for the sum of independent
// coefficients is
//   P(sum >= B) <= exp(-t B) (E e^(t X))^count,   E e^(t X) <= e^(t X_0) + sum_{i >= 1} P(|I| >= i)
//   (e^(t X_i) - e^(t X_(i-1))),
// for any t.
double largest_cosine_error(const circuits::ModularReduction& reduction, std::size_t count,
                            double distance, bool summed) {
  const auto& options = reduction.options();
  const double all = static_cast<double>(count);
  std::vector<double> most, beyond;
  for (int i = 0; i <= options.range; ++i) {
    const double bits = i == 0 ? 0 : log2_integer_beyond(options.weight, i);
    if (bits + std::log2(all) < -kBits) break;
    beyond.push_back(std::exp2(bits));
    most.push_back(
        std::max(most.empty() ? 0.0 : most.back(), reduction.interpolation_error_at(i, distance)));
  }
  if (!summed || most.back() == 0) return most.back();
  double best = all * most.back();
  for (double k = -8; k <= 12; k += 0.5) {
    const double t = std::exp2(k) / most.back();
    if (t * most.back() > 500) break;
    double above = std::expm1(t * most[0]);  // E e^(t X) - 1
    for (std::size_t i = 1; i < most.size(); ++i) {
      above += beyond[i] * (std::exp(t * most[i]) - std::exp(t * most[i - 1]));
    }
    best = std::min(best, (all * std::log1p(above) + kBits * std::log(2.0)) / t);
  }
  return best;
}

// The roundings of the matrices' numbers are taken as random, of N/12 in every slot, and the
// numbers as any: bounded by their peak alone. So the error is a sum of independent roundings with
// given weights, and below slot_tail times its deviation. Its deviation would be the root of the
// sum of the stages' squares if the numbers were spread evenly between stages. With slots_first, a
// coefficient of the result depends on the numbers of one block of slots after every stage.
// Matrices are unitary up to a factor, so that the numbers of a block have the energy that they
// had, at most that of a block of peaks. A rotation may take the numbers of two blocks; hence the
// root of 2. With raise_first, a slot of the result depends on n / r of n slots behind a stage, if
// r is the number of slots on which the numbers there depend. None of them is above the peak,
// because the later stages would spread it again. Their energy is at most min(n / r_before, r)
// times what it would be on average.
double largest_matrix_error(const circuits::HomomorphicDft& to_coefficients,
                            const ckks::Params& params, bool raise_first) {
  const double n = static_cast<double>(params.slots());
  double squares = 0, before = 1;
  for (const auto& [relative, entries] : to_coefficients.rounded()) {
    const double after = before * entries;
    squares += relative * relative * (raise_first ? std::max(std::min(n / before, after), 1.0) : 1);
    before = after;
  }
  return params::slot_tail(params.log_n(), params::kSourceBits) * std::sqrt(2 * squares);
}

}  // namespace jali::bootstrap
