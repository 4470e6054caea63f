#include "jali/circuits/ckks/roundings.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace jali::circuits {

namespace {

constexpr std::size_t kSample = 64;

}  // namespace

// The sample is no secret, and the same for equal matrices.
// NOLINTNEXTLINE(bugprone-random-generator-seed)
Roundings::Roundings(std::size_t slots, std::size_t period, double scale)
    : embedding_(slots), slots_(slots), period_(period), scale_(scale) {}

// Every diagonal has the same chance to stay in the sample (J. S. Vitter's algorithm R).
void Roundings::add(std::span<const std::complex<double>> diagonal) {
  ++count_;
  std::size_t place = sample_.size();
  if (place == kSample) {
    place = random_() % count_;
    if (place >= kSample) return;
  } else {
    sample_.emplace_back();
  }
  const auto& leaf = embedding_.leaf[static_cast<std::size_t>(std::countr_zero(slots_))];
  std::vector<std::complex<double>> w(slots_);
  for (std::size_t s = 0; s < slots_; ++s) w[leaf[s]] = diagonal[s];
  embedding_.backward(w.data(), slots_);
  const double factor = scale_ / static_cast<double>(slots_);
  const auto rounding = [factor](double x) { return x * factor - std::nearbyint(x * factor); };
  auto& kept = sample_[place];
  kept.resize(period_);
  for (std::size_t k = 0; k < period_; ++k) {
    const auto& z = w[k * (slots_ / period_)];
    kept[k] = {rounding(z.real()), rounding(z.imag())};
  }
}

// The square of a sum of c independent roundings of n coefficients is c n / 12 on average, with a
// relative standard deviation of at most sqrt(2 / n). What the sample has more than three of these,
// the others have in the same proportion: it comes from pairs.
double Roundings::alike() const {
  if (sample_.size() < 2) return 1;
  const auto n = static_cast<double>(2 * period_), taken = static_cast<double>(sample_.size());
  double square = 0;
  for (std::size_t k = 0; k < period_; ++k) {
    std::complex<double> sum = 0;
    for (const auto& one : sample_) sum += one[k];
    square += std::norm(sum);
  }
  const double more = square / (taken * n / 12) - 1 - 3 * std::sqrt(2 / n);
  return 1 + std::max(more, 0.0) * (static_cast<double>(count_) - 1) / (taken - 1);
}

}  // namespace jali::circuits
