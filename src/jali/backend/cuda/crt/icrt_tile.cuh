// What the methods of the inverse CRT share. Each makes, for every integer, numbers y_r < 2^32 with
//   x = sum_r y_r row_r modulo 2^(128 chunks),
// rows of constants of their own. A block makes 32 integers, a lane each: its warps make the y,
// then 128 bits of the integers each; one warp carries from those to the next.
#pragma once

#include <vector>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/common/reduce.cuh"
#include "jali/backend/cuda/crt/crt.cuh"

namespace jali::backend::cuda {

namespace icrt_tile {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr unsigned kWarp = 32, kMaxWarps = 8;
constexpr unsigned kGroup = 4;  // words of a chunk

/// What a method puts into an IcrtPlan: its factors, and one constant a limb, 64-bit words of the
/// plan's length.
template <class W>
struct Constants {
  std::vector<Factor<typename W::R>> factors;
  std::vector<std::vector<u64>> rows;
};

/// a *= x, modulo 2^64 a word.
inline void multiply(std::vector<u64>& a, u64 x) {
  u64 carry = 0;
  for (u64& w : a) {
    const unsigned __int128 t = static_cast<unsigned __int128>(w) * x + carry;
    w = static_cast<u64>(t);
    carry = static_cast<u64>(t >> 64);
  }
}

/// What the blocks of one launch share.
template <class W>
struct Arguments {
  Shape s;
  const typename W::Prime* primes;
  const Factor<typename W::R>* factors;
  const double* reciprocals;
  const uint4* row;
  const u64* modulus;
  const typename W::Stored* x;
  u64* integers;
  unsigned chunks, rows, words;
};

/// Shared memory of a block, by lanes.
struct Tile {
  uint4* chunk;  // [chunks][32]: 128 bits of the integers
  u64* carry;  // [chunks][32]: what a chunk passes on
  double* quotient;  // [warps][32]: part of sum_i y_i / q_i
  u32* y;  // [rows][32]
  __device__ Tile(void* shared, unsigned chunks, unsigned warps)
      : chunk(static_cast<uint4*>(shared)),
        carry(reinterpret_cast<u64*>(chunk + chunks * kWarp)),
        quotient(reinterpret_cast<double*>(carry + chunks * kWarp)),
        y(reinterpret_cast<u32*>(quotient + warps * kWarp)) {}
  static std::size_t bytes(unsigned chunks, unsigned warps, unsigned rows) {
    return kWarp * (chunks * std::size_t{24} + warps * std::size_t{8} + rows * std::size_t{4});
  }
  template <int kPieces>
  __device__ u64 get(unsigned i, unsigned lane) const {
    if constexpr (kPieces == 1) return y[i * kWarp + lane];
    return y[2 * i * kWarp + lane] | static_cast<u64>(y[(2 * i + 1) * kWarp + lane]) << 32;
  }
  template <int kPieces>
  __device__ void put(unsigned i, unsigned lane, u64 value) const {
    y[kPieces * i * kWarp + lane] = static_cast<u32>(value);
    if constexpr (kPieces == 2) y[(2 * i + 1) * kWarp + lane] = static_cast<u32>(value >> 32);
  }
};

/// Where a thread works.
struct Place {
  unsigned lane, warp, warps;
  std::size_t at, stride;  // of its integer, and between words
  __device__ explicit Place(const Shape& s)
      : lane(threadIdx.x % kWarp),
        warp(threadIdx.x / kWarp),
        warps(blockDim.x / kWarp),
        at((static_cast<std::size_t>(blockIdx.y) << s.log_n) + blockIdx.x * kWarp + lane),
        stride(static_cast<std::size_t>(s.batch) << s.log_n) {}
};

/// The sums of the rows and their carries, from the y of the tile. unsure: the sum may lie in [Q,
/// 2Q), and is compared with Q then.
template <bool kCompares, class W>
__device__ __forceinline__ void sum_rows(const Arguments<W>& a, const Tile& tile, const Place& p,
                                         bool unsure) {
  const unsigned lane = p.lane, warp = p.warp, warps = p.warps;
  const std::size_t at = p.at, stride = p.stride;
  for (unsigned c = warp; c < a.chunks; c += warps) {
    const uint4* __restrict__ row = a.row + static_cast<std::size_t>(c) * a.rows;
    Sum96 sum[kGroup];
#pragma unroll 4
    for (unsigned r = 0; r < a.rows; ++r) {
      const u32 y = tile.y[r * kWarp + lane];
      const uint4 h = row[r];
      sum[0].add(y, h.x);
      sum[1].add(y, h.y);
      sum[2].add(y, h.z);
      sum[3].add(y, h.w);
    }
#pragma unroll
    for (unsigned i = 1; i < kGroup; ++i) sum[i].add_words(sum[i - 1].high());
    tile.chunk[c * kWarp + lane] = {sum[0].w[0], sum[1].w[0], sum[2].w[0], sum[3].w[0]};
    tile.carry[c * kWarp + lane] = sum[3].high();
  }
  __syncthreads();
  if (warp != 0) return;

  const auto words_of = [&](unsigned c, u64& low, u64& high) {
    const uint4 d = tile.chunk[c * kWarp + lane];
    low = d.x | static_cast<u64>(d.y) << 32;
    high = d.z | static_cast<u64>(d.w) << 32;
  };
  const auto write = [&](unsigned c, u64 low, u64 high) {
    if (2 * c < a.words) a.integers[2 * c * stride + at] = low;
    if (2 * c + 1 < a.words) a.integers[(2 * c + 1) * stride + at] = high;
  };
  u64 carry = 0;
  for (unsigned c = 0; c < a.chunks; ++c) {
    u64 low, high;
    words_of(c, low, high);
    low += carry;
    high += low < carry;
    carry = tile.carry[c * kWarp + lane] + (low < carry && high == 0);
    write(c, low, high);
    if constexpr (kCompares) {
      tile.chunk[c * kWarp + lane] = {static_cast<u32>(low), static_cast<u32>(low >> 32),
                                      static_cast<u32>(high), static_cast<u32>(high >> 32)};
    }
  }
  if (!kCompares || !unsure) return;
  u64 borrow = 0;
  for (int pass = 0; pass < 2; ++pass) {  // x - Q: whether it is negative; if it is not, its words
    if (pass == 1 && borrow != 0) return;
    borrow = 0;
    for (unsigned c = 0; c < a.chunks; ++c) {
      u64 word[2];
      words_of(c, word[0], word[1]);
      for (int i = 0; i < 2; ++i) {
        const u64 q = a.modulus[2 * c + i], t = word[i] - q;
        const u64 next = (word[i] < q) | (t < borrow);
        word[i] = t - borrow;
        borrow = next;
      }
      if (pass == 1) write(c, word[0], word[1]);
    }
  }
}

template <class W>
void launch(const Stream& stream, void (*kernel)(Arguments<W>, Limbs), const Tables<W>& t,
            const IcrtPlan<W>& plan, const Shape& s, const Limbs& limbs, u64* integers,
            unsigned words, const void* x) {
  using F = Factor<typename W::R>;
  const Arguments<W> a{s,
                       t.primes.template as<typename W::Prime>(),
                       plan.factors.template as<F>(),
                       plan.reciprocals.template as<double>(),
                       plan.row.template as<uint4>(),
                       plan.modulus.template as<u64>(),
                       static_cast<const typename W::Stored*>(x),
                       integers,
                       plan.chunks,
                       plan.rows,
                       words};
  const unsigned warps = std::min(kMaxWarps, plan.chunks);
  const std::size_t bytes = Tile::bytes(plan.chunks, warps, plan.rows);
  cuda::launch(stream, "icrt", kernel, dim3((1u << s.log_n) / kWarp, s.batch), warps * kWarp, bytes,
               1, a, limbs);
}

}  // namespace icrt_tile

}  // namespace jali::backend::cuda
