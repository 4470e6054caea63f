// A layout says which element of a vector each slot of one or more ciphertexts holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jali/schemes/ckks/packing.h"

namespace jali::circuits {

/// Marks a slot that holds no element of the vector. Such a slot may hold zero, or any number of
/// bounded size.
inline constexpr std::int32_t kNothing = -1;

/// Where the elements 0 .. size - 1 of a vector lie in the slots of ciphertexts. An element may lie
/// in many slots.
struct Layout {
  std::size_t size = 0;
  std::size_t slots = 0;                           // of a ciphertext, a power of two
  std::vector<std::vector<std::int32_t>> element;  // [ciphertext][slot], or kNothing
  /// For each ciphertext, the packing of its numbers and what lies in its other slots. It is empty
  /// if a table of one's own is not of that form: no ciphertext says of itself that it lies so.
  std::vector<ckks::Packing> packing{};

  std::size_t ciphertexts() const { return element.size(); }
  /// Throws InvalidArgument unless every element lies in at least one slot and all indices are in
  /// range.
  void check() const;
  /// The smallest power of two by which every ciphertext may be rotated without a change.
  std::size_t period() const;

  /// vectors: `batch` vectors of `size` numbers, one after the other. Returns batch x slots numbers
  /// for each ciphertext. A slot for which the layout says kNothing gets zero. Throws
  /// InvalidArgument for another number of numbers.
  std::vector<std::vector<double>> pack(std::span<const double> vectors,
                                        std::size_t batch = 1) const;
  /// The inverse of pack. Each element is read from the first slot that holds it.
  std::vector<double> unpack(std::span<const std::vector<double>> slots_of,
                             std::size_t batch = 1) const;

  /// The layout with element e in the slots e, e + period, e + 2 period, ... Vectors longer than
  /// `slots` continue in the next ciphertext. period: a power of two from min(size, slots) to
  /// slots; 0 stands for the smallest. Throws InvalidArgument for another period.
  static Layout periodic(std::size_t size, std::size_t slots, std::size_t period = 0);
  /// The layout of ciphertexts of these packings. Their numbers are counted from Tiling::first on.
  static Layout of(std::size_t size, std::size_t slots, std::vector<ckks::Packing> packing);

  /// Whether every slot of ciphertext `index` that holds an element of this layout holds the same
  /// element under `lies`.
  bool agrees(std::size_t index, const ckks::Packing& lies) const;
  /// For sentences.
  std::string described() const;
};

}  // namespace jali::circuits
