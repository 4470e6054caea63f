// The sources of noise, key switches and divisions, and what an estimate promises. Derivations and
// sources: docs/noise.md.
#include "jali/params/ckks/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "jali/params/ckks/noise_formulas.h"

namespace jali::params {

using formulas::kDouble;
using formulas::saturated;
using formulas::saturated_product;
using formulas::times;

double range_error(const Estimate& a, std::size_t n) {
  constexpr double kDeviations = 1024;
  if (!(a.error < kUnbounded)) return kUnbounded;
  const double variance = times(static_cast<double>(n), a.claim().variance);
  return std::min(a.error, kDeviations * std::sqrt(variance));
}

bool fits(const Estimate& a, std::size_t n, double scale, double log_q) {
  // Every operation asks several times. 2^(e - 1) <= phase < 2^e decides nearly always, and the
  // bound on the error is enough for that.
  const double message = saturated_product(a.peak, scale);
  int e = 0;
  const double most = message + a.error;
  std::frexp(std::max(most, 1.0), &e);
  if (most < kUnbounded && e <= log_q - 1) return true;
  const double phase = message + range_error(a, n);
  if (!(phase < kUnbounded)) return false;
  std::frexp(std::max(phase, 1.0), &e);
  if (e <= log_q - 1) return true;
  if (e - 1 >= log_q - 1) return false;
  return std::log2(std::max(phase, 1.0)) < log_q - 1;
}

NoiseModel::NoiseModel(const ckks::Params& params)
    : sources_(params),
      tail_(sources_.tail()),
      n_(params.n()),
      sigma_(params.error_std()),
      params_(&params) {}

static Noise noise_of(const rlwe::NoiseSource& source) { return {source.variance, source.slot}; }

// c0 + c1 s = m + e.
Estimate NoiseModel::fresh_secret(const Declared& declared, double scale, int log_slots,
                                  const Lineage& lineage, bool real) const {
  Estimate out{0, declared.magnitude + 0.0, declared.peak + 0.0, 0, 0};  // -0 has no bytes
  out += noise_of(sources_.error());
  out += encoding(declared.magnitude, declared.peak, scale, log_slots);
  out.lineage = lineage;
  out.real = real;
  return out;
}

// c0 + c1 s = m + v e_pk + e0 + e1 s, with v and s uniform ternary.
Estimate NoiseModel::fresh_public(const Declared& declared, double scale, int log_slots,
                                  const Lineage& lineage, bool real) const {
  Estimate out = fresh_secret(declared, scale, log_slots, lineage, real);
  out += noise_of(sources_.public_key());
  return out;
}

// No coefficient is rounded by more than 1/2, and there are two coefficients for each of the n
// slots. So a slot is off by at most n, whatever the numbers are. The transform rounds log2(n)
// times, each time by at most 5 * 2^-53 of the vector's Euclidean norm: a product of complex
// numbers, a sum, and a twiddle factor that is rounded, too. The multiplication by the scale rounds
// once more.
Noise NoiseModel::encoding(double message, double peak, double scale, int log_slots) const {
  const double rounds = log_slots + 2, slots = std::ldexp(1.0, log_slots);
  const double doubles = kDouble * message * scale;
  return {
      1.0 / 12 + rounds * doubles * doubles / static_cast<double>(n_),
      saturated(slots + 5 * kDouble * rounds * std::sqrt(slots) * saturated_product(peak, scale)),
      false};
}

// At most two coefficients are rounded, the constant one and that of X^(N/2).
Noise NoiseModel::constant(double size, double scale) const {
  const double doubles = kDouble * size * scale;
  return {(1.0 / 6 + doubles * doubles) / static_cast<double>(n_), std::sqrt(0.5) + 2 * doubles,
          false, static_cast<double>(n_) / 2};
}

Noise NoiseModel::key_product(int level) const { return noise_of(sources_.key_product(level)); }
Noise NoiseModel::key_switch(int level) const { return noise_of(sources_.key_switch(level)); }
Noise NoiseModel::rounding() const { return noise_of(sources_.rounding()); }
Noise NoiseModel::square_rounding() const { return noise_of(sources_.square_rounding()); }

// Every slot has an error of `difference` times the message. The variance of a coefficient is that
// of a slot over N. The error of real numbers is real, and precision_bits takes half of a variance
// for that of real parts.
Noise NoiseModel::scale_mismatch(const Estimate& a, double difference) const {
  if (difference == 0) return {0, 0, false};
  const auto n = static_cast<double>(n_);
  const double error = times(a.message, difference);
  const double most = times(std::min(a.claim().message, a.peak), difference);
  return {error * error / n, saturated_product(a.peak, std::fabs(difference)), false, n / 2,
          2 * most * most / n};
}

Estimate NoiseModel::relinearise(const Estimate& a, int level) const {
  Estimate out = a;
  out += key_switch(level);
  return out;
}

Estimate NoiseModel::rotate(const Estimate& a, int level, std::uint64_t galois_element) const {
  Estimate out = relinearise(a, level);
  out.lineage = lineage_of_turned(out.lineage, galois_element, n_);
  return out;
}

Estimate NoiseModel::relinearise_rescale(const Estimate& a, int level, double ratio) const {
  Estimate out = a;
  out += key_product(level);
  return rescale(out, ratio);
}

Estimate NoiseModel::rescale(const Estimate& a, double ratio) const {
  Estimate out = a;
  out.variance /= ratio * ratio;
  if (out.error < kUnbounded) out.error /= ratio;
  if (out.noise < kUnbounded) out.noise /= ratio;
  out += rounding();
  return out;
}

// The real part of a slot has half of the slot's variance. Decoding rounds to doubles, as encoding
// does. The answer is what the spread leaves, so that it holds for equal numbers and for normal
// ones, too.
double NoiseModel::precision_bits(const Estimate& a, double scale) const {
  const double doubles = kDouble * a.message, rounds = params_->log_n() + 1;
  const double noise = std::sqrt(static_cast<double>(n_) * a.claim().variance) / scale;
  return -std::log2(std::hypot(noise, doubles * std::sqrt(rounds))) + 0.5;
}

double NoiseModel::unshared_bits(const Estimate& a, double scale) const {
  Estimate unshared = a;
  unshared.variance_shared = 1;
  return precision_bits(unshared, scale);
}

double NoiseModel::expected_bits(const Estimate& a, double scale) const {
  constexpr double kMost = 8;  // 1.5 bits of a standard deviation
  Estimate expected = a;
  expected.variance_spread = std::max(1.0, expected.variance_spread / kMost);
  return unshared_bits(expected, scale);
}

double NoiseModel::independent_bits(const Estimate& a, double scale) const {
  Estimate independent = a;
  independent.variance_spread = 1;
  return unshared_bits(independent, scale);
}

double NoiseModel::allowed_error(const Estimate& a, double scale, int level) const {
  Estimate allowed = a;
  const double peak = std::min(allowed.peak * scale, kUnbounded);
  allowed.error = std::min(allowed.error, std::max(range_error(allowed, n_), peak));
  return worst_case_error(allowed, scale, level);
}

double NoiseModel::worst_case_error(const Estimate& a, double scale, int level) const {
  if (a.error >= kUnbounded || !fits(a, n_, scale, params_->level(level).log_q)) {
    return std::numeric_limits<double>::infinity();
  }
  const double rounds = params_->log_n() + 1, slots = static_cast<double>(n_) / 2;
  const double error = a.error / scale;
  return error + 5 * kDouble * rounds * std::sqrt(slots) * (a.peak + error);
}

double NoiseModel::worst_case_noise(const Estimate& a, double scale, int level) const {
  if (a.noise >= kUnbounded || !fits(a, n_, scale, params_->level(level).log_q)) {
    return std::numeric_limits<double>::infinity();
  }
  return a.noise / scale;
}

}  // namespace jali::params
