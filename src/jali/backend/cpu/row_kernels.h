// The kernels that differ between instruction sets: each works on one row of N residues (or a few
// rows in step). They are written once (row_*.h, ntt_impl.h) over a small vector class
// and compiled once per instruction set; everything else of the backend is plain code over this
// table. Rows are void*: words of 4 (w32) or 8 bytes. n is a power of two, at least 2^10.
// Inputs are in [0, q), outputs are in [0, q): that makes all sets agree bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/arith/shoup.h"

namespace jali::backend::cpu {

using arith::ShoupConstant;

/// Constants of a prime, for the beta of a kernel set.
struct PrimeRow {
  std::uint64_t q = 0;
  ShoupConstant one;   // 1, floor(beta / q)
  ShoupConstant beta;  // beta mod q
};

/// Twiddles of a prime: psi^brv(i) for node i of the butterfly tree, which has its root at 1 and
/// the children of i at 2i and 2i + 1. The inverse twiddle of a node is minus the twiddle of its
/// mirror image in the same level, so that one table serves both ways.
struct NttTable {
  /// The last log2(lanes) levels, see ntt_impl.h: for level k, s < 2^k a vector of omegas and one
  /// of their quotients; for each block a vector of powers and one of quotients.
  struct Leaves {
    const void* omegas = nullptr;
    const void* twists = nullptr;
  };

  std::size_t n = 0;
  const PrimeRow* prime = nullptr;
  const void* twiddles = nullptr;  // value, quotient of node i at words 2i, 2i + 1, i < n / lanes
  Leaves leaves, inverse_leaves;
};

/// Factors of the last stage of the inverse: c / n for the sum, c psi^(N/2) / n for the difference.
struct InttScale {
  ShoupConstant sum;
  ShoupConstant difference;
};

/// sum_k y[k] factors[k] + v factors[count] in coefficient form: the lift of a digit to a prime.
/// y[k] are residues of other primes of the same word, factors are below the prime. All y are
/// packed (ntt_impl.h): `count` rows of memory, in the order of intt_packed.
struct LiftSource {
  const void* y = nullptr;
  std::size_t count = 0;
  const std::uint16_t* v = nullptr;
  const std::uint64_t* factors = nullptr;
};

/// The most bytes of a row that weighted_dot takes: a page of memory.
constexpr std::size_t kWeightedBytes = 4096;

/// Added to a row of both accumulators of a key switch, c = 0, 1: s a_c or, if there is a b, s (a0
/// b0, a0 b1 + a1 b0); without an a, nothing. If there is an x, also x_scalar x_c. The constant is
/// added to the first accumulator. All < q.
struct RowAddend {
  const void* a0 = nullptr;
  const void* a1 = nullptr;
  const void* b0 = nullptr;
  const void* b1 = nullptr;
  std::uint64_t s = 0;
  const void* x0 = nullptr;
  const void* x1 = nullptr;
  std::uint64_t x_scalar = 0;
  std::uint64_t constant = 0;
};

/// Rows of a combination: products (a0 b0, a0 b1 + a1 b0, a1 b1), then multiples s x0, s x1, and a
/// constant.
struct RowTerms {
  struct Product {
    const void *a0, *a1, *b0, *b1;
  };
  struct Multiple {
    const void *x0, *x1;
    std::uint64_t s;
  };
  const Product* products = nullptr;
  std::size_t product_count = 0;
  const Multiple* multiples = nullptr;
  std::size_t multiple_count = 0;
  std::uint64_t constant = 0;
};

/// A row of a ciphertext under sigma, times P: sum_j sigma(ext[j]) key_c[j], and s sigma(c0) is
/// added in the first half; without ext, s c_c. turn: the constants of sigma (make_turn). c0, c1:
/// null on limbs that the ciphertext lacks.
struct RowRotation {
  const void* turn = nullptr;
  const void* const* ext = nullptr;
  const void* const* key0 = nullptr;
  const void* const* key1 = nullptr;
  const void* c0 = nullptr;
  const void* c1 = nullptr;
};

/// out_c = [out_c +] sum_k operand_c[operands[k]] weights[k].
struct RowSum {
  void* out0 = nullptr;
  void* out1 = nullptr;
  const void* const* weights = nullptr;
  const std::uint32_t* operands = nullptr;
  std::size_t count = 0;
  bool accumulate = false;
};

struct RowKernels {
  const char* isa = "";
  std::size_t lanes = 1;
  int beta_bits = 64;
  int word_bytes = 8;

  void (*ntt)(void* dst, const void* src, const NttTable& table) = nullptr;
  /// dst = c intt(src), c in the scale.
  void (*intt)(void* dst, const void* src, const NttTable& table, const InttScale& scale) = nullptr;

  /// The same, written to the place of a limb among the packed limbs of its digit. temporary: a
  /// row.
  void (*intt_packed)(void* packed, std::size_t limb, std::size_t limbs, void* temporary,
                      const void* src, const NttTable& table, const InttScale& scale) = nullptr;

  void (*add)(void* out, const void* a, const void* b, std::size_t n, const PrimeRow& p) = nullptr;
  void (*sub)(void* out, const void* a, const void* b, std::size_t n, const PrimeRow& p) = nullptr;
  void (*neg)(void* out, const void* a, std::size_t n, const PrimeRow& p) = nullptr;
  void (*mul_scalar)(void* out, const void* a, ShoupConstant s, std::size_t n,
                     const PrimeRow& p) = nullptr;
  void (*mul_scalar_add)(void* acc, const void* a, ShoupConstant s, std::size_t n,
                         const PrimeRow& p) = nullptr;
  void (*add_scalar)(void* out, const void* a, std::uint64_t s, std::size_t n,
                     const PrimeRow& p) = nullptr;
  /// out = init + sum_k a[k] b[k]; init may be null; out may be any of the inputs.
  void (*dot)(void* out, const void* const* a, const void* const* b, std::size_t count,
              const void* init, std::size_t n, const PrimeRow& p) = nullptr;
  void (*tensor)(void* d0, void* d1, void* d2, const void* a0, const void* a1, const void* b0,
                 const void* b1, std::size_t n, const PrimeRow& p) = nullptr;
  /// d2 is written if there are products.
  void (*combine)(void* d0, void* d1, void* d2, const RowTerms& terms, std::size_t n,
                  const PrimeRow& p) = nullptr;
  /// v = floor(1/2 + sum_k y[k] inverse[k]) by fused multiply-adds in order, y packed, count <
  /// 2^15.
  void (*round_sum)(std::uint16_t* v, const void* y, const double* inverse, std::size_t count,
                    std::size_t n) = nullptr;
  /// out[i] = lift i after the first pass of its transform. Lifts of the same y read it from memory
  /// once.
  void (*begin_lifts)(void* const* out, const LiftSource* sources, const NttTable* const* tables,
                      std::size_t count) = nullptr;
  /// Finishes the transform of the lift that begin_lifts left in out.
  void (*finish_lift)(void* out, const NttTable& table) = nullptr;
  /// out = the finished transform of the lift `begun`, which is overwritten, + x s + addend. x or
  /// addend may be null.
  void (*lift_combine)(void* out, void* begun, const void* x, ShoupConstant s, const void* addend,
                       const NttTable& table) = nullptr;
  /// out_c = addend_c + sum_k ext_k key_c[k]; with accumulate, out_c takes the place of addend_c.
  /// ext_k is own[k] or, if that is null, the finished transform of the lift begun[k], which is
  /// overwritten.
  void (*lift_key_dot)(void* out0, void* out1, void* const* begun, const void* const* own,
                       const void* const* key0, const void* const* key1, std::size_t count,
                       const RowAddend& addend, bool accumulate, const NttTable& table) = nullptr;
  /// out_c = [out_c +] sum_k sigma_g(ext[k]) key_c[k]. rev: bit reversal of n / lanes indices.
  void (*key_dot)(void* out0, void* out1, const void* const* ext, const void* const* key0,
                  const void* const* key1, std::size_t count, bool accumulate, std::uint64_t g,
                  const std::uint32_t* rev, std::size_t n, const PrimeRow& p) = nullptr;
  /// The same with g = 1, for at most kWeightedBytes of each row.
  void (*weighted_dot)(void* out0, void* out1, const void* const* x, const void* const* y0,
                       const void* const* y1, std::size_t count, bool accumulate, std::size_t n,
                       const PrimeRow& p) = nullptr;
  /// Constants of sigma_g in turn_bytes at `turn`, 64-byte aligned; rev as above and alive as long.
  void (*make_turn)(void* turn, std::uint64_t g, const std::uint32_t* rev, std::size_t n) = nullptr;
  std::size_t turn_bytes = 0;
  /// Sums of rotations by `digits` digits; s: of RowRotation. temporary: 2 pieces of `piece` words,
  /// a power of two of at least 64, for each rotation: all rotations of a piece of the row are
  /// computed there, then added with their weights.
  void (*rotated_sums)(const RowRotation* rotations, std::size_t count, std::size_t digits,
                       std::uint64_t s, const RowSum* sums, std::size_t sum_count, void* temporary,
                       std::size_t piece, std::size_t n, const PrimeRow& p) = nullptr;
  /// For measurement alone: `rounds` times butterfly_pairs vectors of butterflies on as many pairs
  /// of vectors, which stay in registers. values: the pairs, in [0, q); they come back in [0, 2Lq).
  void (*butterflies)(void* values, std::size_t rounds, const PrimeRow& p) = nullptr;
  std::size_t butterfly_pairs = 0;
  /// The same for complex_pairs butterflies of complex doubles. values: complex_doubles of them,
  /// 64-byte aligned.
  void (*complex_butterflies)(double* values, std::size_t rounds) = nullptr;
  std::size_t complex_pairs = 0, complex_doubles = 0;
  /// Reads every byte, of a 64-byte aligned block of a multiple of 512.
  std::uint64_t (*read)(const void* block, std::size_t bytes) = nullptr;
  /// Butterflies of the embedding of backend/embedding.h on parts apart, 64-byte aligned; twiddles
  /// as there.
  void (*embedding_forward)(double* re, double* im, const double* twiddle,
                            std::size_t slots) = nullptr;
  void (*embedding_backward)(double* re, double* im, const double* twiddle,
                             std::size_t slots) = nullptr;
  /// out = c mod q.
  void (*from_int64)(void* out, const std::int64_t* c, std::size_t n, const PrimeRow& p) = nullptr;
  /// out = sigma_g(in) in NTT form; out is not in.
  void (*automorphism)(void* out, const void* in, std::uint64_t g, const std::uint32_t* rev,
                       std::size_t n) = nullptr;
};

}  // namespace jali::backend::cpu
