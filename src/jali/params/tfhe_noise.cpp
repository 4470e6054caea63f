// Derivations: docs/math/tfhe-noise.md, whose sections have the names of the functions.
#include "jali/params/tfhe_noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "jali/base/error.h"

namespace jali::tfhe {

namespace {

using backend::torus_bits;

/// The mean square of a bit of the large key.
constexpr double kLargeSquare = 0.5;

/// log2(2^a + 2^b).
double log2_sum(double a, double b) {
  const double high = std::fmax(a, b), low = std::fmin(a, b);
  return std::isinf(high) ? high : high + std::log2(1 + std::exp2(low - high));
}

/// log2 of P(x >= high or x < -low) for a normal x of this variance.
double log2_tails(double low, double high, double variance) {
  const double scale = std::sqrt(2 * variance);
  if (!(low > 0) || !(high > 0)) return 0;
  return log2_sum(log2_erfc(low / scale), log2_erfc(high / scale)) - 1;
}

double dropped(const Gadget& gadget) {
  return std::exp2(-2 * gadget.base_log * gadget.levels) / 12;
}

/// What a key switch drops of the masks, times the key. Messages of one polynomial have the same
/// words in another order.
double dropped_by_switch(const backend::TfheConfig& config) {
  return static_cast<double>(config.large().value) * kLargeSquare * dropped(config.switch_gadget);
}

}  // namespace

double transform_error(PolynomialSize N) { return 4 * std::log2(static_cast<double>(N.value)); }

double log2_erfc(double x) {
  if (x < 20) return std::log2(std::erfc(x));
  // erfc(x) = exp(-x^2) / (x sqrt(pi)) (1 - 1 / (2 x^2) + ..); the next term is below 10^-5 of it.
  return -x * x * std::numbers::log2e - std::log2(x * std::sqrt(std::numbers::pi)) +
         std::log1p(-1 / (2 * x * x)) * std::numbers::log2e;
}

NoiseModel::NoiseModel(const backend::TfheConfig& config, int lwe_noise_bits, int glwe_noise_bits)
    : config_(config),
      fresh_small_(std::ldexp(tuniform_variance(lwe_noise_bits), -64)),
      fresh_large_(std::ldexp(tuniform_variance(glwe_noise_bits), -2 * torus_bits(config.torus))) {}

NoiseModel::NoiseModel(const Literal& literal)
    : NoiseModel(config_of(literal), literal.lwe_noise_bits, literal.glwe_noise_bits) {}

double NoiseModel::fresh_public() const {
  const double large = static_cast<double>(config_.large().value);
  return fresh_large_ * (1 + large * (0.5 + kLargeSquare));
}

double NoiseModel::public_norm2(Order order, std::size_t messages) const {
  double independent = 0, shared = fresh_public();
  if (order == Order::bootstrap_first) {
    const double dropped = dropped_by_switch(config_);
    independent = key_switch() - dropped;
    shared += dropped;
  }
  return (independent + static_cast<double>(messages) * shared) / bootstrapped(order);
}

double NoiseModel::digit_variance(const Gadget& gadget) const {
  return (std::exp2(2 * gadget.base_log) + 2) / 12;
}

double NoiseModel::dropped_variance(const Gadget& gadget) const { return dropped(gadget); }

RotationNoise NoiseModel::external_product(double square) const {
  const double k = static_cast<double>(config_.k.value), N = static_cast<double>(config_.N.value);
  const Gadget& gadget = config_.rotation_gadget;
  const double products = (k + 1) * gadget.levels * N;
  // An error of variance v in each of the k + 1 polynomials of a result is one of variance v reach
  // in its phase.
  const double reach = 1 + k * N * kLargeSquare;
  RotationNoise out;
  out.key = products * digit_variance(gadget) * fresh_large_;
  out.rounding = square * dropped_variance(gadget) * reach;
  // The key is uniform on the torus, which has variance 1/12.
  const double product = products * digit_variance(gadget) / 12;
  out.transform = (product * std::ldexp(transform_error(config_.N), -106) +
                   std::ldexp(1.0 / 12, -2 * torus_bits(config_.torus))) *
                  reach;
  return out;
}

RotationNoise NoiseModel::blind_rotation() const {
  // The mean square of what a step multiplies its digits with: the bit of the secret for classic,
  // which rotates before it decomposes; else (X^e - 1) times the one unit that is set, if any is.
  const int group = config_.group;
  const double units = static_cast<double>(config_.units());
  RotationNoise step;
  switch (config_.rotation) {
    case Rotation::classic: step = external_product(config_.mean_bit); break;
    case Rotation::multi_bit: step = external_product(2 * (1 - std::exp2(-group))); break;
    case Rotation::block_binary: step = external_product(2.0 * group / (group + 1)); break;
  }
  const double steps = static_cast<double>(config_.steps());
  const double terms = config_.rotation == Rotation::classic ? 1 : 2 * units;
  return {steps * terms * step.key, steps * step.rounding, steps * terms * step.transform};
}

double NoiseModel::key_switch() const {
  const double large = static_cast<double>(config_.large().value);
  const Gadget& gadget = config_.switch_gadget;
  return large * gadget.levels * digit_variance(gadget) * fresh_small_ +
         large * kLargeSquare * dropped_variance(gadget) + std::ldexp(1.0 / 12, -64);
}

double NoiseModel::switch_unit(int log_many) const {
  return std::ldexp(0.5 / static_cast<double>(config_.N.value), log_many);
}

double NoiseModel::modulus_switch(int log_many, bool compensated) const {
  const double unit = switch_unit(log_many), mean = config_.mean_bit;
  const double square = compensated ? mean * (1 - mean) : mean;
  return unit * unit / 12 * static_cast<double>(config_.n.value) * square;
}

double NoiseModel::packing(const Gadget& gadget, LweDimension from, double square,
                           std::size_t count) const {
  const double rows = static_cast<double>(from.value);
  return rows * gadget.levels * static_cast<double>(count) * digit_variance(gadget) * fresh_large_ +
         rows * square * dropped_variance(gadget);
}

double NoiseModel::bootstrapped(Order order) const {
  return blind_rotation().total() + (order == Order::bootstrap_first ? key_switch() : 0);
}

double NoiseModel::before_rotation(Order order, double norm2, int log_many) const {
  return norm2 * bootstrapped(order) + (order == Order::switch_first ? key_switch() : 0) +
         modulus_switch(log_many);
}

double NoiseModel::log2_p_fail(Order order, double norm2, double half_box, int log_many) const {
  const double unit = switch_unit(log_many);
  const double low = half_box - unit / 2, high = half_box + unit / 2;
  const double rounding = modulus_switch(log_many);
  const double rest = before_rotation(order, norm2, log_many) - rounding;
  if (config_.rotation != Rotation::block_binary) return log2_tails(low, high, rest + rounding);
  // The rounding of the mask has the variance unit^2/12 sum_i (s_i - mean)^2 under the key s, and
  // this sum is h (1 - 2 mean) + n mean^2 for the weight h, which is binomial over the blocks. The
  // terms near the mean decide.
  const double blocks = static_cast<double>(config_.steps()), mean = config_.mean_bit;
  const double set = mean * config_.group, n = static_cast<double>(config_.n.value);
  double out = -1e300;
  for (double h = 0; h <= blocks; ++h) {
    const double weight =
        (std::lgamma(blocks + 1) - std::lgamma(h + 1) - std::lgamma(blocks - h + 1) +
         h * std::log(set) + (blocks - h) * std::log1p(-set)) *
        std::numbers::log2e;
    const double variance = rest + unit * unit / 12 * (h * (1 - 2 * mean) + n * mean * mean);
    out = log2_sum(out, weight + log2_tails(low, high, variance));
  }
  return out;
}

double NoiseModel::largest_norm2(Order order, double bits, double half_box, int log_many) const {
  if (log2_p_fail(order, 0, half_box, log_many) > bits) return 0;
  double low = 0, high = 1;
  while (log2_p_fail(order, high, half_box, log_many) <= bits && high < 0x1p60) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (log2_p_fail(order, middle, half_box, log_many) <= bits ? low : high) = middle;
  }
  return low;
}

double half_box(const Literal& literal) {
  return std::ldexp(1.0, -(literal.message_bits + literal.carry_bits + 2));
}

std::size_t public_batch(const Literal& literal) {
  const NoiseModel model(literal);
  // What messages of one polynomial share, and what a bootstrapped ciphertext has beside the rest.
  const double dropped =
      literal.order == Order::bootstrap_first ? dropped_by_switch(config_of(literal)) : 0;
  const double shared = model.fresh_public() + dropped;
  const double most = std::floor((model.blind_rotation().total() + dropped) / shared);
  return static_cast<std::size_t>(std::clamp(most, 1.0, static_cast<double>(literal.N.value)));
}

double log2_p_fail(const Literal& literal, int log_many) {
  return NoiseModel(literal).log2_p_fail(literal.order, literal.max_norm2, half_box(literal),
                                         log_many);
}

}  // namespace jali::tfhe
