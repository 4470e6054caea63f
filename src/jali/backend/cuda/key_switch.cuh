// Lifted digits times a key: what follows lift (conversion.cuh).
#pragma once

#include "jali/backend/cuda/conversion.cuh"
#include "jali/backend/cuda/joining.cuh"

namespace jali::backend::cuda {

/// Digits of a key: (digit, part, limb, N).
struct KeyDigits {
  const void* key = nullptr;
  unsigned limbs = 0;
  Limbs limb;  // by target
  std::uint32_t id[kMaxDigits] = {};
};

/// Terms of an outer sum: what turns with the parts of a source, each with a key of its own.
struct OuterTerms {
  const void* x0[kMaxParts];   // (target, batch, N)
  const void* key[kMaxParts];  // (digit, part, limb, N)
  unsigned limbs[kMaxParts];   // of the keys
  std::uint8_t limb[kMaxParts][kMaxLimbs];  // of a key by target
  std::uint32_t g[kMaxParts];
  unsigned count;
  bool accumulate;
};

/// acc_c: (target, rows, N): sum_j lift_j key[id[j]][c] (+ what joins), ext as lift leaves it, own rows
/// taken from x.
template <class W>
void lift_product(const Engine<W>&, const ConversionPlan<W>&, const Targets&, unsigned rows,
                  void* acc0, void* acc1, const void* y, void* ext, const Source& x,
                  const KeyDigits& key, const Joining& joining, const JoinFactors<W>& factors);

/// acc_c: (target, batch, N) = [acc_c +] sum over parts and digits of lift key[part][digit][c], and sigma(x0)
/// of the parts to acc_0. ext has the rows of all parts; `key` names no key.
template <class W>
void lift_product_outer(const Engine<W>&, const ConversionPlan<W>&, const Targets&, void* acc0,
                        void* acc1, const void* y, void* ext, const Source& x, const KeyDigits& key,
                        const OuterTerms&);
/// The thread blocks that it has, halves counted as such.
template <class W>
std::size_t outer_blocks(int log_n, std::size_t limbs, std::size_t batch);

/// ext from what lift leaves to NTT form, own rows copied from x.
template <class W>
void lift_finish(const Engine<W>&, const ConversionPlan<W>&, const Targets&, unsigned rows,
                 const void* y, void* ext, const Source& x);

}  // namespace jali::backend::cuda
