// Operations of RLWE ciphertexts and their keys: products and weighted sums, ModUp, key products,
// key switching, ModDown, rotations, and the sums of baby-step giant-step products. NTT form in and
// out. See table.h and view.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/backend/table.h"
#include "jali/backend/view.h"

namespace jali::backend {

/// A switching key in NTT form: residues (digit, part, position in primes, coefficient), part 0 =
/// b, 1 = a. It serves every operation whose accumulators have no primes but these.
struct KeyView {
  const void* data = nullptr;
  std::size_t digits = 0;
  std::span<const PrimeIndex> primes;  // ascending
};

/// out_c = [out_c +] sum_k a_c[operands[k]] * b[k], c = 0, 1: a ciphertext's two polynomials,
/// weighed by plaintexts. See RlweOps::weighted_sums.
struct WeightedSum {
  View out0, out1;
  std::span<const std::uint32_t> operands;  // at least one, indices in a
  std::span<const ConstView> b;  // one an operand; may be broadcast
  bool accumulate = false;  // add to what out holds
};

/// A sum of products and multiples of ciphertexts of two parts each,
///   d = sum_j (1 or 2) a_j b_j + sum_k s_k x_k + constant.
/// It has three parts, as tensor writes them, if there are products, and two otherwise. Operands
/// have its batch. Both parts of an operand have the same primes, and these include the sum's;
/// limbs of other primes are not read.
struct Combination {
  struct Product {
    ConstView a0, a1, b0, b1;
    bool twice = false;
  };
  struct Multiple {
    ConstView x0, x1;
    std::span<const std::uint64_t> s;  // one a limb of the sum, below its prime
  };
  std::span<const Product> products;
  std::span<const Multiple> multiples = {};
  std::span<const std::uint64_t> constant = {};  // one a limb, to d0 at every index; or none
};

/// An operand that is computed as it is used: a ciphertext (c0, c1) under sigma_g, times P,
///   key_product(ext, key, g) + (s sigma_g(c0), 0), or, if g is 1, (s c0, s c1).
/// ext has the digits of c1; s is P modulo the primes of c0. See ScaledAddend and
/// RlweOps::rotated_sums.
struct Rotated {
  ConstView ext;  // as mod_up writes it; not read for g = 1, nor is the key
  ConstView c0, c1;
  std::uint64_t g = 1;
  KeyView key;
};

/// A term of an outer sum: a ciphertext times P, over the primes of a level and of P, under
/// sigma_g,
///   (sigma_g(x0), 0) + key_switch(sigma_g(y)), y = scale_down(x1) to the primes of the level.
struct Turned {
  ConstView x0, x1;
  std::uint64_t g = 1;
  KeyView key;
};

/// A ciphertext times s, added to the accumulators of a key switch before the division by P:
///   acc_c += s_i c_c on limb i, c = 0, 1.
/// If s is P modulo the primes of the limbs, the division leaves the ciphertext itself. It has the
/// primes of the polynomial that is switched. If an operation takes s alone, it is this s, and the
/// operation says what c0 and c1 are.
struct ScaledAddend {
  ConstView c0, c1;
  std::span<const std::uint64_t> s;  // one a limb, below its prime
};

class RlweOps : public Table {
 public:
  using Table::Table;

  // --- products and sums of ciphertexts -------------------------------------------------------
  /// (d0, d1, d2) = (a0 b0, a0 b1 + a1 b0, a1 b1). Outputs are none of the inputs.
  virtual void tensor(View d0, View d1, View d2, ConstView a0, ConstView a1, ConstView b0,
                      ConstView b1) const = 0;
  /// d = the combination, of at least one term; d2 is left alone if there is no product. Outputs
  /// are none of the inputs.
  virtual void combine(View d0, View d1, View d2, const Combination& c) const = 0;
  /// The inner sums of a baby-step giant-step block: many sums over the same a0[k], a1[k]. All
  /// blocks have the same primes, and all but the b the same batch; no out overlaps anything else.
  virtual void weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                             std::span<const WeightedSum> sums) const = 0;

  // --- ModUp and ModDown ----------------------------------------------------------------------
  // A digit D of x is a run of its limbs with product |D|. Its centred lift is the integer
  // polynomial with coefficients in [-|D|/2, |D|/2) congruent to x modulo every prime of D. It is
  // computed as sum_i y_i (|D|/q_i) - v |D| with y_i = [x_i (|D|/q_i)^-1]_{q_i} and
  // v = floor(1/2 + sum_i y_i / q_i), the sum taken in double precision, in limb order, by
  //   s = 0.5; for i: s = fma(double(y_i), 1.0 / double(q_i), s);  v = floor(s)
  // so that v is the same integer on every machine. (When the sum lies within rounding error of a
  // half, the lift is off by |D|: still congruent, outside the centred range by a hair.)

  /// ModUp: ext = lifts of every digit of x to all primes of `ext`. x.primes is a subset of
  /// ext.primes; digit_limbs are the sizes of consecutive digits of x and add up to its limbs. ext
  /// has digit_limbs.size() blocks of shape (ext.primes, batch, N), one after the other: block j is
  /// the centred lift of digit j; on the digit's own primes it equals x.
  virtual void mod_up(View ext, ConstView x, std::span<const std::uint32_t> digit_limbs) const = 0;

  /// Division with rounding between bases: with D the product of the primes of x that out lacks and
  /// A the product of the primes of out that x lacks (both may be empty), out = (x A - [x A]_D) /
  /// D, where [.]_D is the centred lift of the digit of all the dropped limbs. ModDown (D = P),
  /// rescale (D = last primes), both merged, and the rational rescale of small words (A not empty)
  /// are all this. addend (optional, over out.primes): is added to the result. out is not x.
  virtual void scale_down(View out, ConstView x, const ConstView* addend) const = 0;
  /// scale_down of both halves of a ciphertext, which have the same primes and batch: the same
  /// results, and twice as many rows for threads to share. Either addend may be null.
  virtual void scale_down_pair(View out0, View out1, ConstView x0, ConstView x1,
                               const ConstView* addend0, const ConstView* addend1) const;

  // --- key products and key switching ---------------------------------------------------------
  /// acc_c = sum_j sigma_g(ext_j) * key[digit_ids[j]][c], c = 0, 1; over the primes of acc; g = 1
  /// for none. ext: digit_ids.size() blocks as mod_up writes them, over acc0.primes. The
  /// automorphism is applied to ext as it is read. accumulate: add to what acc holds.
  virtual void key_product(View acc0, View acc1, ConstView ext, KeyView key,
                           std::span<const std::uint32_t> digit_ids, std::uint64_t g,
                           bool accumulate) const = 0;

  /// mod_up and key_product in one, without the intermediate in memory; same result.
  virtual void key_switch(View acc0, View acc1, ConstView x,
                          std::span<const std::uint32_t> digit_limbs, KeyView key,
                          std::span<const std::uint32_t> digit_ids) const = 0;

  /// key_switch, then the addend added; x.primes are the first of the accumulators'. No output is
  /// an input.
  virtual void key_switch_add(View acc0, View acc1, ConstView x,
                              std::span<const std::uint32_t> digit_limbs, KeyView key,
                              std::span<const std::uint32_t> digit_ids,
                              const ScaledAddend& addend) const;

  /// A product of ciphertexts up to the division by P: key_switch_add of a combination's third
  /// part, with its first two parts times s as the addend. None of the three need exist in memory.
  /// c has a product; it is over the first primes of the accumulators, as many as digit_limbs adds
  /// up to.
  virtual void combine_key_switch(View acc0, View acc1, const Combination& c,
                                  std::span<const std::uint64_t> s,
                                  std::span<const std::uint32_t> digit_limbs, KeyView key,
                                  std::span<const std::uint32_t> digit_ids) const;

  /// A ciphertext under sigma_g (g odd, not 1), back under its own key: acc =
  /// key_switch(sigma_g(c1)), then out = scale_down_pair(acc) with sigma_g(c0) added to out0. out:
  /// over c0.primes; acc: over these and P. No output is an input.
  virtual void rotate(View out0, View out1, View acc0, View acc1, ConstView c0, ConstView c1,
                      std::uint64_t g, std::span<const std::uint32_t> digit_limbs, KeyView key,
                      std::span<const std::uint32_t> digit_ids) const;

  // --- baby-step giant-step products ----------------------------------------------------------
  /// weighted_sums of operands that are computed as they are used. digit_ids: of ext, for all keys.
  /// s: as in ScaledAddend, one for each limb of c0, whose primes are the first of the sums' and
  /// the same for all operands.
  virtual void rotated_sums(std::span<const Rotated> operands,
                            std::span<const std::uint32_t> digit_ids,
                            std::span<const std::uint64_t> s,
                            std::span<const WeightedSum> sums) const;

  /// The outer sum of a baby-step giant-step block, acc = [acc +] the sum of the terms, at least
  /// one. The digits are those of the level, whose primes are the first of acc. No output is an
  /// input.
  virtual void outer_sum(View acc0, View acc1, std::span<const Turned> terms,
                         std::span<const std::uint32_t> digit_limbs,
                         std::span<const std::uint32_t> digit_ids, bool accumulate) const;
};

/// The first primes of acc, as many as digits of these sizes have limbs: those of the polynomial
/// that is switched, if there is a ScaledAddend.
std::span<const PrimeIndex> own_primes(ConstView acc, std::span<const std::uint32_t> digit_limbs);

}  // namespace jali::backend
