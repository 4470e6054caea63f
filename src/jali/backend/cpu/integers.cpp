// Between integers and residues.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "jali/backend/cpu/cpu_ops.h"
#include "jali/base/error.h"

namespace jali::backend::cpu {
namespace {

/// A row of residues of either storage, as 64-bit values.
class RowRef {
 public:
  RowRef(void* data, std::size_t word_bytes) : data_(data), narrow_(word_bytes == 4) {}
  void set(std::size_t k, std::uint64_t x) const {
    if (narrow_) {
      static_cast<std::uint32_t*>(data_)[k] = static_cast<std::uint32_t>(x);
    } else {
      static_cast<std::uint64_t*>(data_)[k] = x;
    }
  }

 private:
  void* data_;
  bool narrow_;
};

std::uint64_t get(const void* row, std::size_t k, std::size_t word_bytes) {
  return word_bytes == 4 ? static_cast<const std::uint32_t*>(row)[k]
                         : static_cast<const std::uint64_t*>(row)[k];
}

constexpr int kMaxExponent = 1000;  // of doubles: |c| < 2^1000

using Natural = std::vector<std::uint64_t>;  // little end first, fixed length

/// x += a b; returns the carry out of the top word.
std::uint64_t multiply_add(std::uint64_t* x, const std::uint64_t* a, std::uint64_t b,
                           std::size_t words) {
  std::uint64_t carry = 0;
  for (std::size_t w = 0; w < words; ++w) {
    const arith::uint128 t = static_cast<arith::uint128>(a[w]) * b + x[w] + carry;
    x[w] = static_cast<std::uint64_t>(t);
    carry = static_cast<std::uint64_t>(t >> 64);
  }
  return carry;
}

/// x -= a; returns the borrow.
std::uint64_t subtract(std::uint64_t* x, const std::uint64_t* a, std::size_t words) {
  std::uint64_t borrow = 0;
  for (std::size_t w = 0; w < words; ++w) {
    const arith::uint128 t = static_cast<arith::uint128>(x[w]) - a[w] - borrow;
    x[w] = static_cast<std::uint64_t>(t);
    borrow = static_cast<std::uint64_t>(t >> 64) & 1;
  }
  return borrow;
}

bool less(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
  for (std::size_t w = words; w-- > 0;) {
    if (a[w] != b[w]) return a[w] < b[w];
  }
  return false;
}

/// Product of some primes in `words` words.
Natural product(const std::vector<std::uint64_t>& primes, std::size_t skip, std::size_t words) {
  Natural x(words, 0);
  x[0] = 1;
  for (std::size_t i = 0; i < primes.size(); ++i) {
    if (i == skip) continue;
    Natural next(words, 0);
    multiply_add(next.data(), x.data(), primes[i], words);
    x = next;
  }
  return x;
}

}  // namespace

void CpuOps::from_int64(View out, std::span<const std::int64_t> c) const {
  check(out);
  require<InvalidArgument>(c.size() == out.batch * n_,
                           "from_int64 needs one integer for each coefficient");
  for_rows(out, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    kernels_.from_int64(row(out, i, b), c.data() + b * n_, n_, p.row);
  });
}

void CpuOps::from_double(View out, std::span<const double> c) const {
  check(out);
  require<InvalidArgument>(c.size() == out.batch * n_,
                           "from_double needs one number for each coefficient");
  const double limit = std::ldexp(1.0, kMaxExponent);
  double largest = 0;
  for (const double x : c) {
    require<InvalidArgument>(std::fabs(x) < limit && x == std::trunc(x),
                             "from_double takes integers of magnitude below 2^1000");
    largest = std::max(largest, std::fabs(x));
  }
  if (largest < 0x1p63) {
    const auto lease = scratch_.lend(c.size() * sizeof(std::int64_t));
    auto* integers = reinterpret_cast<std::int64_t*>(lease.data());
    for (std::size_t k = 0; k < c.size(); ++k) integers[k] = static_cast<std::int64_t>(c[k]);
    from_int64(out, {integers, c.size()});
    return;
  }
  for_rows(out, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    const RowRef to(row(out, i, b), word_bytes(config_.word));
    const double* from = c.data() + b * n_;
    std::array<std::uint64_t, kMaxExponent> power;  // 2^e mod q
    power[0] = 1;
    for (std::size_t e = 1; e < power.size(); ++e) power[e] = p.mod.add(power[e - 1], power[e - 1]);
    for (std::size_t k = 0; k < n_; ++k) {
      // c = mantissa 2^shift; a small c has its trailing zeros in the mantissa.
      int exponent;
      const double fraction = std::frexp(from[k], &exponent);
      const int shift = std::max(exponent - 53, 0);
      const auto mantissa = static_cast<std::int64_t>(std::ldexp(fraction, exponent - shift));
      to.set(k, p.mod.mul(p.mod.reduce_signed(mantissa), power[static_cast<std::size_t>(shift)]));
    }
  });
}

void CpuOps::crt(View out, std::span<const std::uint64_t> integers, std::size_t words,
                 CrtMethod method) const {
  check(out);
  const std::size_t stride = out.batch * n_;  // between the words of an integer
  require<InvalidArgument>(words >= 1 && integers.size() == words * stride,
                           "crt needs `words` words for each coefficient");
  for_rows(out, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    const RowRef to(row(out, i, b), word_bytes(config_.word));
    const std::uint64_t* from = integers.data() + b * n_;
    if (method == CrtMethod::mod) {
      // Horner from the top word, each step x 2^64 + w reduced.
      for (std::size_t k = 0; k < n_; ++k) {
        std::uint64_t x = 0;
        for (std::size_t w = words; w-- > 0;) {
          x = p.mod.reduce((static_cast<arith::uint128>(x) << 64) | from[w * stride + k]);
        }
        to.set(k, x);
      }
      return;
    }
    // Inner product with 2^(64 w) mod q: products below 2^125, so that seven of them and a
    // remainder fit 128 bits.
    std::vector<std::uint64_t> power(words);
    power[0] = 1;
    for (std::size_t w = 1; w < words; ++w) {
      power[w] = p.mod.reduce(static_cast<arith::uint128>(power[w - 1]) << 64);
    }
    for (std::size_t k = 0; k < n_; ++k) {
      arith::uint128 sum = 0;
      for (std::size_t w = 0; w < words; ++w) {
        if (w != 0 && w % 7 == 0) sum = p.mod.reduce(sum);
        sum += static_cast<arith::uint128>(from[w * stride + k]) * power[w];
      }
      to.set(k, p.mod.reduce(sum));
    }
  });
}

void CpuOps::icrt(std::span<std::uint64_t> integers, std::size_t words, ConstView x,
                  IcrtMethod method) const {
  check(x);
  const std::size_t limbs = x.primes.size(), stride = x.batch * n_;
  require<InvalidArgument>(words >= 1 && integers.size() == words * stride,
                           "icrt needs `words` words for each coefficient");
  std::vector<std::uint64_t> q;
  for (const PrimeIndex i : x.primes) q.push_back(prime(i).row.q);
  // One word more than any sum below needs: sums of `limbs` terms, each below Q.
  const std::size_t wide = limbs + 1;
  const Natural big_q = product(q, static_cast<std::size_t>(-1), std::max(wide, words));
  for (std::size_t w = words; w < big_q.size(); ++w) {
    require<InvalidArgument>(big_q[w] == 0, "icrt: the words given cannot hold the modulus");
  }
  std::vector<Natural> hat;                  // product_sum: Q / q_i; garner: q_0 .. q_(i-1)
  std::vector<ShoupConstant> hat_inverse;    // (Q / q_i)^-1 mod q_i
  std::vector<std::vector<ShoupConstant>> inverse(limbs);  // garner: q_j^-1 mod q_i, j < i
  for (std::size_t i = 0; i < limbs; ++i) {
    const arith::Modulus& mod = prime(x.primes[i]).mod;
    if (method == IcrtMethod::product_sum) {
      hat.push_back(product(q, i, wide));
      std::uint64_t residue = 1;
      for (std::size_t j = 0; j < limbs; ++j) {
        if (j != i) residue = mod.mul(residue, mod.reduce(q[j]));
      }
      hat_inverse.push_back(mod.shoup(mod.inverse(residue)));
    } else {
      hat.push_back(product({q.begin(), q.begin() + static_cast<std::ptrdiff_t>(i)}, limbs, wide));
      for (std::size_t j = 0; j < i; ++j) {
        inverse[i].push_back(mod.shoup(mod.inverse(mod.reduce(q[j]))));
      }
    }
  }
  constexpr std::size_t kChunk = 256;
  pool_.parallel(stride / kChunk, [&](std::size_t chunk) {
    std::vector<std::uint64_t> sum(wide), digit(limbs);
    for (std::size_t k = chunk * kChunk; k < (chunk + 1) * kChunk; ++k) {
      std::fill(sum.begin(), sum.end(), 0);
      for (std::size_t i = 0; i < limbs; ++i) {
        const std::uint64_t residue = get(row(x, i, k / n_), k % n_, word_bytes(config_.word));
        if (method == IcrtMethod::product_sum) {
          multiply_add(sum.data(), hat[i].data(), arith::mul_shoup(residue, hat_inverse[i], q[i]),
                       wide);
          if (!less(sum.data(), big_q.data(), wide)) subtract(sum.data(), big_q.data(), wide);
        } else {
          // Mixed radix: x = d_0 + d_1 q_0 + d_2 q_0 q_1 + ..; d_i = (..(x_i - d_0) / q_0 - ..).
          const arith::Modulus& mod = prime(x.primes[i]).mod;
          std::uint64_t d = residue;
          for (std::size_t j = 0; j < i; ++j) {
            d = arith::mul_shoup(mod.sub(d, mod.reduce(digit[j])), inverse[i][j], q[i]);
          }
          digit[i] = d;
          multiply_add(sum.data(), hat[i].data(), d, wide);
        }
      }
      for (std::size_t w = 0; w < words; ++w) {
        integers[w * stride + k] = w < wide ? sum[w] : 0;
      }
    }
  });
}

}  // namespace jali::backend::cpu
