// Random polynomials from a seed: the same ChaCha20 streams and the same samplers as random/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jali/backend/cuda/elementwise.cuh"

namespace jali::backend::cuda {

/// Of each limb.
struct SampledModulus {
  std::uint64_t q;
  PrimeIndex index;
};
using Moduli = std::vector<SampledModulus>;

/// Row (i, b) is random::sample_uniform of stream (index + b) << 16 | moduli[i].index.
template <class W>
void sample_uniform(const Stream& stream, const Shape& shape, const Moduli& moduli,
                    std::span<const std::uint8_t, 32> seed, std::uint32_t index, void* out);

/// Row (i, b) is values b N .. of random::sample_ternary or sample_error from `nonce`, modulo
/// moduli[i], in coefficient form. scratch: batch * N bytes, secret.
template <class W>
void sample_small(const Stream& stream, const Shape& shape, const Moduli& moduli, Small kind,
                  std::span<const std::uint8_t, 32> seed, std::uint64_t nonce, void* scratch,
                  void* out);

}  // namespace jali::backend::cuda
