#include "jali/circuits/discrete/integer_matrix.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "jali/backend/rlwe_ops.h"
#include "jali/base/error.h"
#include "jali/circuits/common/rotation_keys.h"
#include "jali/schemes/discrete/batcher.h"

namespace jali::circuits {

using discrete::Known;
using discrete::Range;

IntegerMatrix::IntegerMatrix(std::shared_ptr<const discrete::Engine> engine, std::size_t columns,
                             int level, discrete::Overflow overflow)
    : engine_(std::move(engine)), columns_(columns), level_(level), overflow_(overflow) {
  const discrete::Params& params = *engine_->params();
  require<InvalidArgument>(params.packing() == discrete::Packing::slots,
                           "a product with a matrix is for numbers in slots: make the parameters "
                           "with packing=\"slots\"");
  require<InvalidArgument>(std::has_single_bit(columns) && columns <= params.n() / 2, [&] {
    return "a matrix has a power of two of columns, at most " + std::to_string(params.n() / 2) +
           ", not " + std::to_string(columns) + ": add columns of zeros, or divide it";
  });
  factor_ = engine_->noise().plain_factor({level, params.factor(level), {}});
}

std::size_t IntegerMatrix::block_bytes(const discrete::Params& params, std::size_t columns,
                                       int level) {
  return columns * params.level(level).primes.size() * params.n() * word_bytes(params.word());
}

std::vector<int> IntegerMatrix::rotations() const {
  std::vector<int> out;
  for (std::size_t step = 1; step < columns_; step *= 2) out.push_back(static_cast<int>(step));
  return out;
}

void IntegerMatrix::append(std::span<const std::int64_t> rows) {
  const std::size_t n = engine_->params()->n(), count = rows.size() / columns_;
  require<InvalidArgument>(count > 0 && rows.size() % columns_ == 0 && count <= n, [&] {
    return "rows are added as 1 to " + std::to_string(n) + " of " + std::to_string(columns_) +
           " numbers each";
  });
  require<InvalidArgument>(rows_ == blocks() * n, [&] {
    return "the last rows that were added were fewer than " + std::to_string(n) +
           ", and nothing follows them: add that many at a time, and fewer at the end alone";
  });
  Block block;
  std::vector<std::int64_t> diagonal(n, 0);
  for (std::size_t r = 0; r < columns_; ++r) {
    for (std::size_t s = 0; s < count; ++s) {
      diagonal[s] = rows[s * columns_ + (s + r) % columns_];
    }
    const auto encoded = engine_->encoder().encode_clear(diagonal, 1, overflow_);
    block.push_back(engine_->encoder().lifted(encoded, level_, factor_));
  }
  std::map<Wide, Wide> extremes = extremes_;
  for (std::size_t s = 0; s < count; ++s) {
    Wide above = 0, below = 0;
    for (const std::int64_t v : rows.subspan(s * columns_, columns_)) (v > 0 ? above : below) += v;
    // Of pairs with as much above or more, the first has the lowest below.
    const auto next = extremes.lower_bound(above);
    if (next != extremes.end() && next->second <= below) continue;
    const auto covered = [&](const auto& pair) { return pair.second >= below; };
    auto first = next != extremes.end() && next->first == above ? std::next(next) : next;
    auto from = first;
    while (from != extremes.begin() && covered(*std::prev(from))) --from;
    extremes.erase(from, first);
    extremes.emplace(above, below);
  }
  blocks_.push_back(std::move(block));
  extremes_ = std::move(extremes);
  rows_ += count;
}

// The numbers that fill x up are zeros. T is below 2^61 in slots, so that sums of weights which are
// cut to 2^62 leave it by themselves, unless x is 0.
Range IntegerMatrix::range(const discrete::NoiseModel& noise, const Range& x) const {
  if (x.wraps) return noise.residues();
  const auto cut = [](Wide v, int bits) {
    return std::clamp(v, -(Wide{1} << bits), Wide{1} << bits);
  };
  const Wide x_low = std::min<Wide>(x.low, 0), x_high = std::max<Wide>(x.high, 0);
  Wide low = 0, high = 0;
  for (const auto& [positive, negative] : extremes_) {
    const Wide above = cut(positive, 62), below = cut(negative, 62);
    low = std::min(low, above * x_low + below * x_high);
    high = std::max(high, above * x_high + below * x_low);
  }
  return noise.range(static_cast<std::int64_t>(cut(low, 62)),
                     static_cast<std::int64_t>(cut(high, 62)), overflow_);
}

Known IntegerMatrix::product(const discrete::NoiseModel& noise, const Ciphertext& x) const {
  Known at = noise.brought(discrete::known(x), level_);
  for (std::size_t step = 1; step < columns_; step *= 2) {
    at.estimate = noise.key_switch(at.estimate, level_);
  }
  discrete::Estimate sum =
      noise.multiply_plain(at.estimate, noise.residues(), discrete::Overflow::wrap);
  for (std::size_t terms = 1; terms < columns_; terms *= 2) {
    sum = noise.add(sum, sum, discrete::Overflow::wrap);
  }
  return {level_, engine_->params()->modulus().mul(at.factor, factor_),
          noise.within(sum, range(noise, x.estimate.range))};
}

// Vector j of each step is x rotated by j.
std::vector<discrete::Ciphertext> IntegerMatrix::rotated(const Evaluator& evaluator,
                                                         const Ciphertext& x) const {
  Ciphertext all = evaluator.drop_to(x, level_);
  for (const int step : rotations()) all = evaluator.stack(all, evaluator.rotate(all, step));
  return discrete::split(evaluator, all, std::vector<std::size_t>(columns_, 1));
}

discrete::Ciphertext IntegerMatrix::multiply(const Evaluator& evaluator,
                                             const Ciphertext& x) const {
  evaluator.check(x);
  require<ParamsMismatch>(x.params->hash() == engine_->params()->hash(),
                          "the matrix and the evaluator belong to different parameters");
  require<InvalidArgument>(!blocks_.empty(), "the matrix has no rows yet: append some");
  require<InvalidArgument>(x.batch() == 1,
                           "a matrix is multiplied by one vector, which repeats over all slots");
  require<InvalidArgument>(x.level >= level_, [&] {
    return "the matrix was made for products at level " + std::to_string(level_) +
           ", and the vector lies at level " + std::to_string(x.level) +
           ": make the matrix with level=" + std::to_string(x.level);
  });
  const bool dry = evaluator.engine() != engine_ && evaluator.ring()->engine().name() == "dry";
  require<InvalidArgument>(dry || evaluator.ring()->holds(blocks_[0][0]),
                           "the matrix is in another device's memory: make it with the evaluator "
                           "that multiplies by it");
  require_rotation_keys(evaluator, rotations(), "the product with a matrix", level_);
  const discrete::NoiseModel& noise = evaluator.noise();
  const Known sum = product(noise, x);
  noise.require_budget(sum.estimate, level_);
  if (level_ > 0) {
    noise.require_budget(noise.divide(sum.estimate, level_, level_ - 1), level_ - 1);
  }

  const std::vector<Ciphertext> turned = rotated(evaluator, x);
  std::vector<backend::ConstView> x0, x1;
  std::vector<std::uint32_t> operands;
  for (const Ciphertext& one : turned) {
    operands.push_back(static_cast<std::uint32_t>(operands.size()));
    x0.push_back(one.parts[0].view());
    x1.push_back(one.parts[1].view());
  }
  const auto& primes = evaluator.params()->level(level_).primes;
  std::vector<Ciphertext> out(blocks());
  std::vector<std::vector<backend::ConstView>> weights(blocks());
  std::vector<backend::WeightedSum> sums;
  for (std::size_t b = 0; b < blocks(); ++b) {
    Ciphertext& one = out[b];
    one.key_id = x.key_id;
    one.level = level_;
    one.params = evaluator.params();
    one.factor = sum.factor;
    one.estimate = sum.estimate;
    for (int c = 0; c < 2; ++c) one.parts.push_back(evaluator.ring()->make(primes));
    for (const ring::Poly& diagonal : blocks_[b]) weights[b].push_back(diagonal.view());
    sums.push_back({one.parts[0].view(), one.parts[1].view(), operands, weights[b]});
  }
  evaluator.ring()->engine().rlwe().weighted_sums(x0, x1, sums);
  std::vector<const Ciphertext*> parts;
  for (const Ciphertext& one : out) parts.push_back(&one);
  Ciphertext all = discrete::stack(evaluator, parts);
  return level_ > 0 ? evaluator.rescale(all) : std::move(all);
}

}  // namespace jali::circuits
