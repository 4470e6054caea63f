// The automatic evaluator over vectors of known length: operands' shapes are checked as NumPy does, results
// know what decryption shall show of them.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <optional>

#include "jali/ckks/auto_evaluator.h"
#include "jali/ckks/packing.h"

namespace jali::ckks {

/// AutoEvaluator's operations, with packings. Besides its errors they throw InvalidArgument for shapes that do not
/// fit (packing.h), and for factors too large for the level of the product, which would wrap around its modulus
/// unnoticed. May be used from several threads.
class ArrayEvaluator {
 public:
  explicit ArrayEvaluator(std::shared_ptr<const Evaluator> evaluator);
  const Evaluator& explicit_evaluator() const { return automatic_.explicit_evaluator(); }

  Ciphertext add(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext sub(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext negate(const Ciphertext& a) const;
  /// One object given twice is squared.
  Ciphertext multiply(const Ciphertext& a, const Ciphertext& b) const;

  /// a b, still to be computed (product_sum.h). What multiply throws, this throws.
  ProductSum product(const ProductSum::Factor& a, const ProductSum::Factor& b) const;
  /// a + b as one sum of products; nothing if it cannot be one (AutoEvaluator::can_join). InvalidArgument if the level
  /// does not hold the sum of their constants.
  std::optional<ProductSum> join(const ProductSum& a, const ProductSum& b) const;
  /// a + b; nothing if the constant would be above kMostConstant: then the products are computed first. InvalidArgument
  /// if the level does not hold the constant.
  std::optional<ProductSum> join_scalar(const ProductSum& a, std::complex<double> b) const;
  static constexpr double kMostConstant = 1024;
  Ciphertext settle(const ProductSum& a) const;
  Ciphertext expand(const ProductSum& a) const;

  Ciphertext add_numbers(const Ciphertext& a, const Numbers& b) const;
  Ciphertext sub_numbers(const Ciphertext& a, const Numbers& b) const;
  Ciphertext multiply_numbers(const Ciphertext& a, const Numbers& b) const;
  Ciphertext add_scalar(const Ciphertext& a, std::complex<double> b) const;
  Ciphertext multiply_scalar(const Ciphertext& a, std::complex<double> b) const;

  Ciphertext rotate(const Ciphertext& a, int steps) const;
  Ciphertext conjugate(const Ciphertext& a) const;
  /// count 0: the sum of the vector in every slot, which takes zeros past its length; InvalidArgument without them.
  Ciphertext sum(const Ciphertext& a, std::size_t count = 0) const;

  Ciphertext normalise(const Ciphertext& a) const;
  /// Whether it is what normalise gives: two parts, no rescale owed.
  bool is_settled(const Ciphertext& a) const;
  int effective_level(const Ciphertext& a) const { return automatic_.effective_level(a); }

  /// The same slots, of which decryption shows the first `length`, from 1 to all.
  Ciphertext with_length(const Ciphertext& a, std::size_t length) const;
  /// The same slots, of which estimates and bounds assume this: finite numbers from 0, or InvalidArgument.
  Ciphertext with_magnitude(const Ciphertext& a, const params::Declared& declared) const;

 private:
  void require_fits(const Ciphertext& a, double factor) const;
  static void require_room(const ProductSum& a);

  AutoEvaluator automatic_;
};

}  // namespace jali::ckks
