// The baby steps and the inner sums of a linear transform in one kernel. A thread makes one residue
// of every rotation in turn and keeps the sums in registers. Blocks go limb by limb: the first
// rotation brings a limb's digits to L2, where all others read them; keys and weights are read
// once. The 32 residues of a warp come from 32 neighbours of a digit in another order, so that
// single words cost no more than vectors.
#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/common/launch_choices.cuh"
#include "jali/backend/cuda/linear_transform/rotated_sums.cuh"

namespace jali::backend::cuda {

namespace {

// A word that is read once, past L1 and first to leave L2.
__device__ __forceinline__ std::uint32_t read_once(const std::uint32_t* from,
                                                   std::uint64_t policy) {
  std::uint32_t x;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.u32 %0, [%1], %2;"
               : "=r"(x)
               : "l"(from), "l"(policy));
  return x;
}
__device__ __forceinline__ std::uint64_t read_once(const std::uint64_t* from,
                                                   std::uint64_t policy) {
  std::uint64_t x;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.u64 %0, [%1], %2;"
               : "=l"(x)
               : "l"(from), "l"(policy));
  return x;
}

template <class W, int kSums>
__global__ void __launch_bounds__(kBlockThreads, kRotatedBlocks<W, kSums>)
    rotated_sums_kernel(Shape s, const __grid_constant__ Limbs limbs,
                        const typename W::Prime* primes, const __grid_constant__ Rotations r,
                        const __grid_constant__ KeyDigits ids,
                        const __grid_constant__ Scalars<W> scalars) {
  using Stored = typename W::Stored;
  using R = typename W::R;
  const unsigned entry = blockIdx.x, limb = blockIdx.z;
  const unsigned k = blockIdx.y * kBlockThreads + threadIdx.x;
  const std::size_t shared = static_cast<std::size_t>(limb) << s.log_n;
  const std::size_t row = (static_cast<std::size_t>(limb) * s.batch + entry) << s.log_n;
  const std::size_t block = (static_cast<std::size_t>(s.limb_count) * s.batch) << s.log_n;
  const typename W::Prime prime = primes[limbs.prime[limb]];
  const bool own = limb < r.own_limbs;
  const R scale = own ? W::load(scalars.s[limb]) : 0;
  std::uint64_t policy;
  if (s.batch == 1) {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  } else {
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  }
  const auto word = [](const void* p, std::size_t at) {
    return static_cast<const Stored*>(p) + at;
  };
  const auto fold = [&](auto& sum) { sum = W::sum_of(W::total(sum, prime)); };

  after_predecessor();
  typename W::Sum s0[kSums], s1[kSums];
#pragma unroll
  for (int g = 0; g < kSums; ++g) {
    if (g >= r.sums || !(r.accumulate >> g & 1)) continue;
    s0[g] = W::sum_of(W::load(*word(r.out0[g], row + k)));
    s1[g] = W::sum_of(W::load(*word(r.out1[g], row + k)));
  }
  int room = W::kTerms - 1;
#pragma unroll 1
  for (int i = 0; i < r.rotations; ++i) {
    R y[kSums];
#pragma unroll
    for (int g = 0; g < kSums; ++g) {
      const void* b = r.b[i][g];
      const std::size_t from = (r.broadcast[i] >> g & 1 ? shared : row) + k;
      y[g] = b != nullptr ? W::load(read_once(word(b, from), policy)) : R{0};
    }
    typename W::Sum x0, x1;
    if (r.g[i] == 1) {
      if (!own) continue;
      add_scaled<W>(x0, x1, W::load(*word(r.c0[i], row + k)), W::load(*word(r.c1[i], row + k)),
                    scale, prime);
    } else {
      const unsigned from = source_ntt(k, r.g[i], s.log_n);
      if (own) W::add(x0, W::load(*word(r.c0[i], row + from)), scale, prime);
      const auto* ext = word(r.ext[i], row + from);
      const std::size_t half = static_cast<std::size_t>(r.key_limbs[i]) << s.log_n;
      const auto* key = word(r.key[i], (static_cast<std::size_t>(r.limb[i][limb]) << s.log_n) + k);
      int inner = W::kTerms - 1;
#pragma unroll 1
      for (int first = 0; first < r.digits; first += kRotatedAtOnce) {
        Stored x[kRotatedAtOnce], k0[kRotatedAtOnce], k1[kRotatedAtOnce];
#pragma unroll
        for (int j = 0; j < kRotatedAtOnce; ++j) {
          if (first + j >= r.digits) break;
          const auto* digit = key + 2 * ids.id[first + j] * half;
          k0[j] = read_once(digit, policy);
          k1[j] = read_once(digit + half, policy);
          x[j] = ext[(first + j) * block];
        }
#pragma unroll
        for (int j = 0; j < kRotatedAtOnce; ++j) {
          if (first + j >= r.digits) break;
          if (inner == 0) fold(x0), fold(x1);
          W::add(x0, W::load(x[j]), W::load(k0[j]), prime);
          W::add(x1, W::load(x[j]), W::load(k1[j]), prime);
          inner = inner == 0 ? W::kTerms - 2 : inner - 1;
        }
      }
    }
    const R r0 = W::total(x0, prime), r1 = W::total(x1, prime);
#pragma unroll
    for (int g = 0; g < kSums; ++g) {
      if (room == 0) fold(s0[g]), fold(s1[g]);
      W::add(s0[g], r0, y[g], prime);
      W::add(s1[g], r1, y[g], prime);
    }
    room = room == 0 ? W::kTerms - 2 : room - 1;
  }
#pragma unroll
  for (int g = 0; g < kSums; ++g) {
    if (g >= r.sums) break;
    static_cast<Stored*>(r.out0[g])[row + k] = W::canonical(W::total(s0[g], prime));
    static_cast<Stored*>(r.out1[g])[row + k] = W::canonical(W::total(s1[g], prime));
  }
}

}  // namespace

template <class W>
void rotated_sums(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
                  const Rotations& rotations, const KeyDigits& ids, const Scalars<W>& scalars) {
  const auto launch = [&](auto* kernel) {
    const dim3 grid(s.batch, (1u << s.log_n) / kBlockThreads, s.limb_count);
    cuda::launch(stream, "rotated_sums", kernel, grid, kBlockThreads, 0, 1, s, limbs,
                 t.primes.template as<typename W::Prime>(), rotations, ids, scalars);
  };
  if (rotations.sums <= 2) {
    launch(rotated_sums_kernel<W, 2>);
  } else if (rotations.sums <= 4) {
    launch(rotated_sums_kernel<W, 4>);
  } else if (rotations.sums <= 8) {
    launch(rotated_sums_kernel<W, 8>);
  } else {
    launch(rotated_sums_kernel<W, 16>);
  }
}

#define JALI_INSTANTIATE(W)                                                                  \
  template void rotated_sums<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, \
                                const Rotations&, const KeyDigits&, const Scalars<W>&);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
