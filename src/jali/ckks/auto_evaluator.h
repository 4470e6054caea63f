// The evaluator that keeps levels and scales by itself: products stay unrelinearised and unscaled
// until something needs them otherwise, so that a sum of products pays for one of each.
#pragma once

#include <complex>
#include <memory>
#include <span>
#include <vector>

#include "jali/ckks/evaluator.h"
#include "jali/ckks/product_sum.h"

namespace jali::ckks {

/// Rotations by powers of two, each towards its own side, that make up a rotation: binary_steps(5, n) is
/// {1, 4}, binary_steps(-3, n) {-1, -2}. Steps count modulo slots, to the nearer side.
std::vector<int> binary_steps(int steps, std::size_t slots);
/// Those of all of them, sorted and distinct: keys of which any of the rotations is made.
std::vector<int> composing_rotations(std::span<const int> rotations, std::size_t slots);

/// Operands may have any level, pending relinearisation or pending rescale; results are right up to
/// noise. Throws DepthExhausted with the depth that would be enough.
class AutoEvaluator {
 public:
  explicit AutoEvaluator(std::shared_ptr<const Evaluator> evaluator);
  const Evaluator& explicit_evaluator() const { return *evaluator_; }

  Ciphertext add(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext sub(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext negate(const Ciphertext& a) const;
  Ciphertext multiply(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext square(const Ciphertext& a) const;

  /// The product a b, still to be computed. Levels, scales and batches are checked and brought together now: what
  /// multiply throws, this throws.
  ProductSum product(const ProductSum::Factor& a, const ProductSum::Factor& b) const;
  /// Whether a + b can be one sum of products: equal levels and batches, and at most kMostProducts products.
  static bool can_join(const ProductSum& a, const ProductSum& b);
  static constexpr std::size_t kMostProducts =
      8;  // whose factors stay in memory until the sum is computed
  /// a + b, still to be computed. Throws InvalidArgument if they cannot join.
  static ProductSum join(ProductSum a, const ProductSum& b);
  /// The value: two parts, the canonical scale of the level below, by one key switch and one division.
  /// The bits are those of normalise(expand(a)).
  Ciphertext settle(const ProductSum& a) const;
  /// The value in three parts at the square of the canonical scale, as multiply and add give it.
  Ciphertext expand(const ProductSum& a) const;

  // Plain operands: a vector is `batch` (1 or the ciphertext's) vectors of `count` numbers.
  Ciphertext add_vector(const Ciphertext& a, std::span<const std::complex<double>> v,
                        std::size_t batch = 1) const;
  Ciphertext multiply_vector(const Ciphertext& a, std::span<const std::complex<double>> v,
                             std::size_t batch = 1) const;
  Ciphertext add_scalar(const Ciphertext& a, std::complex<double> v) const;
  Ciphertext multiply_scalar(const Ciphertext& a, std::complex<double> v) const;
  /// By its own key, else by those of composing_rotations.
  Ciphertext rotate(const Ciphertext& a, int steps) const;
  Ciphertext conjugate(const Ciphertext& a) const;
  /// Slot i of the result is the sum of slots i .. i + count - 1, cyclically; count a power of two, 0
  /// for all slots (then every slot holds the same sum). Needs rotations by 1, 2, 4 .. count/2.
  Ciphertext sum(const Ciphertext& a, std::size_t count = 0) const;

  /// Two parts and the canonical scale of its level: what is sent and decrypted.
  Ciphertext normalise(const Ciphertext& a) const;
  /// The level it will have after normalise.
  int effective_level(const Ciphertext& a) const;

 private:
  std::shared_ptr<const Evaluator> evaluator_;
};

}  // namespace jali::ckks
