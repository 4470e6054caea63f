#include "jali/circuits/ckks/linear_transform.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::circuits {
namespace {

// The diagonals with indices in [0, slots), without those that are zero.
Diagonals canonical(const Diagonals& diagonals, std::size_t slots) {
  Diagonals out;
  for (const auto& [index, entries] : diagonals) {
    const auto d = static_cast<long long>(index), s = static_cast<long long>(slots);
    require<InvalidArgument>(d > -s && d < s, [&] {
      return "diagonal " + std::to_string(d) + " is outside (-" + std::to_string(s) + ", " +
             std::to_string(s) + ")";
    });
    require<InvalidArgument>(entries.size() == slots, [&, count = entries.size()] {
      return "diagonal " + std::to_string(d) + " has " + std::to_string(count) +
             " entries, and the ciphertext has " + std::to_string(slots) +
             " slots: give one entry for each slot";
    });
    bool zero = true;
    for (const auto& e : entries) {
      require<InvalidArgument>(std::isfinite(e.real()) && std::isfinite(e.imag()), [&] {
        return "diagonal " + std::to_string(d) + " holds a number that is not finite";
      });
      zero = zero && e == 0.0;
    }
    if (zero) continue;
    const bool fresh = out.emplace(static_cast<int>((d + s) % s), entries).second;
    require<InvalidArgument>(fresh, [&] {
      return "diagonal " + std::to_string(d) + " is given twice, modulo " + std::to_string(s);
    });
  }
  return out;
}

BlockTransform make_blocks(ckks::ParamsPtr params, Diagonals diagonals,
                           const TransformOptions& options) {
  const int log_slots = options.log_slots < 0 ? params->log_n() - 1 : options.log_slots;
  require<InvalidArgument>(log_slots < params->log_n(), [&] {
    return "log_slots " + std::to_string(log_slots) + " is above " +
           std::to_string(params->log_n() - 1);
  });
  const auto kept =
      std::make_shared<const Diagonals>(canonical(diagonals, std::size_t{1} << log_slots));
  std::vector<int> indices;
  for (const auto& [d, entries] : *kept) indices.push_back(d);
  return BlockTransform(
      std::move(params), {{std::move(indices)}},
      [kept](std::size_t, std::size_t, int d, std::span<std::complex<double>> entries) {
        std::ranges::copy(kept->at(d), entries.begin());
      },
      options);
}

}  // namespace

Diagonals diagonals_of(std::span<const std::complex<double>> matrix, std::size_t slots) {
  require<InvalidArgument>(slots > 0 && matrix.size() == slots * slots, [&] {
    return "a matrix on " + std::to_string(slots) + " slots has " + std::to_string(slots * slots) +
           " entries, got " + std::to_string(matrix.size());
  });
  Diagonals out;
  for (std::size_t d = 0; d < slots; ++d) {
    std::vector<std::complex<double>> entries(slots);
    for (std::size_t s = 0; s < slots; ++s) entries[s] = matrix[s * slots + (s + d) % slots];
    if (std::ranges::any_of(entries, [](const auto& e) { return e != 0.0; }))
      out.emplace(static_cast<int>(d), std::move(entries));
  }
  return out;
}

LinearTransform::LinearTransform(ckks::ParamsPtr params, Diagonals diagonals,
                                 const TransformOptions& options)
    : blocks_(make_blocks(std::move(params), std::move(diagonals), options)) {}

std::size_t LinearTransform::key_bytes() const {
  return blocks_.params()->key_bytes(rotations(), false, false);
}

ckks::Ciphertext LinearTransform::apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x,
                                        double peak) const {
  return std::move(blocks_.apply(evaluator, {&x, 1}, /*rescale=*/true, peak).front());
}

}  // namespace jali::circuits
