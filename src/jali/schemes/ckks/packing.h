// How operations change the packing of ciphertexts: the length, the batch axis, whether values are
// complex, how the numbers lie in the slots, and a bound on what the other slots hold. Shapes
// follow NumPy's rules. This is the one place that says what becomes of a packing. |a| stands for
// the bound of a (rest_of), and "anything" for all that the peak allows:
//
//   operation                              the numbers lie                     the other slots
//   a + b, a - b, maximum                  as both do, see packing_of_sum      |a| + |b|
//   a * b                                  likewise                            |a| |b|
//   a + array, a - array                   as a's; the array is laid like it   |a|
//   a * array                              likewise                            zero
//   a + number                             as a's                              |a| + |number|
//   a * number                             as a's                              |a| |number|
//   -a, conj, bootstrapping                as a's                              |a|
//   a function or polynomial f             as a's                              |f(0)| if they were
//   zero, else anything rotation by a multiple of the period   as a's |a| other rotations, sums of
//   neighbours    once; as often as a's before, if    anything
//                                          the other slots were zero
//   matrix-vector product                  as the plan's output layout says    zero
//   linear transform                       one in every slot                   there are none
//   stack, split, captured functions       unchanged, and equal for all        unchanged
//
// Slots that are moved or changed one by one in another way lose their tiling (packing_of_moved).
//
// Estimate::peak is a bound on every slot. What a caller says of the numbers alone (within,
// ArrayEvaluator::with_magnitude) says nothing of the other slots. It is taken only if rest_of() is
// small enough (circuits/ckks/domain.h).
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jali/schemes/ckks/product_sum.h"
#include "jali/schemes/ckks/types.h"

namespace jali::ckks {

/// Numbers in the clear: `batch` rows of equal length, one after the other. Rows as long as the
/// vectors that they meet are laid out like those, with zeros in the other slots.
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
/// Whether the batch is an axis of its own. It always is if there are several vectors, even if the
/// packing that came with the bytes says otherwise.
bool is_batched(const Ciphertext& a);
bool is_batched(const ProductSum& a);

// --- how numbers lie -----------------------------------------------------------------------------

/// The tiling in its one form (Tiling). window, stride >= window, count: powers of two with stride
/// count <= slots.
Tiling tiling_of(std::size_t first, std::size_t window, std::size_t stride, std::size_t count,
                 std::size_t slots);
/// `count` real numbers that lie so, with zeros in the other slots.
Packing packing_of_tiling(std::size_t count, const Tiling& tiling, std::size_t slots);
/// Whether the packing is one that a ciphertext of 2^log_slots slots can have.
bool is_possible(const Packing& a, int log_slots);
/// Whether the numbers lie in the first slots in their order, perhaps repeated behind them.
bool is_in_order(const Packing& a);
/// Whether every slot that holds no number is zero, up to noise. It is true if there is no such
/// slot.
bool rest_is_zero(const Packing& a);
/// A bound on the modulus of every slot that holds no number: 0 if there is none or all are zero,
/// and the peak at most.
double rest_of(const Ciphertext& a);

/// For every slot, the index of the number in it, or nothing.
inline constexpr std::uint32_t kNoNumber = 0xffffffff;
std::vector<std::uint32_t> numbers_in_slots(const Packing& a, std::size_t slots);
/// From `batch` rows of numbers to `batch` rows of slots, with zeros in slots that hold no number;
/// and back, from the first slot that holds a number.
std::vector<std::complex<double>> to_slots(std::span<const std::complex<double>> numbers,
                                           std::size_t batch, const Packing& a, std::size_t slots);
std::vector<std::complex<double>> from_slots(std::span<const std::complex<double>> values,
                                             std::size_t batch, const Packing& a);

/// For sentences, e.g. "20 numbers that repeat every 32 slots".
std::string described(const Packing& a, int log_slots);

// --- what operations make of it ------------------------------------------------------------------

/// The packing of a fresh encryption of rows of `count` numbers in 2^log_slots slots. Throws
/// InvalidArgument if they do not fit.
Packing packing_of_fresh(std::size_t count, int log_slots, bool batched, bool complex_values);

/// The packing of a + b and a - b. Throws InvalidArgument unless the lengths are equal, or one of
/// them is all slots and the other not 1, the batches are equal or one of them is 1, and both have
/// the same number of slots. It also throws if the vectors lie in different orders. If one repeats
/// more often than the other, the result repeats as the other does.
Packing packing_of_sum(const Ciphertext& a, const Ciphertext& b);
/// The packing of a * b. Throws what packing_of_sum throws.
Packing packing_of_product(const Ciphertext& a, const Ciphertext& b);
/// The packings of a + b and a * b for numbers in the clear. Throw InvalidArgument unless the rows
/// of b are as long as the vectors of a, or as all its slots, and their number is 1 or the batch of
/// a.
Packing packing_of_sum(const Ciphertext& a, const Numbers& b);
Packing packing_of_product(const Ciphertext& a, const Numbers& b);

/// The packings after a number was added to every slot, and after every slot was multiplied by a
/// number.
Packing packing_of_sum(const Ciphertext& a, std::complex<double> b);
Packing packing_of_product(const Ciphertext& a, std::complex<double> b);
/// The packing after a function of every slot. of_zero: the modulus of what it makes of slots that
/// are zero.
Packing packing_of_each(const Packing& a, double of_zero);
/// The packing after a rotation by `steps` slots of the number of slots, and after every slot
/// became the sum of itself and its neighbours.
Packing packing_of_rotated(const Packing& a, std::int64_t steps, std::size_t slots);
Packing packing_of_neighbours(const Packing& a);
/// The packing after slots were moved, or after numbers that may lie in another way were added: the
/// vector lies once, and slots past its length may hold anything. The elements of an array no
/// longer lie where its view says.
Packing packing_of_moved(const Packing& a);
/// The packing after slots were multiplied by numbers that may lie in another way.
Packing packing_of_scaled(const Packing& a);
/// The packing of a result of the explicit evaluator, which works on all slots and checks no
/// lengths. The length is that of the operands if these agree, else all slots.
Packing packing_of_joined(const Ciphertext& a, const Ciphertext& b);
/// The packing of the same slots, of which `length` numbers count. The slots past the old length
/// hold the numbers past it. Throws InvalidArgument unless length is from 1 to `slots`; and for
/// numbers in windows, if they are fewer.
Packing packing_of_length(const Packing& a, std::size_t length, std::size_t slots);

}  // namespace jali::ckks
