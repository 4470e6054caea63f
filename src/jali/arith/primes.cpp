#include "jali/arith/primes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "jali/base/error.h"

namespace jali::arith {
namespace {

std::uint64_t mul_mod(std::uint64_t a, std::uint64_t b, std::uint64_t q) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(a) * b % q);
}

std::uint64_t pow_mod(std::uint64_t a, std::uint64_t e, std::uint64_t q) {
  std::uint64_t r = 1 % q;
  for (a %= q; e != 0; e >>= 1) {
    if (e & 1) r = mul_mod(r, a, q);
    a = mul_mod(a, a, q);
  }
  return r;
}

constexpr std::array<std::uint64_t, 12> kBases = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};

}  // namespace

bool is_prime(std::uint64_t n) {
  if (n < 2) return false;
  for (std::uint64_t p : kBases) {
    if (n % p == 0) return n == p;
  }
  const int twos = std::countr_zero(n - 1);
  const std::uint64_t odd = (n - 1) >> twos;
  for (std::uint64_t base : kBases) {
    std::uint64_t x = pow_mod(base, odd, n);
    if (x == 1 || x == n - 1) continue;
    bool composite = true;
    for (int i = 1; i < twos && composite; ++i) {
      x = mul_mod(x, x, n);
      composite = x != n - 1;
    }
    if (composite) return false;
  }
  return true;
}

std::optional<std::uint64_t> prime_below(std::uint64_t bound, std::uint64_t m, std::uint64_t low) {
  if (bound < 2) return std::nullopt;
  std::uint64_t p = (bound - 2) / m * m + 1;  // the largest p = 1 mod m, p < bound
  while (p >= low && p > 1) {
    if (is_prime(p)) return p;
    p -= m;  // never below 1
  }
  return std::nullopt;
}

std::optional<std::uint64_t> prime_from(std::uint64_t bound, std::uint64_t m, std::uint64_t high) {
  if (high > std::numeric_limits<std::uint64_t>::max() - m) {
    throw InvalidArgument("prime_from: high must be at most 2^64 - 1 - m");
  }
  if (bound < 2) bound = 2;
  if (bound >= high) return std::nullopt;
  for (std::uint64_t p = (bound - 2) / m * m + m + 1; p < high; p += m) {
    if (is_prime(p)) return p;
  }
  return std::nullopt;
}

PrimesNear::PrimesNear(std::uint64_t target, std::uint64_t m, std::uint64_t low, std::uint64_t high)
    : target_(std::clamp(target, low, high)),
      m_(m),
      low_(low),
      high_(high),
      below_(prime_below(target_, m, low)),
      above_(prime_from(target_, m, high)) {}

std::optional<std::uint64_t> PrimesNear::next() {
  std::optional<std::uint64_t> result;
  if (below_ && (!above_ || target_ - *below_ <= *above_ - target_)) {
    result = below_;
    below_ = prime_below(*below_, m_, low_);
  } else if (above_) {
    result = above_;
    above_ = prime_from(*above_ + 1, m_, high_);
  }
  return result;
}

std::uint64_t primitive_root(std::uint64_t q, std::uint64_t order) {
  require<InvalidArgument>(q > 2 && std::has_single_bit(order) && (q - 1) % order == 0,
                           "primitive_root: the order must be a power of two that divides q - 1");
  require<InvalidArgument>(is_prime(q), "primitive_root: q is not prime");
  if (order == 1) return 1;
  // x^((q-1)/order) has order exactly `order` if and only if its (order/2)-th power is -1.
  std::uint64_t root = 0;
  for (std::uint64_t x = 2; root == 0; ++x) {
    const std::uint64_t y = pow_mod(x, (q - 1) / order, q);
    if (pow_mod(y, order / 2, q) == q - 1) root = y;
  }
  // The primitive roots are the odd powers of any one of them.
  const std::uint64_t square = mul_mod(root, root, q);
  std::uint64_t smallest = root;
  for (std::uint64_t i = 1; i < order / 2; ++i) {
    root = mul_mod(root, square, q);
    smallest = std::min(smallest, root);
  }
  return smallest;
}

}  // namespace jali::arith
