// How the kernels of one k and N cut their work, and how much shared memory that takes.
#pragma once

#include <algorithm>

#include "jali/backend/cuda/blind_rotation/blind_rotation.cuh"
#include "jali/backend/cuda/blind_rotation/step.cuh"
#include "jali/backend/cuda/fft/folded_fft.cuh"
#include "jali/backend/cuda/tfhe_transform.h"

namespace jali::backend::cuda {

namespace {

using fft::kPoints;

constexpr int kMaxSlots = 16;

// How a kernel cuts its work. k1: k + 1.
// deep: several levels. Units: of a step; 0: classic; -1: any number, one unit a tile instead of
// all. Summed: the key of a step is summed before, for each ciphertext (key_sums.cuh), so that each
// has a ring of tiles of its own.
template <int LogN, int K1, int Units, bool Deep, bool Summed = false>
struct Shape {
  using Word = std::uint32_t;
  static constexpr bool deep = Deep, summed = Summed;
  static constexpr int log_n = LogN, N = 1 << LogN, M = N / 2, G = N / 64, k1 = K1;
  // From one polynomial of an accumulator to the next: half a warp meets every bank once, also if
  // two polynomials share it.
  static constexpr int acc_words = N + (G < 16 ? 16 : 0);
  static constexpr bool units = Units != 0;
  static constexpr int fixed = Units > 0 ? Units : 1;  // units of a tile
  static constexpr int threads = K1 * G;  // of a ciphertext
  static constexpr bool paired = K1 == 2 && G == 32 && !Deep;
  // A group is as many ciphertexts as fill whole warps. Its threads wait for each other.
  static constexpr int per_group() {
    int count = 1;
    while (count * threads % 32 != 0) ++count;
    return count;
  }
  static constexpr int group_ciphertexts = per_group();
  static constexpr int group_threads = group_ciphertexts * threads;
  static constexpr int most_threads = 256 / group_threads * group_threads;
  static constexpr int tile_points = Summed      ? 2
                                     : Units < 0 ? (K1 == 2 ? 4 : 2)
                                     : Units > 0 ? 2
                                     : K1 == 2   ? 16
                                     : K1 <= 4   ? 8
                                                 : 4;
  static constexpr int part = K1 * K1 * tile_points * G;  // of a tile, one unit, in complex numbers
  static constexpr int tile = fixed * part;
  static constexpr int tiles = kPoints / tile_points;  // of a level (and unit)
};

// Of a block with so many groups and slots of the ring.
template <class S>
std::size_t shared_bytes(const TfheConfig& config, std::size_t groups, std::size_t slots) {
  const auto rounded = [](std::size_t bytes) { return (bytes + 127) / 128 * 128; };
  const std::size_t ciphertexts = groups * S::group_ciphertexts,
                    threads = groups * S::group_threads;
  const std::size_t rings = S::summed ? groups : 1;
  std::size_t bytes = rounded(8 * kMaxSlots * rings) + rounded(4 * kMaxSlots * rings) +
                      rounded(16 * S::G * fft::low_entries(S::G)) + rounded(16 * S::G * kPoints) +
                      rounded(16 * slots * rings * S::tile) +
                      rounded(sizeof(typename S::Word) * S::k1 * S::acc_words * ciphertexts) +
                      rounded(8 * fft::exchange_doubles(S::G) * S::k1 * ciphertexts);
  if (S::deep) bytes += rounded(16 * kPoints * threads);
  if (S::units) {
    bytes += rounded(16 * 32) + rounded(16 * config.units() * threads) +
             rounded(8 * config.units() * ciphertexts);
  }
  return bytes;
}

// Of so many steps.
template <class S>
std::size_t tiles_of(const TfheConfig& config, std::size_t steps) {
  return steps * static_cast<std::size_t>(config.rotation_gadget.levels) * S::tiles *
         (S::units ? config.units() / S::fixed : 1);
}

// Calls f with the shape of a configuration. Returns false if there is none.
template <int LogN, int K1, class F>
bool with_shape(const TfheConfig& config, F&& f) {
  const auto [base_log, levels] = config.rotation_gadget;
  if (levels * base_log > 28 || config.units() > kMaxUnits) return false;
  const bool deep = levels > 1;
  if constexpr (LogN == 11 && K1 == 2) {
    if (config.rotation == Rotation::multi_bit && !deep)
      return f(Shape<LogN, K1, 0, false, true>{}), true;
  }
  if (config.rotation == Rotation::classic) {
    return deep ? (f(Shape<LogN, K1, 0, true>{}), true) : (f(Shape<LogN, K1, 0, false>{}), true);
  }
  if (deep) return f(Shape<LogN, K1, -1, true>{}), true;
  switch (config.units()) {
    case 2: return f(Shape<LogN, K1, 2, false>{}), true;
    case 3: return f(Shape<LogN, K1, 3, false>{}), true;
    default: return f(Shape<LogN, K1, -1, false>{}), true;
  }
}

// The most groups of a block for which two tiles fit, and as many tiles as fit then. Few
// ciphertexts take fewer groups.
struct Plan {
  std::size_t groups = 0, slots = 0, bytes = 0;
};
template <class S>
Plan plan(const TfheConfig& config, std::size_t wanted_groups) {
  Plan plan;
  const std::size_t tiles = tiles_of<S>(config, S::summed ? 1 : config.steps());
  plan.groups = std::min<std::size_t>(wanted_groups, S::most_threads / S::group_threads);
  const std::size_t least = std::min<std::size_t>(2, tiles);
  while (plan.groups > 1 && shared_bytes<S>(config, plan.groups, least) > kSharedBytes)
    --plan.groups;
  plan.slots = least;
  while (plan.slots < std::min<std::size_t>(kMaxSlots, tiles) &&
         shared_bytes<S>(config, plan.groups, plan.slots + 1) <= kSharedBytes) {
    ++plan.slots;
  }
  plan.bytes = shared_bytes<S>(config, plan.groups, plan.slots);
  return plan;
}

}  // namespace

}  // namespace jali::backend::cuda
