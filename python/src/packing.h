// How the packing of ciphertexts (length, batch axis, real or complex) goes through operations: the
// shapes of NumPy, over a vector that lies in the first slots of a ciphertext.
#pragma once

#include <cstddef>
#include <tuple>

#include "jali/ckks/types.h"

namespace jali::python {

/// Slots of a vector of `a` that count.
std::size_t length_of(const ckks::Ciphertext& a);
/// Whether the batch is an axis of its own: several vectors always are, whatever a sender said of them.
bool is_batched(const ckks::Ciphertext& a);

/// Of a + b, a - b. Lengths must be equal, or one of them all slots. Throws InvalidArgument.
ckks::Packing of_sum(const ckks::Ciphertext& a, const ckks::Ciphertext& b);
/// Of a * b.
ckks::Packing of_product(const ckks::Ciphertext& a, const ckks::Ciphertext& b);

/// A plain operand: `batch` rows of `count` numbers, zero past them.
struct Plain {
  std::size_t batch = 1;
  std::size_t count = 0;
  bool batched = false;
  bool complex_values = false;
};
/// count must be the length of a, or all its slots; rows 1, or the batch of a. Throws
/// InvalidArgument.
ckks::Packing of_sum(const ckks::Ciphertext& a, const Plain& b);
ckks::Packing of_product(const ckks::Ciphertext& a, const Plain& b);

/// After adding a number to every slot.
ckks::Packing of_scalar_sum(const ckks::Ciphertext& a, bool zero, bool complex_value);
ckks::Packing of_scalar_product(const ckks::Ciphertext& a, bool complex_value);
/// After slots moved: what lay past the length may now be inside, and the other way round.
ckks::Packing of_moved(const ckks::Ciphertext& a);

}  // namespace jali::python
