// The transform with the caller's load and store (load_store.cuh). A file that includes this one
// compiles the kernels for its own loads and stores.
#pragma once

#include <algorithm>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/ntt/one_pass.cuh"
#include "jali/backend/cuda/ntt/two_pass.cuh"

namespace jali::backend::cuda {

template <class W, bool kInverse, class Load, class Store>
struct Transform {
  using Stored = typename W::Stored;
  const Stream& stream;
  const Tables<W>& tables;
  const Load& load;
  const Store& store;
  Stored* work;
  const Limbs& limbs;
  unsigned limb_count, batch;
  const Factor<typename W::R>* scales;

  template <class Kernel, class... Args>
  void launch(Kernel* kernel, unsigned blocks, unsigned rows, unsigned threads, std::size_t bytes,
              unsigned cluster, const Args&... args) const {
    dim3 grid(blocks, batch, rows);
    if constexpr (requires { typename Load::LimbsFirst; }) std::swap(grid.y, grid.z);
    cuda::launch(stream, kInverse ? "intt" : "ntt", kernel, grid, threads, bytes, cluster, args...);
  }
  const typename W::Prime* primes() const { return tables.primes.template as<typename W::Prime>(); }
  const typename W::Twiddle* twiddles() const {
    return (kInverse ? tables.inverse : tables.forward).template as<typename W::Twiddle>();
  }
  const Factor<typename W::R>* n_inverse() const {
    return tables.n_inverse.template as<Factor<typename W::R>>();
  }

  template <int kLogN, bool kComputed>
  void one_pass() const {
    using C = RowChoice<W, kComputed>;
    if constexpr (kLogN == 13 || kLogN == 14 || (kLogN == 16 && C::kNarrow)) {
      const bool possible =
          kLogN == 16 ? stream.wide_clusters() : tables.ntt_variant != NttVariant::two_pass;
      if (possible && limb_count * batch <= kFewRows<kLogN>) {
        return one_pass<kLogN, kComputed, kFewBlocks<kLogN, C::kNarrow>,
                        C::kNarrow ? 4 : C::held(kLogN)>();
      }
    }
    one_pass<kLogN, kComputed, C::log_blocks(kLogN)>();
  }
  template <int kLogN, bool kComputed, int kLogBlocks,
            int kHeld = RowChoice<W, kComputed>::held(kLogN)>
  void one_pass() const {
    using C = RowChoice<W, kComputed>;
    using S = RowShape<W, kLogN, kLogBlocks, kHeld, C::per_sm(kLogN), kComputed,
                       last_group_size(kLogN, C::held(kLogN))>;
    launch(row_kernel<W, S, kInverse, Load, Store>, 1u << S::kLogC, limb_count, S::kThreads,
           S::kBytes, 1u << S::kLogC, load, store, limbs, primes(), twiddles(), n_inverse(),
           scales);
  }
  template <int kM, int kX, bool kColumns, class L, class S>
  void pass(int log_n, unsigned first, unsigned count, const L& from, const S& to) const {
    using T = TileSize<W, kM, kX, kColumns>;
    const PassShape shape{log_n, kColumns ? 0 : log_n - kM, first};
    launch(pass_kernel<W, kM, kX, kColumns, kInverse, L, S>, 1u << (log_n - T::kLog), count,
           T::kThreads, T::kBytes, 1, from, to, shape, limbs, primes(), twiddles(), n_inverse(),
           scales);
  }
  template <int kLogN>
  void two_passes() const {
    constexpr int kM2 = contiguous_stages(kLogN), kM1 = kLogN - kM2;
    constexpr int kX1 = sizeof(Stored) == 4 ? 4 : 3;  // columns of 64 bytes
    constexpr int kX2 = kLogN == 17 ? kX1 - 1 : kX1;
    const ReadBlock<W> read{work};
    const WriteBlock<W> write{work};
    // Chunks of limbs that stay in L2 between the passes.
    const std::size_t limb_bytes = (sizeof(Stored) * batch) << kLogN;
    const auto chunk = static_cast<unsigned>(std::max<std::size_t>(1, kTwoPassChunk / limb_bytes));
    for (unsigned first = 0; first < limb_count; first += chunk) {
      const unsigned count = std::min(chunk, limb_count - first);
      if constexpr (!kInverse) {
        pass<kM1, kX1, true>(kLogN, first, count, load, write);
        pass<kM2, kX2, false>(kLogN, first, count, read, store);
      } else {
        pass<kM2, kX2, false>(kLogN, first, count, load, write);
        pass<kM1, kX1, true>(kLogN, first, count, read, store);
      }
    }
  }
  /// By the kernel of the engine's own choice.
  template <int kLogN>
  void once() const {
    one_pass<kLogN, own_choice<W>(kLogN) == NttVariant::on_the_fly>();
  }
  template <int kLogN>
  void run() const {
    if constexpr (kLogN >= kTwoPassFrom) {
      if (tables.ntt_variant == NttVariant::two_pass) return two_passes<kLogN>();
    }
    // Without clusters a row of one block remains, up to the N from which two passes take over.
    tables.ntt_variant == NttVariant::on_the_fly ? one_pass<kLogN, true>()
                                                 : one_pass<kLogN, false>();
  }
};

/// Transforms limb_count * batch rows of N = 2^log_n. work is a block of their shape that a variant
/// of several passes keeps its intermediate rows in: it may be what load reads from and store
/// writes to. scales: of the inverse, a factor a limb in place of N^-1 (which is then part of it),
/// or null.
template <class W, bool kInverse, class Load, class Store>
void transform(const Stream& stream, const Tables<W>& tables, const Load& load, const Store& store,
               typename W::Stored* work, const Limbs& limbs, unsigned limb_count, unsigned batch,
               int log_n, const Factor<typename W::R>* scales = nullptr) {
  if (limb_count == 0) return;
  const Transform<W, kInverse, Load, Store> t{stream, tables,     load,  store, work,
                                              limbs,  limb_count, batch, scales};
  switch (log_n) {
    case 10: return t.template run<10>();
    case 11: return t.template run<11>();
    case 12: return t.template run<12>();
    case 13: return t.template run<13>();
    case 14: return t.template run<14>();
    case 15: return t.template run<15>();
    case 16: return t.template run<16>();
    case 17: return t.template run<17>();
    default: throw InvalidArgument("the GPU engine transforms N = 2^10 to 2^17");
  }
}

/// Whether transform_once() is possible. It is for a load and a store that must see every residue
/// exactly once in one kernel, so a row has to take one pass. Only the engine's own choice of
/// kernel is compiled for them.
constexpr int kOnceUpTo = 14;
template <class W>
bool transforms_once(const Tables<W>& tables, int log_n) {
  return log_n <= kOnceUpTo && tables.ntt_variant == own_choice<W>(log_n);
}
template <class W, class Load, class Store>
void transform_once(const Stream& stream, const Tables<W>& tables, const Load& load,
                    const Store& store, const Limbs& limbs, unsigned limb_count, unsigned batch,
                    int log_n) {
  if (limb_count == 0) return;
  const Transform<W, false, Load, Store> t{stream, tables,     load,  store,  nullptr,
                                           limbs,  limb_count, batch, nullptr};
  switch (log_n) {
    case 10: return t.template once<10>();
    case 11: return t.template once<11>();
    case 12: return t.template once<12>();
    case 13: return t.template once<13>();
    case 14: return t.template once<14>();
    default: throw InvalidArgument("rows of one pass have N = 2^10 to 2^14");
  }
}

}  // namespace jali::backend::cuda
