// What a block of tensor_cores.cu has in shared memory: the columns of a digit, where the four
// targets of a team exchange, and tables.
#pragma once

#include "jali/backend/cuda/base_conversion/base_conversion.cuh"

namespace jali::backend::cuda {

// 2^kX columns of 2^kM residues are a tile; kQuads: fours of limbs, v among them.
template <int kM, int kX, int kQuads>
struct Layout {
  static constexpr unsigned kTile = 1u << (kM + kX);
  static constexpr unsigned kTeam = kTile / 4;  // threads: sixteen residues of four targets
  // Limbs lie as a product's operand wants them: eight in four planes of pairs, [thread][two
  // residues][limb i, i + 4][2], and what is left over, up to eight with v, in planes of one. The
  // words between planes, and an order of the pairs that differs between neighbours, keep a load's
  // threads on different banks.
  static constexpr unsigned kEights = (kQuads - 1) / 2, kTail = kQuads - 2 * kEights;
  static constexpr unsigned kPair = 2 * kTile + 4, kSingle = kTile + 2;
  static constexpr unsigned kSingles = 4 * kEights * kPair;  // where planes of one begin
  static __device__ constexpr unsigned in_pair(unsigned unit, unsigned e) {
    return unit * 32 + (((e >> 1) ^ ((unit & 1) << 2)) << 2) + (e & 1);
  }
  static __device__ constexpr unsigned in_single(unsigned unit, unsigned e) {
    return unit * 16 + (((e >> 1) ^ ((unit & 2) << 1)) << 1) + (e & 1);
  }
  // Words: four targets on different banks.
  static constexpr unsigned kExchange = kTile + kTile / 16 - 8;
  // Of four targets: twiddles, operands of the product, the targets; three of them, as threads of a
  // team may be a barrier apart.
  static constexpr unsigned kRow = (2u << kM) + 4;  // words: twiddles of a target
  static constexpr unsigned kOperands = 4 * kRow, kTargets = kOperands + 64 * kQuads,
                            kTables = kTargets + 16;
  static constexpr unsigned kAhead = 3;
  static __host__ __device__ constexpr unsigned columns(unsigned planes) {
    return (kSingles + (planes - 8 * kEights) * kSingle + 3) / 4 * 4;
  }
  static std::size_t bytes(unsigned planes, unsigned teams) {
    return std::size_t{4} * (columns(planes) + teams * (4 * kExchange + kAhead * kTables));
  }
};

// The columns of `count` limbs: four(limb, place in the tile) are residues of four neighbouring
// columns. A thread's reads set out together, but for pairs beyond two.
template <class L, class T, unsigned kThreads, class Four>
__device__ __forceinline__ void load_columns(std::uint32_t* words, unsigned count, Four&& four) {
  constexpr unsigned kFours = L::kTile / 64;  // units of four threads
  constexpr int kPairs = 4 * L::kEights * kFours * 8 / kThreads,
                kSingles = 4 * L::kTail * kFours * 8 / kThreads;
  static_assert(kPairs * kThreads == 4 * L::kEights * kFours * 8);
  static_assert(kSingles * kThreads == 4 * L::kTail * kFours * 8);
  const auto part = [](const uint4& v, unsigned k) {
    return k == 0 ? v.x : k == 1 ? v.y : k == 2 ? v.z : v.w;
  };
  // Step `step` of this thread: a plane, units, and residues e, e + 1 of a unit.
  struct At {
    unsigned plane, units, e;
  };
  const auto at = [](int step) -> At {
    const unsigned i = static_cast<unsigned>(step) * kThreads + threadIdx.x;
    return {i / (8 * kFours), i / 8 % kFours, i % 8 * 2};
  };
  struct Two {
    uint4 a, b;
  };
  const auto two = [&](unsigned limb, const At& w) -> Two {
    if (limb >= count) return {};
    const auto place = [&](unsigned e) {
      return T::unit(4 * w.units, 0, T::size_of(0)).local +
             T::template offset<0>(static_cast<int>(e));
    };
    return {four(limb, place(w.e)), four(limb, place(w.e + 1))};
  };
  const auto limb_of_pair = [](unsigned plane) { return plane / 4 * 8 + plane % 4; };
  struct Pair {
    Two first, second;
  };
  const auto pair = [&](int step) -> Pair {
    const At w = at(step);
    const unsigned limb = limb_of_pair(w.plane);
    return {two(limb, w), two(limb + 4, w)};
  };
  Pair next{};
  if constexpr (kPairs > 0) next = pair(0);
  Two singles[kSingles];
#pragma unroll
  for (int i = 0; i < kSingles; ++i) {
    const At w = at(i);
    singles[i] = two(8 * L::kEights + w.plane, w);
  }
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const Pair now = next;
    if (i + 1 < kPairs) next = pair(i + 1);
    const At w = at(i);
    if (limb_of_pair(w.plane) >= count) continue;
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      *reinterpret_cast<uint4*>(words + w.plane * L::kPair + L::in_pair(4 * w.units + k, w.e)) = {
          part(now.first.a, k), part(now.first.b, k), part(now.second.a, k), part(now.second.b, k)};
    }
  }
#pragma unroll
  for (int i = 0; i < kSingles; ++i) {
    const At w = at(i);
    if (8 * L::kEights + w.plane >= count) continue;
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      *reinterpret_cast<uint2*>(words + L::kSingles + w.plane * L::kSingle +
                                L::in_single(4 * w.units + k, w.e)) = {part(singles[i].a, k),
                                                                       part(singles[i].b, k)};
    }
  }
}

// v of each residue, as limb `slot`; reciprocal: in shared memory.
template <class L, unsigned kThreads>
__device__ __forceinline__ void add_quotients(std::uint32_t* words, unsigned count, unsigned slot,
                                              const double* reciprocal) {
  for (unsigned at = threadIdx.x; at < L::kTile / 2; at += kThreads) {
    const unsigned unit = at / 8, e = at % 8 * 2;
    double s0 = 0.5, s1 = 0.5;
    const auto add = [&](unsigned limb, std::uint32_t y0, std::uint32_t y1) {
      if (limb >= count) return;
      s0 = __fma_rn(exact_double(y0), reciprocal[limb], s0);
      s1 = __fma_rn(exact_double(y1), reciprocal[limb], s1);
    };
#pragma unroll
    for (int i = 0; i < static_cast<int>(L::kEights); ++i) {
      uint4 a[4];
#pragma unroll
      for (unsigned d = 0; d < 4; ++d) {
        a[d] =
            *reinterpret_cast<const uint4*>(words + (4 * i + d) * L::kPair + L::in_pair(unit, e));
      }
#pragma unroll
      for (unsigned d = 0; d < 4; ++d) add(8 * i + d, a[d].x, a[d].y);
#pragma unroll
      for (unsigned d = 0; d < 4; ++d) add(8 * i + 4 + d, a[d].z, a[d].w);
    }
#pragma unroll
    for (unsigned d = 0; d < 4 * L::kTail; ++d) {
      if (8 * L::kEights + d >= count) break;
      const uint2 a = *reinterpret_cast<const uint2*>(words + L::kSingles + d * L::kSingle +
                                                      L::in_single(unit, e));
      add(8 * L::kEights + d, a.x, a.y);
    }
    *reinterpret_cast<uint2*>(words + L::kSingles + (slot - 8 * L::kEights) * L::kSingle +
                              L::in_single(unit, e)) = {static_cast<std::uint32_t>(floor_bits(s0)),
                                                        static_cast<std::uint32_t>(floor_bits(s1))};
  }
}

}  // namespace jali::backend::cuda
