// Products with plaintexts and ciphertexts, and the operations that switch a key: relinearisation
// and rotations.
#include <algorithm>

#include "jali/base/error.h"
#include "jali/schemes/ckks/evaluator_impl.h"

namespace jali::ckks {

Ciphertext Evaluator::multiply_plain(const Ciphertext& a, const Plaintext& b) const {
  impl_->check(a);
  impl_->check(b);
  impl_->check_pair(a.level, a.scale, b.level, b.scale, a.batch(), b.poly.batch(), false);
  impl_->require_scale(a.scale * b.scale, a.level);
  Ciphertext out = impl_->shell(a);
  out.scale = a.scale * b.scale;
  out.log_slots = std::max(a.log_slots, b.log_slots);
  out.estimate = impl_->noise.multiply(impl_->known(a), a.scale, impl_->known(b), b.scale);
  impl_->require_range(out);
  out.body() = impl_->bodies.multiply_plain(a, b.poly);
  return out;
}

Ciphertext Evaluator::multiply_plain(const Ciphertext& a, const CompactPlaintext& b) const {
  impl_->check(a);
  return multiply_plain(a, impl_->encoder.expand(b, a.level));
}

// Checks the operands of a product, and returns its metadata.
static Ciphertext product_shell(const Evaluator::Impl& impl, const Ciphertext& a,
                                const Ciphertext& b, double peak = params::kUnbounded) {
  impl.check(a);
  impl.check(b);
  impl.check_pair(a.level, a.scale, b.level, b.scale, a.batch(), b.batch(), false);
  require<InvalidArgument>(a.parts.size() == 2 && b.parts.size() == 2,
                           "relinearise the operands of a product first");
  require<InvalidArgument>(a.batch() == b.batch(), "the operands of a product need equal batches");
  impl.require_scale(a.scale * b.scale, a.level);
  Ciphertext out = impl.shell(a, b);
  out.scale = a.scale * b.scale;
  out.estimate = impl.product(a, b);
  bound_by_claim(out.estimate, peak);
  impl.require_range(out);
  return out;
}

Ciphertext Evaluator::multiply(const Ciphertext& a, const Ciphertext& b, double peak) const {
  Ciphertext out = product_shell(*impl_, a, b, peak);
  out.body() = impl_->bodies.multiply(a, b);
  return out;
}

Ciphertext Evaluator::square(const Ciphertext& a) const { return multiply(a, a); }

Ciphertext Evaluator::relinearise(const Ciphertext& a) const {
  if (a.parts.size() == 2) return copy(a);
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  out.estimate = impl_->noise.relinearise(out.estimate, a.level);
  impl_->require_range(out);
  out.body() = impl_->bodies.relinearise(a);
  return out;
}

Ciphertext Evaluator::Impl::divided(Ciphertext out) const {
  const double quotient = ratio(out.level, out.level - 1);
  require_scale(out.scale / quotient, out.level - 1);
  out.estimate = noise.relinearise_rescale(known(out), out.level, quotient);
  out.level -= 1;
  out.scale /= quotient;
  require_range(out);
  return out;
}

Ciphertext Evaluator::relinearise_rescale(const Ciphertext& a) const {
  if (a.parts.size() == 2) return rescale(a);
  impl_->check(a);
  impl_->require_level(a.level, 1);
  Ciphertext out = impl_->divided(impl_->shell(a));
  out.body() = impl_->bodies.relinearise_rescale(a);
  return out;
}

Ciphertext Evaluator::multiply_relinearise_rescale(const Ciphertext& a, const Ciphertext& b) const {
  Ciphertext out = product_shell(*impl_, a, b);
  impl_->require_level(a.level, 1);
  out = impl_->divided(std::move(out));
  out.body() = impl_->bodies.multiply_relinearise_rescale(a, b);
  return out;
}

Ciphertext Evaluator::automorphism(const Ciphertext& a, std::uint64_t element) const {
  impl_->check(a);
  require<InvalidArgument>(a.parts.size() == 2, "relinearise before an automorphism");
  if (element == 1) return copy(a);
  impl_->bodies.galois_key(element, a.level);  // is missing before anything else is refused
  Ciphertext out = impl_->shell(a);
  out.estimate = impl_->noise.rotate(out.estimate, a.level, element);
  impl_->require_range(out);
  out.body() = impl_->bodies.automorphism(a, element);
  return out;
}

Ciphertext Evaluator::rotate(const Ciphertext& a, int steps) const {
  return automorphism(a, ring::galois_element(impl_->params->n(), steps));
}

Ciphertext Evaluator::conjugate(const Ciphertext& a) const {
  return automorphism(a, ring::conjugation_element(impl_->params->n()));
}

Ciphertext Evaluator::twice_real(const Ciphertext& a, double peak) const {
  claimed_peak(peak, params::kUnbounded);
  Ciphertext out = add(a, conjugate(a), peak);
  out.estimate.twice_real_of(a.estimate);
  impl_->require_range(out);
  return out;
}

}  // namespace jali::ckks
