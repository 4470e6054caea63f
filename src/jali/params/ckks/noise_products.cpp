// Products: with ciphertexts, constants, plaintexts and the diagonals of matrices.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "jali/params/ckks/noise.h"
#include "jali/params/ckks/noise_formulas.h"

namespace jali::params {

using formulas::kDouble;
using formulas::ratio;
using formulas::saturated;
using formulas::saturated_product;
using formulas::times;

namespace {

/// Scales and ratios are doubles. The relative error of a product, of its division, and of the
/// scale that it is taken to have is together less than this.
constexpr double kScales = 16 * kDouble;

/// sqrt(E x^(2i + 2j) / (E x^(2i) E x^(2j))) for x a product of `degree` normal numbers.
double moment_ratio(double i, double j, double degree) {
  const double bits = log2_normal_moment(i + j) - log2_normal_moment(i) - log2_normal_moment(j);
  return std::exp2(std::min(degree * bits / 2, 900.0));
}

}  // namespace

// Stirling's formula bounds it from above by sqrt(2) (2k / e)^k, which is within a factor of
// 2^0.06.
double log2_normal_moment(double k) {
  return k < 1 ? 0 : k * std::log2(2 * k / std::numbers::e) + 0.5;
}

// e = m1 e2 + m2 e1 + e1 e2, slot by slot. The variance of a slot is N times that of a coefficient.
// If the operands are powers i and j of one x, the first two terms are both multiples of x^(i + j -
// 1) times the error of x, so they add up. The expected figures take |x| for constant, as it is for
// signs. The spreads take x for normal with root mean square m. Then E x^(2i + 2j) = r(i, j)^2
// E[x^(2i)] E[x^(2j)], and the deviation of m1 e2 is
//   sqrt(E[x^(2i) x^(2j - 2)]) j dev(e) = r(i, j - 1) m1 dev(e2).
Estimate NoiseModel::multiply(const Estimate& a, double sa, const Estimate& b, double sb) const {
  Estimate out;
  out.peak = saturated_product(a.peak, b.peak);
  out.lineage = lineage_of_product(a.lineage, b.lineage);
  struct Average {
    double message, variance;
    double largest = 0;  // of a factor: a bound on the modulus of its numbers
  };
  // one: whether the factors are powers i and j of the same numbers, so that their errors add up.
  // degree: these are products of so many normal numbers; 0 if their modulus is constant. uneven: a
  // claim takes large numbers of both factors, and large errors, to lie in the same slots, as if
  // these were powers of one normal number. By Hoelder's inequality nothing is larger.
  const auto average = [&](const Average& x, const Average& y, bool one, double i, double j,
                           double degree, bool uneven = false) -> Average {
    // Of the messages, and of the message x^k with an error that is proportional to x^(l - 1).
    const auto messages = [&](double k, double l) {
      if (uneven) return moment_ratio(k * degree, l * degree, 1);
      return one ? moment_ratio(k, l, degree) : 1.0;
    };
    const auto errors = [&](double k, double l) {
      if (uneven) return moment_ratio(k * degree, l * degree - 1, 1);
      return one ? moment_ratio(k, l - 1, degree) : 1.0;
    };
    const double first =
        times(std::min(times(x.message, errors(i, j)), x.largest) * sa, std::sqrt(y.variance));
    const double second =
        times(std::min(times(y.message, errors(j, i)), y.largest) * sb, std::sqrt(x.variance));
    const double message =
        std::min({times(times(x.message, y.message), messages(i, j)), times(x.largest, y.message),
                  times(x.message, y.largest), out.peak});
    const double sum = one ? (first + second) * (first + second) : first * first + second * second;
    return {message, sum + static_cast<double>(n_) * times(x.variance, y.variance)};
  };
  const Average expected =
      average({a.message, a.variance, a.peak}, {b.message, b.variance, b.peak},
              are_same(a.lineage, b.lineage), a.lineage.power, b.lineage.power, 0);
  // The spreads are those of normal numbers, of which those of one vector may be equal. Products
  // that share a factor are taken for powers of it. What is made of unknown inputs is taken for
  // normal itself; a claim has its degree.
  const bool powers = are_kin(a.lineage, b.lineage);
  const bool overlap = (a.lineage.inputs & b.lineage.inputs) != 0;
  const bool shared = powers || (overlap && !apart(a.lineage, b.lineage));
  const auto i = static_cast<double>(powers ? a.lineage.power : degree_of(a.lineage));
  const auto j = static_cast<double>(powers ? b.lineage.power : degree_of(b.lineage));
  const double degree = powers ? a.lineage.degree : 1;
  const Average spread =
      average({times(a.message, a.message_spread), times(a.variance, a.variance_spread), a.peak},
              {times(b.message, b.message_spread), times(b.variance, b.variance_spread), b.peak},
              shared, i, j, a.lineage.inputs != 0 ? degree : 1);
  out.message = expected.message;
  out.variance = expected.variance;
  out.message_spread = ratio(spread.message, expected.message);
  out.variance_spread = ratio(spread.variance, expected.variance);
  const double pa = saturated_product(a.peak, sa), pb = saturated_product(b.peak, sb);
  out.error = saturated(saturated_product(pa, b.error) + saturated_product(pb, a.error) +
                        saturated_product(a.error, b.error) +
                        kScales * saturated_product(out.peak, sa * sb));
  // The noise of one factor is multiplied by the message of the other with all of its error. An
  // error below the noise is a claim, or holds for sources that are independent. It bounds no
  // noise.
  out.noise = saturated(saturated_product(pa + std::max(a.error, a.noise), b.noise) +
                        saturated_product(pb + std::max(b.error, b.noise), a.noise));
  if (a.noise <= a.error && b.noise <= b.error) out.noise = std::min(out.noise, out.error);
  out.derived = a.derived && b.derived;
  out.real = a.real && b.real;
  // Numbers of unknown lineage may be the same. Clear numbers, which have no noise, have roundings
  // of their own.
  const bool unknown = a.lineage.root == 0 || b.lineage.root == 0;
  // Their root mean square is their peak in a claim, so that it does not matter which numbers lie
  // in which slot.
  const bool term = a.lineage.term || b.lineage.term;
  const bool clear = a.noise == 0 || b.noise == 0 || term;
  const bool any = !term && std::max(degree_of(a.lineage), degree_of(b.lineage)) == kAnyDegree;
  const bool one = shared || (unknown && !clear);
  const bool uneven = one || !clear || any;
  const bool simple =
      one == shared && one == uneven && (!one || degree == 1) && a.is_plain() && b.is_plain();
  if (simple) return out;  // the claim would be that of the spreads
  const Claim ca = a.claim(), cb = b.claim();
  const double slots = static_cast<double>(n_) / 2;
  const double la = a.claimed_largest(slots), lb = b.claimed_largest(slots);
  const auto claimed = [&](double va, double vb) {
    return average({ca.message, va, la}, {cb.message, vb, lb}, one, i, j, degree, uneven);
  };
  const Average most = claimed(ca.variance, cb.variance);
  out.set_claim({most.message, most.variance, claimed(ca.principal, cb.principal).variance});
  return out;
}

Estimate NoiseModel::multiply_constant(const Estimate& a, double factor_abs,
                                       double integer_abs) const {
  Estimate out = a;
  out.variance = times(times(a.variance, integer_abs), integer_abs);
  out.message = times(a.message, factor_abs);
  out.peak = saturated_product(a.peak, factor_abs);
  // What is not known stays so, unless it is multiplied by 0.
  const auto multiple = [&](double bound) {
    return bound < kUnbounded || integer_abs == 0 ? saturated_product(bound, integer_abs)
                                                  : kUnbounded;
  };
  out.error = multiple(a.error);
  out.noise = multiple(a.noise);
  return out;
}

// Numbers of unknown lineage get one of their own, so that the model counts a square.
Estimate NoiseModel::square(const Estimate& a, double sa) const {
  if (a.lineage.root != 0) return multiply(a, sa, a, sa);
  Estimate x = a;
  x.set_itself();
  Estimate out = multiply(x, sa, x, sa);
  out.set_unknown(degree_of(out.lineage));
  return out;
}

// The largest of these numbers may lie in the slots that have the largest numbers or errors of the
// other operand. The rounding of real numbers is real, of which precision_bits takes half.
Estimate NoiseModel::plaintext(double message, double peak, double scale, int log_slots,
                               bool real) const {
  const Noise rounded = encoding(message, peak, scale, log_slots);
  Estimate out{rounded.variance, message, peak, rounded.bound, /*noise=*/0};
  out.lineage = lineage_of(message, peak);
  out.real = real;
  if (message > 0 && peak > message) out.message_shared = peak / message;
  if (real) out.variance_shared = 2;
  return out;
}

// The rounding of real numbers is real, of which precision_bits takes half.
Estimate NoiseModel::diagonal(const DiagonalFacts& d, double scale, int log_slots) const {
  const Noise rounded = encoding(d.message, d.peak, scale, log_slots);
  Estimate out{rounded.variance * d.density, d.message * d.rows, d.peak, rounded.bound,
               /*noise=*/0};
  out.real = d.real;
  out.set_term();
  out.variance_shared = d.alike * (d.real ? 2 : 1);
  return out;
}

}  // namespace jali::params
