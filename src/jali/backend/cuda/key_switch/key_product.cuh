// The key product sum_j ModUp(digit_j) key_j: what follows convert_base (base_conversion.cuh) in a
// key switch.
#pragma once

#include "jali/backend/cuda/base_conversion/base_conversion.cuh"
#include "jali/backend/cuda/key_switch/scaled_addend.cuh"

namespace jali::backend::cuda {

/// Digits of a key: (digit, part, limb, N).
struct KeyDigits {
  const void* key = nullptr;
  unsigned limbs = 0;
  Limbs limb;  // by target
  std::uint32_t id[kMaxDigits] = {};
};

/// Terms of an outer sum. Term k has part k of the source, under sigma_g[k], and a key of its own;
/// sigma_g[k](x0[k]) is added to the first accumulator.
struct OuterTerms {
  const void* x0[kMaxParts];  // (target, batch, N)
  const void* key[kMaxParts];  // (digit, part, limb, N)
  unsigned limbs[kMaxParts];  // of the keys
  std::uint8_t limb[kMaxParts][kMaxLimbs];  // of a key by target
  std::uint32_t g[kMaxParts];
  unsigned count;
  bool accumulate;
};

/// Finishes ModUp of every digit and multiplies it by the key: acc_c (target, rows, N) =
/// sum_j ext_j key[id[j]][c] (+ the addend). ext: as convert_base leaves it; a digit's own limbs
/// are read from x.
template <class W>
void mod_up_key_product(const Context<W>&, const BaseConversionPlan<W>&, const Targets&,
                        unsigned rows, void* acc0, void* acc1, const void* y, void* ext,
                        const Source& x, const KeyDigits& key, const ScaledAddendView<W>& addend);

/// Finishes ModUp if the digits themselves are the result: ext goes from what convert_base leaves
/// to NTT form, and a digit's own limbs are copied from x.
template <class W>
void finish_mod_up(const Context<W>&, const BaseConversionPlan<W>&, const Targets&, unsigned rows,
                   const void* y, void* ext, const Source& x);

}  // namespace jali::backend::cuda
