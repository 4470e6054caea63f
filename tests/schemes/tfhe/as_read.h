// Fresh encryptions as somebody has them who read their bytes.
#pragma once

#include <cstring>
#include <utility>

#include "jali/schemes/tfhe/ciphertext.h"

namespace jali::test {

/// The same ciphertext with its seed and bodies instead of its words.
inline tfhe::Ciphertext as_read(tfhe::Ciphertext x) {
  const lwe::LweBlock& whole = *x.data;
  const std::size_t row = whole.row_bytes(), word = backend::torus_bytes(whole.torus);
  lwe::SeededLwe rows{x.seed.value(), whole.torus, whole.dimension, whole.count, {}};
  rows.bodies = device::Pool::create()->allocate(whole.count * word);
  for (std::size_t i = 0; i < whole.count; ++i) {
    std::memcpy(static_cast<std::byte*>(rows.bodies.data()) + i * word,
                static_cast<const std::byte*>(whole.data.data()) + (i + 1) * row - word, word);
  }
  x.data = lwe::SharedLwe(std::move(rows));
  return x;
}

}  // namespace jali::test
