// Mathematics: butterflies.cuh.
//
// What a thread block does to a tile of a row: some stages of the transform, 16 or 8 residues a
// thread in registers, in groups of stages between which the tile is exchanged through shared
// memory. The first stages of a row work on tiles of columns (element row * stride + column), the
// others on the contiguous blocks that are left. The residues come from and go to wherever a kernel
// says: two_pass.cuh is the transform in two passes over such tiles, base_conversion/, key_switch/
// and mod_down/ put work of their own before and after a pass.
#pragma once

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/ntt/butterflies.cuh"
#include "jali/backend/cuda/ntt/load_store.cuh"
#include "jali/backend/cuda/ntt/variant.cuh"

namespace jali::backend::cuda {

/// Sixteen bytes of residues, as stored or as computed with.
template <class T>
struct alignas(16) Sixteen {
  static constexpr unsigned kSize = 16 / sizeof(T);
  T v[kSize];
};
template <class W>
using Vector = Sixteen<typename W::Stored>;

/// Twiddles of the last group of a contiguous tile: as the table has them; the first of a stage and
/// the others' factors, for one more product (butterflies.cuh); from a copy in shared memory of
/// what the tile needs (fetch_twiddles).
enum class Leaves { loaded, computed, local };
/// Products of 32-bit words cost less than reading the table.
template <class W>
constexpr Leaves kOwnLeaves = sizeof(typename W::R) == 4 ? Leaves::computed : Leaves::loaded;

/// kTeam: 0, or teams of kTeam threads share a block, each with tiles and a barrier of its own.
template <class W, int kM, int kX, bool kColumns, int kTeam = 0, Leaves kLeaves = kOwnLeaves<W>>
struct TilePass {
  using R = typename W::R;
  static constexpr bool kLocal = kLeaves == Leaves::local;
  static constexpr int kLogHeld = kPassHeld<W>, kHeld = 1 << kLogHeld;
  static constexpr int kLog = kM + kX;
  static constexpr unsigned kSize = 1u << kLog, kThreads = kSize >> kLogHeld;
  static constexpr int kGroups = group_count(kM, kLogHeld), kLast = kGroups - 1;
  /// Stages of group k, and before it.
  static __host__ __device__ constexpr int size_of(int k) { return group_size(kM, kLogHeld, k); }
  static __host__ __device__ constexpr int begin_of(int k) {
    int u = 0;
    for (int i = 0; i < k; ++i) u += size_of(i);
    return u;
  }

  /// Where element i of the tile lies in shared memory. Contiguous tiles: 16 bytes after every 128,
  /// so that threads that hold 64 consecutive bytes meet different banks with 16-byte accesses.
  static __device__ __forceinline__ constexpr unsigned padded(unsigned i) {
    constexpr int kUnit = sizeof(R) == 4 ? 4 : 3;  // log2 of the words in 64 bytes
    return i + (kColumns ? (i >> (kUnit + 4)) << kUnit : (i >> (kUnit + 1)) << (kUnit - 2));
  }
  /// Words of shared memory that a tile takes.
  static constexpr unsigned kPadded = kSize + (kColumns ? kSize / 16 : kSize / 8) + 16;

  R* shared;
  unsigned thread, tile;
  int log_n;
  int t0;  // first stage
  const typename W::Twiddle* __restrict__ twiddle;
  const typename W::Prime& prime;
  unsigned team = 0;

  __device__ __forceinline__ void sync() const {
    if constexpr (kTeam == 0) {
      __syncthreads();
    } else {
      asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(kTeam) : "memory");
    }
  }

  /// Where a unit of the group of g stages from stage u lies: its first element in the tile, log2
  /// of the distance between its elements, and its node at stage u, counted within the tile.
  struct Unit {
    unsigned local, node, gap;
  };
  static __device__ __forceinline__ constexpr Unit unit(unsigned unit, int u, int g) {
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
  /// Place in the row of element `local` of the tile.
  __device__ __forceinline__ unsigned place(unsigned local) const {
    if constexpr (kColumns) {
      return (tile << kX) + spread(local);
    } else {
      return (tile << kLog) + local;
    }
  }
  __device__ __forceinline__ unsigned spread(unsigned local) const {
    return ((local >> kX) << (log_n - kM)) + (local & ((1u << kX) - 1));
  }

  // Element e of group kK of this thread is element base + offset(e) of the tile. The two have no
  // bit in common, so that padded and place are sums as well, and what belongs to e is known when
  // compiling.
  template <int kK>
  __device__ __forceinline__ unsigned base() const {
    return unit(thread, begin_of(kK), size_of(kK)).local;
  }
  template <int kK>
  static __device__ __forceinline__ constexpr unsigned offset(int e) {
    constexpr int kG = size_of(kK), kU = begin_of(kK);
    const Unit at = unit((e >> kG) * kThreads, kU, kG);
    return at.local + (static_cast<unsigned>(e & ((1 << kG) - 1)) << at.gap);
  }
  /// f(register, place in the row) for the elements of group kK that this thread holds.
  template <int kK, class F>
  __device__ __forceinline__ void each(F&& f) const {
    const unsigned first = place(base<kK>());
#pragma unroll
    for (int e = 0; e < kHeld; ++e) {
      const unsigned o = offset<kK>(e);
      f(e, first + (kColumns ? spread(o) : o));
    }
  }
  /// Twiddles of a contiguous tile: entry 2^(kX + s) + i is node i of the tile's stage s; in the
  /// last group's stages, which begin at entry `units`, entry F units + i is leaf i of run F, as in
  /// the table.
  static constexpr unsigned kTwiddles = kSize;
  /// Has them copied to `to`: this thread's share, 16 bytes at a time.
  template <class Copy>
  __device__ __forceinline__ void fetch_twiddles(const typename W::Twiddle* table,
                                                 typename W::Twiddle* to, Copy&& copy) const {
    constexpr unsigned kPiece = 16 / sizeof(typename W::Twiddle);
    constexpr int kUnits = kX + begin_of(kLast);
    static_assert(kLocal && !kColumns && (1u << kX) >= kPiece);
#pragma unroll 4
    for (unsigned i = thread * kPiece; i < kTwiddles; i += kThreads * kPiece) {
      if (i < (1u << kX)) continue;
      const int s = 31 - __clz(static_cast<int>(i));  // i = 2^s + place in its stage
      const unsigned leaf = i & ((1u << kUnits) - 1);
      const unsigned from =
          s < kUnits ? (1u << (t0 + s - kX)) + (tile << s) + (i - (1u << s))
                     : ((i >> kUnits) << (t0 + begin_of(kLast))) + (tile << kUnits) + leaf;
      copy(to + i, table + from);
    }
  }

  /// f(e, place in the tile) with neighbouring threads at neighbouring places, 16 bytes each.
  template <class F>
  __device__ __forceinline__ void each_vector(F&& f) const {
    constexpr unsigned kV = Vector<W>::kSize;
#pragma unroll
    for (unsigned e = 0; e < kHeld / kV; ++e) f(e, (thread + e * kThreads) * kV);
  }

  /// Twiddles of a group that starts at stage t, on that stage's block `node`. A local table, which
  /// is shared memory, counts stages as a transform of the tile alone would.
  template <bool kLeaf>
  struct TileTwiddles {
    const typename W::Twiddle* table;
    unsigned t, node;
    __device__ __forceinline__ typename W::Twiddle operator()(int s, int group) const {
      // Leaves are group-major.
      const auto* first = table + (1u << (t + s)) + (kLeaf ? node : node << s);
      return first[group * (kLeaf ? 1u << t : 1)];
    }
    __device__ __forceinline__ typename W::Twiddle factor(int group) const { return table[group]; }
  };
  /// kSmall: from residues in [0, 2 q).
  template <int kK, int kUnit = 0, bool kSmall = false>
  __device__ __forceinline__ void compute(R (&x)[kHeld]) const {
    constexpr int kG = size_of(kK), kU = begin_of(kK);
    if constexpr (kUnit == 0) {
#pragma unroll
      for (int e = 0; e < kHeld; ++e) W::settle_forward(x[e], prime);
    }
    const auto at = unit(thread + kUnit * kThreads, kU, kG);
    // Contiguous tiles hold 2^kX whole blocks of stage t0.
    const unsigned node = kColumns || kLocal ? at.node : (tile << (kX + kU)) + at.node;
    constexpr bool kLeaf = !kColumns && kK == kLast;
    cuda::stages<W, false, kLeaf && kLeaves == Leaves::computed, kG, kSmall>(
        x + (kUnit << kG),
        TileTwiddles<kLeaf>{twiddle, static_cast<unsigned>(kLocal ? kX + kU : t0 + kU), node},
        prime);
    if constexpr (((kUnit + 1) << kG) < kHeld) compute<kK, kUnit + 1, kSmall>(x);
  }
  template <int kK>
  __device__ __forceinline__ void put(const R (&x)[kHeld]) const {
    R* to = shared + padded(base<kK>());
#pragma unroll
    for (int e = 0; e < kHeld; ++e) to[padded(offset<kK>(e))] = x[e];
  }
  template <int kK>
  __device__ __forceinline__ void get(R (&x)[kHeld]) const {
    const R* from = shared + padded(base<kK>());
#pragma unroll
    for (int e = 0; e < kHeld; ++e) x[e] = from[padded(offset<kK>(e))];
  }
  /// From group kFrom's places, which this thread was the last to read, to group kTo's.
  template <int kFrom, int kTo>
  __device__ __forceinline__ void exchange(R (&x)[kHeld]) const {
    put<kFrom>(x);
    sync();
    get<kTo>(x);
  }
  /// All stages: group 0's places in, group kLast's out.
  template <int kK = 0>
  __device__ __forceinline__ void run(R (&x)[kHeld]) const {
    compute<kK>(x);
    if constexpr (kK < kLast) {
      exchange<kK, kK + 1>(x);
      run<kK + 1>(x);
    }
  }

  /// The inverse of compute, with a table of inverse twiddles as it is.
  template <int kK, int kUnit = 0>
  __device__ __forceinline__ void compute_inverse(R (&x)[kHeld]) const {
    static_assert(kLeaves == Leaves::loaded);
    constexpr int kG = size_of(kK), kU = begin_of(kK);
    if constexpr (kUnit == 0) settle<W, true>(x, prime);
    const auto at = unit(thread + kUnit * kThreads, kU, kG);
    const unsigned node = kColumns ? at.node : (tile << (kX + kU)) + at.node;
    cuda::stages<W, true, !kColumns && kK == kLast ? Twiddles::leaves : Twiddles::shared, kG>(
        x + (kUnit << kG), t0 + kU, static_cast<int>(node), twiddle, prime);
    if constexpr (((kUnit + 1) << kG) < kHeld) compute_inverse<kK, kUnit + 1>(x);
  }
  /// The inverse of run: group kLast's places in, group 0's out.
  template <int kK = kLast>
  __device__ __forceinline__ void run_inverse(R (&x)[kHeld]) const {
    compute_inverse<kK>(x);
    if constexpr (kK > 0) {
      exchange<kK, kK - 1>(x);
      run_inverse<kK - 1>(x);
    }
  }
};

/// A tile without its work, for launches.
template <class W, int kM, int kX, bool kColumns>
struct TileSize {
  using T = TilePass<W, kM, kX, kColumns>;
  static constexpr int kLog = T::kLog;
  static constexpr unsigned kThreads = T::kThreads, kPadded = T::kPadded;
  static constexpr std::size_t kBytes = kPadded * sizeof(typename W::R);
};

/// Stages of the last group of these passes, which the layout of the twiddles depends on: the same
/// for both, if there is a choice.
template <class W>
int tile_leaf_stages(int log_n) {
  return last_group_size(log_n <= kSinglePassUpTo ? log_n : contiguous_stages(log_n), kPassHeld<W>);
}

/// Calls f.operator()<kM1, kX1, kM2, kX2>() with the passes of N = 2^log_n: columns and contiguous
/// tiles, or kM1 = 0 and one pass. one: take one pass if there is a choice.
template <class W, class F>
void with_passes(int log_n, bool one, F&& f) {
  constexpr bool kNarrow = sizeof(typename W::Stored) == 4;
  constexpr int kC = kNarrow ? 4 : 3;  // columns of 64 bytes
  if constexpr (kNarrow) {
    if (one && log_n == 13) return f.template operator()<0, 0, 13, 0>();
    if (one && log_n == 14) return f.template operator()<0, 0, 14, 0>();
  }
  switch (log_n) {
    case 10: return f.template operator()<0, 0, 10, 0>();
    case 11: return f.template operator()<0, 0, 11, 0>();
    case 12: return f.template operator()<0, 0, 12, 0>();
    case 13: return f.template operator()<6, kC, 7, kC>();
    case 14: return f.template operator()<7, kC, 7, kC>();
    case 15: return f.template operator()<7, kC, 8, kC - kHalved<W, 8>>();
    case 16: return f.template operator()<8, kC, 8, kC - kHalved<W, 8>>();
    case 17: return f.template operator()<8, kC, 9, kC - 1>();
    default: throw InvalidArgument("the GPU engine transforms N = 2^10 to 2^17");
  }
}

/// Lazy to canonical (w52: to a small signed representative), as sums of products take it.
__device__ inline std::uint32_t settled(std::uint32_t x, const W32::Prime& p) {
  return W32::reduce4(x, p);
}
__device__ inline std::uint64_t settled(std::uint64_t x, const W64::Prime& p) {
  return W64::reduce4(x, p.q);
}
__device__ inline double settled(double x, const W52::Prime& p) { return W52::reduce(x, p); }

}  // namespace jali::backend::cuda
