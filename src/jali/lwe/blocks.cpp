#include "jali/lwe/blocks.h"

#include <bit>
#include <cstring>

#include "jali/base/checked.h"
#include "jali/base/error.h"

namespace jali::lwe {

static_assert(std::endian::native == std::endian::little,
              "masks are words with the least significant byte first");

LweBlock make_lwe(device::Pool& pool, Torus torus, LweDimension dimension, std::size_t count) {
  LweBlock out{torus, dimension, count, {}};
  out.data = pool.allocate(checked_mul(count, out.row_bytes()));
  return out;
}

GlweBlock make_glwe(device::Pool& pool, Torus torus, GlweDimension k, PolynomialSize N,
                    std::size_t count) {
  GlweBlock out{torus, k, N, count, {}};
  out.data =
      pool.allocate(checked_mul(count, (k.value + 1) * N.value * backend::torus_bytes(torus)));
  return out;
}

void expand_mask(void* mask, std::size_t bytes, const random::Seed& seed, std::uint64_t row) {
  random::Prng prng(seed, row);
  prng.fill({static_cast<std::uint8_t*>(mask), bytes});
}

namespace {

/// Rows of `mask_bytes` from the seed and `body_bytes` from `bodies`.
void expand_rows(void* out, const random::Seed& seed, const void* bodies, std::size_t mask_bytes,
                 std::size_t body_bytes, std::size_t first, std::size_t count) {
  auto* at = static_cast<std::byte*>(out);
  const auto* body = static_cast<const std::byte*>(bodies) + first * body_bytes;
  for (std::size_t i = 0; i < count; ++i, body += body_bytes) {
    expand_mask(at, mask_bytes, seed, first + i);
    std::memcpy(at + mask_bytes, body, body_bytes);
    at += mask_bytes + body_bytes;
  }
}

}  // namespace

void expand(void* out, const SeededLwe& in, std::size_t first, std::size_t count) {
  require<InvalidArgument>(first <= in.count && count <= in.count - first,
                           "expand: there are fewer ciphertexts");
  const std::size_t word = backend::torus_bytes(in.torus);
  expand_rows(out, in.seed, in.bodies.data(), in.dimension.value * word, word, first, count);
}

void expand(void* out, const SeededGlwe& in, std::size_t first, std::size_t count) {
  require<InvalidArgument>(first <= in.count && count <= in.count - first,
                           "expand: there are fewer ciphertexts");
  const std::size_t poly = in.N.value * backend::torus_bytes(in.torus);
  expand_rows(out, in.seed, in.bodies.data(), in.k.value * poly, poly, first, count);
}

LweBlock expand(device::Pool& pool, const SeededLwe& in) {
  LweBlock out = make_lwe(pool, in.torus, in.dimension, in.count);
  expand(out.data.data(), in, 0, in.count);
  return out;
}

GlweBlock expand(device::Pool& pool, const SeededGlwe& in) {
  GlweBlock out = make_glwe(pool, in.torus, in.k, in.N, in.count);
  expand(out.data.data(), in, 0, in.count);
  return out;
}

}  // namespace jali::lwe
