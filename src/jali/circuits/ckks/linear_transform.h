// y = M x on the slots of one ciphertext, for an M that is given by its non-zero diagonals.
#pragma once

#include <complex>
#include <map>
#include <span>
#include <vector>

#include "jali/circuits/ckks/block_transform.h"

namespace jali::circuits {

/// The diagonals of a matrix by index. Entry s of diagonal d is the factor of slot s + d
/// (cyclically) of the input in slot s of the output. Indices lie between -slots and slots; d and d
/// - slots are the same diagonal.
using Diagonals = std::map<int, std::vector<std::complex<double>>>;

/// The non-zero diagonals of a slots x slots matrix, which is given row after row. Throws
/// InvalidArgument for another size.
Diagonals diagonals_of(std::span<const std::complex<double>> matrix, std::size_t slots);

/// It takes one level. With double hoisting it divides by P once for each giant step and once at
/// the end (see BlockTransform). rotations() is known before any key is made.
class LinearTransform {
 public:
  /// Throws InvalidArgument for sizes or indices that do not fit the slots, and for numbers that
  /// are not finite; throws DepthExhausted at level 0.
  LinearTransform(ckks::ParamsPtr params, Diagonals diagonals,
                  const TransformOptions& options = {});

  int level() const { return blocks_.level(); }
  double input_scale() const { return blocks_.input_scale(); }
  const BsgsPlan& plan() const { return blocks_.plan(); }
  std::vector<int> rotations() const { return blocks_.rotations(); }
  std::size_t key_bytes() const;  // of its rotation keys; see rlwe::Params::key_bytes
  /// These are BlockTransform's.
  std::size_t plaintext_bytes(ckks::Storage storage = ckks::Storage::residues) const {
    return blocks_.plaintext_bytes(storage);
  }
  std::size_t bytes() const { return blocks_.bytes(); }
  void forget() { blocks_.forget(); }
  /// Encodes the diagonals once. Without this call they are encoded at each use.
  void prepare(const ckks::Encoder& encoder, ckks::Storage storage = ckks::Storage::residues) {
    blocks_.prepare(encoder, storage);
  }
  /// peak: no number of the result is larger, if the caller knows a smaller bound than that of the
  /// matrix's rows.
  ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                         double peak = params::kUnbounded) const;

 private:
  BlockTransform blocks_;
};

}  // namespace jali::circuits
