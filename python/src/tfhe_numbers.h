// Integers and their digits, on the client's side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/base/secret_vector.h"
#include "tfhe.h"

namespace jali::python {

/// The digits of integers of so many bits, those of one together, the lowest first.
inline SecretVector<std::uint64_t> digits_of(std::span<const std::uint64_t> words, int bits,
                                             const tfhe::Params& params) {
  const auto m = static_cast<std::size_t>(params.message_bits());
  const std::size_t count = (static_cast<std::size_t>(bits) + m - 1) / m;
  SecretVector<std::uint64_t> out(words.size() * count);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = words[i / count] >> (i % count * m) & ((std::uint64_t{1} << m) - 1);
  }
  return out;
}

/// The messages or, of integers, the sums of their digits modulo 2^bits, with the sign in every bit
/// above.
inline SecretVector<std::uint64_t> words_of(std::span<const std::uint64_t> digits,
                                            const tfhe::Layout& layout,
                                            const tfhe::Params& params) {
  if (layout.bits == 0) return {digits.begin(), digits.end()};
  const auto m = static_cast<std::size_t>(params.message_bits());
  const std::size_t count = layout.digits(params);
  SecretVector<std::uint64_t> out(digits.size() / count);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    out[i / count] += digits[i] << (i % count * m);
  }
  const int unused = 64 - layout.bits;
  for (std::uint64_t& word : out) {
    word <<= unused;
    word = layout.is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(word) >> unused)
                            : word >> unused;
  }
  return out;
}

}  // namespace jali::python
