// Mathematics. Forward, natural to bit-reversed: stage t splits each of 2^t blocks i of length
// N / 2^t by X^len - r = (X^(len/2) - w)(X^(len/2) + w), w = forward[2^t + i]: (x, y) -> (x + w y,
// x - w y). Inverse: the same splits undone from the last to the first, then N^-1.
//
// Kernel. A pass runs kM stages on tiles of 2^(kM + kX) residues, 16 or 8 a thread, in groups of up
// to 4 or 3 stages that stay in registers (a radix-16 or radix-8 butterfly); between groups the tile is exchanged through
// shared memory. Short rows are one pass over contiguous tiles. Longer ones are two: the first stages
// on tiles of columns (element row * stride + column), the others on the contiguous blocks that are
// left. Rows go through both passes in chunks that stay in L2.
#include <algorithm>

#include "jali/backend/cuda/check.cuh"
#include "jali/backend/cuda/ntt.cuh"

namespace jali::backend::cuda {

namespace {

__host__ __device__ constexpr int group_start(int m, int h, int k) {
  int u = 0;
  for (int i = 0; i < k; ++i) u += group_size(m, h, i);
  return u;
}

// One word of padding in 16 keeps the strides of all groups off the same bank.
__device__ inline unsigned padded(unsigned i) { return i + (i >> 4); }

struct PassShape {
  int log_n;
  int t0;  // first stage of this pass
  unsigned batch;
  unsigned first_limb;
  unsigned rows_per_block;  // rows of one limb that a block transforms in turn, sharing twiddles
};

template <class W, int kM, int kX, bool kColumns>
struct Tile {
  static constexpr int kHeld = kLogHeld<W>;
  static constexpr int kLog = kM + kX;
  static constexpr unsigned kSize = 1u << kLog;
  static constexpr unsigned kThreads = kSize >> kHeld;
  static constexpr int kGroups = group_count(kM, kHeld);

  /// Where a unit of the group of g stages from stage u lies: its first element in the tile, log2 of
  /// the distance between its elements, and its node at stage u, counted within the tile.
  struct Unit {
    unsigned local, node, gap;
  };
  static __device__ __forceinline__ Unit unit(unsigned unit, int u, int g) {
    const int gap = kM - u - g;
    if constexpr (kColumns) {
      const unsigned column = unit & ((1u << kX) - 1), rest = unit >> kX;
      const unsigned offset = rest & ((1u << gap) - 1), i = rest >> gap;
      return {(((i << (gap + g)) + offset) << kX) + column, i, static_cast<unsigned>(gap + kX)};
    } else {
      const unsigned offset = unit & ((1u << gap) - 1), rest = unit >> gap;  // rest = (block, i)
      return {(rest << (gap + g)) + offset, rest, static_cast<unsigned>(gap)};
    }
  }
  /// Place of tile element `local` in its row.
  static __device__ __forceinline__ std::size_t place(const PassShape& s, unsigned tile,
                                                      unsigned local) {
    if constexpr (kColumns) {
      const int stride = s.log_n - kM;
      return (static_cast<std::size_t>(local >> kX) << stride) + (tile << kX) +
             (local & ((1u << kX) - 1));
    } else {
      return (static_cast<std::size_t>(tile) << kLog) + local;
    }
  }
};

// One of kG stages on 2^kG registers: 2^kS butterflies share a twiddle each.
template <class W, bool kInverse, bool kLeaf, int kG, int kS>
__device__ __forceinline__ void stage(typename W::R* x, unsigned t, unsigned node,
                                      const typename W::Twiddle* __restrict__ twiddle,
                                      const typename W::Prime& prime) {
  const auto* w = twiddle + (1u << (t + kS)) + (kLeaf ? node : node << kS);
  const unsigned step =
      kLeaf ? 1u << t : 1;  // leaves: group-major, so that a warp reads neighbours
  constexpr int kHalf = (1 << kG) >> (kS + 1);
#pragma unroll
  for (int p = 0; p < (1 << kG) / 2; ++p) {
    const int group = p / kHalf, at = group * 2 * kHalf + p % kHalf;
    const auto f = W::twiddle(w[group * step]);
    if constexpr (kInverse) {
      W::inverse_butterfly(x[at], x[at + kHalf], f, prime);
    } else {
      W::butterfly(x[at], x[at + kHalf], f, prime);
    }
  }
}

template <class W, bool kInverse, bool kLeaf, int kG, int kS>
__device__ __forceinline__ void stages(typename W::R* x, unsigned t, unsigned node,
                                       const typename W::Twiddle* __restrict__ twiddle,
                                       const typename W::Prime& prime) {
  stage<W, kInverse, kLeaf, kG, kS>(x, t, node, twiddle, prime);
  if constexpr (!kInverse && kS + 1 < kG) {
    stages<W, false, kLeaf, kG, kS + 1>(x, t, node, twiddle, prime);
  }
  if constexpr (kInverse && kS > 0) stages<W, true, kLeaf, kG, kS - 1>(x, t, node, twiddle, prime);
}

/// What one thread does for one row.
template <class W, int kM, int kX, bool kColumns, bool kInverse>
struct Worker {
  using T = Tile<W, kM, kX, kColumns>;
  using R = typename W::R;
  static constexpr int kHeld = 1 << T::kHeld;
  static constexpr int kLast = T::kGroups - 1;

  R* shared;
  typename W::Stored* row;
  const PassShape& shape;
  unsigned tile, index;
  const typename W::Twiddle* __restrict__ twiddle;
  const typename W::Prime& prime;
  const Factor<R>* __restrict__ n_inverse;

  // f(register, place in the tile) for the elements of group kK that this thread holds.
  template <int kK, class F>
  static __device__ __forceinline__ void each(F&& f) {
    constexpr int kG = group_size(kM, T::kHeld, kK), kU = group_start(kM, T::kHeld, kK);
#pragma unroll
    for (int e = 0; e < kHeld; ++e) {
      const auto unit = T::unit(threadIdx.x + (e >> kG) * T::kThreads, kU, kG);
      f(e, unit.local + (static_cast<unsigned>(e & ((1 << kG) - 1)) << unit.gap));
    }
  }
  template <int kK, int kUnit = 0>
  __device__ __forceinline__ void compute(R (&x)[kHeld]) const {
    constexpr int kG = group_size(kM, T::kHeld, kK), kU = group_start(kM, T::kHeld, kK);
    if constexpr (kUnit == 0) {
#pragma unroll
      for (int e = 0; e < kHeld; ++e) {
        if constexpr (kInverse) {
          W::settle_inverse(x[e], prime);
        } else {
          W::settle_forward(x[e], prime);
        }
      }
    }
    const auto unit = T::unit(threadIdx.x + kUnit * T::kThreads, kU, kG);
    // Contiguous tiles hold 2^kX whole blocks of stage t0.
    const unsigned node = kColumns ? unit.node : (tile << (kX + kU)) + unit.node;
    stages<W, kInverse, !kColumns && kK == kLast, kG, kInverse ? kG - 1 : 0>(
        x + (kUnit << kG), static_cast<unsigned>(shape.t0 + kU), node, twiddle, prime);
    if constexpr (((kUnit + 1) << kG) < kHeld) compute<kK, kUnit + 1>(x);
  }
  template <int kK>
  __device__ __forceinline__ void put(const R (&x)[kHeld]) const {
    each<kK>([&](int e, unsigned local) { shared[padded(local)] = x[e]; });
  }
  template <int kK>
  __device__ __forceinline__ void get(R (&x)[kHeld]) const {
    each<kK>([&](int e, unsigned local) { x[e] = shared[padded(local)]; });
  }
  template <int kK>
  __device__ __forceinline__ void load(R (&x)[kHeld]) const {
    each<kK>([&](int e, unsigned local) { x[e] = W::load(row[T::place(shape, tile, local)]); });
  }
  __device__ __forceinline__ typename W::Stored finish(R v) const {
    if (kInverse && shape.t0 == 0) {
      W::settle_inverse(v, prime);
      v = W::mul_lazy(v, n_inverse[index], prime);
    }
    return W::store(v, prime);
  }
  template <int kK>
  __device__ __forceinline__ void save(const R (&x)[kHeld]) const {
    each<kK>([&](int e, unsigned local) { row[T::place(shape, tile, local)] = finish(x[e]); });
  }
  // From group kFrom's places to group kTo's.
  template <int kFrom, int kTo>
  __device__ __forceinline__ void exchange(R (&x)[kHeld]) const {
    __syncthreads();
    put<kFrom>(x);
    __syncthreads();
    get<kTo>(x);
  }
  template <int kK>
  __device__ __forceinline__ void forward_from(R (&x)[kHeld]) const {
    compute<kK>(x);
    if constexpr (kK < kLast) {
      exchange<kK, kK + 1>(x);
      forward_from<kK + 1>(x);
    }
  }
  template <int kK>
  __device__ __forceinline__ void inverse_from(R (&x)[kHeld]) const {
    compute<kK>(x);
    if constexpr (kK > 0) {
      exchange<kK, kK - 1>(x);
      inverse_from<kK - 1>(x);
    }
  }
  // A contiguous tile's last group holds neighbours: it meets memory through the tile.
  __device__ __forceinline__ void run() const {
    R x[kHeld];
    if constexpr (!kInverse) {
      load<0>(x);
      forward_from<0>(x);
      if constexpr (kColumns) {
        save<kLast>(x);
      } else {
        __syncthreads();
        put<kLast>(x);
        __syncthreads();
#pragma unroll
        for (int e = 0; e < kHeld; ++e) {
          const unsigned i = threadIdx.x + static_cast<unsigned>(e) * T::kThreads;
          row[T::place(shape, tile, i)] = finish(shared[padded(i)]);
        }
      }
    } else {
      if constexpr (kColumns) {
        load<kLast>(x);
      } else {
        __syncthreads();
#pragma unroll
        for (int e = 0; e < kHeld; ++e) {
          const unsigned i = threadIdx.x + static_cast<unsigned>(e) * T::kThreads;
          shared[padded(i)] = W::load(row[T::place(shape, tile, i)]);
        }
        __syncthreads();
        get<kLast>(x);
      }
      inverse_from<kLast>(x);
      save<0>(x);
    }
  }
};

template <class W, int kM, int kX, bool kColumns, bool kInverse>
__global__ void __launch_bounds__(Tile<W, kM, kX, kColumns>::kThreads,
                                  1024 / Tile<W, kM, kX, kColumns>::kThreads)
    pass(typename W::Stored* data, PassShape shape, Limbs limbs, const typename W::Prime* primes,
         const typename W::Twiddle* twiddles, const Factor<typename W::R>* n_inverse) {
  extern __shared__ __align__(16) unsigned char shared[];
  const unsigned limb = blockIdx.z + shape.first_limb;
  const unsigned index = limbs.prime[limb];
  if (index == kSkip) return;
  const typename W::Prime prime = primes[index];
  const auto* twiddle = twiddles + (static_cast<std::size_t>(index) << shape.log_n);
  const unsigned end = min(shape.batch, (blockIdx.y + 1) * shape.rows_per_block);
  for (unsigned b = blockIdx.y * shape.rows_per_block; b < end; ++b) {
    auto* row = data + ((static_cast<std::size_t>(limb) * shape.batch + b) << shape.log_n);
    Worker<W, kM, kX, kColumns, kInverse>{reinterpret_cast<typename W::R*>(shared),
                                          row,
                                          shape,
                                          blockIdx.x,
                                          index,
                                          twiddle,
                                          prime,
                                          n_inverse}
        .run();
  }
}

template <class W>
struct Call {
  const Stream& stream;
  const Tables<W>& tables;
  typename W::Stored* data;
  const Limbs& limbs;
  unsigned batch;
  int log_n;

  template <int kM, int kX, bool kColumns, bool kInverse>
  void launch(unsigned first_limb, unsigned limb_count) const {
    using T = Tile<W, kM, kX, kColumns>;
    require<InternalError>(kColumns || kM == contiguous_stages<W>(log_n),
                           "the twiddles are laid out for other passes");
    const std::size_t bytes = sizeof(typename W::R) * (T::kSize + T::kSize / 16);
    auto* kernel = pass<W, kM, kX, kColumns, kInverse>;
    if (bytes > (48 << 10)) {
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(bytes)),
            "NTT shared memory");
    }
    const unsigned per_block = 1;  // more rows a block share twiddles, but leave SMs idle at the end
    const PassShape shape{log_n, kColumns ? 0 : log_n - kM, batch, first_limb, per_block};
    const dim3 grid(1u << (log_n - T::kLog), (batch + per_block - 1) / per_block, limb_count);
    kernel<<<grid, T::kThreads, bytes, stream.get()>>>(
        data, shape, limbs, tables.primes.template as<typename W::Prime>(),
        (kInverse ? tables.inverse : tables.forward).template as<typename W::Twiddle>(),
        tables.n_inverse.template as<Factor<typename W::R>>());
    check_launch(kInverse ? "intt" : "ntt");
  }

  template <int kM1, int kX1, int kM2, int kX2, bool kInverse>
  void two_passes(unsigned limb_count) const {
    // Chunks of limbs that stay in L2 between the passes.
    const std::size_t limb_bytes = (sizeof(typename W::Stored) * batch) << log_n;
    const auto chunk = static_cast<unsigned>(std::max<std::size_t>(1, (32u << 20) / limb_bytes));
    for (unsigned first = 0; first < limb_count; first += chunk) {
      const unsigned count = std::min(chunk, limb_count - first);
      if constexpr (!kInverse) launch<kM1, kX1, true, false>(first, count);
      launch<kM2, kX2, false, kInverse>(first, count);
      if constexpr (kInverse) launch<kM1, kX1, true, true>(first, count);
    }
  }

  template <bool kInverse>
  void run(unsigned limb_count) const {
    constexpr bool kNarrow = sizeof(typename W::Stored) == 4;
    constexpr int kC = kNarrow ? 4 : 3;  // columns of 64 bytes
    switch (log_n) {
      case 10: return launch<10, 0, false, kInverse>(0, limb_count);
      case 11: return launch<11, 0, false, kInverse>(0, limb_count);
      case 12: return launch<12, 0, false, kInverse>(0, limb_count);
      case 13: return launch<13, 0, false, kInverse>(0, limb_count);
      case 14:
        if constexpr (kNarrow) {
          return launch<14, 0, false, kInverse>(0, limb_count);
        } else {
          return two_passes<7, kC, 7, kC, kInverse>(limb_count);
        }
      case 15: return two_passes<7, kC, 8, kC, kInverse>(limb_count);
      case 16: return two_passes<8, kC, 8, kC, kInverse>(limb_count);
      case 17: return two_passes<8, kC, 9, kC - 1, kInverse>(limb_count);
      default: throw InvalidArgument("the GPU engine transforms N = 2^10 to 2^17");
    }
  }
};

}  // namespace

template <class W>
void ntt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
         const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n) {
  if (limb_count == 0) return;
  Call<W>{stream, tables, data, limbs, batch, log_n}.template run<false>(limb_count);
}
template <class W>
void intt(const Stream& stream, const Tables<W>& tables, typename W::Stored* data,
          const Limbs& limbs, unsigned limb_count, unsigned batch, int log_n) {
  if (limb_count == 0) return;
  Call<W>{stream, tables, data, limbs, batch, log_n}.template run<true>(limb_count);
}

#define JALI_INSTANTIATE(W)                                                                  \
  template void ntt<W>(const Stream&, const Tables<W>&, W::Stored*, const Limbs&, unsigned,  \
                       unsigned, int);                                                       \
  template void intt<W>(const Stream&, const Tables<W>&, W::Stored*, const Limbs&, unsigned, \
                        unsigned, int);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
