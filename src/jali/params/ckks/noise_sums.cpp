// Sums: of ciphertexts, of constants, of slots, and of the terms of circuits.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "jali/params/ckks/noise.h"
#include "jali/params/ckks/noise_formulas.h"

namespace jali::params {

using formulas::ratio;
using formulas::saturated;
using formulas::times;
using formulas::together;

// If the operands are the same numbers, root mean squares and standard deviations are added,
// otherwise their squares are. Bounds are always added.
Estimate NoiseModel::add(const Estimate& a, const Estimate& b) const {
  Estimate out;
  if (are_same(a.lineage, b.lineage) && a.lineage.power == b.lineage.power) {
    out.message = a.message + b.message;
  } else {
    out.message = std::hypot(a.message, b.message);
  }
  if (are_same(a.lineage, b.lineage)) {
    const double deviation = std::sqrt(a.variance) + std::sqrt(b.variance);
    out.variance = deviation * deviation;
  } else {
    out.variance = a.variance + b.variance;
  }
  out.lineage =
      are_same(a.lineage, b.lineage) && a.lineage.power == b.lineage.power
          ? a.lineage
          : joined(a.lineage, b.lineage, std::max(degree_of(a.lineage), degree_of(b.lineage)));
  // The spreads assume that different numbers are equal, also those of one vector, and so are
  // errors that come from the same encryption (Cauchy and Schwarz). Errors of two different
  // encryptions are independent. Numbers of unknown lineage, such as the terms of linear
  // transforms, are not taken to be equal.
  const double ma = a.message * a.message_spread, mb = b.message * b.message_spread;
  const double va = a.variance * a.variance_spread, vb = b.variance * b.variance_spread;
  const bool known = a.lineage.root != 0 && b.lineage.root != 0;
  out.message_spread = ratio(known ? ma + mb : std::hypot(ma, mb), out.message);
  const bool related = known && !apart(a.lineage, b.lineage);
  const double deviation = related ? std::sqrt(va) + std::sqrt(vb) : 0;
  out.variance_spread = ratio(related ? deviation * deviation : va + vb, out.variance);
  out.peak = saturated(a.peak + b.peak);
  out.error = saturated(a.error + b.error);
  out.noise = saturated(a.noise + b.noise);
  out.derived = a.derived && b.derived;
  out.real = a.real && b.real;
  if (known && a.is_plain() && b.is_plain()) return out;  // the claim would be that of the spreads
  const Claim ca = a.claim(), cb = b.claim();
  if (a.lineage.term || b.lineage.term) {
    // Rotations of one vector, for example: the principal adds up to a bound on the variance.
    const double principal = ca.principal + cb.principal;
    out.set_claim({std::hypot(ca.message, cb.message),
                   std::min(together(ca.variance, cb.variance), principal), principal});
  } else if (apart(a.lineage, b.lineage)) {
    // Errors that all slots may share come from roundings of constants, which may be the same ones.
    const double slots = static_cast<double>(n_) / 2;
    const double both =
        2 * std::sqrt(times(ca.principal - ca.variance, cb.principal - cb.variance)) / slots;
    out.set_claim({ca.message + cb.message, ca.variance + cb.variance + both,
                   ca.principal + cb.principal + slots * both});
  } else {
    out.set_claim({ca.message + cb.message, together(ca.variance, cb.variance),
                   together(ca.principal, cb.principal)});
  }
  return out;
}

// -b is other numbers than b, whose lineage is known as well: a - a would be 0, and is not counted
// as such.
Estimate NoiseModel::sub(const Estimate& a, const Estimate& b) const {
  Estimate negative = b;
  negative.lineage = lineage_of_negative(b.lineage);
  return add(a, negative);
}

// The numbers are those of a, moved by the same amount.
Estimate NoiseModel::add_constant(const Estimate& a, std::complex<double> b, double scale) const {
  const Noise rounded = constant(std::abs(b), scale);
  Estimate fixed{rounded.variance, std::abs(b), std::abs(b), rounded.bound, /*noise=*/0};
  fixed.real = b.imag() == 0;
  Estimate out = add(a, fixed);
  out.lineage = a.lineage;
  return out;
}

Estimate NoiseModel::rotate_term(const Estimate& a, int level) const {
  Estimate out = a;
  out += key_product(level);
  out.set_term();
  return out;
}

Estimate NoiseModel::rotate_sum(const Estimate& a, int level) const {
  Estimate out = a;
  out += key_switch(level);
  out.set_term();
  return out;
}

// The square of the norm of x -> sums of k neighbours is k^2. Switches before the last are summed,
// too.
void Estimate::claim_sum(const Estimate& x, double count, double terms, double most) {
  const Claim one = x.claim();
  const double switches = std::max(variance - times(count, x.variance), 0.0);
  set_claim({times(terms, one.message), std::min(one.of_sum(count), most) + switches,
             times(count * count, one.principal) + times(count, switches)});
}

// The slots may depend on each other. The sum of n numbers of root mean square m is at most n m
// (Cauchy and Schwarz). No error is added twice, so the spreads are those of the numbers.
void Estimate::sum_of_slots(const Estimate& x, const Estimate& before, double count, double terms) {
  message = before.message * terms;
  message_spread = before.message_spread;
  variance_spread = before.variance_spread;
  claim_sum(x, count, terms);
}

void Estimate::sum_of_slots(const Estimate& x, double count, double most) {
  message = x.message * count;
  claim_sum(x, count, count, most);
}

void Estimate::bound_sum(const Estimate& x, double count) {
  message = x.message * count;
  bound_peak(x.peak * count);
}

// Every number is added to the errors of other slots, and no error is added twice.
void Estimate::copies_of(const Estimate& x, double count) {
  message_spread = x.message_spread;
  variance_spread = x.variance_spread;
  claim_sum(x, count, 1);
}

void Estimate::moved(const Estimate& x) {
  bound_peak(x.peak);
  message = x.message;
  message_shared = x.message_shared;
}

// The error of a is real now, with a deviation twice that of its real parts: variances, which
// expect half of them in imaginary parts, are those of 2 a and of the key switching.
void Estimate::twice_real_of(const Estimate& a) {
  real = true;
  variance += 2 * a.variance;
}

// Equal numbers do not add up in real and imaginary parts.
void Estimate::pair_of(const Estimate& a, const Estimate& b) {
  Claim most = claim();
  if (message > 0) {
    message_spread =
        std::hypot(a.message * a.message_spread, b.message * b.message_spread) / message;
  }
  most.message = std::hypot(a.claim().message, b.claim().message);
  set_claim(most);
}

// An average with the slots of padding would be too small where a product follows, and its claimed
// precision too good. The claim is that of the largest number already.
void Estimate::added_where(double more) {
  const Claim most = claim();
  const double there = std::hypot(message, std::sqrt(more));
  message = std::max(message, std::min(there, peak));
  set_claim(most);
}

// Averages are over all slots, of which zeros leave nothing, while the slots that they leave keep
// their whole message and error. What decryption shows are these. A claim is that of the largest
// number anyway.
void Estimate::left_where(double left) {
  const Claim most = claim();
  message = std::min(message * std::sqrt(left), peak);
  variance *= left;
  set_claim(most);
}

void Estimate::average_of_rows(double factor) { variance *= factor; }

void Estimate::rows(double largest, double root_mean_square, double principal_by, double uneven) {
  bound_peak(largest);
  Claim most = claim();
  most.message = std::min(root_mean_square, peak);
  most.principal *= principal_by;
  most.variance *= uneven;
  set_claim(most);
}

}  // namespace jali::params
