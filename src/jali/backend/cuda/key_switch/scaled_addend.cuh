// ScaledAddend (rlwe_ops.h) as the kernels of the key product add it: a ciphertext times s = [P],
// added to the accumulators of a key switch before ModDown, so that the division by P leaves the
// ciphertext itself. The ciphertext may be a product, or a sum with another ciphertext, that exists
// nowhere in memory.
#pragma once

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/source.cuh"

namespace jali::backend::cuda {

/// Added on the limbs that the switched polynomial has, c = 0, 1:
///   s a_c or, if b is given, s (a0 b0, a0 b1 + a1 b0); if x is given, also x_scalar x_c; and the
///   constant, for c = 0.
/// a and b lie as in the source that is switched.
template <class W>
struct ScaledAddendView {
  const void *a0 = nullptr, *a1 = nullptr;  // null: nothing is added
  const void *b0 = nullptr, *b1 = nullptr;
  const void *x0 = nullptr, *x1 = nullptr;
  Limbs at_x{};  // where the limbs lie in x
  Scalars<W> s{}, x_scalar{}, constant{};
};

// Adds it to residues k, k + 1, .. of limb `own` of both accumulators.
template <class W, int V>
__device__ __forceinline__ void add_addend(const ScaledAddendView<W>& addend, const Source& source,
                                           unsigned own, unsigned row, unsigned k, int log_n,
                                           const typename W::Prime& prime, typename W::R (&r0)[V],
                                           typename W::R (&r1)[V]) {
  using R = typename W::R;
  const auto read = [&](const void* p, const Limbs& at, R(&x)[V]) {
    const std::size_t limb = at.prime[own];
    read_words<W, V>(
        static_cast<const typename W::Stored*>(p) + ((limb * source.batch + row) << log_n) + k, x);
  };
  const R scale = W::load(addend.s.s[own]), constant = W::load(addend.constant.s[own]);
  R a0[V], a1[V];
  read(addend.a0, source.at, a0), read(addend.a1, source.at, a1);
  if (addend.b0 != nullptr) {
    R b0[V], b1[V];
    read(addend.b0, source.at_b, b0), read(addend.b1, source.at_b, b1);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      typename W::Sum cross;
      W::add(cross, a0[i], b1[i], prime);
      W::add(cross, a1[i], b0[i], prime);
      a0[i] = mul_mod<W>(a0[i], b0[i], prime);
      a1[i] = W::total(cross, prime);
    }
  }
  typename W::Sum t0[V], t1[V];
#pragma unroll
  for (int i = 0; i < V; ++i) {
    t0[i] = W::sum_of(W::add_mod(r0[i], constant, prime)), t1[i] = W::sum_of(r1[i]);
    add_scaled<W>(t0[i], t1[i], a0[i], a1[i], scale, prime);
  }
  if (addend.x0 != nullptr) {
    const R factor = W::load(addend.x_scalar.s[own]);
    read(addend.x0, addend.at_x, a0), read(addend.x1, addend.at_x, a1);
#pragma unroll
    for (int i = 0; i < V; ++i) add_scaled<W>(t0[i], t1[i], a0[i], a1[i], factor, prime);
  }
#pragma unroll
  for (int i = 0; i < V; ++i) r0[i] = W::total(t0[i], prime), r1[i] = W::total(t1[i], prime);
}

}  // namespace jali::backend::cuda
