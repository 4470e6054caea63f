#include <bit>
#include <numeric>

#include "jali/integers/arithmetic.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {
namespace {

/// Batcher's merge exchange for any number of elements (Knuth, The Art of Computer Programming
/// 3, 5.2.2, algorithm M): the stages of pairs that are compared, the smaller to the first.
std::vector<std::vector<std::pair<std::size_t, std::size_t>>> sorting_network(std::size_t n) {
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> stages;
  if (n < 2) return stages;
  const std::size_t half = std::bit_ceil(n) / 2;
  for (std::size_t p = half; p > 0; p /= 2) {
    std::size_t q = half, r = 0, d = p;
    while (true) {
      std::vector<std::pair<std::size_t, std::size_t>> stage;
      for (std::size_t i = 0; i + d < n; ++i) {
        if ((i & p) == r) stage.emplace_back(i, i + d);
      }
      if (!stage.empty()) stages.push_back(std::move(stage));
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
  return stages;
}

}  // namespace

Integers Arithmetic::sort(const Integers& x, std::size_t length, bool descending) const {
  check_type(x.type());
  const std::size_t rows = rows_of(x, length);
  const auto n = static_cast<std::size_t>(x.type().digits(space_.message_bits));
  Integers now = x;
  for (const auto& stage : sorting_network(length)) {
    std::vector<std::size_t> first, second, place(x.count());
    std::iota(place.begin(), place.end(), std::size_t{0});
    for (std::size_t row = 0; row < rows; ++row) {
      for (const auto& [i, j] : stage) {
        place[row * length + i] = x.count() + first.size();
        first.push_back(row * length + i);
        second.push_back(row * length + j);
      }
    }
    for (std::size_t k = 0; k < second.size(); ++k) {
      place[second[k]] = x.count() + first.size() + k;
    }
    const Flagged pair = run_two(
        "exchange", {{take(now, first), x.type()}, {take(now, second), x.type()}}, 1,
        [](Builder& b, const Words& w, std::size_t) -> Words {
          const Form less = is_less(b, w[0], w[1], true);
          return {integers::select(b, less, w[0], w[1]), integers::select(b, less, w[1], w[0])};
        });
    const Integers all =
        after(now, descending ? after(pair.second, pair.first) : after(pair.first, pair.second));
    now = gathered(all.rows(), all.noise(), x.type(), n, 0, place);
  }
  return now;
}

}  // namespace jali::integers
