// The special DFT between coefficients and slots, factored into a chosen number of matrices, one a
// level.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "jali/circuits/ckks/linear_transform.h"

namespace jali::circuits {

/// With zeta_j = exp(2 pi i 5^j / (4 n)), the n slots of a polynomial m are z_j = sum_k w_k
/// zeta_j^k, where w_k = m_k + i m_{k+n}. As a product of butterfly stages B_len (len = 2, 4 .. n)
/// of three diagonals each,
///   z = B_n .. B_4 B_2 (bit-reversed w).
/// The bit reversal is left out in both directions. Between them, the slots hold w in bit-reversed
/// order.
enum class Dft {
  slots_to_coefficients,  // maps slots that hold bit-reversed w to z, so that the polynomial has
                          // the coefficients w
  coefficients_to_slots  // its inverse
};

/// The lengths of the butterflies of each matrix, in the order in which they are applied. Throws
/// what dft_matrices throws.
std::vector<std::vector<std::size_t>> dft_stages(Dft direction, int log_slots, int levels);

/// The matrices of a DFT on n = 2^log_slots slots, in the order in which they are applied. Each is
/// the product of consecutive stages, and their product is `factor` times the DFT. levels: from 1
/// to max(log_slots, 1). Throws InvalidArgument for other values, and unless factor is positive and
/// log_slots is from 0 to 16.
std::vector<Diagonals> dft_matrices(Dft direction, int log_slots, int levels, double factor = 1);

/// The indices of the non-zero diagonals of these matrices, in [0, n). side_by_side: as in
/// DftOptions; they are then on 2 n slots.
std::vector<std::vector<int>> dft_diagonals(Dft direction, int log_slots, int levels,
                                            bool side_by_side = false);

struct DftOptions {
  int level = -1;  // of the input; -1: the top
  int levels = 1;  // at most; there are fewer if the DFT has fewer stages
  int log_slots = -1;  // -1: all N/2
  double factor = 1;  // by which the DFT is multiplied
  double input_scale = 0,
         output_scale = 0;  // 0: canonical; the scales between are spaced geometrically
  /// For n < N/2 only: the ciphertext has 2 n slots, which hold the real and the imaginary part
  /// side by side, (Re w, Im w). coefficients_to_slots gives t with t + conj(t) = (Re w, Im w);
  /// slots_to_coefficients takes (Re w, Im w).
  bool side_by_side = false;
  BsgsOptions bsgs{};
  /// If there are any, one for each matrix, in the place of bsgs.sequence: the matrices are applied
  /// with few keys.
  std::vector<Sequence> sequences{};
  /// For sequences only: by how many slots the input is rotated. The result is then rotated by
  /// shift(). That way no matrix needs a rotation at its end.
  int input_shift = 0;
};

class HomomorphicDft {
 public:
  HomomorphicDft(ckks::ParamsPtr params, Dft direction, const DftOptions& options);

  int level() const { return stages_.front().level(); }
  int output_level() const { return stages_.back().level() - 1; }
  const std::vector<LinearTransform>& stages() const { return stages_; }
  std::vector<int> rotations() const;  // sorted, distinct
  /// Slot i of the result holds what belongs in slot i + shift(). It is 0 without sequences.
  int shift() const { return shift_; }
  /// What the roundings of a matrix's numbers add to its output: its root mean square over that of
  /// the output, for inputs whose numbers are independent, and how many entries a row has. All of
  /// them have one modulus.
  struct Rounded {
    double relative = 0, entries = 1;
  };
  const std::vector<Rounded>& rounded() const { return rounded_; }
  std::size_t plaintext_bytes() const;
  /// Encodes the diagonals of all matrices. done: called after each matrix.
  void prepare(const ckks::Encoder& encoder, const std::function<void()>& done = {});
  /// peak: no number of the result is larger, if the caller knows a smaller bound than that of the
  /// matrices' rows.
  ckks::Ciphertext apply(const ckks::Evaluator& evaluator, ckks::Ciphertext x,
                         double peak = params::kUnbounded) const;

 private:
  int shift_ = 0;
  std::vector<Rounded> rounded_;
  std::vector<LinearTransform> stages_;
};

}  // namespace jali::circuits
