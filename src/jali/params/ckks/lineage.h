// Which numbers a ciphertext holds, as far as it is known: averages depend on whether the operands
// of a sum or a product are the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace jali::params {

/// Says which operands of a sum or a product are the same numbers. Averages take all others for
/// independent.
struct Lineage {
  /// If two roots are equal, both are powers of the same numbers, up to factors. 0: not known.
  std::uint64_t root = 0;
  std::uint64_t turn = 1;  // the Galois element that moved the numbers
  std::uint32_t power = 1;  // the power of the root that they are
  /// The degree of the root, or of numbers of unknown root, as a polynomial in the numbers that
  /// were encrypted; kAnyDegree at most.
  std::uint32_t degree = 1;
  std::uint64_t inputs = 0;  // which numbers these are: each sets one of 64 bits
  /// Whether it is a term of a circuit that says itself what the errors of its terms have in
  /// common. Sums and products take it for independent of other numbers. What is of unknown lineage
  /// otherwise may be the same numbers as any other.
  bool term = false;
};

/// The degree of numbers of which no more is known than their root mean square and peak, such as
/// the results of a matrix, which may gather its input in few numbers. A claim counts each of them
/// as the largest that these two allow.
inline constexpr std::uint32_t kAnyDegree = 1 << 16;

/// The lineage of a term.
Lineage lineage_of_term();

/// The lineage of numbers of this degree, kAnyDegree at most, that may be the same as any others.
Lineage lineage_of_unknown(std::uint64_t degree);

/// The lineage of numbers that were just encrypted or read.
Lineage lineage_of(std::uint64_t root);

/// Whether these are numbers of two different encryptions. Their bits may be the same by chance.
bool apart(const Lineage& a, const Lineage& b);

/// A lineage by which numbers of unknown root are known to be the same as themselves. It has their
/// degree and no inputs.
Lineage lineage_of_itself(const Lineage& unknown);

/// The lineage of a result of a recorded function. example: of its result when it was recorded.
/// inputs: of what it was run with.
Lineage lineage_of_result(const Lineage& example, std::span<const Lineage* const> inputs);

/// The degree of numbers as a polynomial in those that were encrypted, as far as it is known;
/// kAnyDegree at most.
std::uint32_t degree_of(const Lineage& lineage);

/// The lineage of clear numbers. They are told apart by their root mean square and peak.
Lineage lineage_of(double message, double peak);

/// What bytes say of a lineage. The caller has checked the ranges.
Lineage lineage_received(std::uint64_t root, std::uint64_t turn, std::uint32_t power,
                         std::uint32_t degree, std::uint64_t inputs);

/// Whether both are made of the same numbers, wherever these were moved.
bool are_kin(const Lineage& a, const Lineage& b);

/// Whether both are made of the same numbers, and these also lie in the same slots.
bool are_same(const Lineage& a, const Lineage& b);

/// The lineage of a number that is made of both, in any order. It has a root of its own.
Lineage joined(const Lineage& a, const Lineage& b, std::uint64_t degree);

/// The lineage of the product of both.
Lineage lineage_of_product(const Lineage& a, const Lineage& b);

/// The lineage of -a: other numbers, whose lineage is known as well as that of a.
Lineage lineage_of_negative(const Lineage& a);

/// The lineage of a after an automorphism.
Lineage lineage_of_turned(const Lineage& a, std::uint64_t galois_element, std::size_t n);

}  // namespace jali::params
