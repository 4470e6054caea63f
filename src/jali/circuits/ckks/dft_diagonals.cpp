// Where the numbers of the DFT's matrices lie, without the matrices.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/circuits/ckks/dft.h"

namespace jali::circuits {

std::vector<std::vector<std::size_t>> dft_stages(Dft direction, int log_slots, int levels) {
  require<InvalidArgument>(log_slots >= 0 && log_slots <= 16, "log_slots must be 0 to 16");
  require<InvalidArgument>(levels >= 1 && levels <= std::max(log_slots, 1), [&] {
    return "a DFT on 2^" + std::to_string(log_slots) + " slots takes 1 to " +
           std::to_string(std::max(log_slots, 1)) + " levels, not " + std::to_string(levels);
  });
  const bool inverse = direction == Dft::coefficients_to_slots;
  std::vector<std::vector<std::size_t>> out;
  int stage = 0;
  for (int level = 0; level < levels; ++level) {
    // The matrix with the longest butterflies wraps around, so that it has 2^count diagonals;
    // others have twice as many. Therefore it gets the stage more if log_slots is no multiple of
    // levels.
    const int count = (log_slots + (inverse ? levels - 1 - level : level)) / levels;
    auto& lengths = out.emplace_back();
    for (int i = 0; i < count; ++i, ++stage) {
      lengths.push_back(inverse ? (std::size_t{1} << log_slots) >> stage : std::size_t{2} << stage);
    }
  }
  return out;
}

std::vector<std::vector<int>> dft_diagonals(Dft direction, int log_slots, int levels,
                                            bool side_by_side) {
  const int n = 1 << log_slots;
  std::vector<std::vector<int>> out;
  const auto stages = dft_stages(direction, log_slots, levels);
  for (std::size_t k = 0; k < stages.size(); ++k) {
    std::set<int> indices{0};
    for (const std::size_t len : stages[k]) {
      const int half = static_cast<int>(len) / 2;
      std::set<int> sums;
      for (int d : indices) {
        for (int step : {0, half, n - half}) sums.insert((d + step) % n);
      }
      indices = std::move(sums);
    }
    if (side_by_side) {  // as weigh_input and weigh_output place them
      const bool both = direction == Dft::slots_to_coefficients && k == 0;
      std::set<int> placed;
      for (int d : indices) {
        if (both) placed.insert({d, d + n});
        if (!both) placed.insert(d > n / 2 ? d + n : d);
      }
      indices = std::move(placed);
    }
    out.emplace_back(indices.begin(), indices.end());
  }
  return out;
}

}  // namespace jali::circuits
