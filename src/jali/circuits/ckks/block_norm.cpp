#include "jali/circuits/ckks/block_norm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace jali::circuits {
namespace {

constexpr std::size_t kMostEntries = std::size_t{1} << 22;  // that are kept: 64 MiB
constexpr std::size_t kProducts =
    std::size_t{1} << 21;  // of entries and numbers, about; 8 iterations at least, and 64 at most

using Vector = std::vector<std::complex<double>>;

double norm_squared(const Vector& x) {
  double out = 0;
  for (const auto& e : x) out += std::norm(e);
  return out;
}

}  // namespace

BlockNorm::BlockNorm(std::size_t slots) : rows_(slots, 0), columns_(slots, 0) {}

void BlockNorm::add(int diagonal, std::span<const std::complex<double>> entries) {
  const std::size_t slots = rows_.size(), turn = static_cast<std::size_t>(diagonal) % slots;
  for (std::size_t s = 0; s < slots; ++s) {
    const double size = std::abs(entries[s]);
    rows_[s] += size;
    columns_[(s + turn) & (slots - 1)] += size;
    squares_ += size * size;
  }
  kept_ = kept_ && (diagonals_.size() + 1) * slots <= kMostEntries;
  if (kept_) {
    diagonals_.emplace_back(turn, Vector(entries.begin(), entries.end()));
  } else {
    diagonals_.clear();
  }
}

double BlockNorm::largest() const {
  const double bound = std::min(std::ranges::max(rows_) * std::ranges::max(columns_), squares_);
  return kept_ && bound > 0 ? std::min(bound, found()) : bound;
}

// x -> M* M x, from a vector that is neither orthogonal to the singular vector of a matrix of
// positive entries nor, unless by chance, to that of any other. ||M x||^2 / ||x||^2 rises towards
// the answer. If singular values lie densely below the largest, what is missing after k steps falls
// as 1 / k, so that it is k times the last step's rise. Three times that is added.
double BlockNorm::found() const {
  const std::size_t slots = rows_.size(), mask = slots - 1;
  Vector x(slots), y(slots);
  std::uint64_t state = 1;
  for (auto& e : x) {
    state =
        state * 6364136223846793005 + 1442695040888963407;  // Knuth's linear congruential generator
    e = 1 + std::ldexp(static_cast<double>(state >> 32), -31);
    if ((state >> 63) != 0) e = -e / 2.0;
  }
  double quotient = 0, rise = 0;
  const std::size_t iterations =
      std::clamp<std::size_t>(kProducts / (diagonals_.size() * slots), 8, 64);
  for (std::size_t k = 0; k < iterations; ++k) {
    const double before = norm_squared(x);
    if (!(before > 0)) break;
    std::ranges::fill(y, 0.0);
    for (const auto& [turn, entries] : diagonals_) {
      for (std::size_t s = 0; s < slots; ++s) y[s] += entries[s] * x[(s + turn) & mask];
    }
    rise = norm_squared(y) / before - quotient;
    quotient += rise;
    std::ranges::fill(x, 0.0);
    const double shrink = 1 / std::sqrt(before);
    for (const auto& [turn, entries] : diagonals_) {
      for (std::size_t s = 0; s < slots; ++s) {
        x[(s + turn) & mask] += shrink * std::conj(entries[s]) * y[s];
      }
    }
  }
  return quotient + 3 * static_cast<double>(iterations) * std::max(rise, 0.0);
}

}  // namespace jali::circuits
