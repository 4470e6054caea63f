// External products of GLWE ciphertexts with GGSW ciphertexts, and the CMux, which selects one of
// two by an encrypted bit.
//
// A blind rotation is a chain of CMuxes, which every engine computes in one kernel by transforms
// (TfheOps::blind_rotate). These are the operations by themselves, for programs with a structure of
// their own: trees of CMuxes over tables that are encrypted, automata, shifts by encrypted bits.
// They are exact on every engine, whatever its transform, and agree bit by bit.
//
// How. TfheOps::pack gives minus an external product if it packs the coefficients of a GLWE
// ciphertext with a GGSW ciphertext as its key: coefficient t is an LWE ciphertext with the mask
// (A_0[t], .., A_{k-1}[t], B[t]) and the body 0, whose digits row (c, j) multiplies. (Minus the
// product of minus the ciphertext would be another one: digits of a tie are not symmetric.) So it
// takes N^2 (k + 1)^2 l products of words, where a transform takes N log N: 2.0 ms at
// message_2_carry_2 on one thread of a CPU, where a step of a rotation takes 7 us. Programs of many
// steps at a large N are for blind rotations.
#pragma once

#include <cstddef>

#include "jali/backend/tfhe_ops.h"
#include "jali/lwe/blocks.h"

namespace jali::lwe {

/// Ciphertexts in the engine's memory, from the client's. Throws ParamsMismatch if they have other
/// dimensions or another gadget than the engine.
GgswBlock bind(const backend::TfheOps& engine, const SeededGgsw& in);
GlweBlock bind(const backend::TfheOps& engine, const SeededGlwe& in);

// All take ciphertexts in the engine's memory. They throw ParamsMismatch if a dimension, the torus
// or the gadget is not the engine's, KeyMismatch if ciphertexts belong to different keys, and
// InvalidArgument if there are none or the numbers differ.

/// GGSW x in, with number `which` of the GGSW ciphertexts, for each of `in`: if that encrypts m,
/// the phase is m times that of `in`, with the noise that NoiseModel::external_product gives on
/// top, without its part `transform`.
GlweBlock external_product(const backend::TfheOps& engine, const GgswBlock& ggsw, std::size_t which,
                           const GlweBlock& in);
/// zero + GGSW x (one - zero): `one` if the bit is 1, else `zero`, with the noise of an external
/// product on top.
GlweBlock cmux(const backend::TfheOps& engine, const GgswBlock& selector, std::size_t which,
               const GlweBlock& zero, const GlweBlock& one);

}  // namespace jali::lwe
