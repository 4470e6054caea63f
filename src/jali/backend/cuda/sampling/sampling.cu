// One thread makes one ChaCha20 block: consecutive threads hold consecutive pieces of the stream,
// and thread blocks hold chunks of it. Samplers that reject words take the accepted ones in stream
// order: a thread's place is the number of words that all threads before it accepted. A chunk
// publishes its count as soon as it is known and waits for those of the chunks before it; chunks
// are handed out in order, so that those it waits for are running. A row has as many chunks as it
// almost surely needs; if they are too few, the last chunk goes on alone.
#include <algorithm>
#include <bit>
#include <cmath>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/sampling/chacha.cuh"
#include "jali/backend/cuda/sampling/sampling.cuh"
#include "jali/base/error.h"
#include "jali/base/wipe.h"

namespace jali::backend::cuda {

namespace {

constexpr unsigned kWarp = 32, kThreads = 128;

struct RowModuli {
  std::uint64_t q[kMaxLimbs];
  std::uint16_t index[kMaxLimbs];
  std::uint16_t chunks[kMaxLimbs];  // of a row
};

/// The sum of `count` over the threads before this one; total: over all of the block.
__device__ unsigned sum_before(unsigned count, unsigned& total) {
  __shared__ unsigned sums[kThreads / kWarp];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  constexpr unsigned warps = kThreads / kWarp;
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

/// The next chunk that nobody has taken.
__device__ unsigned take(std::uint32_t* ticket) {
  __shared__ unsigned mine;
  if (threadIdx.x == 0) mine = atomicAdd(ticket, 1u);
  __syncthreads();
  return mine;
}

/// Publishes that `chunk` has `total` survivors, and returns how many the chunks before it have.
__device__ unsigned chunks_before(std::uint32_t* counts, unsigned chunk, unsigned total) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0) atomicExch(counts + chunk, total + 1);  // 0 is: not known yet
  if (threadIdx.x < kWarp) {
    unsigned before = 0;
    for (unsigned c = threadIdx.x; c < chunk; c += kWarp) {
      std::uint32_t count;
      do {
        count = *static_cast<volatile std::uint32_t*>(counts + c);
      } while (count == 0);
      before += count - 1;
    }
    before = __reduce_add_sync(~0u, before);
    if (threadIdx.x == 0) sum = before;
  }
  __syncthreads();
  return sum;
}

// Takes words of 4 bytes if q < 2^32, else of 8, masked to the length of q, and keeps those below
// q.
template <class Raw, class Stored>
__device__ void uniform_chunk(const ChachaKey& key, std::uint64_t nonce, Raw q, unsigned n,
                              Stored* out, std::uint32_t* counts, unsigned chunk, unsigned chunks) {
  constexpr unsigned kWords = 64 / sizeof(Raw);
  // In stream order, then out in order; a word of padding after those of a thread.
  __shared__ Raw kept[kThreads * (kWords + 1)];
  const auto place = [](unsigned i) { return i + i / kWords; };
  Raw mask;
  if constexpr (sizeof(Raw) == 4) {
    mask = ~Raw{0} >> __clz(static_cast<int>(q));
  } else {
    mask = ~Raw{0} >> __clzll(static_cast<long long>(q));
  }
  unsigned made = 0;
  for (unsigned now = chunk; now == chunk || made < n; ++now) {
    std::uint32_t x[16];
    chacha20(key, now * kThreads + threadIdx.x, nonce, x);
    Raw word[kWords];
    unsigned keep = 0;
#pragma unroll
    for (unsigned i = 0; i < kWords; ++i) {
      if constexpr (sizeof(Raw) == 4) {
        word[i] = x[i] & mask;
      } else {
        word[i] = (x[2 * i] | static_cast<Raw>(x[2 * i + 1]) << 32) & mask;
      }
      keep |= static_cast<unsigned>(word[i] < q) << i;
    }
    unsigned total;
    unsigned at = sum_before(__popc(keep), total);
#pragma unroll
    for (unsigned i = 0; i < kWords; ++i) {
      if (keep >> i & 1) kept[place(at++)] = word[i];
    }
    if (now == chunk) made = chunks_before(counts, chunk, total);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < total && made + i < n; i += kThreads) {
      out[made + i] = static_cast<Stored>(kept[place(i)]);
    }
    made += total;
    if (chunk + 1 < chunks) return;
  }
}

template <class Stored>
__global__ void __launch_bounds__(kThreads)
    uniform_kernel(Shape s, RowModuli moduli, ChachaKey key, std::uint32_t index,
                   unsigned most_chunks, std::uint32_t* scratch, Stored* out) {
  const unsigned taken = take(scratch), row = taken / most_chunks, chunk = taken % most_chunks;
  const unsigned limb = row / s.batch, b = row % s.batch, n = 1u << s.log_n;
  const unsigned chunks = moduli.chunks[limb];
  if (chunk >= chunks) return;
  const std::uint64_t q = moduli.q[limb];
  const std::uint64_t nonce = (std::uint64_t{index} + b) << 16 | moduli.index[limb];
  std::uint32_t* counts = scratch + 1 + row * most_chunks;
  Stored* to = out + (static_cast<std::size_t>(row) << s.log_n);
  if (sizeof(Stored) == 4 || q >> 32 == 0) {
    uniform_chunk<std::uint32_t>(key, nonce, static_cast<std::uint32_t>(q), n, to, counts, chunk,
                                 chunks);
  } else {
    uniform_chunk<std::uint64_t>(key, nonce, q, n, to, counts, chunk, chunks);
  }
}

// A ternary value is a byte below 255 modulo 3, less 1. No branch depends on it.
__global__ void __launch_bounds__(kThreads)
    ternary_kernel(ChachaKey key, std::uint64_t nonce, unsigned count, unsigned chunks,
                   std::uint32_t* scratch, std::int8_t* out) {
  const unsigned chunk = take(scratch);
  unsigned made = 0;
  for (unsigned now = chunk; now == chunk || made < count; ++now) {
    std::uint32_t x[16];
    chacha20(key, now * kThreads + threadIdx.x, nonce, x);
    unsigned kept = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) kept += 4 - __popc(__vcmpeq4(x[i], 0xffffffff)) / 8;
    unsigned total;
    const unsigned before = sum_before(kept, total);
    if (now == chunk) made = chunks_before(scratch + 1, chunk, total);
    unsigned at = made + before;
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      const unsigned byte = x[i / 4] >> 8 * (i % 4) & 255;
      const unsigned third = byte * 171 >> 9;
      const bool keep = byte != 255;
      if (keep && at < count) out[at] = static_cast<std::int8_t>(byte - 3 * third - 1);
      at += keep;
    }
    made += total;
    if (chunk + 1 < chunks) return;
  }
}

// An error is, of each 64-bit word, the ones among bits 0..20 less the ones among bits 32..52.
__global__ void error_kernel(ChachaKey key, std::uint64_t nonce, unsigned count, std::int8_t* out) {
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

/// Chunks of `words` words each that hold `count` survivors, of which every word is one with chance
/// `p`: some standard deviations beyond the mean.
unsigned chunks_for(double count, double p, unsigned words, double deviations) {
  const double mean = count / p;
  const double enough = mean + deviations * std::sqrt(mean * (1 - p) / p);
  return static_cast<unsigned>(std::max(enough, 0.0) / words) + 1;
}
template <class W>
unsigned uniform_chunks(std::uint64_t q, int log_n, double deviations) {
  const bool narrow = sizeof(typename W::Stored) == 4 || q >> 32 == 0;
  const double p = static_cast<double>(q) / std::exp2(std::bit_width(q));
  return chunks_for(std::exp2(log_n), p, kThreads * (narrow ? 16 : 8), deviations);
}
unsigned ternary_chunks(std::size_t count, double deviations) {
  return chunks_for(static_cast<double>(count), 255.0 / 256, kThreads * 64, deviations);
}

}  // namespace

template <class W>
std::size_t uniform_scratch(const Shape& s, const Moduli& moduli, double deviations) {
  unsigned most = 0;
  for (const auto& m : moduli) most = std::max(most, uniform_chunks<W>(m.q, s.log_n, deviations));
  return sizeof(std::uint32_t) * (1 + std::size_t{most} * s.limb_count * s.batch);
}

std::size_t small_scratch(std::size_t count, double deviations) {
  return sizeof(std::uint32_t) * (1 + ternary_chunks(count, deviations));
}

template <class W>
void sample_uniform(const Stream& stream, const Shape& s, const Moduli& moduli,
                    std::span<const std::uint8_t, 32> seed, std::uint32_t index, void* scratch,
                    void* out, double deviations) {
  if (s.limb_count == 0) return;
  RowModuli rows = by_value(moduli);
  unsigned most = 0;
  for (std::size_t i = 0; i < moduli.size(); ++i) {
    const unsigned chunks = uniform_chunks<W>(moduli[i].q, s.log_n, deviations);
    rows.chunks[i] = static_cast<std::uint16_t>(chunks);
    most = std::max(most, chunks);
  }
  uniform_kernel<<<s.limb_count * s.batch * most, kThreads, 0, stream.get()>>>(
      s, rows, key_of(seed), index, most, static_cast<std::uint32_t*>(scratch),
      static_cast<typename W::Stored*>(out));
  check_launch(stream, "sample_uniform");
}

template <class W>
void spread(const Stream& stream, const Shape& s, const Moduli& moduli, const std::int8_t* values,
            void* out) {
  if (s.limb_count == 0) return;
  constexpr unsigned kSpread = 256;
  spread_kernel<<<dim3((1u << s.log_n) / kSpread, s.limb_count * s.batch), kSpread, 0,
                  stream.get()>>>(s, by_value(moduli), values,
                                  static_cast<typename W::Stored*>(out));
  check_launch(stream, "sample_small");
}

template <class W>
void sample_small(const Stream& stream, const Shape& s, const Moduli& moduli, Small kind,
                  std::span<const std::uint8_t, 32> seed, std::uint64_t nonce, void* scratch,
                  void* integers, void* out, double deviations) {
  const unsigned count = s.batch << s.log_n, threads = 256;
  auto* values = static_cast<std::int8_t*>(integers);
  ChachaKey key = key_of(seed);
  if (kind == Small::ternary) {
    const unsigned chunks = ternary_chunks(count, deviations);
    ternary_kernel<<<chunks, kThreads, 0, stream.get()>>>(
        key, nonce, count, chunks, static_cast<std::uint32_t*>(scratch), values);
  } else {
    const unsigned blocks = (count / 8 + threads - 1) / threads;
    error_kernel<<<blocks, threads, 0, stream.get()>>>(key, nonce, count, values);
  }
  wipe(&key, sizeof(key));
  check_launch(stream, "sample_small");
  spread<W>(stream, s, moduli, values, out);
}

#define JALI_INSTANTIATE(W)                                                                       \
  template std::size_t uniform_scratch<W>(const Shape&, const Moduli&, double);                   \
  template void sample_uniform<W>(const Stream&, const Shape&, const Moduli&,                     \
                                  std::span<const std::uint8_t, 32>, std::uint32_t, void*, void*, \
                                  double);                                                        \
  template void spread<W>(const Stream&, const Shape&, const Moduli&, const std::int8_t*, void*); \
  template void sample_small<W>(const Stream&, const Shape&, const Moduli&, Small,                \
                                std::span<const std::uint8_t, 32>, std::uint64_t, void*, void*,   \
                                void*, double);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
