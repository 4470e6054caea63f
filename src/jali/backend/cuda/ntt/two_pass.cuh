// Mathematics: butterflies.cuh. A row crosses device memory twice.
//
// Kernel. The first stages work on tiles of columns (element row * stride + column), the others on the
// contiguous blocks that are left. A pass runs kM stages on tiles of 2^(kM + kX) residues, 2^kHeld a
// thread, in groups that stay in registers; between groups the tile is exchanged through shared memory.
// Rows go through both passes in chunks that stay in L2.
#pragma once

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/ntt/butterflies.cuh"
#include "jali/backend/cuda/ntt/load_store.cuh"
#include "jali/backend/cuda/ntt/variant.cuh"

namespace jali::backend::cuda {

struct PassShape {
  int log_n;
  int t0;  // first stage of this pass
  unsigned first_limb;
};

template <class W, int kM, int kX, bool kColumns>
struct Tile {
  static constexpr int kHeld = kPassHeld<W>;
  static constexpr int kLog = kM + kX;
  static constexpr int kSize = 1 << kLog;
  static constexpr int kThreads = kSize >> kHeld;
  static constexpr int kGroups = group_count(kM, kHeld);
  // One word of padding in 16 keeps the strides of all groups off the same bank.
  static constexpr __host__ __device__ int padded(int i) { return i + (i >> 4); }
  static constexpr std::size_t kBytes = sizeof(typename W::R) * (kSize + kSize / 16);

  /// Where a unit of the group of g stages from stage u lies: its first element in the tile, log2 of
  /// the distance between its elements, and its node at stage u, counted within the tile.
  struct Unit {
    int local, node, gap;
  };
  static __device__ __forceinline__ Unit unit(int unit, int u, int g) {
    const int gap = kM - u - g;
    if constexpr (kColumns) {
      const int column = unit & ((1 << kX) - 1), rest = unit >> kX;
      const int offset = rest & ((1 << gap) - 1), i = rest >> gap;
      return {(((i << (gap + g)) + offset) << kX) + column, i, gap + kX};
    } else {
      const int offset = unit & ((1 << gap) - 1), rest = unit >> gap;  // rest = (block, i)
      return {(rest << (gap + g)) + offset, rest, gap};
    }
  }
  /// Place of tile element `local` in its row.
  static __device__ __forceinline__ int place(const PassShape& s, int tile, int local) {
    if constexpr (kColumns) {
      return (local >> kX << (s.log_n - kM)) + (tile << kX) + (local & ((1 << kX) - 1));
    } else {
      return (tile << kLog) + local;
    }
  }
};

/// What one thread does for one row.
template <class W, int kM, int kX, bool kColumns, bool kInverse, class Load, class Store>
struct PassWorker {
  using T = Tile<W, kM, kX, kColumns>;
  using R = typename W::R;
  static constexpr int kHeld = 1 << T::kHeld;
  static constexpr int kLast = T::kGroups - 1;

  const Row<W>& row;
  const Load& load;
  const Store& store;
  const PassShape& shape;
  const typename W::Twiddle* __restrict__ twiddle;
  const Factor<R>& scale;
  R* shared;
  int tile, thread;

  // f(register, place in the tile) for the elements of group k that this thread holds.
  template <int k, class F>
  __device__ __forceinline__ void each(F&& f) const {
    constexpr int kG = group_size(kM, T::kHeld, k), kU = group_start(kM, T::kHeld, k);
#pragma unroll
    for (int e = 0; e < kHeld; ++e) {
      const auto unit = T::unit(thread + (e >> kG) * T::kThreads, kU, kG);
      f(e, unit.local + ((e & ((1 << kG) - 1)) << unit.gap));
    }
  }
  // The same for a contiguous tile's threads side by side.
  template <class F>
  __device__ __forceinline__ void each_beside(F&& f) const {
#pragma unroll
    for (int e = 0; e < kHeld; ++e) f(e, thread + e * T::kThreads);
  }
  template <int k, int kUnit = 0>
  __device__ __forceinline__ void compute(R (&x)[kHeld]) const {
    constexpr int kG = group_size(kM, T::kHeld, k), kU = group_start(kM, T::kHeld, k);
    if constexpr (kUnit == 0) settle<W, kInverse>(x, row.prime);
    const auto unit = T::unit(thread + kUnit * T::kThreads, kU, kG);
    // Contiguous tiles hold 2^kX whole blocks of stage t0.
    const int node = kColumns ? unit.node : (tile << (kX + kU)) + unit.node;
    stages<W, kInverse, !kColumns && k == kLast ? Twiddles::leaves : Twiddles::shared, kG>(
        x + (kUnit << kG), shape.t0 + kU, node, twiddle, row.prime);
    if constexpr (((kUnit + 1) << kG) < kHeld) compute<k, kUnit + 1>(x);
  }
  template <int k>
  __device__ __forceinline__ void put(const R (&x)[kHeld]) const {
    each<k>([&](int e, int local) { shared[T::padded(local)] = x[e]; });
  }
  template <int k>
  __device__ __forceinline__ void get(R (&x)[kHeld]) const {
    each<k>([&](int e, int local) { x[e] = shared[T::padded(local)]; });
  }
  __device__ __forceinline__ R read(int local) const {
    R one[1];
    load(row, T::place(shape, tile, local), one);
    return one[0];
  }
  __device__ __forceinline__ void write(int local, R x) const {
    if constexpr (kInverse && kColumns) {
      W::settle_inverse(x, row.prime);
      x = W::mul_lazy(x, scale, row.prime);
    }
    const R one[1] = {x};
    store(row, T::place(shape, tile, local), one);
  }
  // From group kFrom's places, which are this thread's own, to group kTo's.
  template <int kFrom, int kTo>
  __device__ __forceinline__ void exchange(R (&x)[kHeld]) const {
    put<kFrom>(x);
    __syncthreads();
    get<kTo>(x);
  }
  template <int k>
  __device__ __forceinline__ void forward_from(R (&x)[kHeld]) const {
    compute<k>(x);
    if constexpr (k < kLast) {
      exchange<k, k + 1>(x);
      forward_from<k + 1>(x);
    }
  }
  template <int k>
  __device__ __forceinline__ void inverse_from(R (&x)[kHeld]) const {
    compute<k>(x);
    if constexpr (k > 0) {
      exchange<k, k - 1>(x);
      inverse_from<k - 1>(x);
    }
  }
  // A contiguous tile's last group holds neighbours: it meets memory through the tile.
  __device__ __forceinline__ void run() const {
    R x[kHeld];
    if constexpr (!kInverse) {
      each<0>([&](int e, int local) { x[e] = read(local); });
      forward_from<0>(x);
      if constexpr (kColumns) {
        each<kLast>([&](int e, int local) { write(local, x[e]); });
      } else {
        put<kLast>(x);
        __syncthreads();
        each_beside([&](int, int local) { write(local, shared[T::padded(local)]); });
      }
    } else {
      if constexpr (kColumns) {
        each<kLast>([&](int e, int local) { x[e] = read(local); });
      } else {
        each_beside([&](int, int local) { shared[T::padded(local)] = read(local); });
        __syncthreads();
        get<kLast>(x);
      }
      inverse_from<kLast>(x);
      each<0>([&](int e, int local) { write(local, x[e]); });
    }
  }
};

/// Blocks (tile, batch entry, limb). scales as for row_kernel.
template <class W, int kM, int kX, bool kColumns, bool kInverse, class Load, class Store>
__global__ void __launch_bounds__(Tile<W, kM, kX, kColumns>::kThreads,
                                  1024 / Tile<W, kM, kX, kColumns>::kThreads)
    pass_kernel(Load load, Store store, PassShape shape, Limbs limbs,
                const typename W::Prime* primes, const typename W::Twiddle* twiddles,
                const Factor<typename W::R>* n_inverse, const Factor<typename W::R>* scales) {
  extern __shared__ __align__(16) unsigned char shared[];
  const unsigned limb = blockIdx.z + shape.first_limb, b = blockIdx.y;
  const unsigned index = limbs.prime[limb];
  after_predecessor();
  if (index == kSkip) return;
  const typename W::Prime prime = primes[index];
  const Row<W> row{limb, b, (static_cast<std::size_t>(limb) * gridDim.y + b) << shape.log_n, prime};
  Factor<typename W::R> scale{};
  if constexpr (kInverse && kColumns) scale = scales != nullptr ? scales[limb] : n_inverse[index];
  PassWorker<W, kM, kX, kColumns, kInverse, Load, Store>{
      row,
      load,
      store,
      shape,
      twiddles + (static_cast<std::size_t>(index) << shape.log_n),
      scale,
      reinterpret_cast<typename W::R*>(shared),
      static_cast<int>(blockIdx.x),
      static_cast<int>(threadIdx.x)}
      .run();
}

}  // namespace jali::backend::cuda
