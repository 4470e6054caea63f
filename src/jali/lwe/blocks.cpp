#include "jali/lwe/blocks.h"

#include "jali/backend/seeded.h"
#include "jali/base/checked.h"
#include "jali/base/error.h"

namespace jali::lwe {

LweBlock make_lwe(device::Pool& pool, Torus torus, LweDimension dimension, std::size_t count) {
  LweBlock out{torus, dimension, count, {}};
  out.data = pool.allocate(checked_mul(count, out.row_bytes()));
  return out;
}

GlweBlock make_glwe(device::Pool& pool, Torus torus, GlweDimension k, PolynomialSize N,
                    std::size_t count) {
  GlweBlock out{torus, k, N, count, {}, {}};
  out.data =
      pool.allocate(checked_mul(count, (k.value + 1) * N.value * backend::torus_bytes(torus)));
  return out;
}

GgswBlock make_ggsw(device::Pool& pool, Torus torus, GlweDimension k, PolynomialSize N,
                    const Gadget& gadget, std::size_t count) {
  GgswBlock out{gadget, {torus, k, N, 0, {}, {}}};
  out.rows = make_glwe(pool, torus, k, N, checked_mul(count, out.rows_each()));
  return out;
}

void expand_mask(void* mask, std::size_t bytes, const random::Seed& seed, std::uint64_t row) {
  backend::expand_rows(mask, seed, row, nullptr, bytes, 0, 1);
}

void expand(void* out, const SeededLwe& in, std::size_t first, std::size_t count) {
  require<InvalidArgument>(first <= in.count && count <= in.count - first,
                           "expand: there are fewer ciphertexts");
  const std::size_t word = backend::torus_bytes(in.torus);
  backend::expand_rows(out, in.seed, first,
                       static_cast<const std::byte*>(in.bodies.data()) + first * word,
                       in.dimension.value * word, word, count);
}

void expand(void* out, const SeededGlwe& in, std::size_t first, std::size_t count) {
  require<InvalidArgument>(first <= in.count && count <= in.count - first,
                           "expand: there are fewer ciphertexts");
  const std::size_t poly = in.N.value * backend::torus_bytes(in.torus);
  backend::expand_rows(out, in.seed, first,
                       static_cast<const std::byte*>(in.bodies.data()) + first * poly,
                       in.k.value * poly, poly, count);
}

LweBlock expand(device::Pool& pool, const SeededLwe& in) {
  LweBlock out = make_lwe(pool, in.torus, in.dimension, in.count);
  expand(out.data.data(), in, 0, in.count);
  return out;
}

GlweBlock expand(device::Pool& pool, const SeededGlwe& in) {
  GlweBlock out = make_glwe(pool, in.torus, in.k, in.N, in.count);
  expand(out.data.data(), in, 0, in.count);
  out.key_id = in.key_id;
  return out;
}

GgswBlock expand(device::Pool& pool, const SeededGgsw& in) {
  return {in.gadget, expand(pool, in.rows)};
}

}  // namespace jali::lwe
