// What bootstrapping asks of parameters: its levels, the sparse secret, and the probability that it
// fails. See docs/math/bootstrapping.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jali::params {

enum class BootstrapOrder : std::uint8_t {
  raise_first = 0,  // ModRaise, coefficients to slots, reduction, slots to coefficients
  slots_first =
      1  // slots to coefficients on the last levels, ModRaise, coefficients to slots, reduction
};

/// The circuit and the bits of its levels, which lie above the levels of a computation.
struct BootstrapLiteral {
  BootstrapOrder order = BootstrapOrder::raise_first;
  int weight =
      32;  // h: non-zero coefficients of the sparse secret that the modulus is raised under
  int range = 16;  // K: the reduction is right for |phase / q_0| <= K
  int degree = 30;  // of the polynomial for the cosine; even
  int doublings = 3;  // cos 2x = 2 cos^2 x - 1, so many times
  int inverse_sine = 1;  // degree of the series of arcsin put behind the sine: 1 (none), 3, 5 or 7
  double ratio_bits = 8;  // log2 of q_0 over the scale on entry; at most integer_bits
  int cts_levels = 4;  // coefficients to slots
  int stc_levels = 3;  // slots to coefficients
  double cts_bits = 56, mod_bits = 60, stc_bits = 40;  // of each level
  /// h, even: T_2, whose rounding weighs most in the reduction, has a scale of mod_bits + h, T_4 two bits less,
  /// and so on down to mod_bits.
  int head_bits = 0;

  /// Levels of the modular reduction.
  int mod_levels() const;
  /// Levels above those of a computation. With slots_first, stc_levels of the computation's own serve
  /// slots to coefficients.
  int levels() const;
  double bits() const;  // of all of them together
  /// log2 of the scale of the input of the reduction's k-th level over 2^mod_bits, k = 0 at the top ...
  double head_scale_bits(int k) const;
  /// ... and the bits that this level has above mod_bits: twice this scale over the next.
  double head_level_bits(int k) const { return 2 * head_scale_bits(k) - head_scale_bits(k + 1); }
  /// The lowest level of an input: 0, or stc_levels with slots_first.
  int input_level() const { return order == BootstrapOrder::slots_first ? stc_levels : 0; }

  bool operator==(const BootstrapLiteral&) const = default;
};

/// log2 of a bound on the probability that any of `count` coefficients of a raised ciphertext leaves
/// [-K, K]: phase / q_0 is a sum of h + 1 numbers uniform in [-1/2, 1/2), and by Chernoff
///   P(|sum| >= K) <= 2 min_t exp(-t K) (sinh(t/2) / (t/2))^(h+1).
double log2_bootstrap_failure(int weight, double range, std::size_t count);

/// The largest log2(q_0 P') at which a sparse secret of this weight has 128 bits of security; 0 if no figure is
/// known. See docs/security.md.
double max_log_sparse_modulus(int log_n, int weight);

}  // namespace jali::params
