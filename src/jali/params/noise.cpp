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

/// Scales and ratios are doubles. The relative error of a product, of its division, and of the
/// scale that it is taken to have is together less than this.
constexpr double kScales = 16 * kDouble;

/// a b, or 0 if either is 0. An average that outgrows a double becomes infinite, and this product
/// never becomes NaN.
double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

/// Bounds stay finite numbers: a bound that is not known is neither multiplied to infinity nor, by
/// 0, to NaN.
double saturated(double bound) { return bound < kUnbounded ? bound : kUnbounded; }

double saturated_product(double a, double b) { return a == 0 || b == 0 ? 0 : saturated(a * b); }

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

/// kin: whether both are made of the same numbers, wherever these were moved. same: whether these
/// also lie in the same slots.
bool kin(const Lineage& a, const Lineage& b) { return a.root != 0 && a.root == b.root; }
bool same(const Lineage& a, const Lineage& b) { return kin(a, b) && a.turn == b.turn; }

/// Limits powers and degrees. Larger ones make no difference.
std::uint32_t capped(std::uint64_t x) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(x, kAnyDegree));
}

/// The finaliser of SplitMix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The lineage of a number that is made of both, in any order. It has a root of its own.
Lineage joined(const Lineage& a, const Lineage& b, std::uint64_t degree) {
  if (a.term || b.term) return lineage_of_term();
  if (a.root == 0 || b.root == 0) return lineage_of_unknown(degree);
  const auto one = [&](const Lineage& l) { return mix(mix(l.root + l.power) + l.turn); };
  const std::uint64_t root = mix(one(a) + one(b) + degree);
  return {std::max<std::uint64_t>(root, 1), 1, 1, capped(degree), a.inputs | b.inputs};
}

/// The bit of Lineage::inputs that stands for an encryption.
std::uint64_t bit_of(std::uint64_t root) { return std::uint64_t{1} << (mix(root) & 63); }

/// Whether these are the numbers of one encryption, or multiples or rotations of them, whose root a
/// difference inverts (ckks/sums.cpp). One in 32 sums of rotations of one vector passes for such,
/// too.
bool is_one_encryption(const Lineage& a) {
  return a.root != 0 && a.power == 1 && a.degree == 1 &&
         (a.inputs == bit_of(a.root) || a.inputs == bit_of(~a.root));
}

/// (sqrt(a) + sqrt(b))^2: the largest variance of the sum of two errors.
double together(double a, double b) {
  return a == 0 ? b : b == 0 ? a : a + b + 2 * std::sqrt(times(a, b));
}

}  // namespace

// Stirling's formula bounds it from above by sqrt(2) (2k / e)^k, which is within a factor of
// 2^0.06.
double log2_normal_moment(double k) {
  return k < 1 ? 0 : k * std::log2(2 * k / std::numbers::e) + 0.5;
}

bool apart(const Lineage& a, const Lineage& b) {
  return is_one_encryption(a) && is_one_encryption(b) && a.root != b.root && a.root != ~b.root;
}

Lineage lineage_of_result(const Lineage& example, std::span<const Lineage* const> inputs) {
  // The inputs are of no higher degree than the examples (ckks/program.cpp).
  const Lineage unknown = lineage_of_unknown(degree_of(example));
  if (example.root == 0) return unknown;
  Lineage out{example.root + example.turn + example.power, 1, 1, 1, 0};
  std::uint32_t degree = 1;
  for (const Lineage* input : inputs) {
    if (input->root == 0) return unknown;
    out.root = mix(mix(out.root + input->root + input->power) + input->turn);
    out.inputs |= input->inputs;
    degree = std::max(degree, degree_of(*input));
  }
  out.degree = capped(std::uint64_t{degree_of(example)} * degree);
  // It must not pass for an encryption, which would be independent of the inputs.
  while (out.root == 0 || out.inputs == bit_of(out.root) || out.inputs == bit_of(~out.root)) {
    out.root = mix(out.root + 1);
  }
  return out;
}

std::uint32_t degree_of(const Lineage& a) { return capped(std::uint64_t{a.degree} * a.power); }

Lineage lineage_of(std::uint64_t root) {
  root = std::max<std::uint64_t>(root, 1);
  return {root, 1, 1, 1, bit_of(root)};
}

Lineage lineage_of_term() {
  Lineage out;
  out.term = true;
  return out;
}

Lineage lineage_of_unknown(std::uint64_t degree) {
  Lineage out;
  out.degree = capped(degree);
  return out;
}

Lineage lineage_of_itself(const Lineage& unknown) { return {1, 1, 1, degree_of(unknown), 0}; }

Lineage lineage_of(double message, double peak) {
  return lineage_of(
      mix(mix(std::bit_cast<std::uint64_t>(message)) + std::bit_cast<std::uint64_t>(peak)));
}

/// Whether the claim is what the spreads leave, and the errors of slots are uncorrelated.
static bool is_plain(const Estimate& a) {
  return a.message_shared == 1 && a.variance_shared == 1 && a.principal == 1;
}

Claim Estimate::claim() const {
  const double all = times(times(variance, variance_spread), variance_shared);
  return {times(times(message, message_spread), message_shared), all, times(all, principal)};
}

double Estimate::claimed_largest(double slots) const {
  return std::min(peak, times(std::sqrt(slots), claim().message));
}

double Claim::of_sum(double k) const {
  return std::min(times(k * k, variance), times(k, principal));
}

void Estimate::set_claim(const Claim& claim) {
  const double spread = times(variance, variance_spread);
  message_shared = ratio(claim.message, times(message, message_spread));
  variance_shared = ratio(claim.variance, spread);
  principal = ratio(claim.principal, times(spread, variance_shared));
}

void Estimate::claim_sum(const Estimate& x, double count, double terms, double most) {
  const Claim one = x.claim();
  const double switches = std::max(variance - times(count, x.variance), 0.0);
  // The square of the norm of x -> sums of k neighbours is k^2. Switches before the last are
  // summed, too.
  set_claim({times(terms, one.message), std::min(one.of_sum(count), most) + switches,
             times(count * count, one.principal) + times(count, switches)});
}

Estimate& Estimate::operator+=(const Noise& added) {
  const bool plain = is_plain(*this) && added.equal == 1 && added.claimed <= added.variance;
  Claim most = claim();
  const double spread = variance * variance_spread + added.variance;
  variance += added.variance;
  variance_spread = ratio(spread, variance);
  error = saturated(error + added.bound);
  if (added.random) noise = saturated(noise + added.bound);
  if (plain) return *this;
  // The same constant, or the same ratio of scales, may have been rounded before.
  const double claimed = std::max(added.claimed, added.variance);
  const double both =
      added.equal > 1
          ? 2 * std::sqrt(times((most.principal - most.variance) / added.equal, claimed))
          : 0;
  most.variance += claimed + both;
  most.principal += added.equal * (claimed + both);
  set_claim(most);
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
  if (!same(lineage, other.lineage)) {
    lineage = lineage_of_unknown(std::max(degree_of(lineage), degree_of(other.lineage)));
  }
  message_spread = std::max(message_spread, other.message_spread);
  variance_spread = std::max(variance_spread, other.variance_spread);
  message_shared = std::max(message_shared, other.message_shared);
  variance_shared = std::max(variance_shared, other.variance_shared);
  principal = std::max(principal, other.principal);
}

// A slot is z = sum_i c_i zeta^i with zeta of order 2N. For any direction a, sum_i Re(exp(i a)
// zeta^i)^2 = N / 2. If the c_i are independent and sub-Gaussian of variance proxy 1, the component
// of z in this direction is therefore above t with probability at most exp(-t^2 / N). In one of
// sixteen directions the component is at least cos(pi / 16) |z|, so
//   P(some |slot| > tail sqrt(N)) <= 16 (N / 2) exp(-tail^2 cos^2(pi / 16)) = 2^-bits.
// The variance proxy of uniform ternary numbers, of centred binomial ones and of roundings uniform
// in [-1/2, 1/2) is their variance.
double slot_tail(int log_n, double bits) {
  return std::sqrt(std::log(2.0) * (bits + 3 + log_n)) / std::cos(std::numbers::pi / 16);
}

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

// c0 + c1 s = m + v e_pk + e0 + e1 s, with v and s uniform ternary. A slot of a product is the
// product of two slots, each of which is within its own bound.
Estimate NoiseModel::fresh_public(const Declared& declared, double scale, int log_slots) const {
  Estimate out = fresh_secret(declared, scale, log_slots);
  const double both = 2 * sigma_ * sigma_ * h_;
  out += Noise{both, 2 * tail_ * tail_ * sigma_ * std::sqrt(static_cast<double>(n_) * h_)};
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

// The error is (sum_j lift_j e_j) / P with lift_j uniform in [-D_j / 2, D_j / 2). For given lifts,
// a slot is a sum of the slots of e_j, weighted with the slots of lift_j. A weight is at most tail
// sqrt(N / 12) D_j, and the sum is within tail times its standard deviation for these weights.
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

// The error is r2 s^2. Coefficient k of s^2 is a sum of N/2 products 2 s_i s_j, each of variance 4
// (2/3)^2, so its variance is 8N/9 = 4h/3. A slot of s^2 is the square of a slot of s.
Noise NoiseModel::square_rounding() const {
  const double n = static_cast<double>(n_);
  return {n * (4 * h_ / 3) / 12, tail_ * std::sqrt(n / 12) * tail_ * tail_ * h_};
}

// The keys to the sparse secret and back have one digit. Their noise counts q_0 / P' and q_0 / P
// times. Their ModDowns add (1 + h_t) / 12 under the sparse secret, which has weight h_t, and (1 +
// h) / 12 under the dense one. A slot of the sparse secret is at most its weight.
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

// If the operands are the same numbers, root mean squares and standard deviations are added,
// otherwise their squares are. Bounds are always added.
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
  if (known && is_plain(a) && is_plain(b)) return out;  // the claim would be that of the spreads
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

// e = m1 e2 + m2 e1 + e1 e2, slot by slot. The variance of a slot is N times that of a coefficient.
// If the operands are powers i and j of one x, the first two terms are both multiples of x^(i + j -
// 1) times the error of x, so they add up. The expected figures take |x| for constant, as it is for
// signs. The spreads take x for normal with root mean square m. Then E x^(2i + 2j) = r(i, j)^2
// E[x^(2i)] E[x^(2j)], and the deviation of m1 e2 is
//   sqrt(E[x^(2i) x^(2j - 2)]) j dev(e) = r(i, j - 1) m1 dev(e2).
Estimate NoiseModel::multiply(const Estimate& a, double sa, const Estimate& b, double sb) const {
  Estimate out;
  out.peak = saturated_product(a.peak, b.peak);
  if (same(a.lineage, b.lineage)) {
    out.lineage = a.lineage;
    out.lineage.power = capped(std::uint64_t{a.lineage.power} + b.lineage.power);
  } else {
    out.lineage =
        joined(a.lineage, b.lineage, std::uint64_t{degree_of(a.lineage)} + degree_of(b.lineage));
  }
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
  const Average expected = average({a.message, a.variance, a.peak}, {b.message, b.variance, b.peak},
                                   same(a.lineage, b.lineage), a.lineage.power, b.lineage.power, 0);
  // The spreads are those of normal numbers, of which those of one vector may be equal. Products
  // that share a factor are taken for powers of it. What is made of unknown inputs is taken for
  // normal itself; a claim has its degree.
  const bool powers = kin(a.lineage, b.lineage);
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
      one == shared && one == uneven && (!one || degree == 1) && is_plain(a) && is_plain(b);
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

// The real part of a slot has half of the slot's variance. Decoding rounds to doubles, as encoding
// does. The answer is what the spread leaves, so that it holds for equal numbers and for normal
// ones, too.
double NoiseModel::precision_bits(const Estimate& a, double scale) const {
  const double doubles = kDouble * a.message, rounds = params_->log_n() + 1;
  const double noise = std::sqrt(static_cast<double>(n_) * a.claim().variance) / scale;
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
