// Mathematics: butterflies.cuh. A row crosses device memory once.
//
// Kernel. A row of N = 2^kLogN residues lies in the registers of a cluster of 2^kLogC blocks,
// 2^kHeld residues a thread. Stages go in groups of up to kHeld that stay in registers. Before
// group k the row has split into sub-blocks of L_k = kLogN - start_k stages; a thread's unit in the
// group is 2^g residues, 2^(L_k - g) apart, of one sub-block. Between groups residues change places
// within their sub-block: across the cluster after the first group (each block then holds a
// contiguous part of the row), within a block or a warp afterwards. In the end a warp holds a
// contiguous piece, which it turns over in shared memory to write 16 bytes a thread.
#pragma once

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include "jali/backend/cuda/common/cluster.cuh"
#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/ntt/butterflies.cuh"
#include "jali/backend/cuda/ntt/load_store.cuh"

namespace jali::backend::cuda {

/// Blocks that an SM holds at most.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870)
constexpr int kMostBlocks = 16;
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
constexpr int kMostBlocks = 24;
#else
constexpr int kMostBlocks = 32;
#endif

/// kPerSm: threads that an SM holds at a time, which decides how many registers each has. kLeaf:
/// stages of the last group, as the tables have them.
template <class W, int kLogN_, int kLogC_, int kHeld_, int kPerSm, bool kComputed_ = false,
          int kLeaf = last_group_size(kLogN_, kHeld_)>
struct RowShape {
  static constexpr int kLogN = kLogN_, kLogC = kLogC_, kHeld = kHeld_;
  static constexpr bool kComputed = kComputed_;  // twiddles of the last group
  static constexpr int kLast = group_count(kLogN - kLeaf, kHeld);  // index of the last group
  static constexpr int kTile = kLogN - kLogC;  // log2 of the residues of a block
  static constexpr int kLogThreads = kTile - kHeld, kThreads = 1 << kLogThreads;
  static constexpr int kBlocks =  // of an SM
      kPerSm / kThreads < 1             ? 1
      : kPerSm / kThreads > kMostBlocks ? kMostBlocks
                                        : kPerSm / kThreads;
  static constexpr int kWord = sizeof(typename W::R);
  static constexpr int kVector = 16 / kWord;
  static constexpr __host__ __device__ int size(int k) {
    return k == kLast ? kLeaf : group_size(kLogN - kLeaf, kHeld, k);
  }
  static constexpr __host__ __device__ int start(int k) {
    return group_start(kLogN - kLeaf, kHeld, k);
  }
  static constexpr __host__ __device__ int length(int k) { return kLogN - start(k); }  // L_k
  static constexpr __host__ __device__ int gap(int k) { return length(k) - size(k); }
  /// log2 of the threads of a sub-block; below 0 if a thread holds several.
  static constexpr __host__ __device__ int threads(int k) { return length(k) - kHeld; }
  /// Of a thread's units in group k, the distance, log2.
  static constexpr __host__ __device__ int unit_step(int k) {
    return k == 0 ? kLogThreads : threads(k) >= 0 ? threads(k) : size(k) + 5;
  }
  static_assert(kLogC <= size(0) && kLogC <= size(1),
                "an exchange across blocks moves whole units");

  /// Where residue i of the tile lies in shared memory: 16 bytes of padding in 128 (a column of
  /// vectors meets every bank), and as many words after a sub-block of a part of a warp as it has
  /// threads, so that the parts meet different banks. Additive over numbers without common bits.
  static constexpr __host__ __device__ int place(int i) {
    constexpr int kSub = length(kLast - 1), kParts = threads(kLast - 1);
    constexpr int kLine = kWord == 4 ? 5 : 4;
    int at = i + (i >> kLine) * kVector;
    if constexpr (kParts < kLine && kParts >= 1 && kSub < kTile) at += (i >> kSub) << kParts;
    return at;
  }
  static constexpr std::size_t kBarrier =  // where a cluster's barrier lies, after the tile
      (static_cast<std::size_t>(kWord) * place((1 << kTile) - 1) + kWord + 7) / 8 * 8;
  /// Few rows wait for what they read: their blocks fetch the twiddles that they need before
  /// anything else, as [kAlike] of the table's first, [stage][2^kTree] of the last group's (the
  /// first of each block of 2^kLeaf), and the stages between as in a table of 2^kTree.
  static constexpr bool kFetches = kComputed && kLogC > 0 && kHeld == 4;
  // log2 of the tile's blocks where the last group begins.
  static constexpr int kTree = start(kLast) - kLogC;
  static constexpr int kBetween = kAlike + (kLeaf << kTree);
  static constexpr std::size_t kTwiddles = (kBarrier + (kLogC > 0 ? 8 : 0) + 15) / 16 * 16;
  static constexpr std::size_t kBytes =
      kFetches ? kTwiddles + (kBetween + (1 << kTree)) * sizeof(typename W::Twiddle)
               : kBarrier + (kLogC > 0 ? 8 : 0);
  /// Place in the row of register r of group k, less the thread's base.
  static constexpr __host__ __device__ int offset(int k, int r) {
    const int g = size(k);
    return ((r & ((1 << g) - 1)) << gap(k)) + ((r >> g) << unit_step(k));
  }
};

/// What one thread does for one row.
template <class W, class S, bool kInverse, class Load, class Store>
struct RowWorker {
  using R = typename W::R;
  static constexpr int kCount = 1 << S::kHeld, kLast = S::kLast, kV = S::kVector;

  const Row<W>& row;
  const Load& load;
  const Store& store;
  const typename W::Twiddle* __restrict__ twiddle;
  const Factor<R>& scale;
  R* shared;
  int rank, thread;

  __device__ __forceinline__ unsigned barrier() const {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared)) + S::kBarrier;
  }
  // The thread's first residue in group k, counted in the row for k = 0 and in the tile otherwise.
  template <int k>
  __device__ __forceinline__ int base() const {
    if constexpr (k == 0) {
      return (rank << (S::gap(0) - S::kLogC)) + thread;
    } else if constexpr (S::threads(k) >= 0) {
      return (thread >> S::threads(k) << S::length(k)) + (thread & ((1 << S::threads(k)) - 1));
    } else {
      return (thread >> 5 << (S::kHeld + 5)) + ((thread & 31) << S::size(k));
    }
  }
  template <int k, int kUnit = 0>
  __device__ __forceinline__ void compute(R (&x)[kCount]) const {
    if constexpr (kUnit == 0) settle<W, kInverse>(x, row.prime);
    constexpr int kG = S::size(k);
    constexpr Twiddles kFrom = k < kLast      ? Twiddles::shared
                               : S::kComputed ? Twiddles::computed
                                              : Twiddles::leaves;
    int node = 0;  // in the tile
    if constexpr (k > 0) {
      node = (base<k>() >> S::length(k)) + (S::offset(k, kUnit << kG) >> S::length(k));
    }
    auto* const unit = x + (kUnit << kG);
    if constexpr (!S::kFetches) {
      if constexpr (k > 0) node += rank << (S::kTile - S::length(k));
      stages<W, kInverse, kFrom, kG>(unit, S::start(k), node, twiddle, row.prime);
    } else if constexpr (k == 0) {
      stages<W, kInverse, kFrom, kG>(unit, 0, 0, fetched(), row.prime);
    } else if constexpr (k < kLast) {
      stages<W, kInverse, kFrom, kG>(unit, S::start(k) - S::kLogC, node, fetched() + S::kBetween,
                                     row.prime);
    } else {
      stages<W, kInverse, Twiddles::fetched, kG>(unit, S::kTree, node, fetched(), row.prime);
    }
    if constexpr (((kUnit + 1) << kG) < kCount) compute<k, kUnit + 1>(x);
  }

  __device__ __forceinline__ typename W::Twiddle* fetched() const {
    return reinterpret_cast<typename W::Twiddle*>(reinterpret_cast<unsigned char*>(shared) +
                                                  S::kTwiddles);
  }
  __device__ __forceinline__ void fetch_twiddles() const {
    constexpr int kFrom = S::start(kLast), kPairs = S::size(kLast) << (S::kTree - 1);
    static_assert(sizeof(typename W::Twiddle) == 8 && S::size(0) <= 4 && S::size(kLast) <= 4);
    auto* const to = fetched();
#pragma unroll
    for (int i = thread; i < kPairs; i += S::kThreads) {
      const int s = i >> (S::kTree - 1), at = 2 * (i & ((1 << (S::kTree - 1)) - 1));
      __pipeline_memcpy_async(to + kAlike + (s << S::kTree) + at,
                              twiddle + (1 << (kFrom + s)) + (rank << S::kTree) + at, 16);
    }
#pragma unroll
    for (int i = thread; i < 1 << S::kTree; i += S::kThreads) {
      if (i == 0) continue;
      const int s = 31 - __clz(i);  // of the tile
      __pipeline_memcpy_async(to + S::kBetween + i,
                              twiddle + (1 << (S::kLogC + s)) + (rank << s) + i - (1 << s), 8);
    }
    if (thread < kAlike / 2) __pipeline_memcpy_async(to + 2 * thread, twiddle + 2 * thread, 16);
    __pipeline_commit();
  }
  static __device__ __forceinline__ void twiddles_fetched() {
    if constexpr (S::kFetches) {
      __pipeline_wait_prior(0);
      __syncthreads();
    }
  }

  template <int k>
  __device__ __forceinline__ void put(const R (&x)[kCount]) const {
    R* at = shared + S::place(base<k>());
    if constexpr (k == kLast) {
#pragma unroll
      for (int r = 0; r < kCount; r += kV) vector(at[S::place(S::offset(k, r))]) = pack(x + r);
    } else {
#pragma unroll
      for (int r = 0; r < kCount; ++r) at[S::place(S::offset(k, r))] = x[r];
    }
  }
  template <int k>
  __device__ __forceinline__ void get(R (&x)[kCount]) const {
    const R* at = shared + S::place(base<k>());
    if constexpr (k == kLast) {
#pragma unroll
      for (int r = 0; r < kCount; r += kV) unpack(vector(at[S::place(S::offset(k, r))]), x + r);
    } else {
#pragma unroll
      for (int r = 0; r < kCount; ++r) x[r] = at[S::place(S::offset(k, r))];
    }
  }
  /// Waits for the threads of the sub-blocks of group k.
  template <int k>
  static __device__ __forceinline__ void meet() {
    if constexpr (S::threads(k) <= 5) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  struct alignas(16) Vector {
    R v[kV];
  };
  template <class T>
  static __device__ __forceinline__ auto& vector(T& x) {
    if constexpr (std::is_const_v<T>) {
      return reinterpret_cast<const Vector&>(x);
    } else {
      return reinterpret_cast<Vector&>(x);
    }
  }
  static __device__ __forceinline__ Vector pack(const R* x) {
    Vector v;
#pragma unroll
    for (int i = 0; i < kV; ++i) v.v[i] = x[i];
    return v;
  }
  static __device__ __forceinline__ void unpack(const Vector& v, R* x) {
#pragma unroll
    for (int i = 0; i < kV; ++i) x[i] = v.v[i];
  }
  // f(vector, place in the row) for the warp's piece of the tile, a vector a thread in turn.
  template <class F>
  __device__ __forceinline__ void each_vector(F&& f) const {
    const int begin = piece();
    R* at = shared + S::place(begin);
#pragma unroll
    for (int i = 0; i < kCount; i += kV) {
      f(vector(at[S::place(i << 5)]), (rank << S::kTile) + begin + (i << 5));
    }
  }
  __device__ __forceinline__ int piece() const {
    return (thread >> 5 << (S::kHeld + 5)) + (thread & 31) * kV;
  }
  // The same of the store's own words, which are asked for half a row of vectors at a time.
  __device__ __forceinline__ void store_ahead() const {
    constexpr int kHalf = kCount / 2;
    const int begin = piece(), place = (rank << S::kTile) + begin;
    const R* at = shared + S::place(begin);
#pragma unroll
    for (int half = 0; half < kCount; half += kHalf) {
      decltype(store.template ahead<kV>(row, 0)) words[kHalf / kV];
#pragma unroll
      for (int i = 0; i < kHalf; i += kV) {
        words[i / kV] = store.template ahead<kV>(row, place + ((half + i) << 5));
      }
      if (half == 0) __syncwarp();
#pragma unroll
      for (int i = 0; i < kHalf; i += kV) {
        R out[kV];
        unpack(vector(at[S::place((half + i) << 5)]), out);
        store(row, place + ((half + i) << 5), out, words[i / kV]);
      }
    }
  }

  // --- forward ---
  __device__ __forceinline__ void to_tiles(const R (&x)[kCount]) const {
    if constexpr (S::kLogC == 0) {
      put<0>(x);
      meet<0>();
    } else {
      using namespace cluster;
      const auto at = static_cast<unsigned>(__cvta_generic_to_shared(shared + S::place(base<0>())));
      wait();  // every block has begun
#pragma unroll
      for (int r = 0; r < kCount; ++r) {
        constexpr int kMask = (1 << S::kTile) - 1;
        const int offset = S::offset(0, r);
        const int to = offset >> S::kTile;
        send(remote(at + S::place(offset & kMask) * S::kWord, to), remote(barrier(), to), x[r]);
      }
      received(barrier());
    }
  }
  template <int k>
  __device__ __forceinline__ void forward_from(R (&x)[kCount]) const {
    compute<k>(x);
    if constexpr (k < kLast) {
      if constexpr (k == 0) {
        to_tiles(x);
      } else {
        put<k>(x);
        meet<k>();
      }
      get<k + 1>(x);
      forward_from<k + 1>(x);
    }
  }
  __device__ __forceinline__ void forward() const {
    R x[kCount];
    const int first = base<0>();
    constexpr auto kPlace = [](int) { return 0; };
    if constexpr (requires { load.template whole<kCount>(row, kPlace, x); }) {
      load.template whole<kCount>(row, [&](int r) { return first + S::offset(0, r); }, x);
    } else {
#pragma unroll
      for (int r = 0; r < kCount; ++r) {
        R one[1];
        load(row, first + S::offset(0, r), one);
        x[r] = one[0];
      }
    }
    twiddles_fetched();
    forward_from<0>(x);
    put<kLast>(x);
    if constexpr (requires { store.template ahead<kV>(row, 0); }) {
      store_ahead();
    } else {
      __syncwarp();
      each_vector([&](const Vector& v, int k) {
        R out[kV];
        unpack(v, out);
        store(row, k, out);
      });
    }
  }

  // --- inverse ---
  __device__ __forceinline__ void from_tiles(R (&x)[kCount]) const {
    if constexpr (S::kLogC == 0) {
      put<1>(x);
      meet<0>();
      get<0>(x);
    } else {
      // Block r takes columns [r K, (r + 1) K) of the 2^g sub-blocks, K = 2^kColumns, in rows of K.
      using namespace cluster;
      constexpr int kColumns = S::gap(0) - S::kLogC;
      const int i = base<1>() + (rank << S::kTile);
      const auto at = static_cast<unsigned>(__cvta_generic_to_shared(
          shared + S::place((i >> S::gap(0) << kColumns) + (i & ((1 << kColumns) - 1)))));
      wait();  // every block has read its tile
#pragma unroll
      for (int r = 0; r < kCount; ++r) {
        const int offset = S::offset(1, r);
        const int to = offset >> kColumns;
        send(remote(at + S::place(offset & ((1 << kColumns) - 1)) * S::kWord, to),
             remote(barrier(), to), x[r]);
      }
      received(barrier());
      const R* from = shared + S::place(thread);
#pragma unroll
      for (int r = 0; r < kCount; ++r) {
        constexpr int kG = S::size(0);
        x[r] = from[S::place(((r & ((1 << kG) - 1)) << kColumns) + ((r >> kG) << S::unit_step(0)))];
      }
    }
  }
  template <int k>
  __device__ __forceinline__ void inverse_from(R (&x)[kCount]) const {
    if constexpr (k == 1 && S::kLogC > 0) cluster::arrive();
    compute<k>(x);
    if constexpr (k > 0) {
      if constexpr (k == 1) {
        from_tiles(x);
      } else {
        put<k>(x);
        meet<k - 1>();
        get<k - 1>(x);
      }
      inverse_from<k - 1>(x);
    }
  }
  __device__ __forceinline__ void inverse() const {
    R x[kCount];
    const auto fetch = [&](const auto& read) {
      Vector held[kCount / kV];  // all of them before the first is put
      int i = 0;
      each_vector([&](Vector&, int k) {
        R in[kV];
        read(static_cast<unsigned>(k), in);
        held[i++] = pack(in);
      });
      i = 0;
      each_vector([&](Vector& v, int) { v = held[i++]; });
    };
    if constexpr (requires { load.reading(row, fetch); }) {
      load.reading(row, fetch);
    } else {
      fetch([&](unsigned k, R(&in)[kV]) { load(row, static_cast<int>(k), in); });
    }
    __syncwarp();
    twiddles_fetched();
    get<kLast>(x);
    inverse_from<kLast>(x);
    const int first = base<0>();
#pragma unroll
    for (int r = 0; r < kCount; ++r) {
      W::settle_inverse(x[r], row.prime);
      const R one[1] = {W::mul_lazy(x[r], scale, row.prime)};
      store(row, first + S::offset(0, r), one);
    }
  }
};

/// Blocks (rank in the row, batch entry, limb), or the last two in the other order. scales: a
/// factor a limb for the inverse's last step, or null for N^-1 from n_inverse, a factor a prime.
template <class W, class S, bool kInverse, class Load, class Store>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    row_kernel(const __grid_constant__ Load load, const __grid_constant__ Store store,
               const __grid_constant__ Limbs limbs, const typename W::Prime* primes,
               const typename W::Twiddle* twiddles, const Factor<typename W::R>* n_inverse,
               const Factor<typename W::R>* scales) {
  extern __shared__ __align__(16) unsigned char shared[];
  constexpr bool kLimbsFirst = requires { typename Load::LimbsFirst; };
  const unsigned limb = kLimbsFirst ? blockIdx.y : blockIdx.z;
  const unsigned b = kLimbsFirst ? blockIdx.z : blockIdx.y;
  const unsigned batch = kLimbsFirst ? gridDim.z : gridDim.y;
  const unsigned index = limbs.prime[limb];
  if (index == kSkip) return after_predecessor();  // the whole cluster
  if constexpr (S::kLogC > 0) {
    cluster::begin_receiving(static_cast<unsigned>(__cvta_generic_to_shared(shared)) + S::kBarrier,
                             S::kWord << S::kTile);
    if constexpr (!kInverse) cluster::arrive_relaxed();
  }
  const typename W::Prime prime = primes[index];
  const Row<W> row{limb, b, (static_cast<std::size_t>(limb) * batch + b) << S::kLogN, prime};
  Factor<typename W::R> scale{};
  if constexpr (kInverse) scale = scales != nullptr ? scales[limb] : n_inverse[index];
  const RowWorker<W, S, kInverse, Load, Store> worker{
      row,
      load,
      store,
      twiddles + (static_cast<std::size_t>(index) << S::kLogN),
      scale,
      reinterpret_cast<typename W::R*>(shared),
      S::kLogC == 0 ? 0 : static_cast<int>(cluster::rank()),
      static_cast<int>(threadIdx.x)};
  if constexpr (S::kFetches) worker.fetch_twiddles();
  after_predecessor();
  if constexpr (kInverse) {
    worker.inverse();
  } else {
    worker.forward();
  }
}

}  // namespace jali::backend::cuda
