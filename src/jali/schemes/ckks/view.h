// Arrays of any shape in the slots of a ciphertext.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jali::ckks {

/// Where the elements of an array lie, in the terms of NumPy's strides. Addresses count the slots
/// of all vectors of a batch, one vector after the other: slot s of vector v has the address v *
/// slots + s. Element (i_0, i_1, ..) has the address
///   first + sum_k i_k axes[k].stride.
struct View {
  struct Axis {
    std::uint32_t count = 1;
    std::int32_t stride = 1;  // 0 only if the count is 1
    bool operator==(const Axis&) const = default;
  };
  static constexpr std::size_t kMostAxes = 16;

  std::vector<Axis> axes;  // none: a single number
  std::uint32_t first = 0;
  /// A power of two: rotations by so many slots change nothing, so that every element lies in many
  /// slots. The addresses are those of the first copy. 0: nothing is known of copies. A view with a
  /// period has one vector.
  std::uint32_t period = 0;

  bool operator==(const View&) const = default;
  std::size_t size() const;  // elements
};

/// Whether all elements lie in `batch` vectors of `slots` slots (within the period, if there is
/// one), are no more than those slots, and lie in different ones along each axis.
bool is_within(const View& view, std::size_t slots, std::size_t batch);

/// The view of a fresh array: elements in C order, each axis but the first rounded up to a power of
/// two within a vector, and to whole vectors beyond. Throws InvalidArgument if the shape has a 0,
/// too many axes, or more than 2^31 addresses.
View dense_view(std::span<const std::size_t> shape, std::size_t slots);
/// The vectors that dense_view needs.
std::size_t vectors_of_dense(std::span<const std::size_t> shape, std::size_t slots);

}  // namespace jali::ckks
