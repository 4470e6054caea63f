// The noise and the ranges of operations on exact integers as formulas. Derivations:
// docs/decisions/0072.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "jali/params/discrete/estimate.h"
#include "jali/params/discrete/params.h"
#include "jali/params/rlwe_noise.h"

namespace jali::discrete {

/// A ciphertext, or what one would be: enough to say what operations make of it.
struct Known {
  int level = 0;
  std::uint64_t factor = 1;
  Estimate estimate{};
};

/// The rules. Those that say so throw RangeExceeded if the result's numbers may not fit T; none of
/// them looks at whether the noise does, which require_budget is for.
class NoiseModel {
 public:
  /// params must outlive this.
  explicit NoiseModel(const Params& params);

  // --- ranges -------------------------------------------------------------------------------
  /// The range from low to high. Throws RangeExceeded if it has more than T numbers, unless
  /// overflow is wrap, and InvalidArgument if low > high.
  Range range(std::int64_t low, std::int64_t high, Overflow overflow = Overflow::refuse) const;
  /// All residues.
  Range residues() const;
  /// The range of sums of `count` numbers.
  Range sum(const Range& addend, std::size_t count, Overflow overflow) const;
  /// The same numbers, taken for residues.
  Estimate as_residues(const Estimate& a) const;
  /// The same noise, of numbers that are known to lie in a range.
  Estimate within(const Estimate& a, const Range& range) const {
    return {a.slot, a.coefficient, range};
  }
  /// The smallest range that has both.
  Range cover(const Range& a, const Range& b) const;

  /// What bytes say, or nothing if no ciphertext can have it.
  std::optional<Estimate> received(double slot, double coefficient, const Range& range) const;
  /// A range that bytes say, or nothing if it has more than T numbers, or wraps and is not that of
  /// all residues.
  std::optional<Range> received(std::int64_t low, std::int64_t high, bool wraps) const;

  // --- encryptions and plaintexts -------------------------------------------------------------
  Estimate fresh_secret(const Range& range) const;
  Estimate fresh_public(const Range& range) const;

  // --- operations at one level, on operands of one factor -------------------------------------
  // They throw RangeExceeded.
  Estimate add(const Estimate& a, const Estimate& b, Overflow overflow) const;
  Estimate sub(const Estimate& a, const Estimate& b, Overflow overflow) const;
  Estimate negate(const Estimate& a, Overflow overflow) const;
  /// The sum with a plaintext of these numbers, and with one number in every slot.
  Estimate add_plain(const Estimate& a, const Range& b, Overflow overflow) const;
  Estimate sub_plain(const Estimate& a, const Range& b, Overflow overflow) const;
  Estimate add_constant(const Estimate& a, std::int64_t b, Overflow overflow) const;
  /// The product with a plaintext of these numbers, in slots.
  Estimate multiply_plain(const Estimate& a, const Range& b, Overflow overflow) const;
  Estimate multiply_integer(const Estimate& a, std::int64_t b, Overflow overflow) const;
  /// BGV's product, T x1 x2, before relinearisation. same: a and b are the same numbers.
  Estimate multiply_bgv(const Estimate& a, const Estimate& b, bool same, Overflow overflow) const;
  /// BFV's product at a level, before relinearisation.
  Estimate multiply_bfv(const Estimate& a, const Estimate& b, bool same, int level,
                        Overflow overflow) const;
  /// The worst of both: of a batch that holds vectors of either.
  Estimate cover(const Estimate& a, const Estimate& b) const;

  // --- key switches and divisions, which leave the range as it is -----------------------------
  /// A key switch whose sum is not divided by P yet.
  Estimate key_product(const Estimate& a, int level) const;
  /// Division by P, or by P and further primes with `from` and `to`, or by these alone.
  Estimate divide(const Estimate& a, int from, int to) const;
  Estimate key_switch(const Estimate& a, int level) const;
  /// The multiplication with a number that changes the factor and not the message.
  Estimate change_factor(const Estimate& a, std::int64_t c) const;

  // --- levels and factors ---------------------------------------------------------------------
  /// The centred number by which a ciphertext of level `from` is multiplied before it is divided to
  /// level `to`, so that its factor becomes `factor`.
  std::int64_t correction(int from, std::uint64_t from_factor, int to, std::uint64_t factor) const;
  /// What `a` is at a level that is not above its own: itself there, and at a lower one with the
  /// level's factor.
  Known brought(const Known& a, int level) const;
  /// The product of two at a level: what both are brought to, multiplied, relinearised and, for
  /// BGV, divided. Throws RangeExceeded.
  Known product(const Known& a, const Known& b, bool same, int level, Overflow overflow) const;
  /// The level at which that product is computed: of those at which its budget is within half a
  /// bit of the best, the lowest. 0 for BGV if the operands leave no level.
  int product_level(const Known& a, const Known& b, bool same, Overflow overflow) const;
  /// The factor with which a plaintext is multiplied at a level, so that the product, divided to
  /// the next, has that level's factor.
  std::uint64_t plain_factor(const Known& a) const;
  /// The product with a plaintext, computed at a level, and the level at which it is computed.
  Known plain_product(const Known& a, const Range& b, int level, Overflow overflow) const;
  int plain_level(const Known& a, const Range& b, Overflow overflow) const;

  // --- what is left ---------------------------------------------------------------------------
  /// log2 of Q_level / (2 T times the bound on a coefficient of the noise): bits by which the noise
  /// may still grow. Decryption is right if it is positive.
  double budget(const Estimate& a, int level) const;
  bool fits(const Estimate& a, int level) const;
  /// Throws DepthExhausted, which names a depth that would do, unless it fits.
  void require_budget(const Estimate& a, int level) const;
  /// Throws DepthExhausted unless a product at this level is possible.
  void require_level(int level) const;

 private:
  Range bounded(__int128 low, __int128 high, bool wraps, Overflow overflow) const;
  Range product(const Range& a, const Range& b, bool same, Overflow overflow) const;
  [[noreturn]] void refuse_range(__int128 low, __int128 high) const;
  Estimate plus(const Estimate& a, const rlwe::NoiseSource& source) const;

  rlwe::NoiseSources sources_;
  double n_ = 0, t_ = 0;
  const Params* params_ = nullptr;
};

}  // namespace jali::discrete
