// A cluster of C = 4 or 8 blocks rotates one ciphertext. Everything is cut in C: a block has a
// share of the columns of each polynomial's accumulator, and of the sub-trees of its transform.
//
// Transform. Of the M = N/2 complex points j = J + (M/P) t, t < P, a thread holds one column J with
// all t, and does the first log2(P) levels in registers. Then point t belongs to the sub-tree t,
// whose points lie in block t C / P: the exchange goes through distributed shared memory. The other
// levels take exchanges within the block. The inverse goes the same way back. So a thread's points
// before the transform and after its inverse are the same, and the accumulator stays in registers.
//
// Messages of a step:
// 1. rotated (classic only, because the keys of the other rotations' steps are summed before,
//    key_sums.cuh): the accumulator times X^e, which is needed for (X^e - 1) acc. Index m goes to
//    m + e, so that each thread sends its pairs to the block that has that column.
// 2. spread: points to the blocks of their sub-trees.
// 3. gathered: points of the products' inverse transforms back to the blocks of their columns.
// They travel by st.async, which the receiving block's barrier counts in bytes. Measured on an
// H200: 200 clocks and one for 17 bytes that a block receives; a barrier of the whole cluster takes
// 350 (bench/tfhe/cluster_micro.cu).
//
// Why nothing is overwritten before it is read. A block that got message 2 of a step knows that all
// threads of the cluster have sent theirs, since every thread sends to every block; a block that
// got message 3 knows that all threads have passed the barriers of the product.
// - `rotated` is written for the next step after message 3; all threads read theirs before they
//   sent message 2.
// - `gathered` is written after message 2 of the next step; all threads read theirs before they
//   sent that.
// - `spread` has two buffers in turn. Number i + 2 is sent after number i + 1 came, which all
//   threads sent after they had read number i, and after their exchanges within the block, which
//   use the buffer of the last message.
#pragma once

#include "jali/backend/cuda/blind_rotation/cluster_size.cuh"
#include "jali/backend/cuda/blind_rotation/step.cuh"
#include "jali/backend/cuda/common/cluster.cuh"
#include "jali/backend/cuda/fft/folded_fft.cuh"

namespace jali::backend::cuda {

namespace {

// K1: k + 1. Points: of a thread. Levels: of the gadget, that are transformed at once, by threads
// of their own.
template <int LogN, int K1, int Blocks, int Points, int Levels>
struct ClusterShape {
  static constexpr int log_n = LogN, N = 1 << LogN, M = N / 2, k1 = K1, P = Points, levels = Levels;
  static constexpr int blocks = Blocks;  // of a cluster
  static constexpr int columns = M / P;  // of the whole cluster, and points of a sub-tree
  static constexpr int TP = columns / blocks;  // threads of a polynomial, in a block
  static constexpr int part = M / blocks;  // points of a block
  static constexpr int group = K1 * TP, threads = group * Levels;
  // Whether twiddles are held in registers, and the key comes to shared memory ahead of its use.
  static constexpr bool small = P <= 8;
  static constexpr int ring = small ? 2 : 0;  // units of the key in shared memory

  // How many twiddles a thread takes before those of nodes with `span` of its points, while nodes
  // have `size` points.
  __host__ __device__ static constexpr int twiddles_before(int size, int span) {
    int count = 0;
    for (int z = columns; z > 1; z = z > P ? z / P : 1) {
      for (int p = z < P ? z : P; p > 1; p /= 2) {
        if (z == size && p == span) return count;
        count += P / p < 2 ? 1 : P / p / 2;
      }
    }
    return count;
  }
  static constexpr int twiddles = twiddles_before(0, 0);

  // Shared memory: barriers, and the boxes of the messages.
  static constexpr unsigned box = K1 * part;  // numbers of a message of one level
  static constexpr unsigned spread = 256, gathered = spread + 2 * Levels * box * 16;
  static constexpr unsigned rotated = gathered + box * 16, keys = rotated + box * 8;
  static constexpr unsigned unit = K1 * box;  // numbers of a unit of the key, of one level
  static constexpr unsigned bytes = keys + ring * Levels * unit * 16;
  static constexpr unsigned spread_barrier = 0, gathered_barrier = 16, rotated_barrier = 24,
                            rounding = 32;
  static constexpr unsigned key_barriers = 128;
};

// Where number `at` of a box lies, so that quarter warps meet every bank once in all layouts of
// `position`.
template <class S>
__device__ __forceinline__ int swizzled(int at) {
  if constexpr (S::P == 8) return at ^ (at >> 3 & 7);
  const int b = at >> 4 & 1;
  return S::small ? at ^ (b | (at >> 3 & 1) << 1 | b << 2) : at ^ (at >> 4 & 7);
}

// While nodes have Size points, a thread has those at `position`, i < P, of its block's part of a
// polynomial: P points of a node, Size / P apart, or, if Size < P, P / Size whole nodes.
template <class S, int Size>
__device__ __forceinline__ int position(int tp, int i) {
  constexpr int stride = Size > S::P ? Size / S::P : 1;
  return tp / stride * (stride * S::P) + tp % stride + stride * i;
}

// Waits for the `count` threads that have the points of a node, which are in a row.
template <class S>
__device__ __forceinline__ void meet_threads(int count) {
  if constexpr (S::group == 16 && S::levels > 1) {  // the half of a warp that transforms this level
    __syncwarp(0xffffu << (threadIdx.x & 16));
  } else if (count <= 32 && S::threads % 32 == 0) {
    __syncwarp();
  } else if constexpr (S::levels == 1) {
    __syncthreads();
  } else {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + threadIdx.x / S::group), "n"(S::group) : "memory");
  }
}

// A level of the tree, of nodes with Span points of the thread. twiddle(e): of node 2 e, or of the
// only one.
template <bool up, int Span, int P, class Twiddle>
__device__ __forceinline__ void level(double2 (&x)[P], Twiddle twiddle) {
  constexpr int half = Span / 2;
#pragma unroll
  for (int e = 0; e < (P / Span + 1) / 2; ++e) {
    const double2 w = twiddle(e);
#pragma unroll
    for (int i = 0; i < half; ++i) {
      double2 &u = x[2 * e * Span + i], &v = x[2 * e * Span + half + i];
      if constexpr (up)
        fft::inverse_butterfly<false>(u, v, w.x, w.y);
      else
        fft::forward_butterfly<false>(u, v, w.x, w.y);
      if constexpr (Span < P) {
        double2 &s = x[(2 * e + 1) * Span + i], &t = x[(2 * e + 1) * Span + half + i];
        if constexpr (up)
          fft::inverse_butterfly<true>(s, t, w.x, w.y);
        else
          fft::forward_butterfly<true>(s, t, w.x, w.y);
      }
    }
  }
}
// The levels on top, of which a thread has whole columns.
template <bool up, int Span, int P>
__device__ __forceinline__ void top_levels(double2 (&x)[P]) {
  if constexpr (Span > 1) {
    constexpr int first = P / Span / 2;  // of this level in fft::Top
    if constexpr (up) top_levels<up, Span / 2>(x);
    level<up, Span>(x, [](int e) { return fft::Top{}(first + e); });
    if constexpr (!up) top_levels<up, Span / 2>(x);
  }
}

// Twiddles of the other levels: held in registers if they are few.
template <class S>
struct Lower {
  const double2* tree;
  int rank, tp;
  double2 held[S::small ? S::twiddles : 1];

  template <int Size, int Span>
  __device__ __forceinline__ double2 load(int e) const {
    constexpr int node = Size > S::P ? Size / S::P * Span : Span;  // points
    return __ldg(tree + S::M / node + (rank * S::part + position<S, Size>(tp, 0)) / node + 2 * e);
  }
  template <int Size = S::columns, int Span = (Size < S::P ? Size : S::P)>
  __device__ __forceinline__ void hold() {
    if constexpr (Span > 1) {
#pragma unroll
      for (int e = 0; e < (S::P / Span + 1) / 2; ++e)
        held[S::twiddles_before(Size, Span) + e] = load<Size, Span>(e);
      hold<Size, Span / 2>();
    } else if constexpr (Size > S::P) {
      hold<Size / S::P>();
    }
  }
  template <int Size, int Span>
  __device__ __forceinline__ double2 get(int e) const {
    if constexpr (S::small)
      return held[S::twiddles_before(Size, Span) + e];
    else
      return load<Size, Span>(e);
  }
};

template <class S, bool up, int Size, int Span>
__device__ __forceinline__ void levels_of(double2 (&x)[S::P], const Lower<S>& lower) {
  if constexpr (Span > 1) {
    if constexpr (up) levels_of<S, up, Size, Span / 2>(x, lower);
    level<up, Span>(x, [&](int e) { return lower.template get<Size, Span>(e); });
    if constexpr (!up) levels_of<S, up, Size, Span / 2>(x, lower);
  }
}
// From the layout of nodes of From points to that of nodes of To points. Each thread writes where
// nobody else reads before the threads have met, and reads what only it writes next.
template <class S, int From, int To>
__device__ __forceinline__ void exchange(double2 (&x)[S::P], double2* buffer, int tp) {
#pragma unroll
  for (int i = 0; i < S::P; ++i) buffer[swizzled<S>(position<S, From>(tp, i))] = x[i];
  meet_threads<S>((From > To ? From : To) / S::P);
#pragma unroll
  for (int i = 0; i < S::P; ++i) x[i] = buffer[swizzled<S>(position<S, To>(tp, i))];
}
// The levels below the top, from nodes of Size points on, down to points; up: the inverse.
template <class S, bool up, int Size = S::columns>
__device__ __forceinline__ void lower_levels(double2 (&x)[S::P], double2* buffer,
                                             const Lower<S>& lower, int tp) {
  constexpr int next = Size / S::P;
  if constexpr (!up) levels_of<S, up, Size, (Size < S::P ? Size : S::P)>(x, lower);
  if constexpr (next > 1) {
    if constexpr (!up) exchange<S, Size, next>(x, buffer, tp);
    lower_levels<S, up, next>(x, buffer, lower, tp);
    if constexpr (up) exchange<S, next, Size>(x, buffer, tp);
  }
  if constexpr (up) levels_of<S, up, Size, (Size < S::P ? Size : S::P)>(x, lower);
}

// The block's share of the key, unit after unit, which the copy engine brings to shared memory. The
// block asks for a unit when all its threads have read another.
template <class S>
struct KeyRing {
  unsigned barriers;  // one a slot
  unsigned slots;  // [ring][level][row][column][point][thread]
  const double2* next_unit;  // that was not asked for
  unsigned level_stride;  // numbers from one level to the next
  unsigned left;  // units of the whole rotation that were not asked for
  unsigned into = 0, from = 0, parity = 0;

  // Asks for the next unit, of all levels that are transformed at once: one of the threads does,
  // and all count it.
  __device__ __forceinline__ void ask(bool does) {
#if __CUDA_ARCH__ >= 900
    if (left == 0) return;
    --left;
    if (does) {
      const unsigned barrier = barriers + 8 * into;
      cluster::expect(barrier, S::levels * S::unit * 16);
#pragma unroll
      for (unsigned l = 0; l < S::levels; ++l) {
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
            "[%3];" ::"r"(slots + (into * S::levels + l) * (S::unit * 16)),
            "l"(next_unit + l * level_stride), "r"(S::unit * 16), "r"(barrier)
            : "memory");
      }
    }
    into = into + 1 == S::ring ? 0 : into + 1;
    next_unit += S::levels * level_stride;
#endif
  }
  // Waits for the oldest unit; its place in shared memory.
  __device__ __forceinline__ unsigned next() {
    cluster::received(barriers + 8 * from, parity);
    const unsigned at = slots + from * (S::levels * S::unit * 16);
    if (++from == S::ring) {
      from = 0;
      parity ^= 1;
    }
    return at;
  }
};

__device__ __forceinline__ const double2* shared_numbers(unsigned at) {
  return static_cast<const double2*>(__cvta_shared_to_generic(at));
}

template <class S, bool Summed>
__global__ void __launch_bounds__(S::threads, 1)
    cluster_kernel(const __grid_constant__ ClusterArgs a) {
#if __CUDA_ARCH__ >= 900
  constexpr int P = S::P, K1 = S::k1, N = S::N, M = S::M, TP = S::TP, per = P / S::blocks;
  extern __shared__ __align__(128) unsigned char shared[];
  const unsigned tid = threadIdx.x;
  const int group = static_cast<int>(tid) / S::group, c = static_cast<int>(tid) % S::group / TP;
  const int tp = static_cast<int>(tid) % TP, rank = static_cast<int>(cluster::rank());
  const int column = rank * TP + tp;
  const unsigned ciphertext = blockIdx.x / S::blocks;
  const std::uint32_t* const in = a.call.in + static_cast<std::size_t>(ciphertext) * (a.n + 1);

  const auto here = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if (tid == 0) {
    cluster::make_barrier(here + S::spread_barrier);
    cluster::make_barrier(here + S::spread_barrier + 8);
    cluster::make_barrier(here + S::gathered_barrier);
    cluster::make_barrier(here + S::rotated_barrier);
    for (int i = 0; i < S::ring; ++i)
      cluster::make_barrier(here + S::key_barriers + 8 * static_cast<unsigned>(i));
    cluster::barriers_are_made();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    cluster::expect(here + S::spread_barrier, S::levels * S::box * 16);
    cluster::expect(here + S::spread_barrier + 8, S::levels * S::box * 16);
    cluster::expect(here + S::gathered_barrier, S::box * 16);
    cluster::expect(here + S::rotated_barrier, S::box * 8);
    *reinterpret_cast<unsigned long long*>(shared + S::rounding) = 0;
  }
  cluster::arrive();
  Lower<S> lower{a.tables.tree, rank, tp, {}};
  if constexpr (S::small) lower.hold();
  cluster::wait();
  after_predecessor();

  const int log_many = a.call.log_many;
  const Switch switched{32 - (S::log_n + 1) + log_many, log_many, 2u * N - 1};
  uint2 acc[P];
  auto* const between = static_cast<uint2*>(a.call.between) +
                        (static_cast<std::size_t>(blockIdx.x) * S::threads + tid) * P;
  if (Summed && a.call.first > 0) {
#pragma unroll
    for (int i = 0; i < P; ++i) acc[i] = between[i];
  } else {
    // The exponent of the body, and acc = X^-body table.
    auto* const rounding = reinterpret_cast<unsigned long long*>(shared + S::rounding);
    long long sum = 0;
    for (unsigned i = tid; i < a.n; i += S::threads) sum += switched.error(in[i]);
    atomicAdd(rounding, static_cast<unsigned long long>(sum));
    __syncthreads();
    const double correction = floor(
        __dadd_rn(__dmul_rn(a.mean, static_cast<double>(static_cast<long long>(*rounding))), 0.5));
    const unsigned body =
        switched(in[a.n] - static_cast<std::uint32_t>(static_cast<std::int64_t>(correction)));
    const std::size_t words = static_cast<std::size_t>(a.call.encrypted ? K1 : 1) * N;
    const std::size_t offset =
        (a.call.of_input == nullptr ? 0 : a.call.of_input[ciphertext] * words) +
        static_cast<std::size_t>(a.call.encrypted ? c : 0) * N;
    const bool zero = !a.call.encrypted && c + 1 < K1;
    const auto word = [&](int i) -> std::uint32_t {
      if (zero) return 0;
      const unsigned m = (static_cast<unsigned>(i) + body) & (2 * N - 1);
      const std::size_t from = offset + (m & (N - 1));
      const std::uint32_t v =
          a.torus == 64
              ? static_cast<std::uint32_t>(
                    (static_cast<const std::uint64_t*>(a.call.tables)[from] + 0x80000000u) >> 32)
              : static_cast<const std::uint32_t*>(a.call.tables)[from];
      return m >= N ? 0 - v : v;
    };
#pragma unroll
    for (int i = 0; i < P; ++i)
      acc[i] = make_uint2(word(column + S::columns * i), word(column + S::columns * i + M));
  }
  const Cut cut = make_cut(a.levels, a.base_log);

  // Message 1: X^e acc.
  const auto rotate = [&](unsigned e) {
#pragma unroll
    for (int i = 0; i < P; ++i) {
      const unsigned to = static_cast<unsigned>(column + S::columns * i) + e;
      const uint2 v = turned(acc[i], to / M & 3);
      const unsigned at = to & (S::columns - 1), row = to / S::columns & (P - 1);
      const unsigned block = cluster::remote(here, static_cast<int>(at / TP));
      cluster::send(block + S::rotated + (c * S::part + row * TP + at % TP) * 8,
                    block + S::rotated_barrier, static_cast<std::uint64_t>(v.y) << 32 | v.x);
    }
  };
  if (!Summed && group == 0) rotate(switched(in[0]));

  // The block's share of the key, or of the ciphertext's sums: [step][level] and, in strides of the
  // whole cluster, [row][column][point][thread].
  constexpr unsigned level_stride = S::blocks * S::unit;
  const double2* const key =
      a.call.key + static_cast<unsigned>(rank) * S::unit +
      (Summed ? static_cast<std::size_t>(ciphertext) * a.steps * a.levels * level_stride : 0);
  KeyRing<S> ring{here + S::key_barriers, here + S::keys, key, level_stride,
                  a.steps * (static_cast<unsigned>(a.levels) / S::levels)};
  const unsigned mine = static_cast<unsigned>(c * S::part + tp);  // in a row of the key
  for (int i = 0; i < S::ring; ++i) ring.ask(tid == 0);
  // A level of the key on its way to the L2 cache.
  const auto prefetch = [&](unsigned number) {
    if (tid != 0 || number >= a.steps * static_cast<unsigned>(a.levels)) return;
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                     key + static_cast<std::size_t>(number) * level_stride),
                 "r"(S::unit * 16)
                 : "memory");
  };
  if constexpr (S::ring == 0) prefetch(0);
  unsigned messages = 0;  // of the second kind
  double2 x[P];
#pragma unroll 1
  for (unsigned step = 0; step < a.steps; ++step) {
    double2 sum[P];
    double2* box = nullptr;
    if constexpr (!Summed) {
      cluster::received(here + S::rotated_barrier, step & 1);
      if (tid == 0) cluster::expect(here + S::rotated_barrier, S::box * 8);
    }
#pragma unroll 1
    for (int first = 0; first < a.levels; first += S::levels, ++messages) {
      const int shift = 32 - (first + group + 1) * a.base_log;
#pragma unroll
      for (int i = 0; i < P; ++i) {
        uint2 v = acc[i];
        if constexpr (!Summed) {
          const uint2 r =
              reinterpret_cast<const uint2*>(shared + S::rotated)[c * S::part + i * TP + tp];
          v = make_uint2(r.x - v.x, r.y - v.y);
        }
        x[i] = make_double2(cut.digit(v.x + cut.to(i), shift), cut.digit(v.y + cut.to(i), shift));
      }
      if constexpr (S::ring == 0) prefetch(messages + 1);
      top_levels<false, P>(x);
      const unsigned which = messages & 1, barrier = S::spread_barrier + 8 * which;
      const unsigned at = S::spread + which * (S::levels * S::box * 16);
      box = reinterpret_cast<double2*>(shared + at);
      double2* const own = box + (group * K1 + c) * S::part;
#pragma unroll
      for (int i = 0; i < P; ++i) {
        const int to = (group * K1 + c) * S::part + swizzled<S>(i % per * S::columns + column);
        const unsigned block = cluster::remote(here, i / per);
        cluster::send(block + at + static_cast<unsigned>(to) * 16, block + barrier, x[i]);
      }
      cluster::received(here + barrier, messages >> 1 & 1);
      if (tid == 0) cluster::expect(here + barrier, S::levels * S::box * 16);
#pragma unroll
      for (int i = 0; i < P; ++i) x[i] = own[swizzled<S>(position<S, S::columns>(tp, i))];
      lower_levels<S, false>(x, own, lower, tp);
#pragma unroll
      for (int i = 0; i < P; ++i) own[swizzled<S>(tp * P + i)] = x[i];
      __syncthreads();
      if constexpr (S::ring > 0) {
        if (first > 0) ring.ask(tid == 0);  // all have read the unit before
      }
      if (group == 0) {
        const double2* unit = nullptr;
        if constexpr (S::ring == 0)
          unit = key + static_cast<std::size_t>(messages) * level_stride + mine;
        else
          unit = shared_numbers(ring.next()) + mine;
#pragma unroll
        for (int i = 0; i < P; ++i) {
          double2 total = first == 0 ? make_double2(0, 0) : sum[i];
#pragma unroll
          for (int l = 0; l < S::levels; ++l) {
#pragma unroll
            for (int r = 0; r < K1; ++r) {
              const double2 digit = box[(l * K1 + r) * S::part + swizzled<S>(tp * P + i)];
              double2 k;
              const int at = (l * K1 + r) * static_cast<int>(S::box) + i * TP;
              if constexpr (S::ring > 0)
                k = unit[at];
              else
                k = __ldg(unit + at);
              add_product(total, digit, k);
            }
          }
          sum[i] = total;
        }
      }
    }
    __syncthreads();  // all have read the key, and the digits, where the exchanges of the inverse
                      // write now
    if constexpr (S::ring > 0) ring.ask(tid == 0);
    if (group == 0) {
#pragma unroll
      for (int i = 0; i < P; ++i) x[i] = sum[i];
      lower_levels<S, true>(x, box + c * S::part, lower, tp);
      constexpr int stride = S::columns / P;
      const int row = rank * per + tp / stride;
#pragma unroll
      for (int i = 0; i < P; ++i) {
        const int to = c * S::part + row * TP + i % per * stride + tp % stride;
        const unsigned block = cluster::remote(here, i / per);
        cluster::send(block + S::gathered + static_cast<unsigned>(to) * 16,
                      block + S::gathered_barrier, x[i]);
      }
    }
    cluster::received(here + S::gathered_barrier, step & 1);
    if (tid == 0) cluster::expect(here + S::gathered_barrier, S::box * 16);
#pragma unroll
    for (int i = 0; i < P; ++i) {
      x[i] = reinterpret_cast<const double2*>(shared + S::gathered)[c * S::part + i * TP + tp];
    }
    top_levels<true, P>(x);
#pragma unroll
    for (int i = 0; i < P; ++i)
      acc[i] = make_uint2(acc[i].x + nearest(x[i].x), acc[i].y + nearest(x[i].y));
    if (!Summed && group == 0 && step + 1 < a.steps) rotate(switched(in[step + 1]));
  }

  if (Summed && !a.call.last) {
#pragma unroll
    for (int i = 0; i < P; ++i) between[i] = acc[i];
  } else if (group == 0) {
    const auto store = [&](std::size_t to, std::uint32_t v) {
      if (a.torus == 64)
        static_cast<std::uint64_t*>(a.call.out)[to] = static_cast<std::uint64_t>(v) << 32;
      else
        static_cast<std::uint32_t*>(a.call.out)[to] = v;
    };
    const auto coefficient = [&](int index, std::uint32_t v) {
      if (a.call.glwe) {
        store((static_cast<std::size_t>(ciphertext) * K1 + static_cast<unsigned>(c)) * N +
                  static_cast<unsigned>(index),
              v);
        return;
      }
      // Of row j the mask is A_c[j], A_c[j-1], .., A_c[0], -A_c[N-1], ...
      for (int j = 0; j < 1 << log_many; ++j) {
        const std::size_t row =
            (static_cast<std::size_t>(ciphertext) << log_many) + static_cast<unsigned>(j);
        const std::size_t to = row * ((K1 - 1) * N + 1) + static_cast<std::size_t>(c) * N;
        if (c + 1 < K1) {
          const int h = (j - index) & (N - 1);
          store(to + static_cast<unsigned>(h), h > j ? 0 - v : v);
        } else if (index == j) {
          store(to, v);
        }
      }
    };
#pragma unroll
    for (int i = 0; i < P; ++i) {
      coefficient(column + S::columns * i, acc[i].x);
      coefficient(column + S::columns * i + M, acc[i].y);
    }
  }
  cluster::arrive();  // nobody leaves while others may send to it
  cluster::wait();
#endif
}

}  // namespace

template <int LogN, int K1, int Blocks, int Points, int Levels, bool Summed>
std::size_t ClusterSize<LogN, K1, Blocks, Points, Levels, Summed>::at_once() {
  using S = ClusterShape<LogN, K1, Blocks, Points, Levels>;
  return clusters_at_once(cluster_kernel<S, Summed>, S::threads, S::bytes, S::blocks);
}

template <int LogN, int K1, int Blocks, int Points, int Levels, bool Summed>
void ClusterSize<LogN, K1, Blocks, Points, Levels, Summed>::rotate(const Stream& stream,
                                                                   const ClusterArgs& args) {
  using S = ClusterShape<LogN, K1, Blocks, Points, Levels>;
  launch(stream, "blind rotation", cluster_kernel<S, Summed>, dim3(args.call.count * S::blocks),
         S::threads, S::bytes, S::blocks, args);
}

}  // namespace jali::backend::cuda
