// y = M x on the slots of several ciphertexts at once, for an M that is given by the non-zero
// diagonals of its blocks. LinearTransform and MatVec are built on it.
#pragma once

#include <complex>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "jali/circuits/common/rotation_keys.h"
#include "jali/circuits/common/rotation_plan.h"
#include "jali/schemes/ckks/evaluator.h"

namespace jali::circuits {

using ckks::ParamsPtr;

struct TransformOptions {
  int level = -1;  // of the inputs; -1: the top
  int log_slots = -1;  // of the inputs; -1: all N/2
  double input_scale = 0;  // 0: the canonical scale of the level
  BsgsOptions bsgs{};
  double output_scale = 0;  // 0: the canonical scale of the level below
  /// If the caller adds up rows of the results, the distance of these for every output, so that
  /// estimates are averages over all rows, also those that hold nothing but zeros. Otherwise empty.
  std::vector<std::size_t> summed_rows = {};
};

/// A plan is made on construction, prepare() encodes the diagonals, and apply() computes. Results
/// lie one level below the inputs, at exactly output_scale, because diagonals are encoded at the
/// scale
///   output_scale (Q_l / Q_{l-1}) / input_scale.
class BlockTransform {
 public:
  /// Writes the `slots` entries of one diagonal of block (output, input). Entry s is the factor of
  /// x_input[s + diagonal] in y_output[s]. If nothing was prepared, it is called at each use. It
  /// must be safe to call from several threads.
  using Fill = std::function<void(std::size_t output, std::size_t input, int diagonal,
                                  std::span<std::complex<double>> entries)>;

  BlockTransform(ckks::ParamsPtr params, const BlockDiagonals& diagonals, Fill fill,
                 const TransformOptions& options = {});

  const ckks::ParamsPtr& params() const { return params_; }
  int level() const { return level_; }
  int log_slots() const { return log_slots_; }
  std::size_t slots() const { return plan_.slots; }
  double input_scale() const { return input_scale_; }
  double output_scale() const { return output_scale_; }
  const BsgsPlan& plan() const { return plan_; }
  std::vector<int> rotations() const { return plan_.rotations(); }
  /// Bytes that prepare() takes, for integers wherever they are kept. Throws InvalidArgument if
  /// their coefficients may have more than 62 bits, and, of integers, after forget().
  std::size_t plaintext_bytes(ckks::Storage storage = ckks::Storage::residues) const;
  /// Bytes that the encoded diagonals take now.
  std::size_t bytes() const;

  /// Encodes every diagonal and keeps it. Without this call, each is encoded whenever it is used,
  /// which takes less memory and more time. As integers, diagonals take less memory, and at each
  /// use a reduction and an NTT; results are the same bit by bit. It must not be called while
  /// another thread calls apply(). Throws InvalidArgument after forget(), and for integers that a
  /// compact plaintext does not hold.
  void prepare(const ckks::Encoder& encoder, ckks::Storage storage = ckks::Storage::residues);
  bool prepared() const { return !encoded_.empty(); }
  /// Lets go of the numbers of the diagonals, which may take as much memory as their integers. Only
  /// apply() works from then on. Throws InvalidArgument if nothing was prepared.
  void forget();

  /// inputs: one ciphertext for each input of the transform, all of the same batch. Those above
  /// level() are brought down to it. If `rescale` is false, the results stay at level(), at the
  /// scale input_scale() times that of the diagonals. Throws KeyMissing, which names the missing
  /// rotations, DepthExhausted for inputs below level(), ScaleMismatch for inputs of another scale
  /// at level(), and InvalidArgument for another number of inputs, of slots or of batches.
  std::vector<ckks::Ciphertext> apply(const ckks::Evaluator& evaluator,
                                      std::span<const ckks::Ciphertext> inputs, bool rescale = true,
                                      double peak = params::kUnbounded) const;
  /// For every slot of an output, the sum of the moduli of its row's entries, over all inputs.
  std::vector<double> row_sums(std::size_t output) const;
  /// By which factor the principal variance that apply() claims for an output is above a bound on
  /// the variance of its slots (params::Claim).
  double principal(std::size_t output) const { return rows().at(output).principal; }
  /// The largest square of a row's norm over the mean of those that are not zero.
  double uneven(std::size_t output) const { return rows().at(output).uneven; }
  /// The sum of the squares of the entries of all rows of an output.
  double squares(std::size_t output) const { return rows().at(output).squares; }

 private:
  struct Diagonal {
    ring::Poly poly;  // empty if it is compact
    ckks::CompactPlaintext compact;
    double message = 0;  // root mean square of its entries
    double peak = 0;  // the largest modulus
    bool real = false;  // whether they are real numbers
  };
  std::vector<PrimeIndex> diagonal_primes() const;
  Diagonal encode(const ckks::Encoder& encoder, std::size_t output, int giant,
                  const BsgsPlan::Term& term,
                  ckks::Storage storage = ckks::Storage::residues) const;
  /// Whether every diagonal is ready for products.
  bool resident() const { return prepared() && storage_ == ckks::Storage::residues; }
  void require_numbers() const;
  /// What is known of an output's rows. The root mean squares of diagonals are taken over all
  /// slots, but rows that hold nothing but zeros leave nothing of the message and of its error, so
  /// that these lie in the other slots alone.
  struct Rows {
    double largest = 0;  // the largest row sum; in apply: a bound on the numbers of the output
    double share = 1;  // slots for each row that is not zero
    /// By how much the root mean square of inputs may grow to that of these rows; in apply: a bound
    /// on that of the output.
    double message = 0;
    /// The square of the largest singular value over the mean square of the rows' norms: by which
    /// factor the principal variance of the output is above the sum of those of products with
    /// diagonals.
    double principal = 1;
    /// The largest square of a row's norm over the mean of those that are not zero. A claim is that
    /// of the row with the most noise, so that it holds for slices. With summed_rows it counts for
    /// the sums of these rows.
    double uneven = 1;
    double squares = 0;  // of all entries
    double diagonals = 0;  // those that are not zero
    /// The roundings of equal diagonals are equal: by which factor the variance of the sum of all
    /// roundings may be above that of independent ones.
    double alike = 1;
    /// Whether few numbers of the output may have more of the squares' sum than few inputs have:
    /// whether some row's sum is above twice the largest singular value. Otherwise moments of the
    /// output are at most (Riesz and Thorin) those of the inputs times row sums.
    bool gathers() const { return largest > 2 * message; }
    /// What this says of a sum of products with diagonals. The bound on its numbers is smaller than
    /// what the evaluator adds up, the largest entries of all diagonals.
    void narrow(params::Estimate& sum) const;
    /// The same of the sum of them all: also what equal numbers and sums of its slots would leave.
    void finish(params::Estimate& sum) const;
  };
  /// For every output. The first call goes through the whole matrix.
  const std::vector<Rows>& rows() const;
  Rows rows_of(std::size_t output) const;
  class Scheme;  // what common/baby_giant.h asks of the diagonals

  ckks::ParamsPtr params_;
  Fill fill_;
  int level_ = 0;
  int log_slots_ = 0;
  double input_scale_ = 0;
  double output_scale_ = 0;
  double diagonal_scale_ = 0;
  std::vector<std::size_t> summed_rows_;
  BsgsPlan plan_;
  std::vector<std::vector<std::vector<Diagonal>>> encoded_;  // [output][giant][term]
  ckks::Storage storage_ = ckks::Storage::residues;  // of these
  struct Known {
    std::once_flag once;
    std::vector<Rows> rows;
  };
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
};

/// A copy of the ciphertext at (level, scale), brought down if it lies above. Throws DepthExhausted
/// if it lies below the level, ScaleMismatch if it lies at the level with another scale, and
/// InvalidArgument unless it has two parts. what: the circuit, for the message.
ckks::Ciphertext bring_down(const ckks::Evaluator& evaluator, const ckks::Ciphertext& a, int level,
                            double scale, const char* what);

}  // namespace jali::circuits
