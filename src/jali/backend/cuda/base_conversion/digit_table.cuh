// The digits of a polynomial: runs of its limbs that are converted together.
#pragma once

#include <cstdint>

namespace jali::backend::cuda {

constexpr unsigned kMaxDigits = 128;

/// Where the digits of a block lie in it, and their rows of the matrix. By value.
struct DigitTable {
  std::uint16_t begin[kMaxDigits], count[kMaxDigits];
  std::uint32_t matrix[kMaxDigits];
  unsigned digits;
};

}  // namespace jali::backend::cuda
