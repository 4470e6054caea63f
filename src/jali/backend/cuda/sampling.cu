// One thread makes one ChaCha20 block (RFC 8439, section 2.3), so that consecutive threads hold
// consecutive pieces of the stream. Samplers that pass over words take the survivors in stream order: a
// thread's place is the number of survivors in all threads before it.
#include <algorithm>
#include <cstring>

#include "jali/backend/cuda/check.cuh"
#include "jali/backend/cuda/sampling.cuh"
#include "jali/base/error.h"
#include "jali/base/wipe.h"

namespace jali::backend::cuda {

namespace {

constexpr unsigned kWarp = 32, kMaxThreads = 1024;

struct Key {
  std::uint32_t word[8];
};
struct RowModuli {
  std::uint64_t q[kMaxLimbs];
  std::uint16_t index[kMaxLimbs];
};

__device__ inline void quarter(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c,
                               std::uint32_t& d) {
  a += b, d = __byte_perm(d ^ a, 0, 0x1032);
  c += d, b = __funnelshift_l(b ^ c, b ^ c, 12);
  a += b, d = __byte_perm(d ^ a, 0, 0x2103);
  c += d, b = __funnelshift_l(b ^ c, b ^ c, 7);
}

__device__ void chacha20(const Key& key, std::uint32_t counter, std::uint64_t nonce,
                         std::uint32_t (&x)[16]) {
  const std::uint32_t start[16] = {0x61707865,
                                   0x3320646e,
                                   0x79622d32,
                                   0x6b206574,
                                   key.word[0],
                                   key.word[1],
                                   key.word[2],
                                   key.word[3],
                                   key.word[4],
                                   key.word[5],
                                   key.word[6],
                                   key.word[7],
                                   counter,
                                   static_cast<std::uint32_t>(nonce),
                                   static_cast<std::uint32_t>(nonce >> 32),
                                   0};
#pragma unroll
  for (int k = 0; k < 16; ++k) x[k] = start[k];
#pragma unroll 1
  for (int round = 0; round < 10; ++round) {
    quarter(x[0], x[4], x[8], x[12]);
    quarter(x[1], x[5], x[9], x[13]);
    quarter(x[2], x[6], x[10], x[14]);
    quarter(x[3], x[7], x[11], x[15]);
    quarter(x[0], x[5], x[10], x[15]);
    quarter(x[1], x[6], x[11], x[12]);
    quarter(x[2], x[7], x[8], x[13]);
    quarter(x[3], x[4], x[9], x[14]);
  }
#pragma unroll
  for (int k = 0; k < 16; ++k) x[k] += start[k];
}

/// The sum of `count` over the threads before this one; total: over all of the block.
__device__ unsigned sum_before(unsigned count, unsigned& total) {
  __shared__ unsigned sums[kMaxThreads / kWarp];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const unsigned warps = blockDim.x / kWarp;
  unsigned sum = count;
#pragma unroll
  for (unsigned step = 1; step < kWarp; step *= 2) {
    const unsigned other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  __syncthreads();  // the sums of the last round have been read
  if (lane == kWarp - 1) sums[warp] = sum;
  __syncthreads();
  unsigned mine = lane < warps ? sums[lane] : 0;
#pragma unroll
  for (unsigned step = 1; step < kWarp; step *= 2) {
    const unsigned other = __shfl_up_sync(~0u, mine, step);
    if (lane >= step) mine += other;
  }
  total = __shfl_sync(~0u, mine, kWarp - 1);
  const unsigned before = __shfl_sync(~0u, mine, (warp + kWarp - 1) % kWarp);
  return sum - count + (warp == 0 ? 0 : before);
}

// Words of 4 bytes below 2^32, else of 8, masked to the length of q, those below q.
template <class Raw, class Stored>
__device__ void uniform_row(const Key& key, std::uint64_t nonce, Raw q, unsigned n, Stored* out) {
  constexpr int kWords = 64 / sizeof(Raw);
  Raw mask;
  if constexpr (sizeof(Raw) == 4) {
    mask = ~Raw{0} >> __clz(static_cast<int>(q));
  } else {
    mask = ~Raw{0} >> __clzll(static_cast<long long>(q));
  }
  for (unsigned made = 0, counter = threadIdx.x; made < n; counter += blockDim.x) {
    std::uint32_t x[16];
    chacha20(key, counter, nonce, x);
    Raw word[kWords];
    unsigned keep = 0;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      if constexpr (sizeof(Raw) == 4) {
        word[i] = x[i] & mask;
      } else {
        word[i] = (x[2 * i] | static_cast<Raw>(x[2 * i + 1]) << 32) & mask;
      }
      keep |= static_cast<unsigned>(word[i] < q) << i;
    }
    unsigned total;
    unsigned at = made + sum_before(__popc(keep), total);
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const bool kept = keep >> i & 1;
      if (kept && at < n) out[at] = static_cast<Stored>(word[i]);
      at += kept;
    }
    made += total;
  }
}

template <class Stored>
__global__ void __launch_bounds__(kMaxThreads)
    uniform_kernel(Shape s, RowModuli moduli, Key key, std::uint32_t index, Stored* out) {
  const unsigned limb = blockIdx.x / s.batch, b = blockIdx.x % s.batch, n = 1u << s.log_n;
  const std::uint64_t q = moduli.q[limb];
  const std::uint64_t nonce = (std::uint64_t{index} + b) << 16 | moduli.index[limb];
  Stored* row = out + (static_cast<std::size_t>(blockIdx.x) << s.log_n);
  if (sizeof(Stored) == 4 || q >> 32 == 0) {
    uniform_row<std::uint32_t>(key, nonce, static_cast<std::uint32_t>(q), n, row);
  } else {
    uniform_row<std::uint64_t>(key, nonce, q, n, row);
  }
}

// A byte below 255 modulo 3, less 1; no branch depends on it. One thread block for the whole stream.
__global__ void __launch_bounds__(kMaxThreads)
    ternary_kernel(Key key, std::uint64_t nonce, unsigned count, std::int8_t* out) {
  for (unsigned made = 0, counter = threadIdx.x; made < count; counter += blockDim.x) {
    std::uint32_t x[16];
    chacha20(key, counter, nonce, x);
    unsigned kept = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) kept += 4 - __popc(__vcmpeq4(x[i], 0xffffffff)) / 8;
    unsigned total;
    unsigned at = made + sum_before(kept, total);
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      const unsigned byte = x[i / 4] >> 8 * (i % 4) & 255;
      const unsigned third = byte * 171 >> 9;
      const bool keep = byte != 255;
      if (keep && at < count) out[at] = static_cast<std::int8_t>(byte - 3 * third - 1);
      at += keep;
    }
    made += total;
  }
}

// Of each 64-bit word: ones among bits 0..20 less ones among bits 32..52.
__global__ void error_kernel(Key key, std::uint64_t nonce, unsigned count, std::int8_t* out) {
  const unsigned counter = blockIdx.x * blockDim.x + threadIdx.x;
  if (counter * 8 >= count) return;
  std::uint32_t x[16];
  chacha20(key, counter, nonce, x);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int e = __popc(x[2 * i] & 0x1fffff) - __popc(x[2 * i + 1] & 0x1fffff);
    out[counter * 8 + i] = static_cast<std::int8_t>(e);
  }
}

template <class Stored>
__global__ void spread_kernel(Shape s, RowModuli moduli, const std::int8_t* values, Stored* out) {
  const unsigned limb = blockIdx.y / s.batch, b = blockIdx.y % s.batch;
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const auto q = static_cast<Stored>(moduli.q[limb]);
  const int x = values[(static_cast<std::size_t>(b) << s.log_n) + k];
  out[(static_cast<std::size_t>(blockIdx.y) << s.log_n) + k] =
      static_cast<Stored>(x) + (x < 0 ? q : Stored{0});
}

RowModuli by_value(const Moduli& moduli) {
  require<Unsupported>(moduli.size() <= kMaxLimbs,
                       "the GPU engine holds polynomials of up to 256 limbs");
  RowModuli out{};
  for (std::size_t i = 0; i < moduli.size(); ++i) {
    out.q[i] = moduli[i].q;
    out.index[i] = static_cast<std::uint16_t>(moduli[i].index);
  }
  return out;
}

Key by_value(std::span<const std::uint8_t, 32> seed) {
  Key key;
  std::memcpy(key.word, seed.data(), sizeof(key.word));
  return key;
}

/// Threads that make about `words` words at once.
unsigned threads_for(std::size_t words, std::size_t a_thread) {
  const std::size_t threads = (words / a_thread + kWarp - 1) / kWarp * kWarp;
  return static_cast<unsigned>(std::clamp<std::size_t>(threads, kWarp, kMaxThreads));
}

}  // namespace

template <class W>
void sample_uniform(const Stream& stream, const Shape& s, const Moduli& moduli,
                    std::span<const std::uint8_t, 32> seed, std::uint32_t index, void* out) {
  if (s.limb_count == 0) return;
  // Twice as many words as residues: enough at once in a short row, whatever the modulus.
  const std::size_t words = std::size_t{2} << s.log_n;
  uniform_kernel<<<s.limb_count * s.batch, threads_for(words, 16), 0, stream.get()>>>(
      s, by_value(moduli), by_value(seed), index, static_cast<typename W::Stored*>(out));
  check_launch(stream, "sample_uniform");
}

template <class W>
void sample_small(const Stream& stream, const Shape& s, const Moduli& moduli, Small kind,
                  std::span<const std::uint8_t, 32> seed, std::uint64_t nonce, void* scratch,
                  void* out) {
  using Stored = typename W::Stored;
  const unsigned count = s.batch << s.log_n, threads = 256;
  auto* values = static_cast<std::int8_t*>(scratch);
  Key key = by_value(seed);
  if (kind == Small::ternary) {
    ternary_kernel<<<1, threads_for(count, 64), 0, stream.get()>>>(key, nonce, count, values);
  } else {
    const unsigned blocks = (count / 8 + threads - 1) / threads;
    error_kernel<<<blocks, threads, 0, stream.get()>>>(key, nonce, count, values);
  }
  wipe(&key, sizeof(key));
  check_launch(stream, "sample_small");
  if (s.limb_count == 0) return;
  spread_kernel<<<dim3((1u << s.log_n) / threads, s.limb_count * s.batch), threads, 0,
                  stream.get()>>>(s, by_value(moduli), values, static_cast<Stored*>(out));
  check_launch(stream, "sample_small");
}

#define JALI_INSTANTIATE(W)                                                                 \
  template void sample_uniform<W>(const Stream&, const Shape&, const Moduli&,               \
                                  std::span<const std::uint8_t, 32>, std::uint32_t, void*); \
  template void sample_small<W>(const Stream&, const Shape&, const Moduli&, Small,          \
                                std::span<const std::uint8_t, 32>, std::uint64_t, void*, void*);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
