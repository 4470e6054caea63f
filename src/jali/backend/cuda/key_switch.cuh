// Lifted digits times a key: what follows lift (conversion.cuh).
#pragma once

#include "jali/backend/cuda/conversion.cuh"

namespace jali::backend::cuda {

/// What joins the sums on the limbs that x has: s_i c_c, or with b0 given s_i times
/// (a0 b0, a0 b1 + a1 b0), c_c = a_c.
struct Joining {
  const void *a0 = nullptr, *a1 = nullptr;  // null: nothing joins
  const void *b0 = nullptr, *b1 = nullptr;
  bool b_broadcast = false;
};

/// Digits of a key: (digit, part, limb, N).
struct KeyDigits {
  const void* key = nullptr;
  unsigned limbs = 0;
  Limbs limb;  // by target
  std::uint32_t id[kMaxDigits] = {};
};

/// acc_c: (target, rows, N): sum_j lift_j key[id[j]][c] (+ what joins), ext as lift leaves it, own rows
/// taken from x.
template <class W>
void lift_product(const Engine<W>&, const ConversionPlan<W>&, const Targets&, unsigned rows,
                  void* acc0, void* acc1, const void* y, void* ext, const Source& x,
                  const KeyDigits& key, const Joining& joining, const Scalars& s);

/// ext from what lift leaves to NTT form, own rows copied from x.
template <class W>
void lift_finish(const Engine<W>&, const ConversionPlan<W>&, const Targets&, unsigned rows,
                 const void* y, void* ext, const Source& x);

}  // namespace jali::backend::cuda
