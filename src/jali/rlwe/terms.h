// Sums of products and multiples of ciphertexts, in the form that engines take: every operand is
// read once, from where it lies.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "jali/backend/rlwe_ops.h"
#include "jali/rlwe/ciphertext.h"

namespace jali::rlwe {

/// sum_j (1 or 2) a_j b_j + sum_k s_k x_k + constant. Operands have two parts and equal batches,
/// and must outlive this.
class Terms {
 public:
  void add_product(const Ciphertext& a, const Ciphertext& b, bool twice) {
    products_.push_back(
        {a.parts[0].view(), a.parts[1].view(), b.parts[0].view(), b.parts[1].view(), twice});
  }
  /// s: one residue for each prime of the sum, as for the constant.
  void add_multiple(const std::vector<ring::Poly>& x, std::vector<std::uint64_t> s) {
    factors_.push_back(std::move(s));
    multiples_.push_back({x[0].view(), x[1].view(), factors_.back()});
  }
  void set_constant(std::vector<std::uint64_t> s) { constant_ = std::move(s); }

  bool has_products() const { return !products_.empty(); }
  backend::Combination view() const { return {products_, multiples_, constant_}; }

 private:
  std::vector<backend::Combination::Product> products_;
  std::vector<backend::Combination::Multiple> multiples_;
  std::vector<std::uint64_t> constant_;
  std::deque<std::vector<std::uint64_t>> factors_;
};

}  // namespace jali::rlwe
