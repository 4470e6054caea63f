// Blocks of ciphertexts: LWE, GLWE and GGSW, whole or with their masks as a seed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/torus.h"
#include "jali/base/key_id.h"
#include "jali/device/buffer.h"
#include "jali/random/prng.h"

namespace jali::lwe {

using backend::Gadget;
using backend::GlweDimension;
using backend::LweDimension;
using backend::PolynomialSize;
using backend::Torus;

/// LWE ciphertexts, one after the other (backend/torus.h).
struct LweBlock {
  Torus torus = Torus::t64;
  LweDimension dimension;
  std::size_t count = 0;
  device::Buffer data;

  std::size_t row_words() const { return dimension.value + 1; }
  std::size_t row_bytes() const { return row_words() * backend::torus_bytes(torus); }
  std::size_t bytes() const { return count * row_bytes(); }
  backend::LweView view() { return {data.data(), torus, dimension, count}; }
  backend::ConstLweView view() const { return {data.data(), torus, dimension, count}; }
  /// Rows [first, first + number).
  backend::LweView part(std::size_t first, std::size_t number) {
    return {static_cast<std::byte*>(data.data()) + first * row_bytes(), torus, dimension, number};
  }
  backend::ConstLweView part(std::size_t first, std::size_t number) const {
    return {static_cast<const std::byte*>(data.data()) + first * row_bytes(), torus, dimension,
            number};
  }
};

/// GLWE ciphertexts, one after the other.
struct GlweBlock {
  Torus torus = Torus::t64;
  GlweDimension k;
  PolynomialSize N;
  std::size_t count = 0;
  device::Buffer data;
  KeyId key_id{};  // none: anybody can read them

  std::size_t words() const { return count * (k.value + 1) * N.value; }
  std::size_t bytes() const { return words() * backend::torus_bytes(torus); }
  backend::GlweView view() { return {data.data(), count}; }
  backend::ConstGlweView view() const { return {data.data(), count}; }
};

/// GGSW ciphertexts, one after the other, each of which is (k + 1) l rows that are GLWE
/// ciphertexts.
struct GgswBlock {
  Gadget gadget;
  GlweBlock rows;

  std::size_t rows_each() const {
    return (rows.k.value + 1) * static_cast<std::size_t>(gadget.levels);
  }
  std::size_t count() const { return rows.count / rows_each(); }
  /// The rows of ciphertext i, in the form that TfheOps::pack takes keys in.
  const void* at(std::size_t i) const {
    const std::size_t each = (rows.k.value + 1) * rows.N.value * backend::torus_bytes(rows.torus);
    return static_cast<const std::byte*>(rows.data.data()) + i * rows_each() * each;
  }
};

/// Blocks with undefined contents.
LweBlock make_lwe(device::Pool& pool, Torus torus, LweDimension dimension, std::size_t count);
GlweBlock make_glwe(device::Pool& pool, Torus torus, GlweDimension k, PolynomialSize N,
                    std::size_t count);
GgswBlock make_ggsw(device::Pool& pool, Torus torus, GlweDimension k, PolynomialSize N,
                    const Gadget& gadget, std::size_t count);

/// The bodies of LWE ciphertexts in host memory, with a seed for their masks. The mask of
/// ciphertext i is the first words of stream i of the seed (random/prng.h), with the least
/// significant byte first.
struct SeededLwe {
  random::Seed seed{};
  Torus torus = Torus::t64;
  LweDimension dimension;
  std::size_t count = 0;
  device::Buffer bodies;  // count words

  std::size_t bytes() const { return sizeof(seed) + count * backend::torus_bytes(torus); }
};

/// The same for GLWE ciphertexts. Mask polynomial c of ciphertext i is words c N to (c + 1) N - 1
/// of stream i.
struct SeededGlwe {
  random::Seed seed{};
  Torus torus = Torus::t64;
  GlweDimension k;
  PolynomialSize N;
  std::size_t count = 0;
  device::Buffer bodies;  // count polynomials of N words
  KeyId key_id{};

  std::size_t bytes() const { return sizeof(seed) + count * N.value * backend::torus_bytes(torus); }
};

/// The same for GGSW ciphertexts.
struct SeededGgsw {
  Gadget gadget;
  SeededGlwe rows;

  std::size_t count() const {
    return rows.count / ((rows.k.value + 1) * static_cast<std::size_t>(gadget.levels));
  }
};

/// Fills the mask words of ciphertext `row` of a seed.
void expand_mask(void* mask, std::size_t bytes, const random::Seed& seed, std::uint64_t row);
/// Ciphertexts [first, first + count) of a seeded block, whole, at host address `out`.
void expand(void* out, const SeededLwe& in, std::size_t first, std::size_t count);
void expand(void* out, const SeededGlwe& in, std::size_t first, std::size_t count);
/// The whole block, in host memory of the pool.
LweBlock expand(device::Pool& pool, const SeededLwe& in);
GlweBlock expand(device::Pool& pool, const SeededGlwe& in);
GgswBlock expand(device::Pool& pool, const SeededGgsw& in);

}  // namespace jali::lwe
