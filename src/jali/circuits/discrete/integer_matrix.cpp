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

namespace {

/// Bytes between two polynomials of a block. Rows whose distance is a power of two share a few sets
/// of a cache, which hold fewer lines than a product reads at once.
constexpr std::size_t kApart = 256;

}  // namespace

IntegerMatrix::IntegerMatrix(std::shared_ptr<const discrete::Engine> engine, std::size_t columns,
                             int level, discrete::Overflow overflow, std::size_t babies)
    : engine_(std::move(engine)),
      columns_(columns),
      babies_(babies == 0 ? columns : babies),
      level_(level),
      overflow_(overflow) {
  const discrete::Params& params = *engine_->params();
  require<InvalidArgument>(params.packing() == discrete::Packing::slots,
                           "a product with a matrix is for numbers in slots: make the parameters "
                           "with packing=\"slots\"");
  require<InvalidArgument>(std::has_single_bit(columns) && columns <= params.n() / 2, [&] {
    return "a matrix has a power of two of columns, at most " + std::to_string(params.n() / 2) +
           ", not " + std::to_string(columns) + ": add columns of zeros, or divide it";
  });
  require<InvalidArgument>(std::has_single_bit(babies_) && babies_ <= columns, [&] {
    return "the rotations of a vector are a power of two, at most its " + std::to_string(columns) +
           " numbers, not " + std::to_string(babies_);
  });
  factor_ = engine_->noise().plain_factor({level, params.factor(level), {}});
}

std::size_t IntegerMatrix::block_bytes(const discrete::Params& params, std::size_t columns,
                                       int level) {
  return columns *
         (params.level(level).primes.size() * params.n() * word_bytes(params.word()) + kApart);
}

std::vector<int> IntegerMatrix::rotations() const {
  std::vector<int> out;
  for (std::size_t step = 1; step < columns_ && step <= babies_; step *= 2) {
    out.push_back(static_cast<int>(step));
  }
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
  const ring::Ring& ring = *engine_->ring();
  const std::size_t bytes = block_bytes(*engine_->params(), columns_, level_) / columns_;
  device::Buffer block = ring.scratch(columns_ * bytes);
  std::vector<std::int64_t> diagonal(n);
  for (std::size_t r = 0; r < columns_; ++r) {
    const std::size_t giant = r / babies_ * babies_, half = n / 2;
    std::ranges::fill(diagonal, 0);
    for (std::size_t s = 0; s < count; ++s) {
      diagonal[s / half * half + (s + giant) % half] = rows[s * columns_ + (s + r) % columns_];
    }
    const auto encoded = engine_->encoder().encode_clear(diagonal, 1, overflow_);
    ring.place(static_cast<std::byte*>(block.data()) + r * bytes,
               engine_->encoder().lifted(encoded, level_, factor_));
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

IntegerMatrix::Sums IntegerMatrix::known_sums(const discrete::NoiseModel& noise,
                                              const Ciphertext& x) const {
  constexpr auto kWrap = discrete::Overflow::wrap;
  Known at = noise.brought(discrete::known(x), level_);
  for (std::size_t step = 1; step < babies_; step *= 2) {
    at.estimate = noise.key_switch(at.estimate, level_);
  }
  discrete::Estimate sum = noise.multiply_plain(at.estimate, noise.residues(), kWrap);
  for (std::size_t terms = 1; terms < babies_; terms *= 2) sum = noise.add(sum, sum, kWrap);
  sum = noise.as_residues(sum);
  const std::uint64_t factor = engine_->params()->modulus().mul(at.factor, factor_);
  Sums out{{level_, factor, sum}, {level_, factor, sum}};
  for (std::size_t g = 1; g < columns_ / babies_; ++g) {
    out.all.estimate = noise.add(noise.key_switch(out.all.estimate, level_), sum, kWrap);
  }
  out.all.estimate = noise.within(out.all.estimate, range(noise, x.estimate.range));
  return out;
}

// Vector j of each step is x rotated by j.
std::vector<discrete::Ciphertext> IntegerMatrix::rotated(const Evaluator& evaluator,
                                                         const Ciphertext& x) const {
  Ciphertext all = evaluator.drop_to(x, level_);
  for (std::size_t step = 1; step < babies_; step *= 2) {
    all = evaluator.stack(all, evaluator.rotate(all, static_cast<int>(step)));
  }
  return discrete::split(evaluator, all, std::vector<std::size_t>(babies_, 1));
}

std::vector<discrete::Ciphertext> IntegerMatrix::inner(const Evaluator& evaluator,
                                                       std::span<const Ciphertext> x,
                                                       const Known& inner) const {
  std::vector<backend::ConstView> x0, x1;
  std::vector<std::uint32_t> operands;
  for (const Ciphertext& one : x) {
    operands.push_back(static_cast<std::uint32_t>(operands.size()));
    x0.push_back(one.parts[0].view());
    x1.push_back(one.parts[1].view());
  }
  const auto& primes = evaluator.params()->level(level_).primes;
  const std::size_t giants = columns_ / babies_;
  const std::size_t bytes = block_bytes(*engine_->params(), columns_, level_) / columns_;
  std::vector<Ciphertext> sums(giants * blocks());
  std::vector<std::vector<backend::ConstView>> weights(sums.size());
  std::vector<backend::WeightedSum> work;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    const std::size_t g = k / blocks(), b = k % blocks();
    Ciphertext& one = sums[k];
    one.key_id = x[0].key_id;
    one.level = level_;
    one.params = evaluator.params();
    one.factor = inner.factor;
    one.estimate = inner.estimate;
    for (int c = 0; c < 2; ++c) one.parts.push_back(evaluator.ring()->make(primes));
    for (std::size_t i = 0; i < babies_; ++i) {
      const auto* data = static_cast<const std::byte*>(blocks_[b].data());
      weights[k].push_back({data + (g * babies_ + i) * bytes, primes, 1});
    }
    work.push_back({one.parts[0].view(), one.parts[1].view(), operands, weights[k]});
  }
  evaluator.ring()->engine().rlwe().weighted_sums(x0, x1, work);
  std::vector<Ciphertext> out;
  for (std::size_t g = 0; g < giants; ++g) {
    std::vector<const Ciphertext*> parts;
    for (std::size_t b = 0; b < blocks(); ++b) parts.push_back(&sums[g * blocks() + b]);
    out.push_back(discrete::stack(evaluator, parts));
    for (std::size_t b = 0; b < blocks(); ++b) sums[g * blocks() + b] = {};
  }
  return out;
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
  require<InvalidArgument>(dry || evaluator.ring()->shares_memory(*engine_->ring()),
                           "the matrix is in another device's memory: make it with the evaluator "
                           "that multiplies by it");
  require_rotation_keys(evaluator, rotations(), "the product with a matrix", level_);
  const discrete::NoiseModel& noise = evaluator.noise();
  const Sums known = known_sums(noise, x);
  noise.require_budget(known.all.estimate, level_);
  if (level_ > 0) {
    noise.require_budget(noise.divide(known.all.estimate, level_, level_ - 1), level_ - 1);
  }

  std::vector<Ciphertext> inner_sums = inner(evaluator, rotated(evaluator, x), known.inner);
  Ciphertext sum = std::move(inner_sums.back());
  inner_sums.pop_back();
  for (; !inner_sums.empty(); inner_sums.pop_back()) {
    sum = evaluator.add(evaluator.rotate(sum, static_cast<int>(babies_)), inner_sums.back(),
                        discrete::Overflow::wrap);
  }
  sum.estimate = known.all.estimate;
  return level_ > 0 ? evaluator.rescale(sum) : std::move(sum);
}

}  // namespace jali::circuits
