// Which transforms there are beside butterflies.
#include <type_traits>

#include "jali/backend/cuda/ntt/other_transform.cuh"
#include "jali/backend/cuda/variants/dense_ntt.cuh"

namespace jali::backend::cuda {

namespace {

/// Two matrix products, on CUDA cores or, for 32-bit words, on tensor cores.
template <class W, bool kTensor>
class MatrixProducts final : public OtherTransform<W> {
 public:
  MatrixProducts(const Stream& stream, const Config& config, std::span<const std::uint64_t> roots)
      : tables_(stream, config, roots, kTensor) {}
  void run(const Stream& stream, const typename W::Prime* primes, bool inverse,
           typename W::Stored* data, const Limbs& limbs, unsigned limb_count, unsigned batch,
           int log_n) const override {
    const auto run = [&]<bool kInverse>() {
      if constexpr (kTensor) {
        tensor_ntt<kInverse>(stream, tables_, primes, data, limbs, limb_count, batch, log_n);
      } else {
        dense_ntt<W, kInverse>(stream, tables_, primes, data, limbs, limb_count, batch, log_n);
      }
    };
    inverse ? run.template operator()<true>() : run.template operator()<false>();
  }

 private:
  const DenseTables<W> tables_;
};

}  // namespace

template <class W>
std::shared_ptr<const OtherTransform<W>> other_transform(const Stream& stream, NttVariant chosen,
                                                         int capability, const Config& config,
                                                         std::span<const std::uint64_t> roots) {
  if (chosen == NttVariant::dense) {
    return std::make_shared<const MatrixProducts<W, false>>(stream, config, roots);
  }
  if constexpr (std::is_same_v<W, W32>) {  // others have no such kernel
    if (chosen == NttVariant::tensor && capability >= 8) {
      return std::make_shared<const MatrixProducts<W, true>>(stream, config, roots);
    }
  }
  return nullptr;
}

#define JALI_INSTANTIATE(W)                                             \
  template std::shared_ptr<const OtherTransform<W>> other_transform<W>( \
      const Stream&, NttVariant, int, const Config&, std::span<const std::uint64_t>);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
