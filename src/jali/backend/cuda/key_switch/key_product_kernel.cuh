// A block takes one tile of one target prime. It finishes ModUp of every digit on that tile (the
// last pass of the transform) and multiplies the digits by the key's tiles: digits in NTT form
// never see device memory.
#pragma once

#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/key_switch/key_product.cuh"
#include "jali/backend/cuda/key_switch/scaled_addend.cuh"
#include "jali/backend/cuda/ntt/one_pass.cuh"

namespace jali::backend::cuda {

template <class W>
struct Rows {
  int log_n;
  unsigned rows;
  Targets targets;
  DigitTable table;
  const typename W::Prime* primes;
  const typename W::Twiddle* twiddles;
  DirectConversion<W> direct;
};

// A tile of ModUp(digit) in NTT form, in the places of the last group; from memory at `from`, or
// computed.
template <class W, bool kDirect, class T>
__device__ __forceinline__ void mod_up_tile(const T& t, const Rows<W>& s, unsigned digit,
                                            unsigned target, unsigned row,
                                            const typename W::Stored* from,
                                            typename W::R (&x)[T::kHeld]) {
  const unsigned first = t.place(t.template base<0>());
  if constexpr (kDirect) {
    s.direct.template each<T::kHeld>(
        s.table, digit, target, s.rows, row, s.log_n, t.prime,
        [&](int e) { return first + T::template offset<0>(e); },
        [&](int e, typename W::R v) { x[e] = v; });
  } else {
#pragma unroll
    for (int e = 0; e < T::kHeld; ++e) x[e] = W::load(from[first + T::template offset<0>(e)]);
  }
  t.run(x);
#pragma unroll
  for (int e = 0; e < T::kHeld; ++e) x[e] = settled(x[e], t.prime);
}

// Sixteen bytes of a key, past L1. `policy`: a key that one ciphertext meets is read once and
// should not push out of L2 what is read again.
template <class W>
__device__ __forceinline__ Vector<W> streamed(const typename W::Stored* from,
                                              std::uint64_t policy) {
  Vector<W> v;
  auto& u = reinterpret_cast<uint4&>(v);
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(u.x), "=r"(u.y), "=r"(u.z), "=r"(u.w)
               : "l"(from), "l"(policy));
  return v;
}
__device__ __forceinline__ std::uint64_t streaming_policy(bool once) {
  std::uint64_t policy;
  if (once) {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  } else {
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  }
  return policy;
}
// Copies sixteen bytes to shared memory. They are not read again, and L2 may drop them for what is
// read next.
__device__ __forceinline__ void fetch_last(void* to, const void* from, std::uint64_t policy) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from), "l"(policy)
               : "memory");
}
// Sixteen bytes of the shared memory of another block of the cluster.
template <class R>
__device__ __forceinline__ Sixteen<R> read_remote(const R* from, unsigned rank) {
  Sixteen<R> v{};
#if __CUDA_ARCH__ >= 900
  auto& u = reinterpret_cast<uint4&>(v);
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(from));
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(u.x), "=r"(u.y), "=r"(u.z), "=r"(u.w)
               : "r"(cluster::remote(at, static_cast<int>(rank)))
               : "memory");
#endif
  return v;
}

/// Digits share a tile's twiddles: what is not computed comes to shared memory once, behind the
/// slots.
template <class W, int kX>
constexpr Leaves kDigitLeaves =
    kOwnLeaves<W> == Leaves::loaded && kX > 0 ? Leaves::local : kOwnLeaves<W>;

/// What becomes of the sums. nothing: they are written. adds: the addend is added first. outer:
/// they are one term of an outer sum. meets: the blocks of a cluster share the digits of a tile;
/// each adds the sums of all, and the addend if there is one, in its part of the tile.
enum class Then { nothing, adds, outer, meets };

/// slots: tiles of shared memory, one a digit; more digits go in several rounds, whose sums meet in
/// acc. splits: blocks among which the digits of a tile are shared; each has sums of its own then,
/// one after the other in acc, or in its first two slots, which is one round.
template <class W, int kM, int kX, bool kDirect, Then kThen>
__global__ void __launch_bounds__(TilePass<W, kM, kX, false>::kThreads,
                                  (kDirect || kX > 0 ? 768 : 1024) /
                                      TilePass<W, kM, kX, false>::kThreads)
    key_product_kernel(Rows<W> s, bool rows_last, unsigned slots, unsigned splits,
                       typename W::Stored* acc0, typename W::Stored* acc1,
                       const typename W::Stored* ext, const __grid_constant__ Source source,
                       const __grid_constant__ KeyDigits key,
                       const __grid_constant__ ScaledAddendView<W> addend,
                       const __grid_constant__ OuterTerms outer) {
  constexpr bool kOuter = kThen == Then::outer;
  using T = TilePass<W, kM, kX, false, 0, kDigitLeaves<W, kX>>;
  using Stored = typename W::Stored;
  using R = typename W::R;
  using V = Vector<W>;
  constexpr int kV = V::kSize;
  extern __shared__ __align__(16) unsigned char memory[];
  const unsigned row = rows_last ? blockIdx.z : blockIdx.y;
  const unsigned tile = rows_last ? blockIdx.y : blockIdx.x;
  const unsigned part_of_target = rows_last ? blockIdx.x : blockIdx.z;
  const unsigned target = part_of_target / splits, split = part_of_target % splits;
  const unsigned per_split = (s.table.digits + splits - 1) / splits;
  const unsigned begin = split * per_split, end = ::min(s.table.digits, begin + per_split);
  const unsigned index = s.targets.prime.prime[target], own = s.targets.position.prime[target];
  const typename W::Prime prime = s.primes[index];
  T t{reinterpret_cast<R*>(memory),
      threadIdx.x,
      tile,
      s.log_n,
      s.log_n - kM,
      s.twiddles + (static_cast<std::size_t>(index) << s.log_n),
      prime};
  if constexpr (T::kLocal) {
    auto* local =
        reinterpret_cast<typename W::Twiddle*>(reinterpret_cast<R*>(memory) + slots * T::kPadded);
    t.fetch_twiddles(t.twiddle, local,
                     [](auto* to, const auto* from) { __pipeline_memcpy_async(to, from, 16); });
    t.twiddle = local;
  }
  const unsigned batch = kOuter ? source.batch : s.rows;  // rows of a sum
  const std::size_t out_base =
      (static_cast<std::size_t>(target) * batch + row +
       (kThen == Then::meets ? 0 : static_cast<std::size_t>(split)) * s.targets.count * batch)
      << s.log_n;
  // Converted digits come to shared memory by asynchronous copies.
  constexpr bool kStaged = !kDirect;
  const std::size_t digit_size = (static_cast<std::size_t>(s.targets.count) * s.rows) << s.log_n;
  const auto slot = [&](unsigned j) { return reinterpret_cast<R*>(memory) + j * T::kPadded; };
  const std::uint64_t policy = streaming_policy(batch == 1), last = streaming_policy(true);
  const unsigned per_term = (end - begin + slots - 1) / slots;
  const unsigned rounds = kOuter ? outer.count * per_term : per_term;
  after_predecessor();
#pragma unroll 1
  for (unsigned round = 0; round < rounds; ++round) {
    const unsigned term = kOuter ? round / per_term : 0;
    const unsigned first = begin + (round - term * per_term) * slots;
    const unsigned count = ::min(end - first, slots);
    const unsigned from_row = kOuter ? term * batch + row : row;
    const std::size_t base = (static_cast<std::size_t>(target) * s.rows + from_row) << s.log_n;
    const unsigned limbs = kOuter ? outer.limbs[term] : key.limbs;
    const unsigned limb = kOuter ? outer.limb[term][target] : key.limb.prime[target];
    const std::size_t part_size = static_cast<std::size_t>(limbs) << s.log_n;
    const auto key_row = [&](unsigned j) {
      return static_cast<const Stored*>(kOuter ? outer.key[term] : key.key) +
             ((2ull * key.id[j] * limbs + limb) << s.log_n) + t.place(0);
    };
    const bool fresh = round == 0 && !(kOuter && outer.accumulate);
    if (round != 0) __syncthreads();
    // The copies of all digits start together.
#pragma unroll 1
    for (unsigned j = 0; j < count; ++j) {
      if (kStaged && !is_own(s.targets, target, s.table, first + j)) {
        const auto* from = ext + (first + j) * digit_size + base + t.place(0);
        t.each_vector(
            [&](unsigned, unsigned i) { fetch_last(slot(j) + T::padded(i), from + i, last); });
      }
    }
    __pipeline_commit();
#pragma unroll 1
    for (unsigned j = 0; j < count; ++j) {
      if (!is_own(s.targets, target, s.table, first + j)) continue;
      t.shared = slot(j);
      source.template reading<W>(own, from_row, s.log_n, prime, [&](const auto& read) {
        R x[T::kHeld / kV][kV];
        t.each_vector([&](unsigned e, unsigned i) { read(t.place(i), x[e]); });
        t.each_vector([&](unsigned e, unsigned i) {
#pragma unroll
          for (int c = 0; c < kV; ++c) t.shared[T::padded(i) + c] = x[e][c];
        });
      });
    }
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll 1
    for (unsigned j = 0; j < count; ++j) {
      if (is_own(s.targets, target, s.table, first + j)) continue;
      t.shared = slot(j);
      R x[T::kHeld];
      if constexpr (kStaged) {
        const auto* words =
            reinterpret_cast<const Stored*>(t.shared) + T::padded(t.template base<0>());
#pragma unroll
        for (int e = 0; e < T::kHeld; ++e) {
          x[e] = W::load(words[T::padded(T::template offset<0>(e))]);
        }
        t.run(x);
#pragma unroll
        for (int e = 0; e < T::kHeld; ++e) x[e] = settled(x[e], prime);
      } else {
        mod_up_tile<W, kDirect>(t, s, first + j, target, from_row,
                                ext + (first + j) * digit_size + base, x);
      }
      t.template put<T::kLast>(x);
    }
    __syncthreads();
#pragma unroll 1
    for (unsigned i = threadIdx.x * kV; i < T::kSize; i += T::kThreads * kV) {
      const unsigned k = t.place(i);
      typename W::Sum sum0[kV], sum1[kV];
      auto* out0 = reinterpret_cast<V*>(acc0 + out_base + k);
      auto* out1 = reinterpret_cast<V*>(acc1 + out_base + k);
      if (!fresh) {
        const V v0 = *out0, v1 = *out1;
#pragma unroll
        for (int c = 0; c < kV; ++c) {
          sum0[c] = W::sum_of(W::load(v0.v[c])), sum1[c] = W::sum_of(W::load(v1.v[c]));
        }
      }
      int room = W::kTerms - 1;
#pragma unroll 1
      for (unsigned j = 0; j < count; j += kKeysAtOnce) {
        V k0[kKeysAtOnce], k1[kKeysAtOnce];
#pragma unroll
        for (unsigned d = 0; d < kKeysAtOnce; ++d) {
          if (j + d < count) {
            const auto* from = key_row(first + j + d) + i;
            k0[d] = streamed<W>(from, policy), k1[d] = streamed<W>(from + part_size, policy);
          }
        }
#pragma unroll
        for (unsigned d = 0; d < kKeysAtOnce; ++d) {
          if (j + d >= count) break;
          const auto x = *reinterpret_cast<const Sixteen<R>*>(slot(j + d) + T::padded(i));
          if (room == 0) {
#pragma unroll
            for (int c = 0; c < kV; ++c) {
              sum0[c] = W::sum_of(W::total(sum0[c], prime));
              sum1[c] = W::sum_of(W::total(sum1[c], prime));
            }
            room = W::kTerms - 1;
          }
          --room;
#pragma unroll
          for (int c = 0; c < kV; ++c) {
            W::add(sum0[c], x.v[c], W::load(k0[d].v[c]), prime);
            W::add(sum1[c], x.v[c], W::load(k1[d].v[c]), prime);
          }
        }
      }
      R r0[kV], r1[kV];
#pragma unroll
      for (int c = 0; c < kV; ++c) {
        r0[c] = W::total(sum0[c], prime), r1[c] = W::total(sum1[c], prime);
      }
      if constexpr (kThen == Then::meets) {  // nobody else reads these places of the slots
        Sixteen<R> s0, s1;
#pragma unroll
        for (int c = 0; c < kV; ++c) s0.v[c] = r0[c], s1.v[c] = r1[c];
        *reinterpret_cast<Sixteen<R>*>(slot(0) + T::padded(i)) = s0;
        *reinterpret_cast<Sixteen<R>*>(slot(1) + T::padded(i)) = s1;
        continue;
      }
      if (kThen == Then::adds && first + count == end && own != kSkip) {
        add_addend<W>(addend, source, own, row, k, s.log_n, prime, r0, r1);
      }
      if (kOuter && first + count == end) {
        const auto* x0 = static_cast<const Stored*>(outer.x0[term]) + out_base;
#pragma unroll
        for (int c = 0; c < kV; ++c) {
          const auto x = W::load(x0[source_ntt(k + c, outer.g[term], s.log_n)]);
          r0[c] = W::add_mod(r0[c], x, prime);
        }
      }
      V v0, v1;
#pragma unroll
      for (int c = 0; c < kV; ++c) {
        v0.v[c] = W::canonical(r0[c]), v1.v[c] = W::canonical(r1[c]);
      }
      *out0 = v0, *out1 = v1;
    }
  }
  if constexpr (kThen == Then::meets) {
    cluster::arrive();
    cluster::wait();
#pragma unroll 1
    for (unsigned i = (split * T::kThreads + threadIdx.x) * kV; i < T::kSize;
         i += splits * T::kThreads * kV) {
      const unsigned k = t.place(i);
      R r0[kV] = {}, r1[kV] = {};
#pragma unroll 4
      for (unsigned other = 0; other < splits; ++other) {
        const auto s0 = read_remote(slot(0) + T::padded(i), other);
        const auto s1 = read_remote(slot(1) + T::padded(i), other);
#pragma unroll
        for (int c = 0; c < kV; ++c) {
          r0[c] = W::add_mod(r0[c], s0.v[c], prime), r1[c] = W::add_mod(r1[c], s1.v[c], prime);
        }
      }
      if (addend.a0 != nullptr && own != kSkip) {
        add_addend<W>(addend, source, own, row, k, s.log_n, prime, r0, r1);
      }
      write_words<W, kV>(acc0 + out_base + k, r0, prime);
      write_words<W, kV>(acc1 + out_base + k, r1, prime);
    }
    cluster::arrive();  // nobody leaves while others read its sums
    cluster::wait();
  }
}

/// Shared memory of what kDigitLeaves has there.
template <class W, int kX, int kLog>
constexpr std::size_t kDigitTable =
    kDigitLeaves<W, kX> == Leaves::local ? sizeof(typename W::Twiddle) << kLog : 0;

/// A slot for every digit, unless they take more than kTileBytes.
template <class W, int kM>
unsigned slots_of(std::size_t tile_bytes, unsigned digits) {
  constexpr std::size_t kMost = kTileBytes >> kHalved<W, kM>;
  return std::clamp<unsigned>(static_cast<unsigned>(kMost / tile_bytes), 1, digits);
}

template <class W>
Rows<W> rows_of(const Context<W>& context, const BaseConversionPlan<W>& plan,
                const Targets& targets, unsigned rows, const void* y) {
  return {context.log_n,
          rows,
          targets,
          plan.table,
          context.tables.primes.template as<typename W::Prime>(),
          context.tables.forward.template as<typename W::Twiddle>(),
          direct_conversion(plan, y)};
}

}  // namespace jali::backend::cuda
