// ChaCha20 (RFC 8439) as a seekable stream, and the samplers on top of it. Same bytes everywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/base/wipe.h"

namespace jali::random {

using Seed = std::array<std::uint8_t, 32>;

/// At most 256 bytes from the operating system, asked anew at every call: nothing is kept for the next.
/// Throws InternalError when it gives none.
void os_fill(std::span<std::uint8_t> out);
/// 32 of them. For secrets that must not stay in memory, see SecretSeed.
Seed os_seed();

using jali::wipe;

/// A deterministic stream: the ChaCha20 keystream of (seed as the key, nonce, block counter from
/// 0). The 96-bit nonce is the stream id, 64 bits little end first, then 32 zero bits. A stream has
/// 2^38 bytes; reading past them throws InternalError. Wipes itself. Not for use by two threads at
/// once.
class Prng {
 public:
  /// `stream` separates independent streams of one seed (digit, prime, purpose).
  Prng(const Seed& seed, std::uint64_t stream);
  ~Prng();
  Prng(const Prng&) = delete;
  Prng& operator=(const Prng&) = delete;

  void fill(std::span<std::uint8_t> out);
  std::uint64_t next_u64();
  /// The next byte given will be byte `offset` (< 2^38) of the stream.
  void seek(std::uint64_t offset);

 private:
  void generate(std::size_t groups, std::uint8_t* out);

  std::array<std::uint32_t, 16> state_{};
  std::array<std::uint8_t, 1024> block_{};
  std::size_t used_ = sizeof(block_);
  std::uint64_t next_block_ = 0;
};

// Samplers: branch-free in the values they produce. (The uniform sampler rejects public values.)

/// Uniform residues modulo q by masking to the bit length of q and rejection: takes words of 4
/// bytes (q < 2^32) or 8 bytes (else), little end first, in order, and no more than it needs.
/// Serves rows of either word. Throws InvalidArgument unless 0 < q < 2^61, and q < 2^32 for rows of
/// 32 bits.
void sample_uniform(Prng& prng, std::uint64_t q, std::span<std::uint32_t> out);
void sample_uniform(Prng& prng, std::uint64_t q, std::span<std::uint64_t> out);

/// Uniform in {-1, 0, 1}, exactly.
void sample_ternary(Prng& prng, std::span<std::int64_t> out);
/// Ternary with exactly `weight` non-zero coefficients, uniform over all of these. Throws
/// InvalidArgument if weight > out.size().
void sample_sparse_ternary(Prng& prng, std::size_t weight, std::span<std::int64_t> out);
/// Centred binomial with parameter k = 21: variance 10.5, standard deviation 3.24.
inline constexpr double kErrorStd = 3.24037034920393;
void sample_error(Prng& prng, std::span<std::int64_t> out);
/// Discrete Gaussian over the integers for noise flooding, of standard deviation gaussian_std(std)
/// >= std; within statistical distance 2^-105 a coefficient up to 2^59 (2^-49 above, where values beyond
/// the range of 64 bits are clamped). Throws InvalidArgument unless 0 < std <= 2^60.
void sample_gaussian(Prng& prng, double std, std::span<std::int64_t> out);
/// low + 2^k high, a discrete Gaussian of at least this standard deviation, and within 2^-103 of it; returns k, 0 where high
/// is zero. Throws InvalidArgument unless 0 < std <= kMaxWideStd.
inline constexpr double kMaxWideStd = 0x1p108;
int sample_wide_gaussian(Prng& prng, double std, std::span<std::int64_t> low,
                         std::span<std::int64_t> high);
/// The standard deviation that sample_gaussian really gives: 8 for std <= 8, else in
/// [std, std (1 + 8 / std + 32 / std^2)].
double gaussian_std(double std);

}  // namespace jali::random
