// The seam of variants/: transforms that the engine chooses only when it is told to. The families
// see this interface alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "jali/backend/config.h"
#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/ntt/variant.cuh"

namespace jali::backend::cuda {

/// ntt and intt of a whole block (ntt.cuh) in another way than by butterflies. What a kernel reads
/// or writes for a transform of its own (transform.cuh) goes by butterflies always.
template <class W>
class OtherTransform {
 public:
  virtual ~OtherTransform() = default;
  /// In place. primes: W::Prime[prime] on the device.
  virtual void run(const Stream& stream, const typename W::Prime* primes, bool inverse,
                   typename W::Stored* data, const Limbs& limbs, unsigned limb_count,
                   unsigned batch, int log_n) const = 0;
};

/// The transform that `chosen` names in variants/, or null: for butterflies, and for a word or a
/// GPU (of this compute capability) that the variant does not serve.
template <class W>
std::shared_ptr<const OtherTransform<W>> other_transform(const Stream& stream, NttVariant chosen,
                                                         int capability, const Config& config,
                                                         std::span<const std::uint64_t> roots);

}  // namespace jali::backend::cuda
