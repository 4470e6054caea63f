// Phases by the definitions of backend/torus.h, in the plainest way, and the noise of many of them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "jali/backend/torus.h"

namespace jali::test {

/// Word i of a block of the torus.
inline std::uint64_t word_at(const void* data, backend::Torus torus, std::size_t i) {
  if (torus == backend::Torus::t32) return static_cast<const std::uint32_t*>(data)[i];
  return static_cast<const std::uint64_t*>(data)[i];
}

/// x modulo 2^w as a signed integer.
inline std::int64_t centred(std::uint64_t x, backend::Torus torus) {
  if (torus == backend::Torus::t32) return static_cast<std::int32_t>(static_cast<std::uint32_t>(x));
  return static_cast<std::int64_t>(x);
}

/// b - <a, s> of an LWE ciphertext.
inline std::uint64_t lwe_phase(const backend::ConstLweView& in, std::size_t row,
                               std::span<const std::uint8_t> secret) {
  const std::size_t first = row * (in.dimension.value + 1);
  std::uint64_t sum = word_at(in.data, in.torus, first + in.dimension.value);
  for (std::size_t i = 0; i < secret.size(); ++i) {
    if (secret[i] != 0) sum -= word_at(in.data, in.torus, first + i);
  }
  return sum;
}

/// B - sum_c A_c S_c of a GLWE ciphertext, by the schoolbook.
inline std::vector<std::uint64_t> glwe_phase(const void* data, backend::Torus torus, std::size_t k,
                                             std::size_t n, std::size_t ciphertext,
                                             std::span<const std::uint8_t> secret) {
  const std::size_t first = ciphertext * (k + 1) * n;
  std::vector<std::uint64_t> out(n);
  for (std::size_t t = 0; t < n; ++t) out[t] = word_at(data, torus, first + k * n + t);
  for (std::size_t c = 0; c < k; ++c) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (secret[c * n + j] == 0) continue;
        const std::uint64_t a = word_at(data, torus, first + c * n + i);
        if (i + j < n) {
          out[i + j] -= a;
        } else {
          out[i + j - n] += a;
        }
      }
    }
  }
  return out;
}

/// Checks that errors look like TUniform(bits): none beyond 2^bits, the mean 0, and the variance
/// (2^(2 bits + 1) + 1) / 6, each within 6.5 standard deviations, which a correct sampler leaves
/// with a probability below 1e-9.
inline void expect_tuniform(const std::vector<std::int64_t>& errors, int bits) {
  const double edge = std::ldexp(1.0, bits), n = static_cast<double>(errors.size());
  double sum = 0, squares = 0;
  for (const std::int64_t error : errors) {
    const double x = static_cast<double>(error) / edge;
    ASSERT_LE(std::abs(x), 1);
    sum += x;
    squares += x * x;
  }
  const double variance = (2 + std::ldexp(1.0, -2 * bits)) / 6;
  // The fourth moment, by the sum over all values if they are few; a continuous variable has 1/5.
  double fourth = 0.2;
  if (bits <= 10) {
    fourth = 1 / edge / 2;  // both ends, of half the weight each
    for (double x = 1 - edge; x < edge; ++x) fourth += std::pow(x / edge, 4) / (2 * edge);
  }
  EXPECT_LT(std::abs(sum / n), 6.5 * std::sqrt(variance / n));
  EXPECT_LT(std::abs(squares / n - variance), 6.5 * std::sqrt((fourth - variance * variance) / n));
}

}  // namespace jali::test
