// A thread has one word of an output. Blocks share out the words of the masks, and add their shares
// to the output: modulo 2^w, the order of sums does not matter. A block keeps the digits of up to
// kTogether ciphertexts, of one word of each mask, in shared memory.
#include <algorithm>

#include "jali/backend/cuda/lwe_key_switch/packing.cuh"

namespace jali::backend::cuda {

namespace {

constexpr unsigned kThreads = 256;  // divides N
constexpr unsigned kTogether = 256;
constexpr unsigned kMostOutputs = 32768;  // of a grid, along z

struct Cut {
  int base_log, levels;
};

/// A word of an input as one of the output's: words of 32 bits become the highest of wider ones.
template <class Word, class In>
__device__ __forceinline__ Word widened(In word) {
  return static_cast<Word>(word) << (8 * (sizeof(Word) - sizeof(In)));
}

/// The digits of x by torus.h, digit j at to[j kTogether].
template <class Word>
__device__ __forceinline__ void decompose(std::int32_t* to, Word x, Cut cut) {
  const int drop = static_cast<int>(8 * sizeof(Word)) - cut.base_log * cut.levels;
  Word rest = drop == 0 ? x : (x >> drop) + ((x >> (drop - 1)) & 1);
  const Word base = Word{1} << cut.base_log, half = base >> 1;
  for (int j = cut.levels - 1; j >= 0; --j) {
    const Word d = rest & (base - 1);
    rest >>= cut.base_log;
    const Word carry = d > half || (d == half && (rest & 1) != 0) ? 1 : 0;
    to[j * kTogether] = static_cast<std::int32_t>(static_cast<std::int64_t>(d) -
                                                  static_cast<std::int64_t>(carry ? base : 0));
    rest += carry;
  }
}

/// out = (0, sum_t b_t X^(h_t)) of each output.
template <class Word, class In>
__global__ void __launch_bounds__(kThreads)
    bodies_kernel(Word* out, const In* in, const std::uint32_t* coefficients, unsigned N,
                  unsigned k, unsigned d, std::size_t count, std::size_t per) {
  after_predecessor();
  const std::size_t o = blockIdx.x, words = std::size_t{k + 1} * N;
  Word* const to = out + o * words;
  for (std::size_t x = threadIdx.x; x < words; x += kThreads) to[x] = 0;
  __syncthreads();
  const std::size_t first = o * per, last = count - first < per ? count : first + per;
  for (std::size_t t = first + threadIdx.x; t < last; t += kThreads) {
    to[k * N + coefficients[t]] = widened<Word>(in[t * (d + 1) + d]);
  }
}

// Along x: blocks of words of an output, k + 1 polynomials of N; along y: shares of the mask's
// words; along z: outputs.
template <class Word, class In>
__global__ void __launch_bounds__(kThreads)
    pack_kernel(Word* out, const In* in, const std::uint32_t* coefficients, const Word* key,
                unsigned N, unsigned k, unsigned d, std::size_t count, std::size_t per, Cut cut,
                unsigned share) {
  extern __shared__ std::int32_t digits[];  // [levels][kTogether]
  __shared__ unsigned powers[kTogether];
  after_predecessor();
  const unsigned at = blockIdx.x * kThreads + threadIdx.x, c = at / N, x = at % N;
  const std::size_t first = blockIdx.z * per, last = count - first < per ? count : first + per;
  const unsigned begin = blockIdx.y * share, end = min(d, begin + share);
  Word sum = 0;
  for (std::size_t from = first; from < last; from += kTogether) {
    const auto here = static_cast<unsigned>(last - from < kTogether ? last - from : kTogether);
    for (unsigned i = begin; i < end; ++i) {
      __syncthreads();
      if (threadIdx.x < here) {
        const std::size_t t = from + threadIdx.x;
        powers[threadIdx.x] = coefficients[t];
        decompose<Word>(digits + threadIdx.x, widened<Word>(in[t * (d + 1) + i]), cut);
      }
      __syncthreads();
      for (int j = 0; j < cut.levels; ++j) {
        const Word* const row =
            key + ((static_cast<std::size_t>(i) * cut.levels + j) * (k + 1) + c) * N;
        for (unsigned t = 0; t < here; ++t) {
          const unsigned h = powers[t];
          const Word word = __ldg(row + ((x - h) & (N - 1)));
          const auto digit =
              static_cast<Word>(static_cast<std::int64_t>(digits[j * kTogether + t]));
          sum += digit * (x < h ? 0 - word : word);
        }
      }
    }
  }
  Word* const to = out + blockIdx.z * std::size_t{k + 1} * N + at;
  if constexpr (sizeof(Word) == 8) {
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(0 - sum));
  } else {
    atomicSub(to, sum);
  }
}

template <class Word, class In>
void pack_words(const Stream& stream, const TfheConfig& config, void* out, std::size_t outputs,
                ConstLweView in, const std::uint32_t* coefficients, std::size_t per,
                const void* key) {
  const auto N = static_cast<unsigned>(config.N.value), k = static_cast<unsigned>(config.k.value);
  const auto d = static_cast<unsigned>(in.dimension.value);
  const Cut cut{config.rotation_gadget.base_log, config.rotation_gadget.levels};
  const std::size_t shared =
      static_cast<std::size_t>(cut.levels) * kTogether * sizeof(std::int32_t);
  const unsigned blocks = (k + 1) * N / kThreads;
  for (std::size_t o = 0; o < outputs; o += kMostOutputs) {
    const auto now = static_cast<unsigned>(std::min<std::size_t>(kMostOutputs, outputs - o));
    auto* const to = static_cast<Word*>(out) + o * (k + 1) * N;
    const auto* const from = static_cast<const In*>(in.data) + o * per * (d + 1);
    const std::size_t count = std::min(in.count - o * per, per * now);
    launch(stream, "packing, bodies", bodies_kernel<Word, In>, dim3(now), kThreads, 0, 1, to, from,
           coefficients + o * per, N, k, d, count, per);
    // Few outputs: the words of the masks are shared out, down to 8 a block.
    const unsigned shares = std::clamp(2048 / (blocks * now), 1u, (d + 7) / 8);
    const unsigned share = (d + shares - 1) / shares;
    launch(stream, "packing", pack_kernel<Word, In>, dim3(blocks, (d + share - 1) / share, now),
           kThreads, shared, 1, to, from, coefficients + o * per, static_cast<const Word*>(key), N,
           k, d, count, per, cut, share);
  }
}

}  // namespace

void pack(const Stream& stream, const TfheConfig& config, void* out, std::size_t outputs,
          ConstLweView in, const std::uint32_t* coefficients, std::size_t per, const void* key) {
  if (config.torus == Torus::t32) {
    pack_words<std::uint32_t, std::uint32_t>(stream, config, out, outputs, in, coefficients, per,
                                             key);
  } else if (in.torus == Torus::t32) {
    pack_words<std::uint64_t, std::uint32_t>(stream, config, out, outputs, in, coefficients, per,
                                             key);
  } else {
    pack_words<std::uint64_t, std::uint64_t>(stream, config, out, outputs, in, coefficients, per,
                                             key);
  }
}

}  // namespace jali::backend::cuda
