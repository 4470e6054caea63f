// The evaluator that manages levels and scales by itself. It relinearises and rescales a product
// only when an operation needs that, so that a sum of products is relinearised and rescaled once.
#pragma once

#include <complex>
#include <memory>
#include <span>
#include <vector>

#include "jali/schemes/ckks/evaluator.h"
#include "jali/schemes/ckks/product_sum.h"

namespace jali::ckks {

/// Operands may have any level, and may still have to be relinearised or rescaled. Results are
/// right up to noise. If the levels are used up, operations throw DepthExhausted, which names the
/// depth that would be enough.
class AutoEvaluator {
 public:
  explicit AutoEvaluator(std::shared_ptr<const Evaluator> evaluator);
  const Evaluator& explicit_evaluator() const { return *evaluator_; }

  Ciphertext add(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext sub(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext negate(const Ciphertext& a) const;
  /// peak: no number of the product is larger. It is for callers who know a smaller bound than that
  /// of the operands.
  Ciphertext multiply(const Ciphertext& a, const Ciphertext& b,
                      double peak = params::kUnbounded) const;
  Ciphertext square(const Ciphertext& a) const;

  /// The product a b, still to be computed. Levels and scales are made equal now, and batches are
  /// checked. Throws what multiply throws.
  ProductSum product(const ProductSum::Factor& a, const ProductSum::Factor& b) const;
  /// Whether a + b can be one sum of products: equal levels and batches, and at most kMostProducts
  /// products.
  static bool can_join(const ProductSum& a, const ProductSum& b);
  /// The factors of this many products stay in memory until the sum is computed.
  static constexpr std::size_t kMostProducts = 8;
  /// a + b, still to be computed. Throws InvalidArgument if they cannot join.
  static ProductSum join(ProductSum a, const ProductSum& b);
  /// The value in two parts, at the canonical scale of the level below. It takes one key switching
  /// and one division, and gives the same bits as normalise(expand(a)).
  Ciphertext settle(const ProductSum& a) const;
  /// The value in three parts, at the square of the canonical scale: the same as multiply and add
  /// give.
  Ciphertext expand(const ProductSum& a) const;

  // Plain operands. v holds `batch` vectors of equal length, one after the other; batch is 1 or the
  // ciphertext's.
  Ciphertext add_vector(const Ciphertext& a, std::span<const std::complex<double>> v,
                        std::size_t batch = 1) const;
  Ciphertext multiply_vector(const Ciphertext& a, std::span<const std::complex<double>> v,
                             std::size_t batch = 1) const;
  Ciphertext add_scalar(const Ciphertext& a, std::complex<double> v) const;
  Ciphertext multiply_scalar(const Ciphertext& a, std::complex<double> v) const;
  /// Composed of several rotations if it has no key of its own (ckks/composed.h). Throws KeyMissing
  /// if it cannot be.
  Ciphertext rotate(const Ciphertext& a, int steps) const;
  Ciphertext conjugate(const Ciphertext& a) const;
  /// Slot i of the result is the sum of the slots i .. i + count - 1, cyclically. count is a power
  /// of two, or 0 for all slots; then every slot holds the same sum. Rotates by 1, 2, 4 .. count/2.
  Ciphertext sum(const Ciphertext& a, std::size_t count = 0) const;

  /// The same value in two parts, at the canonical scale of its level. This is the form that is
  /// sent and decrypted.
  Ciphertext normalise(const Ciphertext& a) const;
  /// The level that normalise(a) has.
  int effective_level(const Ciphertext& a) const;

 private:
  std::shared_ptr<const Evaluator> evaluator_;
};

}  // namespace jali::ckks
