// How operations change the packing of ciphertexts: the length, the batch axis, and whether values are complex. The rules
// are those of NumPy's shapes, for a vector that lies in the first slots of a ciphertext.
#pragma once

#include <complex>
#include <cstddef>
#include <span>

#include "jali/ckks/product_sum.h"
#include "jali/ckks/types.h"

namespace jali::ckks {

/// Numbers in the clear: `batch` rows of equal length, one after the other. Slots past the end of a row get zeros.
struct Numbers {
  std::span<const std::complex<double>> values;
  std::size_t batch = 1;
  bool batched = false;  // the rows are an axis of their own, even if there is one
  bool complex_values = false;

  std::size_t count() const { return values.size() / batch; }  // of a row
};

/// The length of the vectors of `a`: Packing::length, or all slots if that is 0.
std::size_t length_of(const Ciphertext& a);
std::size_t length_of(const ProductSum& a);
/// Whether the batch is an axis of its own. It always is if there are several vectors, even if the packing that came with
/// the bytes says otherwise.
bool is_batched(const Ciphertext& a);
bool is_batched(const ProductSum& a);

/// The packing of a fresh encryption of rows of `count` numbers in 2^log_slots slots. Throws InvalidArgument if they do
/// not fit.
Packing packing_of_fresh(std::size_t count, int log_slots, bool batched, bool complex_values);

/// The packing of a + b and a - b. Throws InvalidArgument unless the lengths are equal or one of them is all slots, the
/// batches are equal or one of them is 1, and both have the same number of slots.
Packing packing_of_sum(const Ciphertext& a, const Ciphertext& b);
/// The packing of a * b. Throws what packing_of_sum throws.
Packing packing_of_product(const Ciphertext& a, const Ciphertext& b);
/// The packings of a + b and a * b for numbers in the clear. Throw InvalidArgument unless the rows of b are as long as the
/// vectors of a, or as all its slots, and their number is 1 or the batch of a.
Packing packing_of_sum(const Ciphertext& a, const Numbers& b);
Packing packing_of_product(const Ciphertext& a, const Numbers& b);

/// The packings after a number was added to every slot, and after every slot was multiplied by a number.
Packing packing_of_sum(const Ciphertext& a, std::complex<double> b);
Packing packing_of_product(const Ciphertext& a, std::complex<double> b);
/// The packing after slots were moved, or after numbers of unknown length were added: slots past the length may hold
/// anything, and the elements of an array no longer lie where its view says.
Packing packing_of_moved(const Packing& a);
/// The packing of a result of the explicit evaluator, which works on all slots and checks no lengths. The length is that
/// of the operands if these agree, else all slots.
Packing packing_of_joined(const Ciphertext& a, const Ciphertext& b);

}  // namespace jali::ckks
