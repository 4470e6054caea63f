// How the packing of ciphertexts (length, batch axis, real or complex) goes through operations: the
// shapes of NumPy, over a vector that lies in the first slots of a ciphertext.
#pragma once

#include <complex>
#include <cstddef>
#include <span>

#include "jali/ckks/product_sum.h"
#include "jali/ckks/types.h"

namespace jali::ckks {

/// Numbers in the clear: `batch` rows, one after the other, zero past their end.
struct Numbers {
  std::span<const std::complex<double>> values;
  std::size_t batch = 1;
  bool batched = false;  // the rows are an axis of their own, even if there is one
  bool complex_values = false;

  std::size_t count() const { return values.size() / batch; }  // of a row
};

/// Slots of a vector of `a` that count.
std::size_t length_of(const Ciphertext& a);
std::size_t length_of(const ProductSum& a);
/// Whether the batch is an axis of its own: several vectors always are, whatever a sender said of them.
bool is_batched(const Ciphertext& a);
bool is_batched(const ProductSum& a);

/// Of a fresh encryption of rows of `count` numbers in 2^log_slots slots. Throws InvalidArgument if they do not
/// fit.
Packing packing_of_fresh(std::size_t count, int log_slots, bool batched, bool complex_values);

/// Of a + b, a - b. Lengths must be equal, or one of them all slots. Throws InvalidArgument.
Packing packing_of_sum(const Ciphertext& a, const Ciphertext& b);
/// Of a * b; likewise.
Packing packing_of_product(const Ciphertext& a, const Ciphertext& b);
/// Rows must be as long as a, or have all its slots; their number is 1, or the batch of a. Throws InvalidArgument.
Packing packing_of_sum(const Ciphertext& a, const Numbers& b);
Packing packing_of_product(const Ciphertext& a, const Numbers& b);

/// After adding a number to every slot, after multiplying every slot by one.
Packing packing_of_sum(const Ciphertext& a, std::complex<double> b);
Packing packing_of_product(const Ciphertext& a, std::complex<double> b);
/// After slots moved, or numbers of unknown length were added: what lies past the length may be anything.
Packing packing_of_moved(const Packing& a);
/// Of operations on all slots by hand, which check no lengths: that of the operands where it is the same, else all
/// slots.
Packing packing_of_joined(const Ciphertext& a, const Ciphertext& b);

}  // namespace jali::ckks
