// A block has 64 points, one after the other in the tree of remainders, for rows and columns of the
// GGSW ciphertexts of a step, a number a thread. The thread keeps this number of all units in
// registers and goes through the ciphertexts of the batch, so that the key is read once.
//
// Roots. Point p stands for the root exp(i pi E(p) / N), E(p) = 1 + sum_t p_t N / 2^t over the bits
// p_t of p. The upper bits are those of the block, and the lower six add N/32 reversed(p): a root's
// power is the block's times a 64th root of unity. Eight neighbours read such roots eight apart, in
// an odd power, so that root i lies where they meet different banks.
//
// Sums. Let r_j be the power of the step's bit j. Block-binary: sum_j r_j K_j - sum_j K_j.
// Multi-bit: the unit of a set of bits takes the product of their r_j, so that the sum is a
// polynomial that is linear in each r_j. With v_0 = -sum_u K_u and v_u the unit of the set u, it
// folds bit by bit: v_u += r_j v_(u + 2^j), 2^g - 1 complex multiply-adds for g bits.
#include "jali/backend/cuda/blind_rotation/key_sums.cuh"
#include "jali/backend/cuda/blind_rotation/step.cuh"

namespace jali::backend::cuda {

namespace {

constexpr unsigned kSumPoints = 64, kSumThreads = 256;
constexpr unsigned kPowers = 64;  // ciphertexts whose exponents are in shared memory at once

struct SumArgs {
  SumCall call;
  ClusterKey key, sums;
  TileOrder tile_order;
  std::size_t numbers;  // of a sum
  unsigned n, log_n, rows, k1;
  bool tiles;
};

__device__ __forceinline__ unsigned reversed6(unsigned i) { return __brev(i) >> 26; }
__device__ __forceinline__ unsigned fine_place(unsigned i) { return i ^ (i >> 3 & 7); }

template <int Group, bool MultiBit>
__global__ void __launch_bounds__(kSumThreads) sum_kernel(const __grid_constant__ SumArgs a) {
  constexpr unsigned units = MultiBit ? (1u << Group) - 1 : Group;
  __shared__ double2 fine[kSumPoints], coarse[kPowers][Group];
  __shared__ __align__(16) unsigned exponents[kPowers][Group];
  const unsigned tid = threadIdx.x, N = 1u << a.log_n, turn = 2 * N - 1;
  const unsigned low = tid % kSumPoints, p = blockIdx.x * kSumPoints + low;
  const unsigned entry = (blockIdx.y * kSumThreads + tid) / kSumPoints;
  const unsigned step = a.call.first + blockIdx.z;
  const unsigned row = entry / a.k1, column = entry % a.k1, reversed = reversed6(low);
  const bool mine = row < a.rows;
  // Of the block's first point.
  const unsigned exponent = 1 + 4 * (__brev(p - low) >> (33 - a.log_n));

  double2 v[units + 1];
  const double2* const key = a.call.key + (mine ? a.key.place(step, row, 0, column, p) : 0);
  // From one unit to the next.
  const std::size_t stride = static_cast<std::size_t>(a.k1) * a.k1 * a.key.part;
#pragma unroll
  for (unsigned u = 1; u <= units; ++u) v[u] = key[(u - 1) * stride];
  const std::size_t to =
      a.tiles ? a.tile_order.place(row, column, p) : a.sums.place(0, row, 0, column, p);
  double2* const out = a.call.out + blockIdx.z * a.numbers + to;

  if (tid < kSumPoints) fine[fine_place(tid)] = a.call.roots[tid * (N / 32)];
  const Switch switched{32 - static_cast<int>(a.log_n + 1) + a.call.log_many, a.call.log_many,
                        turn};
  const auto take_powers = [&](unsigned first, unsigned now) {
    for (unsigned i = tid; i < now * Group; i += kSumThreads) {
      const std::size_t ciphertext = first + i / Group;
      const unsigned e = switched(a.call.in[ciphertext * (a.n + 1) + step * Group + i % Group]);
      exponents[i / Group][i % Group] = e;
      coarse[i / Group][i % Group] = a.call.roots[e * exponent & turn];
    }
  };
  take_powers(0, min(kPowers, a.call.count));  // on their way with the key
  v[0] = make_double2(0, 0);
#pragma unroll
  for (unsigned u = 1; u <= units; ++u) {
    v[0].x -= v[u].x;
    v[0].y -= v[u].y;
  }

  for (unsigned first = 0; first < a.call.count; first += kPowers) {
    const unsigned now = min(kPowers, a.call.count - first);
    if (first > 0) {
      __syncthreads();  // all have read the powers before these
      take_powers(first, now);
    }
    __syncthreads();
    if (!mine) continue;
#pragma unroll 2
    for (unsigned c = 0; c < now; ++c) {
      const auto root = [&](int j) {
        return product(coarse[c][j], fine[fine_place(exponents[c][j] * reversed & 63)]);
      };
      double2 sum;
      if constexpr (MultiBit) {
        constexpr unsigned half = 1u << (Group - 1);
        double2 folded[half];
        const double2 top = root(Group - 1);
#pragma unroll
        for (unsigned u = 0; u < half; ++u) {
          folded[u] = v[u];
          add_product(folded[u], top, v[u + half]);
        }
#pragma unroll
        for (int j = Group - 2; j >= 0; --j) {
          const double2 r = root(j);
#pragma unroll
          for (unsigned u = 0; u < 1u << j; ++u) add_product(folded[u], r, folded[u + (1u << j)]);
        }
        sum = folded[0];
      } else {
        sum = v[0];
#pragma unroll
        for (int j = 0; j < Group; ++j) add_product(sum, root(j), v[j + 1]);
      }
      // A step that rotates by nothing adds exactly nothing: look-ups of ciphertexts without a mask
      // have no noise. The units and v_0 cancel up to roundings only.
      unsigned turned = 0;
#pragma unroll
      for (int j = 0; j < Group; ++j) turned |= exponents[c][j];
      if (turned == 0) sum = make_double2(0, 0);
      out[static_cast<std::size_t>(first + c) * a.call.steps * a.numbers] = sum;
    }
  }
}

template <int Group, bool MultiBit>
void run(const Stream& stream, cudaStream_t on, const SumArgs& args) {
  const unsigned entries = args.rows * args.k1, each = kSumThreads / kSumPoints;
  const dim3 grid((1u << (args.log_n - 1)) / kSumPoints, (entries + each - 1) / each,
                  args.call.steps);
  sum_kernel<Group, MultiBit><<<grid, kSumThreads, 0, on>>>(args);
  check_launch(stream, "sums of the bootstrapping key");
}

}  // namespace

std::size_t sum_bytes(const TfheConfig& config) {
  const std::size_t k1 = config.k.value + 1;
  return k1 * k1 * static_cast<std::size_t>(config.rotation_gadget.levels) * (config.N.value / 2) *
         sizeof(double2);
}

void sum_keys(const Stream& stream, cudaStream_t on, const TfheConfig& config,
              const ClusterKey& key, bool tiles, const SumCall& call) {
  if (call.count == 0 || call.steps == 0) return;
  SumArgs args{};
  args.call = call;
  args.key = args.sums = key;
  args.sums.units = 1;
  args.tile_order = {key.k1, static_cast<unsigned>(config.N.value / 64)};
  args.numbers = sum_bytes(config) / sizeof(double2);
  args.n = static_cast<unsigned>(config.n.value);
  while (std::size_t{1} << args.log_n < config.N.value) ++args.log_n;
  args.k1 = key.k1;
  args.rows = key.k1 * key.levels;
  args.tiles = tiles;
  if (config.rotation == Rotation::multi_bit) {
    switch (config.group) {
      case 2: return run<2, true>(stream, on, args);
      case 3: return run<3, true>(stream, on, args);
      default: return run<4, true>(stream, on, args);
    }
  }
  switch (config.group) {
    case 2: return run<2, false>(stream, on, args);
    case 3: return run<3, false>(stream, on, args);
    case 4: return run<4, false>(stream, on, args);
    case 5: return run<5, false>(stream, on, args);
    case 6: return run<6, false>(stream, on, args);
    case 7: return run<7, false>(stream, on, args);
    default: return run<8, false>(stream, on, args);
  }
}

}  // namespace jali::backend::cuda
