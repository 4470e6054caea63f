// Operations of RLWE on the CPU: sums.cpp, basis.cpp (ModUp, ModDown), key_switch.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <span>
#include <utility>
#include <vector>

#include "jali/backend/cpu/core.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/base/at_fork.h"

namespace jali::backend::cpu {

using PrimeSet = std::vector<PrimeIndex>;

/// Constants that lift a digit D to the primes outside it.
struct Lift {
  std::vector<InttScale> y_scale;   // by limb of D: (D / q_i)^-1, for the inverse transform
  std::vector<double> reciprocals;  // by limb of D: 1 / q_i
  /// By prime of the ring: D / q_i mod p for each limb of D, then -D mod p, the factor of v.
  std::vector<std::vector<std::uint64_t>> factors;
};

/// Constants of a division by D (dropped primes) after a multiplication by A (added primes).
struct Division {
  std::vector<InttScale> y_scale;   // by limb of D: A (D / q_i)^-1
  std::vector<double> reciprocals;  // by limb of D: 1 / q_i
  /// By prime of the ring outside D: -1 / q_i mod p for each limb of D, then 1, the factor of v.
  std::vector<std::vector<std::uint64_t>> factors;
  std::vector<ShoupConstant> ratio;  // by prime outside D: A / D mod p
};

class CpuRlwe final : public RlweOps, private RowAccess {
 public:
  CpuRlwe(const Engine& engine, const Core& core) : RlweOps(engine), RowAccess(core) {}

  void tensor(View d0, View d1, View d2, ConstView a0, ConstView a1, ConstView b0,
              ConstView b1) const override;
  void combine(View d0, View d1, View d2, const Combination& c) const override;
  void weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                     std::span<const WeightedSum> sums) const override;
  void mod_up(View ext, ConstView x, std::span<const std::uint32_t> digit_limbs) const override;
  void scale_down(View out, ConstView x, const ConstView* addend) const override;
  void scale_down_pair(View out0, View out1, ConstView x0, ConstView x1, const ConstView* addend0,
                       const ConstView* addend1) const override;
  void key_product(View acc0, View acc1, ConstView ext, KeyView key,
                   std::span<const std::uint32_t> digit_ids, std::uint64_t g,
                   bool accumulate) const override;
  void key_switch(View acc0, View acc1, ConstView x, std::span<const std::uint32_t> digit_limbs,
                  KeyView key, std::span<const std::uint32_t> digit_ids) const override;
  void key_switch_add(View acc0, View acc1, ConstView x, std::span<const std::uint32_t> digit_limbs,
                      KeyView key, std::span<const std::uint32_t> digit_ids,
                      const ScaledAddend& addend) const override;
  void combine_key_switch(View acc0, View acc1, const Combination& c,
                          std::span<const std::uint64_t> s,
                          std::span<const std::uint32_t> digit_limbs, KeyView key,
                          std::span<const std::uint32_t> digit_ids) const override;
  void rotated_sums(std::span<const Rotated> operands, std::span<const std::uint32_t> digit_ids,
                    std::span<const std::uint64_t> s,
                    std::span<const WeightedSum> sums) const override;
  void outer_sum(View acc0, View acc1, std::span<const Turned> terms,
                 std::span<const std::uint32_t> digit_limbs,
                 std::span<const std::uint32_t> digit_ids, bool accumulate) const override;

 private:
  /// One polynomial of a division. addend: null if there is none.
  struct Half {
    View out;
    ConstView x;
    const ConstView* addend;
  };
  /// scale_down of blocks of the same primes and batch, their rows together.
  void divide(std::span<const Half> halves) const;
  struct Digits;
  /// Added to the accumulators of a key switch: s times c0 and c1 or, if there is a combination, s
  /// times its first two parts. The third part is then what is switched; it is not written yet. The
  /// combination has one product and at most one multiple.
  struct Addend {
    ConstView c0, c1;
    const Combination* c = nullptr;
    std::span<const std::uint64_t> s;  // empty: nothing is added
    bool accumulate = false;  // instead: add to what the accumulators hold, on all their limbs
  };
  RowAddend row_addend(const Addend& addend, PrimeIndex p, std::size_t own, std::size_t b) const;
  void switch_key(View acc0, View acc1, View x, std::span<const std::uint32_t> digit_limbs,
                  KeyView key, std::span<const std::uint32_t> digit_ids,
                  const Addend& addend) const;

  const std::byte* key_row(KeyView key, std::size_t digit, std::size_t part,
                           std::size_t position) const {
    return static_cast<const std::byte*>(key.data) +
           ((digit * 2 + part) * key.primes.size() + position) * row_bytes_;
  }

  void check_terms(ConstView sum, const Combination& c) const;
  void check_sums(ConstView shape, std::span<const WeightedSum> sums, std::size_t operands) const;
  void check_digits(ConstView x, std::span<const std::uint32_t> digit_limbs) const;
  void check_key(ConstView ext_primes, KeyView key, std::span<const std::uint32_t> ids) const;

  std::shared_ptr<const Lift> lift(std::span<const PrimeIndex> digit) const;
  std::shared_ptr<const Division> division(const PrimeSet& dropped, const PrimeSet& added) const;
  Digits cut(ConstView x, std::span<const std::uint32_t> digit_limbs) const;
  /// Rows that are lifted from a digit together, so that it is read from memory once. They should
  /// stay in the caches until their transforms are finished.
  std::size_t lift_rows() const {
    return std::clamp<std::size_t>((std::size_t{1} << 20) / row_bytes_, 1, 4);
  }
  /// Fills the y and v rows of every digit of x, for all batch entries. make_row(limb, batch entry,
  /// tables) runs before a row of x is read.
  template <class MakeRow>
  void decompose(const Digits& digits, ConstView x, const MakeRow& make_row) const;

  mutable ForkSafe<std::shared_mutex> cache_mutex_;
  mutable std::map<PrimeSet, std::shared_ptr<const Lift>> lifts_;
  mutable std::map<std::pair<PrimeSet, PrimeSet>, std::shared_ptr<const Division>> divisions_;
};

}  // namespace jali::backend::cpu
