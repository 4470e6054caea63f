#include "jali/circuits/ckks/matvec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::circuits {
namespace {

using Block = MatVec::Block;

// If bit s is set, slot s of this diagonal takes its matrix entry; other slots are zero.
using Mask = std::vector<std::uint64_t>;
using Cover = std::map<int, Mask>;  // by diagonal

std::size_t ceil_div(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// The layout in which slot c stride + t holds element (c window + t) mod (count window), for each
// run of `slots` columns.
Layout tiled(std::size_t n, std::size_t slots, std::size_t stride, std::size_t count) {
  std::vector<ckks::Packing> packing;
  for (std::size_t first = 0; first < n; first += slots) {
    const std::size_t columns = std::min(slots, n - first);
    const std::size_t window = std::bit_ceil(ceil_div(columns, count));
    packing.push_back(ckks::packing_of_tiling(
        columns, ckks::tiling_of(first, window, stride, count, slots), slots));
  }
  return Layout::of(n, slots, std::move(packing));
}

struct Matrix {
  std::vector<double> entries;
  std::size_t m = 0, n = 0;
  double at(std::size_t r, std::size_t c) const { return entries[r * n + c]; }
};

// For every input ciphertext: the diagonals, and in each the slots, that take the non-zero entries
// of the block's rows. Each entry is assigned to the first diagonal that can take it. The result is
// empty if more than `limit` diagonals are needed.
std::optional<std::vector<Cover>> cover(const Matrix& matrix, const Layout& input,
                                        const Block& block, std::size_t limit) {
  const std::size_t slots = input.slots, n = matrix.n;
  // A set of `count` slots that are `stride` apart shares the entries of one row. set_of numbers
  // these sets.
  std::vector<std::size_t> row_of(slots), set_of(slots);
  const std::size_t sets_a_group = block.stride / block.period;
  for (std::size_t s = 0; s < slots; ++s) {
    row_of[s] = s % block.period;
    set_of[s] = s / (block.stride * block.count) * sets_a_group + s % block.stride / block.period;
  }
  const std::size_t sets = slots / (block.count * block.period);
  std::vector<bool> given(sets * block.rows * n, false);

  std::vector<std::size_t> holder(n, input.ciphertexts());  // the first that has the element
  for (std::size_t j = input.ciphertexts(); j-- > 0;)
    for (const auto e : input.element[j])
      if (e != kNothing) holder[static_cast<std::size_t>(e)] = j;
  std::vector<std::size_t> open(input.ciphertexts(), 0);
  for (std::size_t r = 0; r < block.rows; ++r)
    for (std::size_t c = 0; c < n; ++c)
      if (matrix.at(block.first_row + r, c) != 0) open[holder[c]] += sets;

  std::vector<Cover> out(input.ciphertexts());
  std::size_t diagonals = 0;
  for (std::size_t j = 0; j < input.ciphertexts(); ++j) {
    const auto& element = input.element[j];
    for (std::size_t d = 0; d < slots && open[j] > 0; ++d) {
      Mask mask;
      for (std::size_t s = 0; s < slots; ++s) {
        const auto e = element[(s + d) & (slots - 1)];
        if (e == kNothing || row_of[s] >= block.rows) continue;
        const auto c = static_cast<std::size_t>(e);
        if (holder[c] != j || matrix.at(block.first_row + row_of[s], c) == 0) continue;
        auto bit = given[(set_of[s] * block.rows + row_of[s]) * n + c];
        if (bit) continue;
        bit = true;
        if (mask.empty()) mask.assign(ceil_div(slots, 64), 0);
        mask[s / 64] |= std::uint64_t{1} << (s % 64);
        --open[j];
      }
      if (mask.empty()) continue;
      if (++diagonals > limit) return std::nullopt;
      out[j].emplace(static_cast<int>(d), std::move(mask));
    }
  }
  return out;
}

std::vector<std::vector<int>> indices(const std::vector<Cover>& covers) {
  std::vector<std::vector<int>> out;
  for (const Cover& c : covers) {
    auto& list = out.emplace_back();
    for (const auto& [d, mask] : c) list.push_back(d);
  }
  return out;
}

class Planner {
 public:
  Planner(const ckks::ParamsPtr& params, int level, int log_slots, const BsgsOptions& bsgs)
      : params_(params), level_(level), log_slots_(log_slots), bsgs_(bsgs) {}

  // The layout with the cheapest product and rotate-and-sum, for a vector of n elements that the
  // client packs.
  Layout choose_input(std::size_t n, const Block& first) const {
    const std::size_t slots = std::size_t{1} << log_slots_;
    double best = std::numeric_limits<double>::infinity();
    std::size_t best_stride = 0, best_count = 0;
    const std::size_t widest = std::min(std::bit_ceil(n), slots);
    for (std::size_t count = 1; count <= widest; count *= 2) {
      const std::size_t stride = std::max(first.period, widest / count);
      if (stride * count > slots) break;
      BlockDiagonals contiguous(1);
      for (std::size_t at = 0; at < n; at += slots) {
        auto& list = contiguous[0].emplace_back();
        const std::size_t window = std::bit_ceil(ceil_div(std::min(slots, n - at), count));
        for (std::size_t d = 0; d < window; ++d) list.push_back(static_cast<int>(d));
      }
      const double cost = cost_of(contiguous, slots, stride, count);
      if (cost < best) {
        best = cost;
        best_stride = stride;
        best_count = count;
      }
    }
    return tiled(n, slots, best_stride, best_count);
  }

  // Sets the block's stride and count to the cheapest rotate-and-sum for its rows and this input.
  std::vector<Cover> choose_sum(const Matrix& matrix, const Layout& input, Block& block) const {
    const std::size_t period = input.period();
    const LevelCost cost(*params_, level_);
    const double least = bsgs_.hoisting == Hoisting::twice
                             ? cost.multiply_qp + (bsgs_.streaming ? cost.encode_qp : 0)
                             : cost.multiply_q + (bsgs_.streaming ? cost.encode_q : 0);
    double best = std::numeric_limits<double>::infinity();
    std::vector<Cover> best_covers;
    Block best_block;
    // Every slot must get the same sum, so the sets of slots cover one period of the input. Counts
    // are tried from the largest, which needs the fewest diagonals, down to 1, which needs no
    // rotate-and-sum.
    for (std::size_t count = std::max<std::size_t>(period / block.period, 1);; count /= 2) {
      block.count = count;
      block.stride = count == 1 ? block.period : period / count;
      const std::size_t limit = best_covers.empty() ? std::numeric_limits<std::size_t>::max()
                                                    : static_cast<std::size_t>(best / least) + 1;
      auto covers = cover(matrix, input, block, limit);
      if (covers) {
        const double total = cost_of({indices(*covers)}, input.slots, block.stride, block.count);
        if (best_covers.empty() || total < best) {
          best = total;
          best_covers = std::move(*covers);
          best_block = block;
        }
      }
      if (count == 1) break;
    }
    block = best_block;
    return best_covers;
  }

 private:
  double cost_of(const BlockDiagonals& diagonals, std::size_t slots, std::size_t stride,
                 std::size_t count) const {
    return plan_bsgs(*params_, level_, slots, diagonals, bsgs_).cost +
           SlotSum(params_, stride, count, level_, log_slots_).cost();
  }

  ckks::ParamsPtr params_;
  int level_, log_slots_;
  BsgsOptions bsgs_;
};

}  // namespace

struct MatVec::Source {
  Matrix matrix;
  Layout input;
  std::vector<Block> blocks;
  std::vector<std::vector<Cover>> covers;  // [block][ciphertext]

  void fill(std::size_t output, std::size_t ciphertext, int diagonal,
            std::span<std::complex<double>> entries) const {
    const Block& block = blocks[output];
    const Mask& mask = covers[output][ciphertext].at(diagonal);
    const auto& element = input.element[ciphertext];
    const std::size_t slots = input.slots;
    for (std::size_t s = 0; s < slots; ++s) {
      const bool given = mask[s / 64] >> (s % 64) & 1;
      entries[s] =
          given ? matrix.at(block.first_row + s % block.period,
                            static_cast<std::size_t>(
                                element[(s + static_cast<std::size_t>(diagonal)) & (slots - 1)]))
                : 0.0;
    }
  }
};

MatVec::MatVec(std::vector<double> matrix, std::size_t m, std::size_t n, ckks::ParamsPtr params,
               const MatVecOptions& options)
    : bias_(options.bias) {
  require<InvalidArgument>(m > 0 && n > 0 && matrix.size() == m * n, [&] {
    return "a " + std::to_string(m) + " x " + std::to_string(n) + " matrix has " +
           std::to_string(m * n) + " entries, and at least one, not " +
           std::to_string(matrix.size());
  });
  require<InvalidArgument>(
      std::ranges::all_of(matrix, [](double v) { return std::isfinite(v); }) &&
          std::ranges::all_of(bias_, [](double v) { return std::isfinite(v); }),
      "the matrix or the bias holds a number that is not finite");
  require<InvalidArgument>(bias_.empty() || bias_.size() == m, [&] {
    return "the bias has " + std::to_string(bias_.size()) + " entries: give one for each of the " +
           std::to_string(m) + " rows";
  });
  const int level = options.level < 0 ? params->depth() : options.level;
  const int log_slots = options.log_slots < 0 ? params->log_n() - 1 : options.log_slots;
  require<InvalidArgument>(log_slots < params->log_n() && level <= params->depth(), [&] {
    return "level and log_slots must be at most " + std::to_string(params->depth()) + " and " +
           std::to_string(params->log_n() - 1);
  });
  require<DepthExhausted>(level >= 1, [&] {
    return "a matrix-vector product takes one level, and its input has level " +
           std::to_string(level) + ": take parameters with depth " +
           std::to_string(params->depth() + 1);
  });
  const std::size_t slots = std::size_t{1} << log_slots;
  const Planner planner(params, level, log_slots, options.bsgs);

  for (std::size_t first = 0; first < m; first += slots) {
    const std::size_t rows = std::min(slots, m - first);
    blocks_.push_back({first, rows, std::bit_ceil(rows), 0, 0});
  }
  if (options.input) {
    input_ = *options.input;
    input_.check();
    require<InvalidArgument>(input_.size == n && input_.slots == slots, [&] {
      return "the input layout holds " + std::to_string(input_.size) + " elements on " +
             std::to_string(input_.slots) + " slots, and the product takes " + std::to_string(n) +
             " on " + std::to_string(slots);
    });
  } else {
    input_ = planner.choose_input(n, blocks_[0]);
  }

  auto source = std::make_shared<Source>();
  source->matrix = {std::move(matrix), m, n};
  BlockDiagonals diagonals;
  for (Block& block : blocks_) {
    source->covers.push_back(planner.choose_sum(source->matrix, input_, block));
    diagonals.push_back(indices(source->covers.back()));
    sums_.emplace_back(params, block.stride, block.count, level, log_slots);
    double squares = 0, filled = 0;
    for (std::size_t r = block.first_row; r < block.first_row + block.rows; ++r) {
      double row = 0;
      for (std::size_t c = 0; c < n; ++c) row += std::pow(source->matrix.at(r, c), 2);
      squares += row;
      filled += row > 0 ? 1 : 0;
    }
    mean_squares_.push_back(filled > 0 ? squares / filled : 0);
  }
  source->input = input_;
  source->blocks = blocks_;
  source_ = source;

  std::vector<ckks::Packing> packing;
  for (const Block& block : blocks_) {
    packing.push_back(ckks::packing_of_tiling(
        block.rows, ckks::tiling_of(block.first_row, block.period, block.period, 1, slots), slots));
  }
  output_ = Layout::of(m, slots, std::move(packing));
  std::vector<std::size_t> summed_rows;
  for (const Block& block : blocks_) {
    if (summed()) summed_rows.push_back(block.count > 1 ? block.stride : slots);
  }
  transform_.emplace(
      std::move(params), diagonals,
      [source](std::size_t o, std::size_t i, int d, std::span<std::complex<double>> entries) {
        source->fill(o, i, d, entries);
      },
      TransformOptions{
          .level = level,
          .log_slots = log_slots,
          .input_scale = options.input_scale,
          .bsgs = options.bsgs,
          .summed_rows = std::move(summed_rows),
      });
}

bool MatVec::summed() const {
  return std::ranges::any_of(blocks_, [](const Block& b) { return b.count > 1; });
}

std::size_t MatVec::rows() const { return source_->matrix.m; }
std::size_t MatVec::columns() const { return source_->matrix.n; }

std::vector<int> MatVec::rotations() const {
  std::set<int> all;
  for (int r : transform_->rotations()) all.insert(r);
  for (const SlotSum& sum : sums_)
    for (int r : sum.rotations()) all.insert(r);
  return {all.begin(), all.end()};
}

std::size_t MatVec::key_bytes() const {
  return transform_->params()->key_bytes(rotations(), false, false);
}

std::size_t MatVec::plaintext_bytes(ckks::Storage storage) const {
  return transform_->plaintext_bytes(storage);
}

std::size_t MatVec::bytes() const { return transform_->bytes(); }

std::size_t MatVec::working_bytes(std::size_t batch) const {
  const auto& params = *transform_->params();
  const auto& plan = transform_->plan();
  const std::size_t row = params.n() * word_bytes(params.word()) * batch;
  const std::size_t q = params.level(transform_->level()).primes.size();
  const std::size_t qp = q + params.p_count();
  const std::size_t digits = params.level(transform_->level()).digit_limbs.size();
  std::size_t babies = 0;
  for (const auto& b : plan.babies) babies += b.size();
  const std::size_t baby = 2 * (plan.hoisting == Hoisting::twice ? qp : q);
  // Baby steps, lifted digits, and a few accumulators.
  return row * (babies * baby + digits * qp + 8 * qp);
}

double MatVec::cost() const {
  double total = transform_->plan().cost;
  for (const SlotSum& sum : sums_) total += sum.cost();
  return total;
}

ckks::Plaintext MatVec::encode_bias(const ckks::Encoder& encoder, std::size_t block) const {
  const int level = transform_->level() - 1;
  std::vector<double> values(output_.slots, 0.0);
  for (std::size_t s = 0; s < values.size(); ++s) {
    const auto e = output_.element[block][s];
    if (e != kNothing) values[s] = bias_[static_cast<std::size_t>(e)];
  }
  return encoder.encode(values, 1, level, transform_->params()->scale(level),
                        transform_->log_slots());
}

std::vector<double> MatVec::largest_rows() const {
  std::vector<double> out;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    out.push_back(sums_[b].largest(transform_->row_sums(b)));
  }
  return out;
}

void MatVec::prepare(const ckks::Encoder& encoder, ckks::Storage storage) {
  transform_->prepare(encoder, storage);
  rows_ = largest_rows();
  if (bias_.empty()) return;
  decltype(encoded_bias_) encoded;  // all or none
  for (std::size_t b = 0; b < blocks_.size(); ++b) encoded.push_back(encode_bias(encoder, b));
  encoded_bias_ = std::move(encoded);
}

std::vector<ckks::Ciphertext> MatVec::apply(const ckks::Evaluator& evaluator,
                                            std::span<const ckks::Ciphertext> x) const {
  require_rotations(evaluator, rotations(), "the matrix-vector product");
  const bool summed = this->summed();
  auto y = transform_->apply(evaluator, x, !summed);
  const double scale = transform_->params()->scale(transform_->level() - 1);
  double peak = 0;
  for (const auto& one : x) peak = std::max(peak, one.estimate.peak);
  const auto rows = !summed ? std::vector<double>() : rows_.empty() ? largest_rows() : rows_;
  for (std::size_t b = 0; b < y.size(); ++b) {
    if (summed) {
      // The terms of a row's sum are products with different numbers of x. Of y, of which estimates
      // say the average over all slots, each row has its own part: |row|^2 of the squares of all
      // entries.
      const auto count = static_cast<double>(blocks_[b].count);
      const double squares = transform_->squares(b);
      if (squares > 0) {
        y[b].estimate.average_of_rows(static_cast<double>(transform_->slots()) * mean_squares_[b] /
                                      (squares * count));
      }
      const double variance = count * y[b].estimate.claim().principal * transform_->uneven(b) /
                              transform_->principal(b);
      y[b] = sums_[b].apply_rescale(evaluator, y[b], rows[b] * peak, variance);
      y[b].scale = scale;
    }
    if (bias_.empty()) continue;
    y[b] = encoded_bias_.empty() ? evaluator.add_plain(y[b], encode_bias(evaluator.encoder(), b))
                                 : evaluator.add_plain(y[b], encoded_bias_[b]);
  }
  return y;
}

}  // namespace jali::circuits
