// Constants of an engine on the device.
#pragma once

#include <memory>
#include <vector>

#include "jali/backend/config.h"
#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/common/word.cuh"
#include "jali/backend/cuda/ntt/variant.cuh"

namespace jali::backend::cuda {

template <class W>
class OtherTransform;

/// Twiddles are W::Twiddle[prime][N]: forward[m + i] = psi^brv(m + i), brv over log2 N bits, but in
/// the last g = leaf stages i = (unit << s) + group lies at group * 2^t + unit, where t is the
/// first of them and m = 2^(t + s): threads hold consecutive units. inverse holds the inverses.
template <class W>
struct Tables {
  using Prime = typename W::Prime;
  using F = Factor<typename W::R>;
  std::vector<std::uint64_t> roots;
  NttVariant ntt_variant;  // of butterflies
  Constant primes;     // Prime[prime]
  Constant forward;    // W::Twiddle[prime][N]
  Constant inverse;    // W::Twiddle[prime][N]
  Constant n_inverse;  // F[prime]
  std::shared_ptr<const OtherTransform<W>> other;  // of variants/, if one was chosen
  /// leaf: the stages of the last group; only the forward twiddles are then made. 0: as the
  /// config's variant of the transform wants them, with all tables that it reads.
  Tables(const Stream& stream, const Config& config, int leaf = 0);
};

/// w and its companion modulo q: Shoup's quotient, or w / q.
template <class W>
Factor<typename W::R> make_factor(std::uint64_t w, std::uint64_t q);

}  // namespace jali::backend::cuda
