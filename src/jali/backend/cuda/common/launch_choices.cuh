// Which kernel runs when, and in which shape: every number here was the fastest that was measured
// on an H100 or H200 (docs/performance.md has the figures). All choices give the same results, so
// that a GPU of another generation may have others.
#pragma once

#include <cstddef>
#include <type_traits>

#include "jali/backend/cuda/common/word.cuh"

namespace jali::backend::cuda {

/// Threads of a block, for kernels whose threads compute one residue or sixteen bytes each.
constexpr unsigned kBlockThreads = 256;
/// The same for CRT and conversions of integers, whose threads hold more.
constexpr unsigned kIntegerThreads = 128;

// --- ntt/ ----------------------------------------------------------------------------------------

/// Shape of the kernel of one pass (one_pass.cuh), as powers of two: residues a thread holds,
/// threads an SM, blocks a row; kComputed: for twiddles computed on the fly.
template <class W, bool kComputed>
struct RowChoice {
  static constexpr bool kNarrow = sizeof(typename W::R) == 4;
  static constexpr int held(int log_n) {
    if (!kNarrow) return log_n >= (std::is_same_v<W, W52> ? 13 : 14) ? 5 : 3;
    return log_n == 17 ? 6 : kComputed || log_n >= 13 ? 5 : 4;
  }
  static constexpr int per_sm(int log_n) {
    if (!kNarrow) return held(log_n) == 3 ? 1024 : 512;
    return log_n == 17 ? 512 : !kComputed && (log_n == 13 || log_n == 15) ? 768 : 1024;
  }
  static constexpr int log_blocks(int log_n) {
    return log_n <= 13 ? 0 : log_n == 14 ? (kNarrow ? 0 : 1) : 3;
  }
};
/// Up to so many rows, a row is shared among 2^kFewBlocks blocks, and a thread holds 16 residues if
/// words have 32 bits. Most of the GPU would be idle otherwise.
template <int kLogN>
constexpr unsigned kFewRows = kLogN == 16 ? 64 : 48;
template <int kLogN, bool kNarrow>
constexpr int kFewBlocks = kLogN == 16               ? 4
                           : kLogN == 13 && !kNarrow ? 2
                                                     : 3;
/// Two passes (two_pass.cuh) exist from this log2 N on. They run limbs in chunks of so many bytes,
/// which stay in L2 between the passes.
constexpr int kTwoPassFrom = 14;
constexpr std::size_t kTwoPassChunk = std::size_t{32} << 20;
/// Residues a thread holds in the kernels of two passes, as a power of two: what 64 registers have
/// room for.
template <class W>
constexpr int kPassHeld = sizeof(typename W::R) == 4 ? 4 : 3;
/// Stages of the pass over contiguous tiles.
__host__ __device__ constexpr int contiguous_stages(int log_n) {
  return log_n <= 14 ? 7 : log_n == 17 ? 9 : 8;
}

// --- base_conversion/, and the tiles that key_switch/ and mod_down/ finish -----------------------

/// Up to this log2 N a row is one tile of a block.
constexpr int kSinglePassUpTo = 12;
/// Up to so many rows of 2^13 or 2^14 residues of 32 bits, a block for each is faster than two
/// passes.
constexpr unsigned kFewTiles = 144;
/// Whether a row is one tile, if there are so many rows and they are computed by base conversion.
template <class W>
bool one_tile(int log_n, unsigned rows) {
  return log_n <= kSinglePassUpTo ||
         (sizeof(typename W::Stored) == 4 && log_n <= 14 && rows <= kFewTiles);
}
/// Whether contiguous tiles have half the rows of column tiles, and their blocks half the threads:
/// an SM then has twice as many blocks, and one computes while another waits.
template <class W, int kM>
constexpr bool kHalved = kM == 8 && sizeof(typename W::Stored) == 4;
/// Digits of so many limbs are converted where they are used, if a transform takes one pass.
constexpr unsigned kDirectLimbs = 4;
/// Digits from so many limbs on are converted by tensor cores (32-bit words).
constexpr unsigned tensor_core_limbs(int log_n) { return log_n > kSinglePassUpTo ? 3 : 5; }
/// Target primes that a thread converts to from one reading of the digit.
constexpr unsigned kTargets = 8;

// --- key_switch/ ---------------------------------------------------------------------------------

/// Digits whose keys are loaded together, before the first is used.
constexpr unsigned kKeysAtOnce = 4;
/// Shared memory that the tiles of a block's digits take at most: a third of an SM's, or a sixth if
/// tiles are halved. More digits go in several rounds.
constexpr std::size_t kTileBytes = std::size_t{74} << 10;
/// If tiles are few, several blocks share the digits of one, until an SM has so many threads.
constexpr unsigned kThreadsWanted = 768;
/// They are a cluster if they are at most so many: blocks of a cluster on every GPU that has
/// clusters.
constexpr unsigned kMostMeet = 8;
/// A key of at most so many bytes stays in L2: then blocks that run together have different
/// targets.
constexpr std::size_t kKeyInL2 = std::size_t{16} << 20;

// --- mod_down/ -----------------------------------------------------------------------------------

/// log2 N of the rows that ModDown transforms in one pass if they are few.
constexpr int kFewLongRows = 16;

// --- linear_transform/ ---------------------------------------------------------------------------

/// Bytes of converted digits at a time in the giant steps.
constexpr std::size_t kGiantStepBytes = std::size_t{512} << 20;
/// The same in the baby steps.
constexpr int kRotatedAtOnce = 6;
/// Blocks of an SM in the baby steps: enough for as many loads in flight as memory takes.
template <class W, int kSums>
constexpr unsigned kRotatedBlocks = sizeof(typename W::Stored) > 4 ? 1
                                    : kSums <= 4                   ? 4
                                                                   : 2;

// --- crt/ ----------------------------------------------------------------------------------------

/// Fewer threads than this leave much of a GPU idle. From twice as many on, a thread computes eight
/// limbs, not four.
constexpr unsigned kFewThreads = 1 << 16;

}  // namespace jali::backend::cuda
