// What bootstrapping needs of parameters: its levels and the sparse secret. Also the probability
// that it fails. See docs/math/bootstrapping.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jali::params {

enum class BootstrapOrder : std::uint8_t {
  /// ModRaise, coefficients to slots, modular reduction, slots to coefficients.
  raise_first = 0,
  /// Slots to coefficients on the last levels of the computation, then ModRaise, coefficients to
  /// slots and the reduction.
  slots_first = 1
};

/// The circuit and the bits of its levels, which lie above the levels of a computation.
struct BootstrapLiteral {
  BootstrapOrder order = BootstrapOrder::raise_first;
  /// h: the number of non-zero coefficients of the sparse secret under which the modulus is raised.
  int weight = 32;
  int range = 16;  // K: the reduction is correct if |phase / q_0| <= K
  int degree = 30;  // of the polynomial that approximates the cosine; even
  int doublings = 3;  // how often cos 2x = 2 cos^2 x - 1 is applied
  int inverse_sine = 1;  // degree of the series of arcsin after the sine: 1 (none), 3, 5 or 7
  double ratio_bits = 8;  // log2 of q_0 over the scale on entry; at most integer_bits
  int cts_levels = 4;  // of coefficients to slots
  int stc_levels = 3;  // of slots to coefficients
  /// The bits of each level of coefficients to slots, of the modular reduction, and of slots to
  /// coefficients.
  double cts_bits = 56, mod_bits = 60, stc_bits = 40;
  /// H, even. T_2, whose rounding weighs most in the reduction, has a scale of mod_bits + H bits.
  /// T_4 has two bits less than that, and so on down to mod_bits.
  int head_bits = 0;

  /// Levels of the modular reduction.
  int mod_levels() const;
  /// Levels above those of a computation. With slots_first, slots to coefficients uses stc_levels
  /// of the computation's own levels, which are not counted here.
  int levels() const;
  double bits() const;  // of all levels() together
  /// log2 of the scale of the input of the reduction's k-th level, divided by 2^mod_bits. k = 0 is
  /// the top level.
  double head_scale_bits(int k) const;
  /// The bits that the k-th level has more than mod_bits: its scale squared over the scale of the
  /// next level.
  double head_level_bits(int k) const { return 2 * head_scale_bits(k) - head_scale_bits(k + 1); }
  /// The lowest level at which a ciphertext can be bootstrapped: 0, or stc_levels with slots_first.
  int input_level() const { return order == BootstrapOrder::slots_first ? stc_levels : 0; }

  bool operator==(const BootstrapLiteral&) const = default;
};

/// log2 of a bound on the probability that any of `count` coefficients of a raised ciphertext
/// leaves [-K, K], where K is `range`. phase / q_0 is a sum of h + 1 numbers uniform in [-1/2,
/// 1/2), so by Chernoff's bound
///   P(|sum| >= K) <= 2 min_t exp(-t K) (sinh(t/2) / (t/2))^(h+1).
double log2_bootstrap_failure(int weight, double range, std::size_t count);

}  // namespace jali::params
