// The row kernels over a vector class V.
#pragma once

#include "jali/backend/cpu/ntt_impl.h"
#include "jali/backend/cpu/peak_impl.h"
#include "jali/backend/cpu/row_elements.h"
#include "jali/backend/cpu/row_lifts.h"
#include "jali/backend/cpu/row_rotations.h"

namespace jali::backend::cpu {

template <class V>
constexpr RowKernels row_kernels() {
  using Elements = ElementRows<V>;
  using Lifts = LiftRows<V>;
  using Rotations = RotationRows<V>;
  RowKernels k;
  k.isa = V::kIsa;
  k.lanes = V::kLanes;
  k.beta_bits = V::kBetaBits;
  k.word_bytes = sizeof(typename V::T);
  k.ntt = Ntt<V>::ntt;
  k.intt = Ntt<V>::intt;
  k.add = Elements::add;
  k.sub = Elements::sub;
  k.neg = Elements::neg;
  k.mul_scalar = Elements::mul_scalar;
  k.mul_scalar_add = Elements::mul_scalar_add;
  k.add_scalar = Elements::add_scalar;
  k.dot = Elements::dot;
  k.tensor = Elements::tensor;
  k.combine = Elements::combine;
  k.round_sum = Lifts::round_sum;
  k.intt_packed = Ntt<V>::intt_packed;
  k.begin_lifts = Lifts::begin_lifts;
  k.finish_lift = Lifts::finish_lift;
  k.lift_combine = Lifts::lift_combine;
  k.lift_key_dot = Lifts::lift_key_dot;
  k.key_dot = Rotations::key_dot;
  k.weighted_dot = Rotations::weighted_dot;
  k.automorphism = Rotations::automorphism;
  k.make_turn = Rotations::make_turn;
  k.turn_bytes = (sizeof(typename Rotations::Automorphism) + 63) / 64 * 64;
  k.rotated_sums = Rotations::rotated_sums;
  k.butterflies = Butterflies<V>::run;
  k.butterfly_pairs = Butterflies<V>::kPairs;
  k.from_int64 = Elements::from_int64;
  return k;
}

}  // namespace jali::backend::cpu
