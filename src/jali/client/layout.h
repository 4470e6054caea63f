// Which slot of which ciphertext holds which number of an input or output.
//
// A ciphertext with s slots serves `lanes` examples at once: slot k of lane b is slot k lanes + b.
// All that follows is written for one lane, with s / lanes slots. The address of a number is its
// ciphertext times the slots of a lane, plus its slot. An array that takes one ciphertext repeats
// after its period.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jali::client {

struct Layout {
  enum class Kind : std::uint8_t {
    /// Number (c, y, x) of an array lies where pixel (y gap + c' / gap, x gap + c' mod gap) of
    /// plane c / gap^2 of a larger grid lies, with
    /// c' = c mod gap^2; likewise with fewer and with more axes.
    grid = 0,
    /// Every number lies in `width` slots, one behind the other.
    repeated = 1,
    /// A matrix in `count` ciphertexts. Slots i width to (i + 1) width of every ciphertext belong
    /// to row i, and those of ciphertext j hold
    /// its chunk i + j, modulo count, of `width` numbers.
    skewed = 2,
    /// The table says which number lies in each slot.
    gathered = 3,
  };

  Kind kind = Kind::grid;
  std::uint64_t slots = 1;  // of one lane, a power of two
  std::vector<std::uint64_t> shape;  // of the array as it is laid
  /// Of grid and repeated: a power of two, after which one ciphertext repeats.
  std::uint64_t period = 1;
  std::uint64_t gap = 1;  // of grid
  std::vector<std::uint64_t> grid;  // of grid: the sizes on which all axes but the first lie
  std::uint64_t width = 1, count = 1;  // of repeated and skewed, powers of two
  /// Of gathered: (ciphertexts, slots), the index of a number, or -1 for zero.
  std::vector<std::int32_t> table;

  /// How many numbers the array has.
  std::uint64_t size() const;
  /// How many ciphertexts the array takes.
  std::uint64_t ciphertexts() const;
  /// One more than the largest address. It takes no list of them.
  std::uint64_t extent() const;
  /// The address of every number, in C order. Copies are left out.
  std::vector<std::uint64_t> addresses() const;
  /// For every slot of every ciphertext the index of its number, or -1.
  std::vector<std::int32_t> contents() const;

  /// Throws std::invalid_argument, whose text names the field, unless each number of a layout has
  /// slots of its own. The other functions are for layouts that were checked. Its work and memory
  /// are bounded by the size of the layout's fields and `most_ciphertexts`.
  void check(std::uint64_t most_ciphertexts) const;

  bool operator==(const Layout&) const = default;
};

/// Limits of layouts that come from elsewhere.
inline constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << 24;  // of one array
inline constexpr std::size_t kMostAxes = 8;

/// Writes the numbers of an array into the slots of lane `lane` of `lanes`: slot k of ciphertext c
/// goes to out[c][k lanes + lane], where out[c] begins at c times `pitch`. Zeros lie in the slots
/// that hold no number. numbers: layout.size() of them.
void pack(const Layout& layout, std::span<const double> numbers, std::span<double> out,
          std::size_t pitch, std::size_t lanes, std::size_t lane);

/// The other direction, from the first slot of each number.
void unpack(const Layout& layout, std::span<const double> slots, std::size_t pitch,
            std::size_t lanes, std::size_t lane, std::span<double> numbers);

}  // namespace jali::client
