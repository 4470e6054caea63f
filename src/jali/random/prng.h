// ChaCha20 (RFC 8439) as a seekable stream, and the samplers on top of it. Every machine makes the
// same bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/base/wipe.h"

namespace jali::random {

using Seed = std::array<std::uint8_t, 32>;

/// Fills out, of at most 256 bytes, with random bytes from the operating system. Every call asks
/// for new ones, and nothing is kept for the next. Throws InternalError if the operating system
/// gives none.
void os_fill(std::span<std::uint8_t> out);
/// 32 random bytes from the operating system. For secrets that must not stay in memory, see
/// SecretSeed.
Seed os_seed();

using jali::wipe;

/// A deterministic stream: the ChaCha20 keystream whose key is the seed and whose block counter
/// starts at 0. The 96-bit nonce is the number of the stream, as 64 bits with the least significant
/// byte first, then 32 zero bits. A stream has 2^38 bytes, and reading past them throws
/// InternalError. The object wipes itself when it is destroyed. Two threads must not use it at
/// once.
class Prng {
 public:
  /// stream: the number of one of the independent streams of a seed, e.g. one for each digit, prime
  /// or purpose.
  Prng(const Seed& seed, std::uint64_t stream);
  ~Prng();
  Prng(const Prng&) = delete;
  Prng& operator=(const Prng&) = delete;

  void fill(std::span<std::uint8_t> out);
  std::uint64_t next_u64();
  /// The next byte given will be byte `offset` of the stream. Throws InvalidArgument unless offset
  /// < 2^38.
  void seek(std::uint64_t offset);

 private:
  void generate(std::size_t groups, std::uint8_t* out);

  std::array<std::uint32_t, 16> state_{};
  std::array<std::uint8_t, 1024> block_{};
  std::size_t used_ = sizeof(block_);
  std::uint64_t next_block_ = 0;
};

// The samplers. No branch and no address depends on a value that they keep, except in the uniform
// sampler, whose values are public.

/// Uniform residues modulo q: words of the stream are masked to the bit length of q, and those not
/// below q are rejected. A word has 4 bytes if q < 2^32 and 8 bytes otherwise, with the least
/// significant byte first. Words are taken in order, and no more than are needed, so rows of 32 and
/// of 64 bits hold the same residues. Throws InvalidArgument unless 0 < q < 2^61, and for rows of
/// 32 bits unless q < 2^32.
void sample_uniform(Prng& prng, std::uint64_t q, std::span<std::uint32_t> out);
void sample_uniform(Prng& prng, std::uint64_t q, std::span<std::uint64_t> out);

/// Uniform in {-1, 0, 1}, exactly.
void sample_ternary(Prng& prng, std::span<std::int64_t> out);
/// Uniform among the ternary vectors with exactly `weight` non-zero coefficients. Throws
/// InvalidArgument if weight > out.size().
void sample_sparse_ternary(Prng& prng, std::size_t weight, std::span<std::int64_t> out);
/// Uniform bits: the 8 bits of a byte of the stream, the least significant one first, for 8
/// entries.
void sample_bits(Prng& prng, std::span<std::uint8_t> out);
/// Blocks of `group` bits, each uniform among the group + 1 vectors with at most one bit set.
/// Throws InvalidArgument unless group is 1 to 64 and divides out.size().
void sample_one_hot(Prng& prng, std::size_t group, std::span<std::uint8_t> out);
/// TUniform(bits): uniform on the integers from -2^bits to 2^bits, with half the weight at both
/// ends. Each takes a word of the stream, of 4 bytes if bits <= 30 and of 8 bytes otherwise, of
/// which the low bits + 2 count. Throws InvalidArgument unless bits is 0 to 62.
void sample_tuniform(Prng& prng, int bits, std::span<std::int64_t> out);
/// Centred binomial with parameter k = 21: variance 10.5, standard deviation 3.24.
inline constexpr double kErrorStd = 3.24037034920393;
void sample_error(Prng& prng, std::span<std::int64_t> out);
/// Discrete Gaussian over the integers for noise flooding, of standard deviation gaussian_std(std)
/// >= std. If std is at most 2^59, each coefficient is within statistical distance 2^-105 of it. If
/// std is larger, the distance is 2^-49, because values beyond the range of 64 bits are clamped.
/// Throws InvalidArgument unless 0 < std <= 2^60.
void sample_gaussian(Prng& prng, double std, std::span<std::int64_t> out);
/// Writes low and high and returns k, such that low + 2^k high is within statistical distance
/// 2^-103 of a discrete Gaussian of standard deviation at least std. If one part is enough, high is
/// 0 and so is k. Throws InvalidArgument unless 0 < std <= kMaxWideStd and low and high have the
/// same length.
inline constexpr double kMaxWideStd = 0x1p108;
int sample_wide_gaussian(Prng& prng, double std, std::span<std::int64_t> low,
                         std::span<std::int64_t> high);
/// The standard deviation that sample_gaussian gives when it is asked for std: 8 if std <= 8,
/// otherwise a value in [std, std (1 + 8 / std + 32 / std^2)].
double gaussian_std(double std);

}  // namespace jali::random
