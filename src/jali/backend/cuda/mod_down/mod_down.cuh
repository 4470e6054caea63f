// ModDown, rescale and both merged (RlweOps::scale_down): division with rounding by the primes that
// are dropped. It follows convert_base (base_conversion.cuh).
#pragma once

#include "jali/backend/cuda/base_conversion/base_conversion.cuh"

namespace jali::backend::cuda {

/// Up to kMaxParts polynomials. addend may be null.
struct ModDownView {
  void* out[kMaxParts];
  const void* x[kMaxParts];
  const void* addend[kMaxParts];
  std::uint64_t g;  // of the addends' automorphism
  unsigned batch;  // rows of a limb in a part
  Limbs source;  // limb of x of an output's limb, kSkip for none
};

/// A residue of the result: converted divide + kept keep + addend, the last two terms if they are
/// there. The addend is canonical.
template <class W>
__device__ __forceinline__ typename W::Stored mod_down_residue(
    typename W::R converted, const Factor<typename W::R>& divide, bool has_kept,
    typename W::Stored kept, const Factor<typename W::R>& keep, bool has_addend,
    typename W::Stored addend, const typename W::Prime& prime) {
  W::settle_forward(converted, prime);
  auto r = W::mul_lazy(converted, divide, prime);
  if (has_kept) r += W::mul_lazy(W::load(kept), keep, prime);
  const auto sum = W::store(r, prime);
  return has_addend ? W::canonical(W::add_mod(W::load(sum), W::load(addend), prime)) : sum;
}

/// ModDown in one launch (one_pass.cu), without convert_base: for 32-bit words, if a transform
/// takes one pass and few limbs are dropped.
template <class W>
bool mod_down_takes_one_pass(const Context<W>&, const BaseConversionPlan<W>&);
template <class W>
void mod_down_in_one_pass(const Context<W>&, const BaseConversionPlan<W>&, const Targets&,
                          unsigned rows, const void* y, const ModDownView&);

/// ModDown for few long rows, input in coefficient form; and whether it is faster than
/// mod_down_kernel.
template <class W>
bool mod_down_has_few_rows(const Context<W>&, const BaseConversionPlan<W>&, unsigned rows);
template <class W>
void mod_down_few_rows(const Context<W>&, const BaseConversionPlan<W>&, const Targets&,
                       unsigned rows, const void* converted, const ModDownView&);

}  // namespace jali::backend::cuda
