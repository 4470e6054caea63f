#include "jali/backend/cpu/mixed_radix.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "jali/backend/embedding.h"

namespace jali::backend::cpu {

namespace {

using arith::uint128;

std::vector<std::uint64_t> values(std::span<const PrimeTables* const> primes) {
  std::vector<std::uint64_t> q;
  for (const PrimeTables* p : primes) q.push_back(p->row.q);
  return q;
}

/// How many of the first primes have a product below 2^126.
std::size_t head_of(const std::vector<const PrimeTables*>& primes) {
  std::size_t count = 0;
  for (int bits = 0; count < primes.size(); ++count) {
    bits += std::bit_width(primes[count]->row.q);
    if (bits > 126) break;
  }
  return count;
}

std::uint64_t word(const std::byte* row, std::size_t k, bool narrow) {
  return narrow ? reinterpret_cast<const std::uint32_t*>(row)[k]
                : reinterpret_cast<const std::uint64_t*>(row)[k];
}

bool all_zero(const std::byte* row, std::size_t bytes) {
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t x;
    std::memcpy(&x, row + i, 8);
    any |= x;
  }
  return any == 0;
}

/// out[k] = (d_0 + d_1 q_0 + .. - half) / divisor, the integers below 2^63.
template <class T>
void narrow_doubles(double* out, const T* digits, std::span<const PrimeTables* const> primes,
                    std::int64_t half, double divisor) {
  std::int64_t v[kBlock] = {};
  for (std::size_t i = primes.size(); i-- > 0;) {
    const auto q = static_cast<std::int64_t>(primes[i]->row.q);
    for (std::size_t k = 0; k < kBlock; ++k) {
      v[k] = v[k] * q + static_cast<std::int64_t>(digits[i * kBlock + k]);
    }
  }
  for (std::size_t k = 0; k < kBlock; ++k) out[k] = static_cast<double>(v[k] - half);
  for (std::size_t k = 0; k < kBlock; ++k) out[k] /= divisor;  // by itself: on vectors
}

/// The same below 2^126. Words are rounded one by one, as in centred_doubles.
template <class T>
void wide_doubles(double* out, const T* digits, std::span<const PrimeTables* const> primes,
                  uint128 half, double divisor) {
  constexpr uint128 kSign = uint128{1} << 63;
  for (std::size_t k = 0; k < kBlock; ++k) {
    uint128 v = 0;
    for (std::size_t i = primes.size(); i-- > 0;) {
      v = v * primes[i]->row.q + digits[i * kBlock + k];
    }
    v -= half;  // signed from here on
    double x;
    if ((v + kSign) >> 64 == 0) {
      x = static_cast<double>(static_cast<std::int64_t>(v));
    } else {
      const bool negative = v >> 127 != 0;
      if (negative) v = 0 - v;
      x = static_cast<double>(static_cast<std::uint64_t>(v >> 64)) * 0x1p64 +
          static_cast<double>(static_cast<std::uint64_t>(v));
      if (negative) x = -x;
    }
    out[k] = x / divisor;
  }
}

template <class T>
void doubles(double* out, const std::byte* digits, std::span<const PrimeTables* const> primes,
             uint128 product, uint128 half, double divisor) {
  const T* const d = reinterpret_cast<const T*>(digits);
  if (product >> 63 == 0) {
    narrow_doubles(out, d, primes, static_cast<std::int64_t>(half), divisor);
  } else {
    wide_doubles(out, d, primes, half, divisor);
  }
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
    words_.push_back(product_words(std::span(q).subspan(i)).size());
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

void MixedRadix::compose(std::uint64_t* out, std::size_t words, std::size_t stride,
                         const std::byte* rows) const {
  const bool narrow = kernels_.word_bytes == 4;
  const std::size_t bytes = kBlock * static_cast<std::size_t>(kernels_.word_bytes);
  for (std::size_t w = 0; w < words; ++w) std::fill_n(out + w * stride, kBlock, 0);
  std::uint64_t carry[kBlock];
  for (std::size_t i = primes_.size(); i-- > 0;) {  // x q_i + d_i
    const std::uint64_t q = primes_[i]->row.q;
    for (std::size_t k = 0; k < kBlock; ++k) carry[k] = word(rows + i * bytes, k, narrow);
    for (std::size_t w = 0; w < words_[i]; ++w) {
      std::uint64_t* const x = out + w * stride;
      for (std::size_t k = 0; k < kBlock; ++k) {
        const uint128 t = uint128{x[k]} * q + carry[k];
        x[k] = static_cast<std::uint64_t>(t);
        carry[k] = static_cast<std::uint64_t>(t >> 64);
      }
    }
  }
}

SmallIntegers::SmallIntegers(const std::vector<const PrimeTables*>& primes,
                             const RowKernels& kernels)
    : primes_(primes),
      kernels_(kernels),
      head_(head_of(primes)),
      radix_({primes.begin(), primes.begin() + static_cast<std::ptrdiff_t>(head_)}, kernels) {
  for (std::size_t i = 0; i < head_; ++i) product_ *= primes[i]->row.q;
  half_ = product_ / 2;
  for (std::size_t i = 0; i < primes.size(); ++i) {
    const arith::Modulus& mod = primes[i]->mod;
    shift_.push_back(mod.reduce(half_));
    auto& factors = factors_.emplace_back();
    std::uint64_t product = 1;
    for (std::size_t j = 0; i >= head_ && j < head_; ++j) {
      factors.push_back(primes[i]->constant(mod.neg(product)));
      product = mod.mul(product, mod.reduce(primes[j]->row.q));
    }
  }
}

bool SmallIntegers::centred(double* out, std::span<const std::byte* const> rows, double divisor,
                            std::byte* scratch) const {
  const std::size_t bytes = kBlock * static_cast<std::size_t>(kernels_.word_bytes);
  const auto shifted = [&](std::size_t i, std::byte* to) {
    kernels_.add_scalar(to, rows[i], shift_[i], kBlock, primes_[i]->row);
    return to;
  };
  for (std::size_t i = 0; i < head_; ++i) shifted(i, scratch + i * bytes);
  radix_.digits(scratch);
  for (std::size_t i = head_; i < primes_.size(); ++i) {
    std::byte* const rest = shifted(i, scratch + head_ * bytes);
    for (std::size_t j = 0; j < head_; ++j) {
      kernels_.mul_scalar_add(rest, scratch + j * bytes, factors_[i][j], kBlock, primes_[i]->row);
    }
    if (!all_zero(rest, bytes)) return false;
  }
  const auto head = std::span(primes_).first(head_);
  if (kernels_.word_bytes == 4) {
    doubles<std::uint32_t>(out, scratch, head, product_, half_, divisor);
  } else {
    doubles<std::uint64_t>(out, scratch, head, product_, half_, divisor);
  }
  return true;
}

}  // namespace jali::backend::cpu
