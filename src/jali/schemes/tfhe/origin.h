// How the error of a ciphertext came about, as a number: what tells errors that may be equal from
// errors that are independent.
//
// Bootstrapping draws nothing. Its error follows from the mask that it reads and from the
// polynomial that it rotates. So the same look-up of the same ciphertext has the same error,
// whenever and wherever it happens. The result is also
//   the same if the input has a constant more and the table is shifted by as much, because both
//   rotate the same polynomial; minus the same if the polynomial is minus the other one; the same
//   and half the torus if that is added to all of the polynomial, because X^a - 1 takes it away.
// In all other cases the digits of two decompositions have nothing in common after the first step.
//
// A ciphertext whose mask is 0 is a constant. A look-up of it only rotates the polynomial by that
// constant: the result is an entry of the table, a constant again, with no error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jali::tfhe {

/// Ids that no combination of others has by more than chance.
constexpr std::uint64_t kNoError = 0;  // a constant
constexpr std::uint64_t kUnknown = 1;  // nobody said how it came about
/// A look-up of a sum whose ids cancel, for example of x - x' where x' was read from the bytes of
/// x. If both were computed in the same way, the sum is a constant, and so is the result:
/// `half_steps`. Else, for example if two engines computed them, the result has an error. So it
/// counts as an error, all of these as the same one, but sums that differ in such a ciphertext
/// alone have one id.
constexpr std::uint64_t kCancelled = 2;

/// A ciphertext is that of its id, or minus that if it is negated, and a constant. Errors of
/// different ids are independent. Those of equal ids are equal or opposite, if everything was
/// computed in the same way, and else independent: engines need not agree in every bit. Ids are
/// equal by chance with probability 2^-64; then more noise is counted than there is.
struct Origin {
  std::uint64_t id = kNoError;
  std::int64_t half_steps = 0;
  bool negated = false;

  /// What `weight` times this ciphertext adds to the id of a sum, modulo 2^64. Ciphertexts that are
  /// equal bit for bit have equal ids, and so have sums that are.
  std::uint64_t times(std::uint64_t weight) const {
    if (id == kCancelled) return 0;
    return (negated ? 0 - weight : weight) * id;
  }
};

/// An id that depends on both. It is above kCancelled.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b);

/// What follows from a table, and from the constant of its input.
struct TableOrigin {
  /// Tells the rotated polynomial from others. kNoError: the polynomial is 0, and so is the result.
  Origin polynomial;
  std::int64_t entry = 0;  // the result, in half steps, if the input is a constant
};

/// halves: for each of 2^value_bits boxes one entry or several, in half steps of a value; entry e +
/// halves.size() would be
///   minus entry e.
/// half_steps: a constant of the input. A step is a box.
/// function: which of several entries of a box is looked up.
TableOrigin table_origin(std::span<const std::int64_t> halves, int value_bits,
                         std::int64_t half_steps, std::size_t function = 0);

/// The origin of a look-up in this table. id: of the input, a sum; constant: whether the input is a
/// sum of no ciphertext.
Origin origin_after(const TableOrigin& table, std::uint64_t id, bool constant);

/// A ciphertext of a sum. One and the same ciphertext has one Origin in memory.
struct Part {
  const Origin* of;
  std::int64_t weight;
  double norm2;  // of the ciphertext
};

/// The squared norm of a sum of errors. Weights of one ciphertext are added with their signs; the
/// sizes of the weights of one id add up; those of different ids add up as squares. The parts that
/// remain are those whose weights do not cancel.
double squared_norm(std::vector<Part>& parts);

}  // namespace jali::tfhe
