// Matrix-vector products of any shape: a matrix in the clear times an encrypted vector, by extended
// diagonals (Halevi and Shoup 2014; Yang, Kuppannagari, Kannan, Prasanna 2022, section II-D).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "jali/circuits/ckks/block_transform.h"
#include "jali/circuits/ckks/layout.h"
#include "jali/circuits/ckks/slot_sum.h"

namespace jali::circuits {

struct MatVecOptions {
  int level = -1;  // of the input; -1: the top
  int log_slots = -1;  // of the input; -1: all N/2
  double input_scale = 0;  // 0: the canonical scale of the level
  std::optional<Layout>
      input{};  // how the input lies; empty: the cheapest is chosen, see input_layout()
  std::vector<double> bias{};  // empty, or m numbers added to the outputs
  BsgsOptions bsgs{};  // set its `streaming` if prepare() will not be called
};

/// y = M x + bias for a matrix M of shape m x n. x lies as input_layout() says, and y as
/// output_layout() says. It takes one level. The output is periodic: in a block of R rows, output r
/// lies in the slots r, r + m', r + 2m' .., where m' is R rounded up to a power of two. Another
/// MatVec can take this layout as its input. The slots between R and m' hold zeros, up to noise.
///
/// How it is computed: slot s serves row s mod m'. It sums D products along D rotations of x (the
/// extended diagonals), and k such slots, `stride` apart, are added by rotations at the end
/// (rotate-and-sum). If x is laid out so that slot c stride + t holds element (c D + t) mod (k D),
/// with D dividing the stride, then the k windows of D elements meet every element once. Hence n =
/// k D, and m'n'/slots diagonals are enough, where n' is n rounded up to a power of two. A larger k
/// means fewer diagonals and more rotations; the cost model chooses it. If the input's layout is
/// given, every matrix entry is assigned to the first rotation that brings its element to a slot of
/// its row; in all other slots the diagonals are zero.
///
/// An input longer than the slots takes several ciphertexts, whose products are summed before the
/// giant steps. An output longer than the slots takes several ciphertexts, which share the baby
/// steps.
class MatVec {
 public:
  /// One output ciphertext, with the rows [first_row, first_row + rows). Its rotate-and-sum adds
  /// `count` slots that are `stride` apart.
  struct Block {
    std::size_t first_row = 0, rows = 0;
    std::size_t period = 0, stride = 0, count = 0;
  };

  /// matrix: m x n numbers, row after row. Throws InvalidArgument for sizes that do not fit, or
  /// numbers that are not finite; throws DepthExhausted at level 0.
  MatVec(std::vector<double> matrix, std::size_t m, std::size_t n, ckks::ParamsPtr params,
         const MatVecOptions& options = {});

  std::size_t rows() const;
  std::size_t columns() const;
  int level() const { return transform_->level(); }
  const Layout& input_layout() const { return input_; }
  const Layout& output_layout() const { return output_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  const BsgsPlan& plan() const { return transform_->plan(); }

  /// The rotations for which keys are needed; known before any key is made.
  std::vector<int> rotations() const;
  std::size_t key_bytes() const;  // of its rotation keys; see rlwe::Params::key_bytes
  std::size_t plaintext_bytes(
      ckks::Storage storage = ckks::Storage::residues) const;  // that prepare() takes
  std::size_t bytes() const;  // that the encoded diagonals take now
  /// About how many bytes apply() takes besides keys, prepared diagonals and its operands.
  std::size_t working_bytes(std::size_t batch = 1) const;
  double cost() const;  // predicted time, in the unit of LevelCost

  /// Encodes the diagonals and the bias once. Without this call they are encoded at each use.
  /// storage: of the diagonals.
  void prepare(const ckks::Encoder& encoder, ckks::Storage storage = ckks::Storage::residues);

  /// For the client: from `batch` vectors of n numbers to the slots of each input ciphertext.
  std::vector<std::vector<double>> pack(std::span<const double> x, std::size_t batch = 1) const {
    return input_.pack(x, batch);
  }
  /// For the client: from the slots of each output ciphertext to `batch` vectors of m numbers.
  std::vector<double> unpack(std::span<const std::vector<double>> slots_of,
                             std::size_t batch = 1) const {
    return output_.unpack(slots_of, batch);
  }

  std::vector<ckks::Ciphertext> apply(const ckks::Evaluator& evaluator,
                                      std::span<const ckks::Ciphertext> x) const;

 private:
  bool summed() const;  // whether any block has sums
  ckks::Plaintext encode_bias(const ckks::Encoder& encoder, std::size_t block) const;

  struct Source;  // the matrix, layouts and masks from which diagonals are filled
  std::shared_ptr<const Source> source_;
  std::vector<double> bias_;
  std::vector<ckks::Plaintext> encoded_bias_;
  Layout input_, output_;
  std::vector<Block> blocks_;
  std::vector<SlotSum> sums_;  // one a block
  /// For every block, the largest sum of the moduli of the entries of all rows that its sum brings
  /// together.
  std::vector<double> largest_rows() const;
  /// For every block, the mean square of the norms of its rows that are not zero.
  std::vector<double> mean_squares_;
  std::vector<double> rows_;  // largest_rows(), once prepared
  std::optional<BlockTransform> transform_;
};

}  // namespace jali::circuits
