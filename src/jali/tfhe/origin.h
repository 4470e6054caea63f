// How the error of a ciphertext came about, as a number: what tells errors that may be equal from errors that are independent.
//
// Bootstrapping draws nothing. Its error follows from the mask that it reads and from the polynomial that it rotates. So the
// same look-up of the same ciphertext has the same error, whenever and wherever it happens. The result is also
//   the same if the input has a constant more and the table is shifted by as much, because both rotate the same polynomial;
//   minus the same if the polynomial is minus the other one;
//   the same and half the torus if that is added to all of the polynomial, because X^a - 1 takes it away.
// In all other cases the digits of two decompositions have nothing in common after the first step.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace jali::tfhe {

/// A ciphertext is that of its id, or minus that if it is negated, and a constant. Errors of different ids are independent.
/// Those of equal ids are equal or opposite, if everything was computed in the same way, and else independent: engines need
/// not agree in every bit. Ids are equal by chance with probability 2^-64; then more noise is counted than there is.
struct Origin {
  std::uint64_t id = 0;  // 0: there is no error
  std::int64_t half_steps = 0;
  bool negated = false;
};

/// An id that depends on both. It is above 1.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b);

/// The origin of a table among those that look up the same mask. Id 0: the polynomial is 0 or half the torus everywhere, so that
/// X^a - 1 leaves nothing of it, and no error comes in.
/// halves: for each of 2^value_bits boxes one entry or several, in half steps of a value; entry e + halves.size() would be
///   minus entry e.
/// half_steps: a constant of the input. A step is a box.
Origin table_origin(std::span<const std::int64_t> halves, int value_bits, std::int64_t half_steps);

/// The squared norm of a sum of errors, each with its id and the size of its weight: those of one id add up, and sums of
/// different ids add up as squares. It sorts the parts. Id 0 counts nothing.
double squared_norm(std::span<std::pair<std::uint64_t, double>> parts);

}  // namespace jali::tfhe
