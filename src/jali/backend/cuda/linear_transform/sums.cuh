// Sums over any number of operands. A launch takes as many terms as its parameters hold; the rest
// go to further launches.
#pragma once

#include <span>

#include "jali/backend/cuda/common/tables.cuh"
#include "jali/backend/rlwe_ops.h"

namespace jali::backend::cuda {

template <class W>
class Sums {
 public:
  Sums(const Stream& stream, const Tables<W>& tables, int log_n)
      : stream_(stream), tables_(tables), log_n_(log_n) {}

  /// RingOps::inner_product.
  void products(View out, std::span<const ConstView> a, std::span<const ConstView> b) const;
  /// RlweOps::weighted_sums.
  void weighted(std::span<const ConstView> a0, std::span<const ConstView> a1,
                std::span<const WeightedSum> sums) const;
  /// RlweOps::rotated_sums.
  void rotated(std::span<const Rotated> operands, std::span<const std::uint32_t> digit_ids,
               std::span<const std::uint64_t> s, std::span<const WeightedSum> sums) const;
  /// RlweOps::combine.
  void combine(View d0, View d1, View d2, const Combination& c) const;

 private:
  void weighted_many(std::span<const ConstView> a0, std::span<const ConstView> a1,
                     std::span<const WeightedSum> sums) const;
  void weighted_together(std::span<const ConstView> a0, std::span<const ConstView> a1,
                         std::span<const WeightedSum> sums) const;
  void rotated_together(std::span<const Rotated> operands, std::span<const std::uint32_t> digit_ids,
                        std::span<const std::uint64_t> s, std::span<const WeightedSum> sums) const;

  const Stream& stream_;
  const Tables<W>& tables_;
  int log_n_;
};

}  // namespace jali::backend::cuda
