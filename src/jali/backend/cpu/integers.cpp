// Between integers and residues.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "jali/backend/cpu/ring.h"
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

constexpr int kMaxExponent = 1000;  // of doubles: |c| < 2^1000
constexpr std::size_t kFewIntegers = 64;  // kernels take a multiple of so many

/// Moves the first `count` words of a row of n so that word k comes to k n/count, with zeros
/// between. A word never moves to where one lies that is still to be moved, because the last moves
/// first.
template <class Stored>
void spread(void* row, std::size_t count, std::size_t n) {
  auto* x = static_cast<Stored*>(row);
  const std::size_t stride = n / count;
  for (std::size_t k = count; k-- > 0;) {
    const Stored value = x[k];
    std::fill_n(x + k * stride, stride, Stored{0});
    x[k * stride] = value;
  }
}

}  // namespace

void CpuRing::from_int64(View out, std::span<const std::int64_t> c) const {
  check(out);
  const std::size_t count = c.size() / out.batch;
  require<InvalidArgument>(count > 0 && c.size() == out.batch * count && n_ % count == 0,
                           "from_int64 needs one integer for each coefficient, or for each of "
                           "those of a polynomial in a power of X");
  for_rows(out, [&](std::size_t i, std::size_t b, const PrimeTables& p) {
    void* to = row(out, i, b);
    const std::int64_t* from = c.data() + b * count;
    if (count % kFewIntegers == 0) {
      kernels_.from_int64(to, from, count, p.row);
    } else {
      const RowRef words(to, word_bytes(config_.word));
      for (std::size_t k = 0; k < count; ++k) words.set(k, p.mod.reduce_signed(from[k]));
    }
    if (count == n_) return;
    if (word_bytes(config_.word) == 4) {
      spread<std::uint32_t>(to, count, n_);
    } else {
      spread<std::uint64_t>(to, count, n_);
    }
  });
}

void CpuRing::from_double(View out, std::span<const double> c) const {
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
    const auto lease = scratch_.lend_secret(c.size() * sizeof(std::int64_t));
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

void CpuRing::crt(View out, std::span<const std::uint64_t> integers, std::size_t words,
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

}  // namespace jali::backend::cpu
