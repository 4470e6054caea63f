// What is known of a ciphertext's numbers and of its noise. Only the noise model,
// params/discrete/noise.*, writes an Estimate: everything else reads it and calls its rules
// (tools/check_noise.py).
#pragma once

#include <cstdint>

namespace jali::discrete {

/// All numbers of a ciphertext lie from low to high, in every slot or coefficient. high - low is
/// less than T, so that a residue modulo T is one number of the range.
struct Range {
  std::int64_t low = 0, high = 0;
  /// The numbers are residues modulo T, and low and high are those of PlainModulus. Operations on
  /// them compute modulo T.
  bool wraps = false;
  bool operator==(const Range&) const = default;
};

/// What happens if a result may leave the T numbers that residues tell apart. refuse: the
/// operation throws RangeExceeded before it computes. wrap: the result is a residue modulo T.
enum class Overflow : std::uint8_t { refuse, wrap };

/// The noise is eps = w / T, where w is the polynomial of discrete::Params. Bounds hold for every
/// message, and however the operands of an operation depend on each other, except with the
/// probability of rlwe::kSourceBits for each source of noise.
struct Estimate {
  double slot = 0;  // no |eps(zeta)| is larger, for any root zeta of X^N + 1
  double coefficient = 0;  // no coefficient of eps is larger
  Range range{};

  /// The smaller bound on coefficients: none is larger than the largest slot.
  double largest() const { return slot < coefficient ? slot : coefficient; }
};

/// A bound of this size says that nothing is known. Bounds do not grow beyond it.
inline constexpr double kUnbounded = 1e300;

}  // namespace jali::discrete
