// A block finishes the transforms of one tile of every digit's lift to one target and multiplies them
// with the key's tiles: lifts in NTT form never see device memory.
#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "jali/backend/cuda/key_switch.cuh"
#include "jali/backend/cuda/launch.cuh"

namespace jali::backend::cuda {

namespace {

template <class W>
struct Rows {
  int log_n;
  unsigned rows;
  Targets targets;
  DigitTable table;
  const typename W::Prime* primes;
  const typename W::Twiddle* twiddles;
  DirectLift<W> direct;
};

// A tile of a lift in NTT form, in the places of the last group; from memory at `from`, or computed.
template <class W, bool kDirect, class T>
__device__ __forceinline__ void finish_lift(const T& t, const Rows<W>& s, unsigned digit,
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

// Sixteen bytes of a key, past L1. `policy`: a key that one ciphertext meets is read once and should not
// push out of L2 what is read again.
template <class W>
__device__ __forceinline__ Vector<W> stream(const typename W::Stored* from, std::uint64_t policy) {
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

/// Digits share a tile's twiddles: what is not computed comes to shared memory once, behind the slots.
template <class W, int kX>
constexpr Leaves kDigitLeaves =
    kOwnLeaves<W> == Leaves::loaded && kX > 0 ? Leaves::local : kOwnLeaves<W>;

/// What becomes of the sums: nothing else; something joins (Joining); they are one of an outer sum's.
enum class Then { nothing, joins, outer };

/// slots: tiles of shared memory, one a digit; more digits go in several rounds, whose sums meet in acc.
/// splits: blocks among which the digits of a tile are shared; each has sums of its own then, one after
/// the other in acc.
template <class W, int kM, int kX, bool kDirect, Then kThen>
__global__ void __launch_bounds__(TilePass<W, kM, kX, false>::kThreads,
                                  (kDirect || kX > 0 ? 768 : 1024) /
                                      TilePass<W, kM, kX, false>::kThreads)
    lift_product_kernel(Rows<W> s, bool rows_last, unsigned slots, unsigned splits,
                        typename W::Stored* acc0, typename W::Stored* acc1,
                        const typename W::Stored* ext, const __grid_constant__ Source source,
                        const __grid_constant__ KeyDigits key,
                        const __grid_constant__ Joining joining,
                        const __grid_constant__ JoinFactors<W> factors,
                        const __grid_constant__ OuterTerms outer) {
  constexpr bool kOuter = kThen == Then::outer;
  using T = TilePass<W, kM, kX, false, 0, kDigitLeaves<W, kX>>;
  using Stored = typename W::Stored;
  using R = typename W::R;
  using V = Vector<W>;
  constexpr int kV = V::kSize;
  constexpr unsigned kAtOnce = 4;  // digits whose keys are on their way together
  extern __shared__ __align__(16) unsigned char memory[];
  const unsigned row = rows_last ? blockIdx.z : blockIdx.x;
  const unsigned part_of_target = rows_last ? blockIdx.x : blockIdx.z;
  const unsigned target = part_of_target / splits, split = part_of_target % splits;
  const unsigned per_split = (s.table.digits + splits - 1) / splits;
  const unsigned begin = split * per_split, end = ::min(s.table.digits, begin + per_split);
  const unsigned index = s.targets.prime.prime[target], own = s.targets.position.prime[target];
  const typename W::Prime prime = s.primes[index];
  T t{reinterpret_cast<R*>(memory),
      threadIdx.x,
      blockIdx.y,
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
  const std::size_t out_base = (static_cast<std::size_t>(target) * batch + row +
                                static_cast<std::size_t>(split) * s.targets.count * batch)
                               << s.log_n;
  constexpr bool kStaged = !kDirect;  // lifts come to shared memory by themselves
  const std::size_t digit_size = (static_cast<std::size_t>(s.targets.count) * s.rows) << s.log_n;
  const auto slot = [&](unsigned j) { return reinterpret_cast<R*>(memory) + j * T::kPadded; };
  const std::uint64_t policy = streaming_policy(batch == 1);
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
    // The lifts set out together.
#pragma unroll 1
    for (unsigned j = 0; j < count; ++j) {
      if (kStaged && !is_own(s.targets, target, s.table, first + j)) {
        const auto* from = ext + (first + j) * digit_size + base + t.place(0);
        t.each_vector([&](unsigned, unsigned i) {
          __pipeline_memcpy_async(slot(j) + T::padded(i), from + i, 16);
        });
      }
    }
    __pipeline_commit();
#pragma unroll 1
    for (unsigned j = 0; j < count; ++j) {
      if (!is_own(s.targets, target, s.table, first + j)) continue;
      t.shared = slot(j);
      t.each_vector([&](unsigned, unsigned i) {
        R x[kV];
        source.template get<W>(own, from_row, t.place(i), s.log_n, prime, x);
#pragma unroll
        for (int c = 0; c < kV; ++c) t.shared[T::padded(i) + c] = x[c];
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
        finish_lift<W, kDirect>(t, s, first + j, target, from_row,
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
      for (unsigned j = 0; j < count; j += kAtOnce) {
        V k0[kAtOnce], k1[kAtOnce];
#pragma unroll
        for (unsigned d = 0; d < kAtOnce; ++d) {
          if (j + d < count) {
            const auto* from = key_row(first + j + d) + i;
            k0[d] = stream<W>(from, policy), k1[d] = stream<W>(from + part_size, policy);
          }
        }
#pragma unroll
        for (unsigned d = 0; d < kAtOnce; ++d) {
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
      if (kThen == Then::joins && first + count == end && own != kSkip) {
        join<W>(joining, factors, source, own, row, k, s.log_n, prime, r0, r1);
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
        v0.v[c] = W::store(r0[c], prime), v1.v[c] = W::store(r1[c], prime);
      }
      *out0 = v0, *out1 = v1;
    }
  }
}

// acc_c = the sums of the splits (+ what joins); parts: (split, target, rows, N) of both.
template <class W>
__global__ void add_parts_kernel(Rows<W> s, unsigned splits, typename W::Stored* acc0,
                                 typename W::Stored* acc1, const typename W::Stored* part0,
                                 const typename W::Stored* part1, Source source, Joining joining,
                                 JoinFactors<W> factors) {
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y, target = blockIdx.z;
  const unsigned own = s.targets.position.prime[target];
  const typename W::Prime prime = s.primes[s.targets.prime.prime[target]];
  const std::size_t at = ((static_cast<std::size_t>(target) * s.rows + row) << s.log_n) + k;
  const std::size_t part = (static_cast<std::size_t>(s.targets.count) * s.rows) << s.log_n;
  after_predecessor();
  typename W::R r0[] = {W::load(part0[at])}, r1[] = {W::load(part1[at])};
  for (unsigned i = 1; i < splits; ++i) {
    r0[0] = W::add_mod(r0[0], W::load(part0[i * part + at]), prime);
    r1[0] = W::add_mod(r1[0], W::load(part1[i * part + at]), prime);
  }
  if (joining.a0 != nullptr && own != kSkip) {
    join<W>(joining, factors, source, own, row, k, s.log_n, prime, r0, r1);
  }
  acc0[at] = W::store(r0[0], prime), acc1[at] = W::store(r1[0], prime);
}

template <class W, int kM, int kX, bool kDirect>
__global__ void __launch_bounds__(TilePass<W, kM, kX, false>::kThreads)
    lift_finish_kernel(Rows<W> s, typename W::Stored* ext, const __grid_constant__ Source source) {
  using T = TilePass<W, kM, kX, false>;
  extern __shared__ __align__(16) unsigned char memory[];
  const unsigned target = blockIdx.z % s.targets.count, digit = blockIdx.z / s.targets.count;
  const unsigned index = s.targets.prime.prime[target];
  const typename W::Prime prime = s.primes[index];
  const T t{reinterpret_cast<typename W::R*>(memory),
            threadIdx.x,
            blockIdx.y,
            s.log_n,
            s.log_n - kM,
            s.twiddles + (static_cast<std::size_t>(index) << s.log_n),
            prime};
  auto* out = ext + ((static_cast<std::size_t>(blockIdx.z) * s.rows + blockIdx.x) << s.log_n);
  after_predecessor();
  if (is_own(s.targets, target, s.table, digit)) {
    t.each_vector([&](unsigned, unsigned i) {
      typename W::R x[Vector<W>::kSize];
      source.template get<W>(s.targets.position.prime[target], blockIdx.x, t.place(i), s.log_n,
                             prime, x);
      write_words<W, Vector<W>::kSize>(out + t.place(i), x, prime);
    });
    return;
  }
  typename W::R x[T::kHeld];
  finish_lift<W, kDirect>(t, s, digit, target, blockIdx.x, out, x);
  t.template put<T::kLast>(x);
  __syncthreads();
  t.each_vector([&](unsigned, unsigned i) {
    Vector<W> v;
#pragma unroll
    for (unsigned c = 0; c < Vector<W>::kSize; ++c) {
      v.v[c] = W::store(t.shared[T::padded(i) + c], prime);
    }
    *reinterpret_cast<Vector<W>*>(out + t.place(i)) = v;
  });
}

/// Shared memory of what kDigitLeaves has there.
template <class W, int kX, int kLog>
constexpr std::size_t kDigitTable =
    kDigitLeaves<W, kX> == Leaves::local ? sizeof(typename W::Twiddle) << kLog : 0;

/// A slot for every digit, unless they take more than a third of an SM's shared memory.
unsigned slots_of(std::size_t tile_bytes, unsigned digits) {
  return std::clamp<unsigned>(static_cast<unsigned>((74u << 10) / tile_bytes), 1, digits);
}

template <class W>
Rows<W> rows_of(const Engine<W>& engine, const ConversionPlan<W>& plan, const Targets& targets,
                unsigned rows, const void* y) {
  return {engine.log_n,
          rows,
          targets,
          plan.table,
          engine.tables.primes.template as<typename W::Prime>(),
          engine.tables.forward.template as<typename W::Twiddle>(),
          direct_lift(plan, y)};
}

}  // namespace

template <class W>
std::size_t outer_blocks(int log_n, std::size_t limbs, std::size_t batch) {
  std::size_t tiles = 0;
  with_passes<W>(log_n, false, [&]<int kM1, int kX1, int kM2, int kX2>() {
    tiles = std::size_t{1} << (log_n - TileSize<W, kM2, kX2, false>::kLog);
  });
  return tiles * limbs * batch;
}

template <class W>
void lift_product_outer(const Engine<W>& engine, const ConversionPlan<W>& plan,
                        const Targets& targets, void* acc0, void* acc1, const void* y, void* ext,
                        const Source& x, const KeyDigits& key, const OuterTerms& outer) {
  using S = typename W::Stored;
  const unsigned rows = x.batch * outer.count;
  const Rows<W> shape = rows_of(engine, plan, targets, rows, y);
  const bool at_use = plan.at_use(rows);
  with_passes<W>(engine.log_n, at_use, [&]<int kM1, int kX1, int kM2, int kX2>() {
    using T = TileSize<W, kM2, kX2, false>;
    const unsigned tiles = 1u << (engine.log_n - T::kLog);
    const unsigned slots = slots_of(T::kBytes, plan.table.digits);
    const auto launch = [&](auto* kernel) {
      const std::size_t bytes = slots * T::kBytes + kDigitTable<W, kX2, T::kLog>;
      cuda::launch(engine.stream, "outer sum", kernel, dim3(x.batch, tiles, targets.count),
                   T::kThreads, bytes, 1, shape, /*rows_last=*/false, slots, /*splits=*/1u,
                   static_cast<S*>(acc0), static_cast<S*>(acc1), static_cast<const S*>(ext), x, key,
                   Joining{}, JoinFactors<W>{}, outer);
    };
    if constexpr (kM1 == 0) {
      if (at_use) return launch(lift_product_kernel<W, kM2, kX2, true, Then::outer>);
    }
    if constexpr (kM2 <= kSinglePassUpTo) {
      launch(lift_product_kernel<W, kM2, kX2, false, Then::outer>);
    }
  });
}

template <class W>
void lift_product(const Engine<W>& engine, const ConversionPlan<W>& plan, const Targets& targets,
                  unsigned rows, void* acc0, void* acc1, const void* y, void* ext, const Source& x,
                  const KeyDigits& key, const Joining& joining, const JoinFactors<W>& factors) {
  using S = typename W::Stored;
  const Rows<W> shape = rows_of(engine, plan, targets, rows, y);
  const bool at_use = plan.at_use(rows);
  with_passes<W>(engine.log_n, at_use, [&]<int kM1, int kX1, int kM2, int kX2>() {
    using T = TileSize<W, kM2, kX2, false>;
    const unsigned tiles = 1u << (engine.log_n - T::kLog), digits = plan.table.digits;
    // Many digits and few blocks: some blocks a tile.
    const unsigned wanted = std::clamp(
        std::max(1u, 768 / T::kThreads) * engine.processors / (tiles * rows * targets.count), 1u,
        T::kLog > kSinglePassUpTo ? digits : (digits + 1) / 2);
    const unsigned per_split = (digits + wanted - 1) / wanted;
    const unsigned splits = (digits + per_split - 1) / per_split;  // none without a digit
    const auto slots = slots_of(T::kBytes, per_split);
    // Blocks that run together share a part of the key and their rows differ, or, where L2 holds all of
    // the key, the other way round.
    const std::size_t key_bytes = (std::size_t{2} * digits * targets.count * sizeof(S))
                                  << engine.log_n;
    const bool rows_last = key_bytes <= (16u << 20);
    const auto launch = [&](auto* kernel, S* out0, S* out1) {
      const std::size_t bytes = slots * T::kBytes + kDigitTable<W, kX2, T::kLog>;
      const unsigned parts = targets.count * splits;
      const dim3 grid = rows_last ? dim3(parts, tiles, rows) : dim3(rows, tiles, parts);
      cuda::launch(engine.stream, "key switch", kernel, grid, T::kThreads, bytes, 1, shape,
                   rows_last, slots, splits, out0, out1, static_cast<const S*>(ext), x, key,
                   joining, factors, OuterTerms{});
    };
    const auto choose = [&]<Then kThen>(S* out0, S* out1) {
      if constexpr (kM1 == 0) {
        if (at_use) return launch(lift_product_kernel<W, kM2, kX2, true, kThen>, out0, out1);
      }
      if constexpr (kM2 <= kSinglePassUpTo) {
        launch(lift_product_kernel<W, kM2, kX2, false, kThen>, out0, out1);
      }
    };
    auto *out0 = static_cast<S*>(acc0), *out1 = static_cast<S*>(acc1);
    if (splits == 1) {
      return joining.a0 != nullptr ? choose.template operator()<Then::joins>(out0, out1)
                                   : choose.template operator()<Then::nothing>(out0, out1);
    }
    const std::size_t part = (static_cast<std::size_t>(targets.count) * rows * splits)
                             << engine.log_n;
    auto parts = engine.scratch.allocate(2 * part * sizeof(S));
    auto* part0 = static_cast<S*>(parts.data());
    choose.template operator()<Then::nothing>(part0, part0 + part);
    constexpr unsigned kThreads = 256;
    cuda::launch(engine.stream, "key switch", add_parts_kernel<W>,
                 dim3((1u << engine.log_n) / kThreads, rows, targets.count), kThreads, 0, 1, shape,
                 splits, out0, out1, part0, part0 + part, x, joining, factors);
  });
}

template <class W>
void lift_finish(const Engine<W>& engine, const ConversionPlan<W>& plan, const Targets& targets,
                 unsigned rows, const void* y, void* ext, const Source& x) {
  const bool at_use = plan.at_use(rows);
  with_passes<W>(engine.log_n, at_use, [&]<int kM1, int kX1, int kM2, int kX2>() {
    using T = TileSize<W, kM2, kX2, false>;
    constexpr bool kAlways = kM2 > kSinglePassUpTo;
    auto* kernel = lift_finish_kernel<W, kM2, kX2, kAlways>;
    if constexpr (kM1 == 0 && !kAlways) {
      if (at_use) kernel = lift_finish_kernel<W, kM2, kX2, true>;
    }
    launch(engine.stream, "lift", kernel,
           dim3(rows, 1u << (engine.log_n - T::kLog), plan.table.digits * targets.count),
           T::kThreads, T::kBytes, 1, rows_of(engine, plan, targets, rows, y),
           static_cast<typename W::Stored*>(ext), x);
  });
}

#define JALI_INSTANTIATE(W)                                                                       \
  template void lift_product<W>(const Engine<W>&, const ConversionPlan<W>&, const Targets&,       \
                                unsigned, void*, void*, const void*, void*, const Source&,        \
                                const KeyDigits&, const Joining&, const JoinFactors<W>&);         \
  template void lift_product_outer<W>(const Engine<W>&, const ConversionPlan<W>&, const Targets&, \
                                      void*, void*, const void*, void*, const Source&,            \
                                      const KeyDigits&, const OuterTerms&);                       \
  template std::size_t outer_blocks<W>(int, std::size_t, std::size_t);                            \
  template void lift_finish<W>(const Engine<W>&, const ConversionPlan<W>&, const Targets&,        \
                               unsigned, const void*, void*, const Source&);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
