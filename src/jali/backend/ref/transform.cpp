#include "jali/backend/ref/transform.h"

#include "jali/backend/ref/modular.h"

namespace jali::backend::ref {

namespace {

using u64 = std::uint64_t;

/// base^0 ... base^(count-1).
Row powers(u64 base, std::size_t count, u64 q) {
  Row r(count);
  u64 p = 1;
  for (u64& x : r) {
    x = p;
    p = mul(p, base, q);
  }
  return r;
}

/// out[k] = sum_j x[j] omega^(jk), omega of order x.size(): with E and O the transforms of the even
/// and odd places, out[k] = E[k] + omega^k O[k] and out[k + n/2] = E[k] - omega^k O[k].
Row cyclic(const Row& x, u64 omega, u64 q) {
  const std::size_t n = x.size();
  if (n == 1) return {x[0]};
  Row even(n / 2), odd(n / 2), out(n);
  for (std::size_t j = 0; j < n / 2; ++j) {
    even[j] = x[2 * j];
    odd[j] = x[2 * j + 1];
  }
  const u64 square = mul(omega, omega, q);
  even = cyclic(even, square, q);
  odd = cyclic(odd, square, q);
  u64 w = 1;
  for (std::size_t k = 0; k < n / 2; ++k) {
    const u64 t = mul(w, odd[k], q);
    out[k] = add(even[k], t, q);
    out[k + n / 2] = sub(even[k], t, q);
    w = mul(w, omega, q);
  }
  return out;
}

}  // namespace

std::size_t bit_reverse(std::size_t k, std::size_t n) {
  std::size_t r = 0;
  for (; n > 1; n /= 2, k /= 2) r = 2 * r + k % 2;
  return r;
}

Row ntt_by_definition(const Row& x, u64 psi, u64 q) {
  const std::size_t n = x.size();
  const Row psis = powers(psi, 2 * n, q);
  Row out(n);
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t e = 2 * bit_reverse(k, n) + 1;
    for (std::size_t j = 0; j < n; ++j) {
      out[k] = add(out[k], mul(x[j], psis[j * e % (2 * n)], q), q);
    }
  }
  return out;
}

Row intt_by_definition(const Row& x, u64 psi, u64 q) {
  const std::size_t n = x.size();
  const Row psis = powers(inverse(psi, q), 2 * n, q);
  Row out(n);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t e = 2 * bit_reverse(k, n) + 1;
      out[j] = add(out[j], mul(x[k], psis[j * e % (2 * n)], q), q);
    }
    out[j] = mul(out[j], inverse(n % q, q), q);
  }
  return out;
}

Row ntt_by_recursion(const Row& x, u64 psi, u64 q) {
  const std::size_t n = x.size();
  const Row psis = powers(psi, n, q);
  Row twisted(n), out(n);
  for (std::size_t j = 0; j < n; ++j) twisted[j] = mul(x[j], psis[j], q);
  const Row values = cyclic(twisted, mul(psi, psi, q), q);
  for (std::size_t k = 0; k < n; ++k) out[k] = values[bit_reverse(k, n)];
  return out;
}

Row intt_by_recursion(const Row& x, u64 psi, u64 q) {
  const std::size_t n = x.size();
  const u64 psi_inverse = inverse(psi, q);
  const u64 n_inverse = inverse(n % q, q);
  const Row psis = powers(psi_inverse, n, q);
  Row values(n);
  for (std::size_t k = 0; k < n; ++k) values[bit_reverse(k, n)] = x[k];
  Row out = cyclic(values, mul(psi_inverse, psi_inverse, q), q);
  for (std::size_t j = 0; j < n; ++j) out[j] = mul(mul(out[j], psis[j], q), n_inverse, q);
  return out;
}

Row automorphism(const Row& x, u64 g, u64 q) {
  const std::size_t n = x.size();
  Row out(n);
  for (std::size_t j = 0; j < n; ++j) {
    const std::size_t e = j * (g % (2 * n)) % (2 * n);
    if (e < n) {
      out[e] = x[j];
    } else {
      out[e - n] = sub(0, x[j], q);
    }
  }
  return out;
}

Row automorphism_of_values(const Row& x, u64 g) {
  const std::size_t n = x.size();
  Row out(n);
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t e = (2 * bit_reverse(k, n) + 1) * (g % (2 * n)) % (2 * n);
    out[k] = x[bit_reverse((e - 1) / 2, n)];
  }
  return out;
}

}  // namespace jali::backend::ref
