// The packing key switch: many LWE ciphertexts become the coefficients of one GLWE ciphertext.
#pragma once

#include <cstdint>
#include <span>

#include "jali/backend/torus.h"
#include "jali/base/checkpoint.h"
#include "jali/device/buffer.h"
#include "jali/lwe/blocks.h"
#include "jali/lwe/keys.h"

namespace jali::lwe {

/// A GLWE ciphertext whose phase has that of in[t] in coefficient coefficients[t], and noise alone in all others. in: the
/// ciphertexts that users hold, in host memory; words of 32 bits become the highest of wider ones.
///
/// Each mask word a_i is decomposed by the rotation's gadget, with digits d_ij as backend::Gadget defines them. The result is
/// (0, sum_t b_t X^(h_t)) - sum_ij (sum_t d_tij X^(h_t)) key(i, j), exactly modulo 2^w, at a cost of
/// dimension levels (k + 1) N products of words for each of `in`.
///
/// Throws KeyMissing if there is no packing key, and InvalidArgument unless the coefficients are different ones below N, one
/// for each ciphertext.
GlweBlock pack(device::Pool& pool, const EvaluationKeys& keys, const backend::ConstLweView& in,
               std::span<const std::uint32_t> coefficients, const Checkpoint& checkpoint = {});

}  // namespace jali::lwe
