// Division with rounding between bases (Ops::scale_down): what follows lift (conversion.cuh).
#pragma once

#include "jali/backend/cuda/conversion.cuh"

namespace jali::backend::cuda {

/// Up to kMaxParts polynomials. addend may be null.
struct Division {
  void* out[kMaxParts];
  const void* x[kMaxParts];
  const void* addend[kMaxParts];
  std::uint64_t g;  // of the addends' automorphism
  unsigned batch;   // rows of a limb in a part
  Limbs source;     // limb of x of an output's limb, kSkip for none
};

/// A residue: lift divide (+ kept keep) (+ addend), as the two are there; canonical addends.
template <class W>
__device__ __forceinline__ typename W::Stored divided(typename W::R lift,
                                                      const Factor<typename W::R>& divide,
                                                      bool has_kept, typename W::Stored kept,
                                                      const Factor<typename W::R>& keep,
                                                      bool has_addend, typename W::Stored addend,
                                                      const typename W::Prime& prime) {
  W::settle_forward(lift, prime);
  auto r = W::mul_lazy(lift, divide, prime);
  if (has_kept) r += W::mul_lazy(W::load(kept), keep, prime);
  const auto sum = W::store(r, prime);
  return has_addend ? W::canonical(W::add_mod(W::load(sum), W::load(addend), prime)) : sum;
}

/// out_t = x_{source[t]} keep_t + lifted_t divide_t (+ sigma_g(addend_t)); lifted: (target, parts * batch, N) as
/// lift leaves it, or had from y.
template <class W>
void divide(const Engine<W>&, const ConversionPlan<W>&, const Targets&, unsigned rows,
            const void* y, const void* lifted, const Division&);

/// The same in one launch (division_rows.cu), without lift: of 32-bit words where rows are of one pass and digits small.
template <class W>
bool divides_by_rows(const Engine<W>&, const ConversionPlan<W>&);
template <class W>
void divide_rows(const Engine<W>&, const ConversionPlan<W>&, const Targets&, unsigned rows,
                 const void* y, const Division&);

/// The same of lifts in coefficient form, and whether few long rows are better divided so than by divide().
template <class W>
bool divides_few_rows(const Engine<W>&, const ConversionPlan<W>&, unsigned rows);
template <class W>
void divide_few_rows(const Engine<W>&, const ConversionPlan<W>&, const Targets&, unsigned rows,
                     const void* lifted, const Division&);

}  // namespace jali::backend::cuda
