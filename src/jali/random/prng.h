// ChaCha20 (RFC 8439) as a seekable stream, and the samplers on top of it. Same bytes everywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace jali::random {

using Seed = std::array<std::uint8_t, 32>;

/// 32 bytes from the operating system. Throws Error(internal) when it gives none.
Seed os_seed();

/// Overwrites memory in a way the compiler keeps.
void wipe(void* data, std::size_t bytes) noexcept;

/// A deterministic stream: the ChaCha20 keystream of (seed, 96-bit nonce = stream id), block counter
/// from 0. Wipes itself. Not for use by two threads at once.
class Prng {
 public:
  /// `stream` separates independent streams of one seed (digit, prime, purpose).
  Prng(const Seed& seed, std::uint64_t stream);
  ~Prng();
  Prng(const Prng&) = delete;
  Prng& operator=(const Prng&) = delete;

  void fill(std::span<std::uint8_t> out);
  std::uint64_t next_u64();

 private:
  std::array<std::uint32_t, 16> state_{};
  std::array<std::uint8_t, 1024> block_{};
  std::size_t used_ = sizeof(block_);
};

// Samplers: branch-free in the values they produce. (The uniform sampler rejects public values.)

/// Uniform residues modulo q < 2^61 by masking to the bit length of q and rejection: takes words of 4
/// bytes (q < 2^32) or 8 bytes (else), little end first, in order. Serves rows of either word.
void sample_uniform(Prng& prng, std::uint64_t q, std::span<std::uint32_t> out);
void sample_uniform(Prng& prng, std::uint64_t q, std::span<std::uint64_t> out);

/// Uniform in {-1, 0, 1}.
void sample_ternary(Prng& prng, std::span<std::int64_t> out);
/// Ternary with exactly `weight` non-zero coefficients.
void sample_sparse_ternary(Prng& prng, std::size_t weight, std::span<std::int64_t> out);
/// Centred binomial with parameter k = 21: variance 10.5, standard deviation 3.24.
inline constexpr double kErrorStd = 3.24037034920393;
void sample_error(Prng& prng, std::span<std::int64_t> out);
/// Rounded Gaussian of standard deviation up to 2^60 for noise flooding; statistical distance to the
/// discrete Gaussian stated with the implementation.
void sample_gaussian(Prng& prng, double std, std::span<std::int64_t> out);

}  // namespace jali::random
