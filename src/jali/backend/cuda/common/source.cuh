// Polynomials in NTT form as kernels read them: as they lie, under an automorphism, or as products.
#pragma once

#include <cstdint>

#include "jali/backend/cuda/ntt/load_store.cuh"

namespace jali::backend::cuda {

/// Index of the NTT-form source of sigma_g: value k is the evaluation at psi^(2 brv(k) + 1). An
/// aligned run of 2^m values comes from an aligned run of 2^m.
__device__ inline unsigned source_ntt(unsigned k, std::uint64_t g, int log_n) {
  const unsigned e = 2 * (__brev(k) >> (32 - log_n)) + 1;
  const unsigned target = static_cast<unsigned>((e * g) & ((2ull << log_n) - 1));
  return __brev((target - 1) / 2) >> (32 - log_n);
}

/// Polynomials that go through a kernel together.
constexpr unsigned kMaxParts = 8;
__device__ __forceinline__ unsigned part_of(unsigned row, unsigned batch) {
  return row < batch ? 0 : row < 2 * batch ? 1 : row / batch;
}

/// Polynomials as kernels read them: sigma_g(a), or a b or 2 a b; each part has `batch` rows a limb
/// and an automorphism of its own.
struct Source {
  const void* a[kMaxParts] = {};
  const void* b = nullptr;
  bool twice = false;
  std::uint32_t g[kMaxParts] = {1, 1, 1, 1, 1, 1, 1, 1};
  unsigned batch = 1;  // of a part
  Limbs at, at_b;  // where its limbs lie in a, in b

  /// f(read): read(k, x) has residues k, k + 1, .. of row `row` (of all parts) of limb `limb`; k a
  /// multiple of V, at most sixteen bytes. Which kind of source it is, is decided once, so that a
  /// thread's reads start together.
  template <class W, class F>
  __device__ __forceinline__ void reading(unsigned limb, unsigned row, int log_n,
                                          const typename W::Prime& prime, F&& f) const {
    using Stored = typename W::Stored;
    using R = typename W::R;
    const unsigned part = part_of(row, batch), r = row - part * batch;
    const auto begin = [&](const void* p, const Limbs& limbs) {
      return static_cast<const Stored*>(p) +
             ((static_cast<std::size_t>(limbs.prime[limb]) * batch + r) << log_n);
    };
    const Stored* from = begin(a[part], at);
    const std::uint64_t turn = g[part];
    if (b != nullptr) {
      const Stored* other = begin(b, at_b);
      const auto product = [&]<int V>(unsigned k, R(&x)[V]) {
        R y[V];
        read_words<W, V>(from + k, x), read_words<W, V>(other + k, y);
#pragma unroll
        for (int i = 0; i < V; ++i) x[i] = mul_mod<W>(x[i], y[i], prime);
      };
      if (!twice) return f(product);
      f([&]<int V>(unsigned k, R(&x)[V]) {
        product(k, x);
#pragma unroll
        for (int i = 0; i < V; ++i) x[i] = W::add_mod(x[i], x[i], prime);
      });
    } else if (turn == 1) {
      f([&]<int V>(unsigned k, R(&x)[V]) { read_words<W, V>(from + k, x); });
    } else {
      f([&]<int V>(unsigned k, R(&x)[V]) {
        R run[V];
        read_words<W, V>(from + (source_ntt(k, turn, log_n) & ~(V - 1u)), run);
#pragma unroll
        for (int i = 0; i < V; ++i) {
          const unsigned place = source_ntt(k + i, turn, log_n) & (V - 1u);
          x[i] = run[0];
#pragma unroll
          for (int j = 1; j < V; ++j) x[i] = place == static_cast<unsigned>(j) ? run[j] : x[i];
        }
      });
    }
  }
};

}  // namespace jali::backend::cuda
