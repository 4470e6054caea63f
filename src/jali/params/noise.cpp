// Derivations and sources: docs/noise.md.
#include "jali/params/noise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

namespace jali::params {

namespace {

/// Half a unit in the last place of 1.
constexpr double kDouble = 0x1p-53;

/// Scales and ratios are doubles. The relative error of a product, of its division, and of the scale that it is taken to
/// have is together less than this.
constexpr double kScales = 16 * kDouble;

/// a b, or 0 if either is 0. An average that outgrows a double becomes infinite, and this product never becomes NaN.
double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

/// Bounds stay finite numbers: a bound that is not known is neither multiplied to infinity nor, by 0, to NaN.
double saturated(double bound) { return bound < kUnbounded ? bound : kUnbounded; }

double saturated_product(double a, double b) { return a == 0 || b == 0 ? 0 : saturated(a * b); }

/// log2 of E x^(2k) / E[x^2]^k = (2k - 1)!! for a normal number x. By Stirling's formula it is bounded from above by
/// sqrt(2) (2k / e)^k, which is within a factor of 2^0.06.
double log2_normal_moment(double k) {
  return k < 1 ? 0 : k * std::log2(2 * k / std::numbers::e) + 0.5;
}

/// sqrt(E x^(2i + 2j) / (E x^(2i) E x^(2j))) for x a product of `degree` normal numbers.
double moment_ratio(double i, double j, double degree) {
  const double bits = log2_normal_moment(i + j) - log2_normal_moment(i) - log2_normal_moment(j);
  return std::exp2(std::min(degree * bits / 2, 900.0));
}

/// By which factor `spread` is larger than `average`: at least 1, and 1 if the average is 0.
double ratio(double spread, double average) {
  return average > 0 && std::isfinite(average) && spread > average
             ? std::min(spread / average, kUnbounded)
             : 1;
}

/// kin: whether both are made of the same numbers, wherever these were moved. same: whether these also lie in the same
/// slots.
bool kin(const Lineage& a, const Lineage& b) { return a.root != 0 && a.root == b.root; }
bool same(const Lineage& a, const Lineage& b) { return kin(a, b) && a.turn == b.turn; }

/// Limits powers and degrees. Larger ones make no difference.
std::uint32_t capped(std::uint64_t x) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(x, 1 << 16));
}

/// The finaliser of SplitMix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The lineage of a number that is made of both, in any order. It has a root of its own.
Lineage joined(const Lineage& a, const Lineage& b, std::uint64_t degree) {
  if (a.root == 0 || b.root == 0) return {};
  const auto one = [&](const Lineage& l) { return mix(mix(l.root + l.power) + l.turn); };
  const std::uint64_t root = mix(one(a) + one(b) + degree);
  return {std::max<std::uint64_t>(root, 1), 1, 1, capped(degree), a.inputs | b.inputs};
}

std::uint64_t degree_of(const Lineage& a) { return std::uint64_t{a.degree} * a.power; }

}  // namespace

Lineage lineage_of(std::uint64_t root) {
  return {std::max<std::uint64_t>(root, 1), 1, 1, 1, std::uint64_t{1} << (mix(root) & 63)};
}

Lineage lineage_of(double message, double peak) {
  return lineage_of(
      mix(mix(std::bit_cast<std::uint64_t>(message)) + std::bit_cast<std::uint64_t>(peak)));
}

Estimate& Estimate::operator+=(const Noise& added) {
  const double spread = variance * variance_spread + added.variance;
  variance += added.variance;
  variance_spread = ratio(spread, variance);
  error = saturated(error + added.bound);
  if (added.random) noise = saturated(noise + added.bound);
  return *this;
}

void Estimate::cover(const Estimate& other) {
  variance = std::max(variance, other.variance);
  message = std::max(message, other.message);
  peak = std::max(peak, other.peak);
  error = std::max(error, other.error);
  noise = std::max(noise, other.noise);
  derived = derived && other.derived;
  real = real && other.real;
  if (!same(lineage, other.lineage)) lineage = {};
  message_spread = std::max(message_spread, other.message_spread);
  variance_spread = std::max(variance_spread, other.variance_spread);
}

// A slot is z = sum_i c_i zeta^i with zeta of order 2N. For any direction a, sum_i Re(exp(i a) zeta^i)^2 = N / 2. If the
// c_i are independent and sub-Gaussian of variance proxy 1, the component of z in this direction is therefore above t with
// probability at most exp(-t^2 / N). In one of sixteen directions the component is at least cos(pi / 16) |z|, so
//   P(some |slot| > tail sqrt(N)) <= 16 (N / 2) exp(-tail^2 cos^2(pi / 16)) = 2^-bits.
// The variance proxy of uniform ternary numbers, of centred binomial ones and of roundings uniform in [-1/2, 1/2) is their
// variance.
double slot_tail(int log_n, double bits) {
  return std::sqrt(std::log(2.0) * (bits + 3 + log_n)) / std::cos(std::numbers::pi / 16);
}

double range_error(const Estimate& a, std::size_t n) {
  constexpr double kDeviations = 1024;
  if (!(a.error < kUnbounded)) return kUnbounded;
  const double variance = times(static_cast<double>(n), times(a.variance, a.variance_spread));
  return std::min(a.error, kDeviations * std::sqrt(variance));
}

bool fits(const Estimate& a, std::size_t n, double scale, double log_q) {
  const double phase = saturated_product(a.peak, scale) + range_error(a, n);
  return phase < kUnbounded && std::log2(std::max(phase, 1.0)) < log_q - 1;
}

NoiseModel::NoiseModel(const ckks::Params& params)
    : tail_(slot_tail(params.log_n(), kSourceBits)),
      n_(params.n()),
      h_(2.0 * static_cast<double>(params.n()) / 3.0),
      sigma_(params.error_std()),
      params_(&params) {}

// c0 + c1 s = m + e.
Estimate NoiseModel::fresh_secret(const Declared& declared, double scale, int log_slots) const {
  Estimate out{0, declared.magnitude + 0.0, declared.peak + 0.0, 0, 0};  // -0 has no bytes
  out += Noise{sigma_ * sigma_, tail_ * sigma_ * std::sqrt(static_cast<double>(n_))};
  out += encoding(declared.magnitude, declared.peak, scale, log_slots);
  return out;
}

// c0 + c1 s = m + v e_pk + e0 + e1 s, with v and s uniform ternary. A slot of a product is the product of two slots, each
// of which is within its own bound.
Estimate NoiseModel::fresh_public(const Declared& declared, double scale, int log_slots) const {
  Estimate out = fresh_secret(declared, scale, log_slots);
  const double both = 2 * sigma_ * sigma_ * h_;
  out += Noise{both, 2 * tail_ * tail_ * sigma_ * std::sqrt(static_cast<double>(n_) * h_)};
  return out;
}

// No coefficient is rounded by more than 1/2, and there are two coefficients for each of the n slots. So a slot is off by
// at most n, whatever the numbers are. The transform rounds log2(n) times, each time by at most 5 * 2^-53 of the vector's
// Euclidean norm: a product of complex numbers, a sum, and a twiddle factor that is rounded, too. The multiplication by the
// scale rounds once more.
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
          false};
}

// The error is (sum_j lift_j e_j) / P with lift_j uniform in [-D_j / 2, D_j / 2). For given lifts, a slot is a sum of the
// slots of e_j, weighted with the slots of lift_j. A weight is at most tail sqrt(N / 12) D_j, and the sum is within tail
// times its standard deviation for these weights.
Noise NoiseModel::key_product(int level) const {
  const rlwe::Level& l = params_->level(level);
  double sum = 0;
  std::size_t i = 0;
  for (std::uint32_t limbs : l.digit_limbs) {
    double log_digit = 0;
    for (std::uint32_t k = 0; k < limbs; ++k, ++i) {
      log_digit += std::log2(static_cast<double>(params_->primes()[l.primes[i]]));
    }
    sum += std::exp2(2 * (log_digit - params_->log_p()));
  }
  const double n = static_cast<double>(n_), variance = sum * n * sigma_ * sigma_ / 12;
  return {variance, tail_ * tail_ * std::sqrt(n * variance)};
}

Noise NoiseModel::key_switch(int level) const {
  const Noise product = key_product(level), rounded = rounding();
  return {product.variance + rounded.variance, product.bound + rounded.bound};
}

// The error is r0 + r1 s, with r0 and r1 uniform in [-1/2, 1/2).
Noise NoiseModel::rounding() const {
  const double one = tail_ * std::sqrt(static_cast<double>(n_) / 12);
  return {(1 + h_) / 12, one * (1 + tail_ * std::sqrt(h_))};
}

// The error is r2 s^2. Coefficient k of s^2 is a sum of N/2 products 2 s_i s_j, each of variance 4 (2/3)^2, so its variance
// is 8N/9 = 4h/3. A slot of s^2 is the square of a slot of s.
Noise NoiseModel::square_rounding() const {
  const double n = static_cast<double>(n_);
  return {n * (4 * h_ / 3) / 12, tail_ * std::sqrt(n / 12) * tail_ * tail_ * h_};
}

// The keys to the sparse secret and back have one digit. Their noise counts q_0 / P' and q_0 / P times. Their ModDowns add
// (1 + h_t) / 12 under the sparse secret, which has weight h_t, and (1 + h) / 12 under the dense one. A slot of the sparse
// secret is at most its weight.
Noise NoiseModel::encapsulation() const {
  if (!params_->bootstrap()) return {};
  double log_small = 0;
  for (PrimeIndex i : params_->sparse_p_primes()) {
    log_small += std::log2(static_cast<double>(params_->primes()[i]));
  }
  const double log_q0 = params_->level(0).log_q, weight = params_->bootstrap()->weight;
  const double n = static_cast<double>(n_), key = n * sigma_ * sigma_ / 12;
  const double small = std::exp2(log_q0 - log_small), large = std::exp2(log_q0 - params_->log_p());
  const Noise dense = rounding();
  return {key * (small * small + large * large) + (1 + weight) / 12 + dense.variance,
          tail_ * tail_ * std::sqrt(n * key) * (small + large) +
              tail_ * std::sqrt(n / 12) * (1 + weight) + dense.bound};
}

// Every slot has an error of `difference` times the message. The variance of a coefficient is that of a slot over N.
Noise NoiseModel::scale_mismatch(double message, double peak, double difference) const {
  const double error = times(message, difference);
  return {error * error / static_cast<double>(n_), saturated_product(peak, std::fabs(difference)),
          false};
}

// If the operands are the same numbers, root mean squares and standard deviations are added, otherwise their squares are.
// Bounds are always added.
Estimate NoiseModel::add(const Estimate& a, const Estimate& b) const {
  Estimate out;
  if (same(a.lineage, b.lineage) && a.lineage.power == b.lineage.power) {
    out.message = a.message + b.message;
  } else {
    out.message = std::hypot(a.message, b.message);
  }
  if (same(a.lineage, b.lineage)) {
    const double deviation = std::sqrt(a.variance) + std::sqrt(b.variance);
    out.variance = deviation * deviation;
  } else {
    out.variance = a.variance + b.variance;
  }
  out.lineage =
      same(a.lineage, b.lineage) && a.lineage.power == b.lineage.power
          ? a.lineage
          : joined(a.lineage, b.lineage, std::max(degree_of(a.lineage), degree_of(b.lineage)));
  // The spreads assume that different numbers are equal, also those of one vector (Cauchy and Schwarz). Numbers of unknown
  // lineage, such as the terms of linear transforms, are not taken to be equal.
  const double ma = a.message * a.message_spread, mb = b.message * b.message_spread;
  const double va = a.variance * a.variance_spread, vb = b.variance * b.variance_spread;
  const bool known = a.lineage.root != 0 && b.lineage.root != 0;
  const double deviation = std::sqrt(va) + std::sqrt(vb);
  out.message_spread = ratio(known ? ma + mb : std::hypot(ma, mb), out.message);
  out.variance_spread = ratio(known ? deviation * deviation : va + vb, out.variance);
  out.peak = saturated(a.peak + b.peak);
  out.error = saturated(a.error + b.error);
  out.noise = saturated(a.noise + b.noise);
  out.derived = a.derived && b.derived;
  out.real = a.real && b.real;
  return out;
}

// e = m1 e2 + m2 e1 + e1 e2, slot by slot. The variance of a slot is N times that of a coefficient. If the operands are
// powers i and j of one x, the first two terms are both multiples of x^(i + j - 1) times the error of x, so they add up. The
// expected figures take |x| for constant, as it is for signs. The spreads take x for normal with root mean square m. Then
// E x^(2i + 2j) = r(i, j)^2 E[x^(2i)] E[x^(2j)], and the deviation of m1 e2 is
//   sqrt(E[x^(2i) x^(2j - 2)]) j dev(e) = r(i, j - 1) m1 dev(e2).
Estimate NoiseModel::multiply(const Estimate& a, double sa, const Estimate& b, double sb) const {
  Estimate out;
  out.peak = saturated_product(a.peak, b.peak);
  if (same(a.lineage, b.lineage)) {
    out.lineage = a.lineage;
    out.lineage.power = capped(std::uint64_t{a.lineage.power} + b.lineage.power);
  } else {
    out.lineage = joined(a.lineage, b.lineage, degree_of(a.lineage) + degree_of(b.lineage));
  }
  struct Average {
    double message, variance;
  };
  // one: whether the factors are powers i and j of the same numbers. degree: these are products of so many normal numbers;
  // 0 if their modulus is constant.
  const auto average = [&](const Average& x, const Average& y, bool one, double i, double j,
                           double degree) -> Average {
    const auto r = [&](double k, double l) { return one ? moment_ratio(k, l, degree) : 1; };
    const double first =
        times(std::min(times(x.message, r(i, j - 1)), a.peak) * sa, std::sqrt(y.variance));
    const double second =
        times(std::min(times(y.message, r(j, i - 1)), b.peak) * sb, std::sqrt(x.variance));
    const double sum = one ? (first + second) * (first + second) : first * first + second * second;
    return {std::min(times(times(x.message, y.message), r(i, j)), out.peak),
            sum + static_cast<double>(n_) * times(x.variance, y.variance)};
  };
  const Average expected = average({a.message, a.variance}, {b.message, b.variance},
                                   same(a.lineage, b.lineage), a.lineage.power, b.lineage.power, 0);
  // The spreads are those of normal numbers, of which those of one vector may be equal. Products that share a factor are
  // taken for powers of it.
  const bool powers = kin(a.lineage, b.lineage);
  const bool shared = powers || (a.lineage.inputs & b.lineage.inputs) != 0;
  const Average spread =
      average({times(a.message, a.message_spread), times(a.variance, a.variance_spread)},
              {times(b.message, b.message_spread), times(b.variance, b.variance_spread)}, shared,
              static_cast<double>(powers ? a.lineage.power : degree_of(a.lineage)),
              static_cast<double>(powers ? b.lineage.power : degree_of(b.lineage)),
              powers ? a.lineage.degree : 1);
  out.message = expected.message;
  out.variance = expected.variance;
  out.message_spread = ratio(spread.message, expected.message);
  out.variance_spread = ratio(spread.variance, expected.variance);
  const double pa = saturated_product(a.peak, sa), pb = saturated_product(b.peak, sb);
  out.error = saturated(saturated_product(pa, b.error) + saturated_product(pb, a.error) +
                        saturated_product(a.error, b.error) +
                        kScales * saturated_product(out.peak, sa * sb));
  // The noise of one factor is multiplied by the message of the other with all of its error.
  out.noise = std::min(out.error, saturated(saturated_product(pa + a.error, b.noise) +
                                            saturated_product(pb + b.error, a.noise)));
  out.derived = a.derived && b.derived;
  out.real = a.real && b.real;
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

Estimate NoiseModel::relinearise(const Estimate& a, int level) const {
  Estimate out = a;
  out += key_switch(level);
  return out;
}

Estimate NoiseModel::rotate(const Estimate& a, int level, std::uint64_t galois_element) const {
  Estimate out = relinearise(a, level);
  out.lineage.turn = out.lineage.turn * galois_element % (2 * n_);
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

// The real part of a slot has half of the slot's variance. Decoding rounds to doubles, as encoding does. The answer is what
// is expected, but at most 1.5 bits above what the spread leaves.
double NoiseModel::precision_bits(const Estimate& a, double scale) const {
  const double doubles = kDouble * a.message, rounds = params_->log_n() + 1;
  constexpr double kMost = 8;  // 1.5 bits of a standard deviation
  const double variance = a.variance * std::max(1.0, a.variance_spread / kMost);
  const double noise = std::sqrt(static_cast<double>(n_) * variance) / scale;
  return -std::log2(std::hypot(noise, doubles * std::sqrt(rounds))) + 0.5;
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
