#include "jali/backend/cpu/mixed_radix.h"

#include <algorithm>
#include <bit>

#include "jali/arith/wide.h"
#include "jali/backend/embedding.h"

namespace jali::backend::cpu {

namespace {

using arith::uint128;

std::vector<std::uint64_t> values(std::span<const PrimeTables* const> primes) {
  std::vector<std::uint64_t> q;
  for (const PrimeTables* p : primes) q.push_back(p->row.q);
  return q;
}

// Integers of a block, word w of integer k at x[w kBlock + k], without a branch. Carries and
// borrows are the top bits of sums of masks, which compilers keep on vectors.

/// x -= m.
void subtract(std::uint64_t* x, std::span<const std::uint64_t> m, std::uint64_t* borrow) {
  std::fill_n(borrow, kBlock, 0);
  for (const std::uint64_t word : m) {
    for (std::size_t k = 0; k < kBlock; ++k) {
      const std::uint64_t a = x[k], t = a - word - borrow[k];
      borrow[k] = ((~a & word) | (~(a ^ word) & t)) >> 63;
      x[k] = t;
    }
    x += kBlock;
  }
}

/// x = |x|, of two's complements; sign becomes 1 if x was negative, and 0 otherwise.
void magnitudes(std::uint64_t* x, std::size_t words, std::uint64_t* sign) {
  std::uint64_t carry[kBlock];
  for (std::size_t k = 0; k < kBlock; ++k) carry[k] = sign[k] = x[(words - 1) * kBlock + k] >> 63;
  for (std::size_t w = 0; w < words; ++w, x += kBlock) {
    for (std::size_t k = 0; k < kBlock; ++k) {
      const std::uint64_t a = x[k] ^ (0 - sign[k]), t = a + carry[k];
      carry[k] = (a & ~t) >> 63;  // from all ones to zero
      x[k] = t;
    }
  }
}

/// The double next to x, ties to even, as a conversion gives it, which is a branch without AVX-512.
/// Both halves are exact, (2^84 + 2^32 high) - (2^84 + 2^52) and 2^52 + low, so that their sum
/// alone is rounded.
double nearest(std::uint64_t x) {
  const auto high = std::bit_cast<double>(x >> 32 | std::bit_cast<std::uint64_t>(0x1p84));
  const auto low = std::bit_cast<double>((x & 0xffffffff) | std::bit_cast<std::uint64_t>(0x1p52));
  return (high - (0x1p84 + 0x1p52)) + low;
}

}  // namespace

MixedRadix::MixedRadix(std::vector<const PrimeTables*> primes, const RowKernels& kernels)
    : primes_(std::move(primes)), kernels_(kernels) {
  const auto q = values(primes_);
  for (std::size_t i = 0; i < q.size(); ++i) {
    const arith::Modulus& mod = primes_[i]->mod;
    std::vector<std::uint64_t> product{1};  // q_0 .. q_(j-1) mod q_i
    for (std::size_t j = 0; j < i; ++j) {
      product.push_back(mod.mul(product.back(), mod.reduce(q[j])));
    }
    const std::uint64_t c = mod.inverse(product.back());
    inverse_.push_back(primes_[i]->constant(c));
    auto& factors = factors_.emplace_back();
    for (std::size_t j = 0; j < i; ++j) {
      factors.push_back(primes_[i]->constant(mod.neg(mod.mul(c, product[j]))));
    }
  }
  for (std::size_t i = 0, end = 0; i < q.size(); i = end) {
    std::uint64_t product = 1;
    for (uint128 more = q[i]; more >> 64 == 0; more = uint128{product} * q[end]) {
      product = static_cast<std::uint64_t>(more);
      if (++end == q.size()) break;
    }
    groups_.push_back({i, end, product, product_words(std::span(q).subspan(i)).size()});
  }
}

void MixedRadix::digits(std::byte* rows) const {
  const std::size_t bytes = kBlock * static_cast<std::size_t>(kernels_.word_bytes);
  for (std::size_t i = 1; i < primes_.size(); ++i) {  // c_0 = 1
    std::byte* const d = rows + i * bytes;
    kernels_.mul_scalar(d, d, inverse_[i], kBlock, primes_[i]->row);
    for (std::size_t j = 0; j < i; ++j) {
      kernels_.mul_scalar_add(d, rows + j * bytes, factors_[i][j], kBlock, primes_[i]->row);
    }
  }
}

// kLanes integers at once, whose carries do not wait for each other; word w of integer j is x[w
// kLanes + j].
template <class T, std::size_t fixed_words>
void MixedRadix::compose(std::uint64_t* out, std::size_t words, std::size_t stride, const T* digits,
                         std::uint64_t* work) const {
  std::uint64_t few[std::max<std::size_t>(fixed_words, 1) * kLanes];
  std::uint64_t* const x = fixed_words > 0 ? few : work;
  if constexpr (fixed_words > 0) words = fixed_words;
  for (std::size_t k = 0; k < kBlock; k += kLanes) {
    std::fill_n(x, words * kLanes, 0);
    for (std::size_t g = groups_.size(); g-- > 0;) {  // x product + digit
      const auto [begin, end, product, above] = groups_[g];
      std::uint64_t carry[kLanes];
      for (std::size_t j = 0; j < kLanes; ++j) carry[j] = digits[(end - 1) * kBlock + k + j];
      for (std::size_t i = end - 1; i-- > begin;) {
        const std::uint64_t q = primes_[i]->row.q;
        for (std::size_t j = 0; j < kLanes; ++j) {
          carry[j] = carry[j] * q + digits[i * kBlock + k + j];
        }
      }
      for (std::size_t w = 0; w < (fixed_words > 0 ? fixed_words : above); ++w) {
        for (std::size_t j = 0; j < kLanes; ++j) {
          const uint128 t = uint128{x[w * kLanes + j]} * product + carry[j];
          x[w * kLanes + j] = static_cast<std::uint64_t>(t);
          carry[j] = static_cast<std::uint64_t>(t >> 64);
        }
      }
    }
    for (std::size_t w = 0; w < words; ++w) {
      for (std::size_t j = 0; j < kLanes; ++j) out[w * stride + k + j] = x[w * kLanes + j];
    }
  }
}

void MixedRadix::compose(std::uint64_t* out, std::size_t words, std::size_t stride,
                         const std::byte* rows, std::uint64_t* work) const {
  const auto of = [&]<class T>(const T* digits) {
    if (words == 1) return compose<T, 1>(out, words, stride, digits, work);
    if (words == 2) return compose<T, 2>(out, words, stride, digits, work);
    compose<T, 0>(out, words, stride, digits, work);
  };
  if (kernels_.word_bytes == 4) {
    of(reinterpret_cast<const std::uint32_t*>(rows));
  } else {
    of(reinterpret_cast<const std::uint64_t*>(rows));
  }
}

CentredDoubles::CentredDoubles(const std::vector<const PrimeTables*>& primes,
                               const RowKernels& kernels)
    : primes_(primes),
      kernels_(kernels),
      radix_(primes, kernels),
      half_(product_words(values(primes))) {
  for (std::size_t w = 0; w < half_.size(); ++w) {
    half_[w] = half_[w] >> 1 | (w + 1 < half_.size() ? half_[w + 1] << 63 : 0);
  }
  for (const PrimeTables* p : primes) shift_.push_back(p->row.q / 2);  // 2 M = Q - 1 is -1
}

void CentredDoubles::operator()(double* out, std::span<const std::byte* const> rows, double divisor,
                                std::byte* scratch) const {
  const std::size_t bytes = kBlock * static_cast<std::size_t>(kernels_.word_bytes);
  const std::size_t words = half_.size();
  auto* const v = reinterpret_cast<std::uint64_t*>(scratch + primes_.size() * bytes);
  std::uint64_t* const carry = v + words * kBlock;
  for (std::size_t i = 0; i < primes_.size(); ++i) {
    kernels_.add_scalar(scratch + i * bytes, rows[i], shift_[i], kBlock, primes_[i]->row);
  }
  radix_.digits(scratch);
  radix_.compose(v, words, kBlock, scratch, carry + kBlock);
  subtract(v, half_, carry);
  std::uint64_t* const sign = carry;
  magnitudes(v, words, sign);
  std::fill_n(out, kBlock, 0.0);
  for (std::size_t w = words; w-- > 0;) {
    for (std::size_t k = 0; k < kBlock; ++k) out[k] = out[k] * 0x1p64 + nearest(v[w * kBlock + k]);
  }
  for (std::size_t k = 0; k < kBlock; ++k) {
    const auto size = std::bit_cast<std::uint64_t>(out[k]);
    out[k] = std::bit_cast<double>(size | sign[k] << 63) / divisor;
  }
}

}  // namespace jali::backend::cpu
