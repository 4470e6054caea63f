// Random polynomials from a seed: the same ChaCha20 streams and the same samplers as random/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"
#include "jali/backend/ring_ops.h"

namespace jali::backend::cuda {

/// The prime of a limb.
struct SampledModulus {
  std::uint64_t q;
  PrimeIndex index;
};
using Moduli = std::vector<SampledModulus>;

/// By how many standard deviations the words that the first launch makes exceed the mean number
/// that is needed. If they are too few nevertheless, one thread block makes the rest.
constexpr double kDeviations = 6;

/// Row (i, b) is random::sample_uniform of stream (index + b) << 16 | moduli[i].index. scratch: of
/// uniform_scratch bytes, zeros.
template <class W>
std::size_t uniform_scratch(const Shape& shape, const Moduli& moduli,
                            double deviations = kDeviations);
template <class W>
void sample_uniform(const Stream& stream, const Shape& shape, const Moduli& moduli,
                    std::span<const std::uint8_t, 32> seed, std::uint32_t index, void* scratch,
                    void* out, double deviations = kDeviations);

/// Row (i, b) is values b N .. of random::sample_ternary or sample_error from `nonce`, modulo
/// moduli[i], in coefficient form. integers: batch * N bytes, secret; scratch: of
/// small_scratch(batch * N) bytes, zeros, for Small::ternary.
std::size_t small_scratch(std::size_t count, double deviations = kDeviations);
template <class W>
void sample_small(const Stream& stream, const Shape& shape, const Moduli& moduli, Small kind,
                  std::span<const std::uint8_t, 32> seed, std::uint64_t nonce, void* scratch,
                  void* integers, void* out, double deviations = kDeviations);

/// Row (i, b) is values b N .. modulo moduli[i].
template <class W>
void spread(const Stream& stream, const Shape& shape, const Moduli& moduli,
            const std::int8_t* values, void* out);

}  // namespace jali::backend::cuda
