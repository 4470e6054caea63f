// The automatic evaluator for vectors of known length. It checks the shapes of its operands by
// NumPy's rules, and every result carries its own packing: what decryption shows of it.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <optional>

#include "jali/schemes/ckks/auto_evaluator.h"
#include "jali/schemes/ckks/packing.h"

namespace jali::ckks {

/// The operations of AutoEvaluator, with packings. They throw what AutoEvaluator throws. They also
/// throw InvalidArgument if the shapes of the operands do not fit (packing.h), or if a factor is
/// too large for the level of the product: such a product would wrap around the modulus unnoticed.
/// All operations may be used from several threads.
class ArrayEvaluator {
 public:
  explicit ArrayEvaluator(std::shared_ptr<const Evaluator> evaluator);
  const Evaluator& explicit_evaluator() const { return automatic_.explicit_evaluator(); }

  Ciphertext add(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext sub(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext negate(const Ciphertext& a) const;
  /// a b. If a and b are the same object, it is squared.
  Ciphertext multiply(const Ciphertext& a, const Ciphertext& b) const;

  /// a b, still to be computed (product_sum.h). Throws what multiply throws.
  ProductSum product(const ProductSum::Factor& a, const ProductSum::Factor& b) const;
  /// a + b as one sum of products, or nothing if they cannot be one (AutoEvaluator::can_join).
  /// Throws InvalidArgument if the level does not hold the sum of their constants.
  std::optional<ProductSum> join(const ProductSum& a, const ProductSum& b) const;
  /// a + b, or nothing if the modulus of the constant would be above kMostConstant: the caller then
  /// computes the products first. Throws InvalidArgument if the level does not hold the constant.
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
  /// See AutoEvaluator::sum. count 0 gives the sum of the vector in every slot. For that, the slots
  /// that hold no number must be zero (rest_is_zero), and the vector must not lie in windows;
  /// otherwise it throws InvalidArgument.
  Ciphertext sum(const Ciphertext& a, std::size_t count = 0) const;

  Ciphertext normalise(const Ciphertext& a) const;
  /// Whether normalise would change nothing: `a` has two parts, and no rescaling is due.
  bool is_settled(const Ciphertext& a) const;
  int effective_level(const Ciphertext& a) const { return automatic_.effective_level(a); }

  /// The same slots, of which `length` numbers count (packing_of_length).
  Ciphertext with_length(const Ciphertext& a, std::size_t length) const;
  /// The same slots; from here on their numbers are taken to lie as length and tiling of `lies`
  /// say, and the other slots to hold anything. Throws InvalidArgument if that is not possible for
  /// as many slots as a has.
  Ciphertext with_layout(const Ciphertext& a, const Packing& lies) const;
  /// The same slots as an array whose elements lie as `view` says, or, without a view, as a batch
  /// of vectors of all slots. padded: slots that hold no element are zero. Throws InvalidArgument
  /// for a view that does not fit.
  Ciphertext with_view(const Ciphertext& a, const std::optional<View>& view, bool padded) const;
  /// The same numbers, of which the caller knows that each is a sum of at most `terms` of the
  /// numbers of `like`.
  Ciphertext with_bounds(const Ciphertext& a, const Ciphertext& like, double terms) const;
  /// These vectors of the batch, in this order, as a batch without a view.
  Ciphertext take(const Ciphertext& a, std::span<const std::uint32_t> vectors) const;
  /// The same slots; estimates and bounds assume from here on that they are as `declared` says.
  /// With a smaller peak than before they are no longer derived, so that a release takes no bound
  /// from them. Throws InvalidArgument unless its numbers are finite and at least 0, and if slots
  /// that hold no number may be above a peak that is smaller than before.
  Ciphertext with_magnitude(const Ciphertext& a, const params::Declared& declared) const;
  /// The same slots; from here on, the error of a slot's real part is taken to have the standard
  /// deviation 2^-precision_bits, to be independent of all others, and never to be more than 32
  /// deviations. Estimates count the terms of a polynomial as independent, so that after several
  /// polynomials they are far above the error. It is for callers that know better. The bound that a
  /// release hides is no smaller for it. Throws InvalidArgument unless precision_bits is above -256
  /// and below 256.
  Ciphertext with_precision(const Ciphertext& a, double precision_bits) const;

 private:
  void require_fits(const Ciphertext& a, double factor) const;
  static void require_room(const ProductSum& a);

  AutoEvaluator automatic_;
};

}  // namespace jali::ckks
