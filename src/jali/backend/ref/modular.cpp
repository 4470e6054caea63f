#include "jali/backend/ref/modular.h"

#include <algorithm>

namespace jali::backend::ref {

using u64 = std::uint64_t;

u64 power(u64 a, u64 e, u64 q) {
  u64 r = 1 % q;
  for (u64 square = a % q; e != 0; e >>= 1, square = mul(square, square, q)) {
    if (e & 1) r = mul(r, square, q);
  }
  return r;
}

u64 inverse(u64 a, u64 q) { return power(a, q - 2, q); }

bool is_prime(u64 n) {
  // These bases decide every n < 3.3e24 (Sorenson and Webster 2015).
  constexpr u64 kBases[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  if (n < 2) return false;
  for (const u64 p : kBases) {
    if (n % p == 0) return n == p;
  }
  u64 odd = n - 1;
  int twos = 0;
  for (; odd % 2 == 0; odd /= 2) ++twos;
  for (const u64 base : kBases) {
    u64 x = power(base, odd, n);
    bool passes = x == 1 || x == n - 1;
    for (int i = 1; i < twos && !passes; ++i) {
      x = mul(x, x, n);
      passes = x == n - 1;
    }
    if (!passes) return false;
  }
  return true;
}

u64 smallest_root(u64 q, std::size_t n) {
  u64 psi = 0;
  for (u64 a = 2; power(psi, n, q) != q - 1; ++a) psi = power(a, (q - 1) / (2 * n), q);
  // The roots of X^N + 1 are the odd powers of any one of them.
  const u64 step = mul(psi, psi, q);
  u64 smallest = psi;
  for (std::size_t k = 0; k < n; ++k) {
    psi = mul(psi, step, q);
    smallest = std::min(smallest, psi);
  }
  return smallest;
}

}  // namespace jali::backend::ref
