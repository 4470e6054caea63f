// What every blind rotation on a GPU takes. All memory is the device's.
#pragma once

#include <cstdint>

namespace jali::backend::cuda {

/// Number: what the prepared key consists of.
template <class Number>
struct RotationBatch {
  const std::uint32_t* in = nullptr;  // `count` small ciphertexts
  std::uint32_t count = 0;
  const void* tables = nullptr;
  const std::uint32_t* of_input = nullptr;  // null: all take the first table
  bool encrypted = false;  // tables are GLWE ciphertexts
  int log_many = 0;
  void* out = nullptr;  // large LWE ciphertexts, or, if glwe, accumulators
  bool glwe = false;
  const Number* key = nullptr;
};

}  // namespace jali::backend::cuda
