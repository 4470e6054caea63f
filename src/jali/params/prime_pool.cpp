#include "jali/params/prime_pool.h"

#include <algorithm>

#include "jali/arith/primes.h"
#include "jali/params/real.h"

namespace jali::params {

PrimePool::PrimePool(Word word, int log_n)
    : word_(word),
      m_(std::uint64_t{2} << log_n),
      low_(m_ << 4),
      high_(std::uint64_t{1} << word_prime_bits(word)),
      min_bits_(log_n + 7),
      max_bits_(word_prime_bits(word)),
      known_(std::make_shared<std::unordered_map<std::uint64_t, bool>>()) {}

bool PrimePool::prime(std::uint64_t candidate) {
  const auto [it, fresh] = known_->try_emplace(candidate, false);
  if (fresh) it->second = arith::is_prime(candidate);
  return it->second;
}

double PrimePool::bits_of_nth_largest(int count) const {
  std::uint64_t bound = high_;
  for (int i = 0; i < count; ++i) {
    const auto p = arith::prime_below(bound, m_, low_);
    if (!p) break;
    bound = *p;
  }
  return portable_log2(static_cast<double>(bound));
}

std::optional<std::uint64_t> PrimePool::take_near(double target) {
  if (!(target > 0)) return std::nullopt;
  const double inside =
      std::clamp(target, static_cast<double>(low_), static_cast<double>(high_ - 1));
  // Candidates k m + 1 on both sides of the target, in the order of their distance.
  std::uint64_t below = (static_cast<std::uint64_t>(inside) - 1) / m_ * m_ + 1;
  std::uint64_t above = below + m_;
  while (below >= low_ || above < high_) {
    const bool down = above >= high_ || (below >= low_ && inside - static_cast<double>(below) <=
                                                              static_cast<double>(above) - inside);
    const std::uint64_t candidate = down ? below : above;
    (down ? below : above) += down ? -m_ : m_;
    if (prime(candidate) && taken_.insert(candidate).second) return candidate;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> PrimePool::take_below(double target) {
  if (!(target >= static_cast<double>(low_))) return std::nullopt;
  const double inside = std::min(target, static_cast<double>(high_ - 1));
  std::uint64_t p = (static_cast<std::uint64_t>(inside) - 1) / m_ * m_ + 1;
  for (; p >= low_; p -= m_) {
    if (prime(p) && taken_.insert(p).second) return p;
  }
  return std::nullopt;
}

}  // namespace jali::params
