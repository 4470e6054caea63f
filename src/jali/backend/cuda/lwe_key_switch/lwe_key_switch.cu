// out = (0, .., 0, b') - D K modulo 2^32. D: digits, `count` rows of k N levels signed bytes. K:
// the key, of n + 1 columns. A word of the key is sum_t limb_t 2^(8 t) modulo 2^32, t < 4, with
// limbs in [-128, 127]. The product of D with the limbs of one t needs 32 - 8 t bits, so that an
// overflow of 32-bit sums is harmless, and the result is exact.
//
// The key lies as the instruction mma.m16n8k32 takes it: [32 rows][8 columns][lane][limb][2
// registers], so that a thread reads 32 bytes in a row, and has all limbs of a column in its sums.
// Blocks that share out the rows of the key add to out.
#include <algorithm>

#include "jali/backend/cuda/lwe_key_switch/lwe_key_switch.cuh"

namespace jali::backend::cuda {

namespace {

constexpr int kRows = 128, kColumns = 64;  // of out, that a block computes
constexpr int kDepth = 64,
              kPitch = kDepth +
                       16;  // bytes of digits a stage; of a row in shared memory, without conflicts
constexpr int kThreads = 256, kStages = 3;

// Wider digits do not fit signed bytes. They take a plain product, whose key lies as the rows came.
bool bytes_suffice(const TfheConfig& config) { return config.switch_gadget.base_log <= 7; }

std::size_t columns_of(const TfheConfig& config) {
  return (config.n.value + 1 + kColumns - 1) / kColumns * kColumns;
}
std::size_t depth_of(const TfheConfig& config) {
  return config.large().value * static_cast<std::size_t>(config.switch_gadget.levels);
}

// A word of a fragment of the key: rows r .. r + 3 of one limb of a column.
__global__ void __launch_bounds__(256)
    prepare_kernel(std::uint32_t* key, const std::uint32_t* rows, unsigned n1, unsigned columns,
                   std::size_t words) {
  const std::size_t at = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= words) return;
  std::size_t rest = at;
  const unsigned half = rest % 2;
  rest /= 2;
  const unsigned limb = rest % 4;
  rest /= 4;
  const unsigned lane = rest % 32;
  rest /= 32;
  const std::size_t column = rest % (columns / 8) * 8 + lane / 4;
  const std::size_t row = rest / (columns / 8) * 32 + half * 16 + lane % 4 * 4;
  std::uint32_t word = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if (column >= n1) break;
    // Adding 128 to every limb makes them unsigned digits.
    const std::uint32_t shifted = rows[(row + i) * n1 + column] + 0x80808080u;
    word |= ((shifted >> (8 * limb) & 0xff) ^ 0x80) << (8 * i);
  }
  key[at] = word;
}

template <class Word, class Digit>
__global__ void __launch_bounds__(256)
    digits_kernel(Digit* digits, std::uint32_t* out, const Word* in, unsigned large, unsigned n1,
                  int base_log, int levels) {
  constexpr int kBits = 8 * sizeof(Word);
  after_predecessor();
  const std::size_t row = blockIdx.y;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const Word* const from = in + row * (large + 1);
  if (i < n1) {
    std::uint32_t b = 0;
    if (i + 1 == n1) {
      b = kBits == 32 ? static_cast<std::uint32_t>(from[large])
                      : static_cast<std::uint32_t>(
                            (static_cast<std::uint64_t>(from[large]) + 0x80000000u) >> 32);
    }
    out[row * n1 + i] = b;
  }
  if (i >= large) return;
  // The closest multiple of 2^(w - levels base_log), by units of it.
  const int drop = kBits - base_log * levels;
  const Word x = from[i];
  Word rest = drop == 0 ? x : (x >> drop) + ((x >> (drop - 1)) & 1);
  const Word base = Word{1} << base_log, half = base >> 1;
  Digit* const to = digits + (row * large + i) * static_cast<unsigned>(levels);
  for (int j = levels - 1; j >= 0; --j) {
    const Word d = rest & (base - 1);
    rest >>= base_log;
    const Word carry = d > half || (d == half && (rest & 1) != 0) ? 1 : 0;
    to[j] = static_cast<Digit>(d - (carry ? base : 0));
    rest += carry;
  }
}

__device__ __forceinline__ void multiply(int (&sum)[4], const unsigned (&a)[4], unsigned b0,
                                         unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, "
      "{%0, %1, %2, %3};"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Warps: 4 along rows, 2 along columns; a warp has 32 rows and 32 columns, of four limbs each.
__global__ void __launch_bounds__(kThreads, 1)
    product_kernel(std::uint32_t* out, const std::int8_t* digits, const uint4* key, unsigned count,
                   unsigned n1, unsigned columns, unsigned depth, unsigned per_split) {
  __shared__ __align__(16) std::int8_t tile[kStages][kRows * kPitch];
  const unsigned tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const unsigned row0 = blockIdx.y * kRows, warp_row = warp % 4 * 32, warp_column = warp / 4 * 32;
  const unsigned first = blockIdx.z * per_split, last = min(first + per_split, depth / kDepth);
  int sums[2][4][4][4] = {};  // [16 rows][8 columns][limb]
  after_predecessor();
  const auto fetch = [&](unsigned stage, unsigned step) {
#pragma unroll
    for (int t = 0; t < kRows * kDepth / 16 / kThreads; ++t) {
      const unsigned piece = tid + t * kThreads, row = piece / (kDepth / 16),
                     at = piece % (kDepth / 16) * 16;
      const std::int8_t* const from = digits +
                                      static_cast<std::size_t>(min(row0 + row, count - 1)) * depth +
                                      step * kDepth + at;
      const auto to =
          static_cast<unsigned>(__cvta_generic_to_shared(&tile[stage][row * kPitch + at]));
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
#pragma unroll
  for (unsigned s = 0; s + 1 < kStages; ++s) {
    if (first + s < last)
      fetch(s, first + s);
    else
      asm volatile("cp.async.commit_group;" ::: "memory");
  }
  const unsigned column_tiles = columns / 8;
  const uint4* const mine =
      key + (static_cast<std::size_t>(blockIdx.x * kColumns + warp_column) / 8 * 32 + lane) * 2;
  uint4 b[4][2];
  const auto load = [&](unsigned k32) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint4* const from = mine + (static_cast<std::size_t>(k32) * column_tiles + j) * 64;
      b[j][0] = __ldg(from);
      b[j][1] = __ldg(from + 1);
    }
  };
  for (unsigned step = first; step < last; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    const unsigned ahead = step + kStages - 1;
    if (ahead < last)
      fetch((ahead - first) % kStages, ahead);
    else
      asm volatile("cp.async.commit_group;" ::: "memory");
    const std::int8_t* const now = tile[(step - first) % kStages];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      load(step * 2 + half);
      unsigned a[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const unsigned row = warp_row + m * 16 + lane / 4 + (i & 1) * 8;
          a[m][i] = *reinterpret_cast<const unsigned*>(now + row * kPitch + half * 32 +
                                                       lane % 4 * 4 + (i >> 1) * 16);
        }
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          multiply(sums[m][j][0], a[m], b[j][0].x, b[j][0].y);
          multiply(sums[m][j][1], a[m], b[j][0].z, b[j][0].w);
          multiply(sums[m][j][2], a[m], b[j][1].x, b[j][1].y);
          multiply(sums[m][j][3], a[m], b[j][1].z, b[j][1].w);
        }
      }
    }
  }
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const unsigned row = row0 + warp_row + m * 16 + lane / 4 + (i >> 1) * 8;
        const unsigned column =
            blockIdx.x * kColumns + warp_column + j * 8 + lane % 4 * 2 + (i & 1);
        if (row < count && column < n1) {
          const auto limb = [&](int t) {
            return static_cast<std::uint32_t>(sums[m][j][t][i]) << (8 * t);
          };
          atomicSub(out + static_cast<std::size_t>(row) * n1 + column,
                    limb(0) + limb(1) + limb(2) + limb(3));
        }
      }
    }
  }
}

// A thread computes one word of out.
__global__ void __launch_bounds__(256)
    plain_kernel(std::uint32_t* out, const std::int32_t* digits, const std::uint32_t* key,
                 unsigned n1, unsigned depth) {
  after_predecessor();
  const std::size_t row = blockIdx.y;
  const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= n1) return;
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < depth; ++i) {
    sum += static_cast<std::uint32_t>(digits[row * depth + i]) *
           key[static_cast<std::size_t>(i) * n1 + column];
  }
  out[row * n1 + column] -= sum;
}

template <class Digit>
void cut_digits(const Stream& stream, const TfheConfig& config, Digit* digits, std::uint32_t* out,
                const void* in, std::size_t begin, unsigned rows) {
  const auto large = static_cast<unsigned>(config.large().value);
  const auto n1 = static_cast<unsigned>(config.n.value + 1);
  const dim3 grid((std::max(large, n1) + 255) / 256, rows);
  const auto run = [&](auto* kernel, const auto* from) {
    launch(stream, "digits", kernel, grid, 256, 0, 1, digits, out, from + begin * (large + 1),
           large, n1, config.switch_gadget.base_log, config.switch_gadget.levels);
  };
  if (config.torus == Torus::t64) {
    run(digits_kernel<std::uint64_t, Digit>, static_cast<const std::uint64_t*>(in));
  } else {
    run(digits_kernel<std::uint32_t, Digit>, static_cast<const std::uint32_t*>(in));
  }
}

}  // namespace

std::size_t switch_key_bytes(const TfheConfig& config) {
  return (bytes_suffice(config) ? columns_of(config) : config.n.value + 1) * depth_of(config) * 4;
}
std::size_t digit_bytes(const TfheConfig& config, std::size_t count) {
  return count * depth_of(config) * (bytes_suffice(config) ? 1 : 4);
}

void prepare_switch_key(const Stream& stream, const TfheConfig& config, void* key,
                        const std::uint32_t* rows) {
  if (!bytes_suffice(config)) {
    stream.check(cudaMemcpyAsync(key, rows, switch_key_bytes(config), cudaMemcpyDeviceToDevice,
                                 stream.get()),
                 "key-switching key");
    return;
  }
  const std::size_t words = switch_key_bytes(config) / 4;
  prepare_kernel<<<static_cast<unsigned>((words + 255) / 256), 256, 0, stream.get()>>>(
      static_cast<std::uint32_t*>(key), rows, static_cast<unsigned>(config.n.value + 1),
      static_cast<unsigned>(columns_of(config)), words);
  check_launch(stream, "key-switching key");
}

void key_switch(const Stream& stream, const TfheConfig& config, std::uint32_t* out, const void* in,
                std::size_t count, const void* key, void* digits) {
  const auto n1 = static_cast<unsigned>(config.n.value + 1);
  const auto depth = static_cast<unsigned>(depth_of(config)), steps = depth / kDepth;
  const auto columns = static_cast<unsigned>(columns_of(config));
  // Grids have at most 65,535 blocks along y.
  for (std::size_t begin = 0; begin < count; begin += 32768) {
    const auto rows = static_cast<unsigned>(std::min<std::size_t>(32768, count - begin));
    std::uint32_t* const to = out + begin * n1;
    if (!bytes_suffice(config)) {
      auto* const wide = static_cast<std::int32_t*>(digits) + begin * depth;
      cut_digits(stream, config, wide, to, in, begin, rows);
      launch(stream, "key switch", plain_kernel, dim3((n1 + 255) / 256, rows), 256, 0, 1, to,
             static_cast<const std::int32_t*>(wide), static_cast<const std::uint32_t*>(key), n1,
             depth);
      continue;
    }
    auto* const d = static_cast<std::int8_t*>(digits) + begin * depth;
    cut_digits(stream, config, d, to, in, begin, rows);
    // Few ciphertexts: the rows of the key are shared out, down to eight stages a block.
    const unsigned blocks = columns / kColumns * ((rows + kRows - 1) / kRows);
    const unsigned splits = std::clamp(264 / blocks, 1u, std::max(1u, steps / 8));
    const unsigned per_split = (steps + splits - 1) / splits;
    launch(
        stream, "key switch", product_kernel,
        dim3(columns / kColumns, (rows + kRows - 1) / kRows, (steps + per_split - 1) / per_split),
        kThreads, 0, 1, to, static_cast<const std::int8_t*>(d), static_cast<const uint4*>(key),
        rows, n1, columns, depth, per_split);
  }
}

}  // namespace jali::backend::cuda
