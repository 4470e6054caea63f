// The rates that a GPU cannot pass, measured: butterflies on registers, and bytes copied within its
// memory.
#include <algorithm>
#include <vector>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/common/word.cuh"
#include "jali/backend/engines.h"
#include "jali/base/error.h"

namespace jali::backend {

namespace cuda {

namespace {

constexpr unsigned kRounds = 2048, kThreads = 256, kBlocksPerSm = 4;
constexpr std::size_t kCopied = std::size_t{256} << 20;  // five times the largest L2

template <class W>
constexpr int kPairs = sizeof(typename W::R) == 4 ? 8 : 4;  // enough to hide the latency

template <class W>
__global__ void butterflies(typename W::Stored* sink, typename W::Stored rare, typename W::Prime p,
                            typename W::Twiddle w) {
  typename W::R x[kPairs<W>], y[kPairs<W>];
  for (int i = 0; i < kPairs<W>; ++i) {
    x[i] = W::load(threadIdx.x + i);
    y[i] = W::load(blockIdx.x + 2 * i);
  }
  for (unsigned round = 0; round < kRounds; ++round) {
#pragma unroll
    for (int i = 0; i < kPairs<W>; ++i) {
      if (round % 4 == 0) W::settle_forward(x[i], p);
      W::butterfly(x[i], y[i], W::twiddle(w), p);
    }
  }
  for (int i = 0; i < kPairs<W>; ++i) {
    const auto result = W::store(x[i], p) ^ W::store(y[i], p);
    if (result == rare) *sink = result;  // keeps the loop alive
  }
}

void constants(std::uint32_t q, W32::Prime& p, W32::Twiddle& w) {
  p = {q, {}, {}};
  w = {q / 3, static_cast<std::uint32_t>((std::uint64_t{q / 3} << 32) / q)};
}
void constants(std::uint64_t q, W64::Prime& p, W64::Twiddle& w) {
  p = {q, {}, {}};
  w = {q / 3, static_cast<std::uint64_t>((static_cast<unsigned __int128>(q / 3) << 64) / q)};
}
void constants(std::uint64_t q, W52::Prime& p, W52::Twiddle& w) {
  p = {static_cast<double>(q), 1.0 / static_cast<double>(q)};
  w = static_cast<double>(q / 3);
}

/// Seconds of launch(), the least of several.
template <class Launch>
double least_seconds(const Stream& stream, Launch&& launch) {
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  float best = 1e30f;
  for (int repeat = 0; repeat < 12; ++repeat) {
    check(cudaEventRecord(begin, stream.get()), "cudaEventRecord");
    launch();
    check(cudaEventRecord(end, stream.get()), "cudaEventRecord");
    check(cudaEventSynchronize(end), "measuring the GPU");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    best = std::min(best, ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return best * 1e-3;
}

template <class W>
CudaPeak measure(Word word, int device) {
  const Stream stream(device);
  int sms = 0;
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "SM count");
  typename W::Prime p;
  typename W::Twiddle w;
  // Any odd number does here.
  constants(static_cast<typename W::Stored>((std::uint64_t{1} << (word_prime_bits(word) - 1)) + 1),
            p, w);
  void* memory = nullptr;
  check(cudaMallocAsync(&memory, 2 * kCopied, stream.get()), "measuring the GPU's memory",
        2 * kCopied);
  const unsigned blocks = kBlocksPerSm * static_cast<unsigned>(sms);
  const double computing = least_seconds(stream, [&] {
    butterflies<W><<<blocks, kThreads, 0, stream.get()>>>(static_cast<typename W::Stored*>(memory),
                                                          12345, p, w);
    check_launch(stream, "butterflies");
  });
  const double copying = least_seconds(stream, [&] {
    check(cudaMemcpyAsync(static_cast<char*>(memory) + kCopied, memory, kCopied,
                          cudaMemcpyDeviceToDevice, stream.get()),
          "copy");
  });
  check(cudaFreeAsync(memory, stream.get()), "cudaFreeAsync");
  return {static_cast<double>(blocks) * kThreads * kRounds * kPairs<W> / computing,
          2.0 * kCopied / copying};
}

}  // namespace

}  // namespace cuda

CudaPeak cuda_peak(Word word, int device) {
  switch (word) {
    case Word::w32: return cuda::measure<cuda::W32>(word, device);
    case Word::w52: return cuda::measure<cuda::W52>(word, device);
    case Word::w64: return cuda::measure<cuda::W64>(word, device);
  }
  throw InvalidArgument("unknown word");
}

}  // namespace jali::backend
