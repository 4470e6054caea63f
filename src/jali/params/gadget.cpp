#include "jali/params/gadget.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "jali/params/real.h"
#include "jali/params/rlwe_params.h"
#include "jali/params/security.h"

namespace jali::params {
namespace {

/// Splits primes into `count` runs so that the largest product of a run is as small as possible.
/// Gives where the runs begin, and the end. The first runs are as full as that allows, so that
/// lower levels have fewer digits.
std::vector<std::size_t> split(const std::vector<double>& bits, std::size_t count) {
  const std::size_t n = bits.size();
  std::vector<double> sum(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) sum[i + 1] = sum[i] + bits[i];
  // best[i]: the size of the largest run in the best split of the first i primes into d runs
  std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
  best[0] = 0;
  for (std::size_t d = 0; d < count; ++d) {
    std::vector<double> next(n + 1, std::numeric_limits<double>::infinity());
    for (std::size_t i = d + 1; i <= n; ++i) {
      // With j, best[j] grows and the last run shrinks. The larger of both is least where they
      // cross.
      std::size_t low = d, high = i - 1;
      while (low < high) {
        const std::size_t j = (low + high) / 2;
        if (best[j] < sum[i] - sum[j]) {
          low = j + 1;
        } else {
          high = j;
        }
      }
      next[i] = std::max(best[low], sum[i] - sum[low]);
      if (low > d) next[i] = std::min(next[i], std::max(best[low - 1], sum[i] - sum[low - 1]));
    }
    best = std::move(next);
  }
  std::vector<std::size_t> begin{0};
  for (std::size_t d = 0; d < count; ++d) {
    const std::size_t last = n - (count - d - 1);  // leave one prime for each digit after this
    std::size_t end = begin.back() + 1;
    while (end < last && sum[end + 1] - sum[begin.back()] <= best[n]) ++end;
    begin.push_back(end);
  }
  return begin;
}

}  // namespace

std::optional<Gadget> choose_gadget(std::span<const std::uint64_t> q, std::size_t dnum,
                                    double max_bits, std::size_t n, const PrimePool& pool) {
  std::vector<double> bits;
  double log_q = 0;
  for (std::uint64_t p : q) log_q += bits.emplace_back(portable_log2(static_cast<double>(p)));
  Gadget gadget;
  gadget.digit_begin = split(bits, dnum);

  std::vector<double> digit_bits;
  double largest = 0;
  for (std::size_t d = 0; d < dnum; ++d) {
    double sum = 0;
    for (std::size_t i = gadget.digit_begin[d]; i < gadget.digit_begin[d + 1]; ++i) sum += bits[i];
    digit_bits.push_back(sum);
    largest = std::max(largest, sum);
  }
  // Key switching adds a variance of sum_d N (D_d / P)^2 sigma^2 / 12, and a rescale (1 + 2N/3) /
  // 12: see NoiseModel.
  const double degree = static_cast<double>(n);
  const auto noise_ratio = [&](double log_p) {
    double sum = 0;
    for (double b : digit_bits) sum += portable_exp2(std::max(2 * (b - log_p), -900.0));
    return sum * degree * rlwe::kErrorVariance / (1 + 2 * degree / 3);
  };
  // If P has four bits more than the largest digit, the noise of key switching does not matter up
  // to a dnum of about 16.
  constexpr double kMargin = 4;
  const double room = std::min(max_bits - log_q, 1e6);

  if (largest > room) return std::nullopt;
  const auto attempt = [&](int count) -> std::optional<Gadget> {
    PrimePool free = pool;
    Gadget result = gadget;
    double left = std::min(largest + kMargin, room);
    double log_p = 0;
    for (int i = 0; i < count; ++i) {
      const double share = std::clamp(left / (count - i), free.min_bits() + 0.25, free.max_bits());
      const auto p = free.take_below(portable_exp2(share));
      if (!p) return std::nullopt;
      result.p.push_back(*p);
      const double b = portable_log2(static_cast<double>(*p));
      log_p += b;
      left -= b;
    }
    // The slack makes sure that P >= D holds for the integers, whatever the rounding of the
    // logarithms.
    if (log_p < largest + 1e-9) return std::nullopt;
    std::vector<std::uint64_t> all(q.begin(), q.end());
    all.insert(all.end(), result.p.begin(), result.p.end());
    if (product_bits(all) > max_bits) return std::nullopt;
    result.noise_ratio = noise_ratio(log_p);
    return result;
  };

  const int fewest = std::max(1, static_cast<int>(std::ceil(largest / pool.max_bits())));
  auto first = attempt(fewest);
  if (first && first->noise_ratio <= kGoodNoiseRatio) return first;
  auto second = attempt(fewest + 1);
  if (second && (!first || second->noise_ratio < first->noise_ratio / 2)) return second;
  return first;
}

}  // namespace jali::params
