// The special DFT between coefficients and slots, factored into any number of levels.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "jali/circuits/linear_transform.h"

namespace jali::circuits {

/// With zeta_j = exp(2 pi i 5^j / (4 n)) a polynomial's n slots are z_j = sum_k w_k zeta_j^k, where w_k
/// = m_k + i m_{k+n}. As products of butterfly stages B_len (len = 2, 4 .. n) of three diagonals each,
///   z = B_n .. B_4 B_2 (bit-reversed w).
/// The bit reversal is left out on both sides: slots hold w in bit-reversed order in between.
enum class Dft {
  slots_to_coefficients,  // bit-reversed w in the slots -> z: the slots become the polynomial's w
  coefficients_to_slots  // its inverse
};

/// The matrices of a DFT on n = 2^log_slots slots in the order in which they are applied, each the
/// product of consecutive stages; together they are `factor` times the DFT. levels: 1 .. log_slots
/// (one where log_slots is 0).
std::vector<Diagonals> dft_matrices(Dft direction, int log_slots, int levels, double factor = 1);

struct DftOptions {
  int level = -1;  // of the input; -1: the top
  int levels = 1;  // budget; fewer are taken where there are fewer stages
  int log_slots = -1;  // -1: all N/2
  double factor = 1;  // on top of the DFT
  double input_scale = 0, output_scale = 0;  // 0: canonical; those between are spread evenly
  /// For n < N/2: real and imaginary part side by side in 2 n slots, (Re w, Im w). The ciphertext has
  /// 2 n slots. coefficients_to_slots gives t with t + conj(t) = (Re w, Im w); slots_to_coefficients
  /// takes (Re w, Im w).
  bool side_by_side = false;
  /// With the fewest keys (bsgs.minimum) the slots of the input may be rotated by this many, and those of
  /// the result are by shift(): a stage then needs one rotation key alone.
  int input_shift = 0;
  BsgsOptions bsgs{};
};

class HomomorphicDft {
 public:
  HomomorphicDft(ckks::ParamsPtr params, Dft direction, const DftOptions& options);

  int level() const { return stages_.front().level(); }
  int output_level() const { return stages_.back().level() - 1; }
  const std::vector<LinearTransform>& stages() const { return stages_; }
  std::vector<int> rotations() const;  // sorted, distinct
  /// Slot i of the result holds what belongs in slot i + shift(): 0 unless bsgs.minimum.
  int shift() const { return shift_; }
  std::size_t plaintext_bytes() const;
  /// done: called after each matrix.
  void prepare(const ckks::Encoder& encoder, const std::function<void()>& done = {});
  ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x) const;

 private:
  int shift_ = 0;
  std::vector<LinearTransform> stages_;
};

}  // namespace jali::circuits
