// Matrix-vector products of any shape: a clear matrix times an encrypted vector, by extended
// diagonals (Halevi and Shoup 2014; Yang, Kuppannagari, Kannan, Prasanna 2022, section II-D).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "jali/circuits/block_transform.h"
#include "jali/circuits/layout.h"
#include "jali/circuits/slot_sum.h"

namespace jali::circuits {

struct MatVecOptions {
  int level = -1;                // of the input; -1: the top
  int log_slots = -1;            // of the input; -1: all N/2
  double input_scale = 0;        // 0: the canonical scale of the level
  std::optional<Layout> input{};   // how the input lies; empty: the cheapest, see input_layout()
  std::vector<double> bias{};      // empty, or m numbers added to the outputs
  BsgsOptions bsgs{};              // streaming: set it when prepare() will not be called
};

/// y = M x + bias, M of shape m x n, for x that lies as input_layout() says and y as
/// output_layout() says; one level. Outputs are periodic: output r of a block of R rows in slots
/// r, r + m', r + 2m' .. with m' = R rounded up to a power of two, which another MatVec takes as it
/// is; the slots between R and m' hold zeros (up to noise, without bias). The work:
///
/// Slot s serves row s mod m'. It sums D products along D rotations of x (the extended diagonals),
/// and k such slots, `stride` apart, are added by rotations at the end (rotate-and-sum). With x laid
/// out so that slot c stride + t holds element (c D + t) mod (k D), D dividing the stride, the k
/// windows of D elements meet every element once: n = k D, and m'n'/slots diagonals in all are
/// enough. k trades diagonals for rotations; the cost model chooses. For an input that already
/// lies somewhere, every matrix entry is given to the first rotation that brings its element to a
/// slot of its row; slots that hold something else meet zeros.
///
/// Inputs longer than the slots take several ciphertexts, whose products are summed before the
/// giant steps; outputs longer than the slots take several, which share the baby steps.
class MatVec {
 public:
  /// One output ciphertext: rows [first_row, first_row + rows), and its rotate-and-sum.
  struct Block {
    std::size_t first_row = 0, rows = 0;
    std::size_t period = 0, stride = 0, count = 0;
  };

  /// matrix: m x n, row after row. Throws InvalidArgument, DepthExhausted.
  MatVec(std::vector<double> matrix, std::size_t m, std::size_t n, ckks::ParamsPtr params,
         const MatVecOptions& options = {});

  std::size_t rows() const;
  std::size_t columns() const;
  int level() const { return transform_->level(); }
  const Layout& input_layout() const { return input_; }
  const Layout& output_layout() const { return output_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  const BsgsPlan& plan() const { return transform_->plan(); }

  /// Known before any key is made.
  std::vector<int> rotations() const;
  std::size_t key_bytes() const;       // of its rotation keys, as sent
  std::size_t plaintext_bytes() const;  // that prepare() takes
  /// Bytes that apply() takes besides keys, prepared diagonals and its operands, about.
  std::size_t working_bytes(std::size_t batch = 1) const;
  double cost() const;  // predicted, by LevelCost

  /// Encodes diagonals and bias once and for all; without it they are encoded at each use.
  void prepare(const ckks::Encoder& encoder);

  /// The client's side: `batch` vectors of n numbers to the slots of each ciphertext.
  std::vector<std::vector<double>> pack(std::span<const double> x, std::size_t batch = 1) const {
    return input_.pack(x, batch);
  }
  /// ... and the slots of each output ciphertext to `batch` vectors of m numbers.
  std::vector<double> unpack(std::span<const std::vector<double>> slots_of,
                             std::size_t batch = 1) const {
    return output_.unpack(slots_of, batch);
  }

  std::vector<ckks::Ciphertext> apply(const ckks::Evaluator& evaluator,
                                      std::span<const ckks::Ciphertext> x) const;

 private:
  ckks::Plaintext encode_bias(const ckks::Encoder& encoder, std::size_t block) const;

  struct Source;  // matrix, layouts and masks: where diagonals come from
  std::shared_ptr<const Source> source_;
  std::vector<double> bias_;
  std::vector<ckks::Plaintext> encoded_bias_;
  Layout input_, output_;
  std::vector<Block> blocks_;
  std::vector<SlotSum> sums_;  // one a block
  std::optional<BlockTransform> transform_;
};

}  // namespace jali::circuits
