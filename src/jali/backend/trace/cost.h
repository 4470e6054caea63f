// Modular multiplications of each operation, as formulas of its shape. They count what the
// definitions in the tables need when constants are precomputed and merged, not what one engine
// does: a product of two residues, of a residue and a constant, or of a residue and a digit of an
// integer counts 1; additions, and the automorphisms, count 0. For TFHE, whose words are taken
// modulo 2^w, see below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/backend/tfhe_config.h"

namespace jali::backend::cost {

/// N/2 log2 N: one multiplication a butterfly.
std::uint64_t ntt(std::size_t n);
/// N/2 (log2 N + 1): the last butterflies take the factor N^-1 on both outputs.
std::uint64_t intt(std::size_t n);

/// One centred lift of `from` limbs to `to` other limbs, coefficient form to NTT form:
/// from N for y_i, from to N for the matrix, to N for v |D|, and `to` transforms.
std::uint64_t lift(std::size_t n, std::size_t from, std::size_t to);

// Everything below is for one batch entry.

/// An intt for every limb of x; for each digit a lift to the primes of ext that are not its own.
std::uint64_t mod_up(std::size_t n, std::span<const std::uint32_t> digit_limbs,
                     std::size_t ext_limbs);
/// 2 digits limbs N.
std::uint64_t key_product(std::size_t n, std::size_t digits, std::size_t limbs);
/// With d dropped, o output and k kept limbs: d intt, a lift of d to o limbs (A, 1/D merged into
/// its constants), and k N for x A/D. Nothing dropped: k N, or 0 if nothing is added either.
std::uint64_t scale_down(std::size_t n, std::size_t dropped, std::size_t kept, std::size_t added);
/// limbs words N: a product and a reduction for each word of the integer and each prime.
std::uint64_t crt(std::size_t n, std::size_t limbs, std::size_t words);
/// product_sum: limbs (1 + words) N. garner, which also counts for automatic:
/// (limbs (limbs - 1) / 2 + limbs words) N.
std::uint64_t icrt_product_sum(std::size_t n, std::size_t limbs, std::size_t words);
std::uint64_t icrt_garner(std::size_t n, std::size_t limbs, std::size_t words);

/// Butterflies of complex doubles between `slots` slots and their coefficients: slots/2 log2 slots.
std::uint64_t embedding(std::size_t slots);

// Of one ciphertext of TFHE. A product of polynomials is that of their transforms to N/2 complex
// points; a product of complex numbers, added to a sum, counts 1.
/// Of a blind rotation: (k+1)(levels + 1) transforms in each step, N/4 log2(N/2) butterflies in
/// each transform.
std::uint64_t rotation_butterflies(const TfheConfig& config);
/// Of a blind rotation. P = levels (k+1)^2 N/2 is an external product. In each step: P if classic;
/// for multi_bit P and units() P more, which sum up the key; for block_binary units() (P + (k+1)
/// N/2), the latter with monomials.
std::uint64_t rotation_products(const TfheConfig& config);
/// Of a key switch: k N levels (n + 1) products of a digit and a word.
std::uint64_t lwe_key_switch(const TfheConfig& config);
/// Of a packing of a ciphertext of dimension d: d levels (k + 1) N products of a digit and a word.
std::uint64_t packing(const TfheConfig& config, LweDimension d);

// Bytes of ChaCha20 that `count` values take at least: what rejection passes over comes on top.
/// Uniform residues below q: words of 4 bytes below 2^32, else of 8.
std::uint64_t uniform_bytes(std::size_t count, std::uint64_t q);
/// A byte for a ternary coefficient.
std::uint64_t ternary_bytes(std::size_t count);
/// 8 bytes for an error, or for the key by which a sparse secret's coefficient is sorted.
std::uint64_t error_bytes(std::size_t count);

}  // namespace jali::backend::cost
