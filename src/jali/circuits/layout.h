// Which element of a vector each slot of a run of ciphertexts holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jali::circuits {

/// What a slot holds if it holds no element of the vector: zero, or any number of bounded size.
inline constexpr std::int32_t kNothing = -1;

/// Elements 0 .. size - 1 of a vector on the slots of ciphertexts; an element may lie in many slots.
struct Layout {
  std::size_t size = 0;
  std::size_t slots = 0;                           // of a ciphertext, a power of two
  std::vector<std::vector<std::int32_t>> element;  // [ciphertext][slot], or kNothing

  std::size_t ciphertexts() const { return element.size(); }
  /// Throws InvalidArgument unless every element lies in at least one slot and all indices are in range.
  void check() const;
  /// The smallest power of two by which every ciphertext may be rotated without a change.
  std::size_t period() const;

  /// vectors: batch vectors of `size` numbers, one after the other. Result: for each ciphertext its
  /// batch x slots numbers; a slot for which the layout says kNothing gets zero.
  std::vector<std::vector<double>> pack(std::span<const double> vectors,
                                        std::size_t batch = 1) const;
  /// Inverse of pack from the first slot that holds each element.
  std::vector<double> unpack(std::span<const std::vector<double>> slots_of,
                             std::size_t batch = 1) const;

  /// Element e in slots e, e + period, e + 2 period ...; vectors longer than `slots` go on in the
  /// next ciphertext. period: a power of two at least min(size, slots); 0: the smallest.
  static Layout periodic(std::size_t size, std::size_t slots, std::size_t period = 0);
};

}  // namespace jali::circuits
