// Sums and products of ciphertexts that join the sums of a key switch.
#pragma once

#include "jali/backend/cuda/tile.cuh"

namespace jali::backend::cuda {

/// What joins the sums on the limbs that x has: s a_c, or with a b s (a0 b0, a0 b1 + a1 b0); with an x
/// x_c too, by a factor of its own; and a constant to the first sum. a and b lie as in the source that is switched.
struct Joining {
  const void *a0 = nullptr, *a1 = nullptr;  // null: nothing joins
  const void *b0 = nullptr, *b1 = nullptr;
  const void *x0 = nullptr, *x1 = nullptr;
  Limbs at_x;  // where the limbs lie in x
};
/// One a limb each.
template <class W>
struct JoinFactors {
  typename W::Stored s[kMaxLimbs], x[kMaxLimbs], constant[kMaxLimbs];
};

// Adds what joins residues k, k + 1, .. of limb `own` of x to those of both sums.
template <class W, int V>
__device__ __forceinline__ void join(const Joining& joining, const JoinFactors<W>& factors,
                                     const Source& source, unsigned own, unsigned row, unsigned k,
                                     int log_n, const typename W::Prime& prime,
                                     typename W::R (&r0)[V], typename W::R (&r1)[V]) {
  using R = typename W::R;
  const auto read = [&](const void* p, const Limbs& at, R(&x)[V]) {
    const std::size_t limb = at.prime[own];
    read_words<W, V>(
        static_cast<const typename W::Stored*>(p) + ((limb * source.batch + row) << log_n) + k, x);
  };
  const R scale = W::load(factors.s[own]), constant = W::load(factors.constant[own]);
  R a0[V], a1[V];
  read(joining.a0, source.at, a0), read(joining.a1, source.at, a1);
  if (joining.b0 != nullptr) {
    R b0[V], b1[V];
    read(joining.b0, source.at_b, b0), read(joining.b1, source.at_b, b1);
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
    W::add(t0[i], a0[i], scale, prime);
    W::add(t1[i], a1[i], scale, prime);
  }
  if (joining.x0 != nullptr) {
    const R factor = W::load(factors.x[own]);
    read(joining.x0, joining.at_x, a0), read(joining.x1, joining.at_x, a1);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      W::add(t0[i], a0[i], factor, prime);
      W::add(t1[i], a1[i], factor, prime);
    }
  }
#pragma unroll
  for (int i = 0; i < V; ++i) r0[i] = W::total(t0[i], prime), r1[i] = W::total(t1[i], prime);
}

}  // namespace jali::backend::cuda
