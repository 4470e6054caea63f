// ModUp, key switching and ModDown of one engine: which constants, which rows, and in which order
// their kernels run.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "jali/backend/cuda/base_conversion/base_conversion.cuh"
#include "jali/backend/cuda/key_switch/key_view.cuh"
#include "jali/backend/cuda/key_switch/scaled_addend.cuh"

namespace jali::backend::cuda {

/// The rows of a conversion to `to` of a polynomial over the primes `own`.
inline Targets targets_of(std::span<const PrimeIndex> to, std::span<const PrimeIndex> own) {
  return {limbs_of(to), positions(to, own), static_cast<unsigned>(to.size())};
}

/// mod_down is defined in mod_down/, outer_sum in linear_transform/.
template <class W>
class KeySwitcher {
 public:
  KeySwitcher(const Config& config, const Stream& stream, const Tables<W>& tables,
              device::Pool& scratch);

  void mod_up(View ext, ConstView x, std::span<const std::uint32_t> digit_limbs) const;
  /// x may be a product of two polynomials, which is then computed as it is read.
  void key_switch(View acc0, View acc1, const Source& x, std::span<const PrimeIndex> x_primes,
                  std::span<const std::uint32_t> digit_limbs, KeyView key,
                  std::span<const std::uint32_t> digit_ids,
                  const ScaledAddendView<W>& addend) const;
  /// How many terms outer_sum takes at a time; 0 if shapes are too small for it.
  std::size_t outer_terms(View acc, std::span<const std::uint32_t> digit_limbs) const;
  void outer_sum(View acc0, View acc1, std::span<const Turned> terms,
                 std::span<const std::uint32_t> digit_limbs,
                 std::span<const std::uint32_t> digit_ids, bool accumulate) const;
  /// Up to kMaxParts polynomials of the same shape; sigma_g of the addends is added.
  void mod_down(std::span<const View> out, std::span<const ConstView> x,
                std::span<const ConstView* const> addend, std::uint64_t g = 1) const;

 private:
  using PrimeList = std::vector<PrimeIndex>;
  std::size_t limb_bytes(std::size_t rows) const;
  /// Whether so many converted limbs can wait in L2 until they are read.
  bool stay(std::size_t limbs, unsigned rows) const {
    return limbs * limb_bytes(rows) <= l2_bytes_;
  }
  Context<W> context() const {
    return {stream_, own_tables_ ? *own_tables_ : tables_, tables_, scratch_, log_n_, processors_};
  }
  const BaseConversionPlan<W>& plan(std::span<const PrimeIndex> from,
                                    std::span<const std::uint32_t> digit_limbs,
                                    std::span<const PrimeIndex> to,
                                    std::span<const PrimeIndex> multiply) const;

  const Config& config_;
  const Stream& stream_;
  const Tables<W>& tables_;
  std::unique_ptr<Tables<W>> own_tables_;  // if those of the transform have another layout
  device::Pool& scratch_;
  int log_n_;
  unsigned processors_ = 1;
  std::size_t l2_bytes_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<std::tuple<PrimeList, std::vector<std::uint32_t>, PrimeList, PrimeList>,
                   std::unique_ptr<BaseConversionPlan<W>>>
      plans_;
};

}  // namespace jali::backend::cuda
