// The transform in two passes over tiles (tile.cuh): a row crosses device memory twice. Rows go
// through both passes in chunks that stay in L2.
#pragma once

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/ntt/load_store.cuh"
#include "jali/backend/cuda/ntt/tile.cuh"

namespace jali::backend::cuda {

struct PassShape {
  int log_n;
  int t0;  // first stage of this pass
  unsigned first_limb;
};

/// What one thread does for one row.
template <class W, int kM, int kX, bool kColumns, bool kInverse, class Load, class Store>
struct PassWorker {
  using T = TilePass<W, kM, kX, kColumns, 0, Leaves::loaded>;
  using R = typename W::R;

  const T& tile;
  const Row<W>& row;
  const Load& load;
  const Store& store;
  const Factor<R>& scale;

  __device__ __forceinline__ R read(unsigned place) const {
    R one[1];
    load(row, static_cast<int>(place), one);
    return one[0];
  }
  __device__ __forceinline__ void write(unsigned place, R x) const {
    if constexpr (kInverse && kColumns) {
      W::settle_inverse(x, row.prime);
      x = W::mul_lazy(x, scale, row.prime);
    }
    const R one[1] = {x};
    store(row, static_cast<int>(place), one);
  }
  /// f(place in the tile) for residues of a contiguous tile, neighbouring threads at neighbouring
  /// places.
  template <class F>
  __device__ __forceinline__ void each_beside(F&& f) const {
#pragma unroll
    for (unsigned e = 0; e < T::kHeld; ++e) f(tile.thread + e * T::kThreads);
  }
  // A contiguous tile's last group holds neighbours: it meets memory through the tile.
  __device__ __forceinline__ void forward() const {
    R x[T::kHeld];
    tile.template each<0>([&](int e, unsigned place) { x[e] = read(place); });
    tile.run(x);
    if constexpr (kColumns) {
      tile.template each<T::kLast>([&](int e, unsigned place) { write(place, x[e]); });
    } else {
      tile.template put<T::kLast>(x);
      __syncthreads();
      each_beside([&](unsigned i) { write(tile.place(i), tile.shared[T::padded(i)]); });
    }
  }
  __device__ __forceinline__ void inverse() const {
    R x[T::kHeld];
    if constexpr (kColumns) {
      tile.template each<T::kLast>([&](int e, unsigned place) { x[e] = read(place); });
    } else {
      each_beside([&](unsigned i) { tile.shared[T::padded(i)] = read(tile.place(i)); });
      __syncthreads();
      tile.template get<T::kLast>(x);
    }
    tile.run_inverse(x);
    tile.template each<0>([&](int e, unsigned place) { write(place, x[e]); });
  }
};

/// Blocks (tile, batch entry, limb). scales as for row_kernel.
template <class W, int kM, int kX, bool kColumns, bool kInverse, class Load, class Store>
__global__ void __launch_bounds__(TilePass<W, kM, kX, kColumns>::kThreads,
                                  1024 / TilePass<W, kM, kX, kColumns>::kThreads)
    pass_kernel(Load load, Store store, PassShape shape, Limbs limbs,
                const typename W::Prime* primes, const typename W::Twiddle* twiddles,
                const Factor<typename W::R>* n_inverse, const Factor<typename W::R>* scales) {
  using Worker = PassWorker<W, kM, kX, kColumns, kInverse, Load, Store>;
  extern __shared__ __align__(16) unsigned char shared[];
  const unsigned limb = blockIdx.z + shape.first_limb, b = blockIdx.y;
  const unsigned index = limbs.prime[limb];
  after_predecessor();
  if (index == kSkip) return;
  const typename W::Prime prime = primes[index];
  const Row<W> row{limb, b, (static_cast<std::size_t>(limb) * gridDim.y + b) << shape.log_n, prime};
  Factor<typename W::R> scale{};
  if constexpr (kInverse && kColumns) scale = scales != nullptr ? scales[limb] : n_inverse[index];
  const typename Worker::T tile{reinterpret_cast<typename W::R*>(shared),
                                threadIdx.x,
                                blockIdx.x,
                                shape.log_n,
                                shape.t0,
                                twiddles + (static_cast<std::size_t>(index) << shape.log_n),
                                prime};
  const Worker worker{tile, row, load, store, scale};
  if constexpr (kInverse) {
    worker.inverse();
  } else {
    worker.forward();
  }
}

}  // namespace jali::backend::cuda
