// Sums and differences of ciphertexts, and of a ciphertext and a plaintext.
#include <algorithm>
#include <cmath>

#include "jali/base/error.h"
#include "jali/schemes/ckks/evaluator_impl.h"

namespace jali::ckks {

namespace {

enum class Sign { plus, minus };

// The terms of a + a are equal, so noise and message double. The terms of a - a would cancel, but
// the estimate takes them for independent.
Estimate sum_estimate(const Evaluator::Impl& impl, const Ciphertext& a, const Ciphertext& b,
                      Sign sign) {
  const Estimate x = impl.known(a);
  if (sign == Sign::minus) return impl.noise.sub(x, impl.known(b));
  return &a == &b ? impl.noise.multiply_constant(x, 2, 2) : impl.noise.add(x, impl.known(b));
}

}  // namespace

static Ciphertext combine(const Evaluator::Impl& impl, const Ciphertext& a, const Ciphertext& b,
                          Sign sign, double peak = params::kUnbounded) {
  impl.check(a);
  impl.check(b);
  impl.check_pair(a.level, a.scale, b.level, b.scale, a.batch(), b.batch(), true);
  Ciphertext out = impl.shell(a, b);
  out.estimate = sum_estimate(impl, a, b, sign);
  out.estimate += impl.scale_mismatch(b.estimate, a.scale, b.scale);
  bound_by_claim(out.estimate, peak);
  impl.require_range(out);
  out.body() = sign == Sign::plus ? impl.bodies.add(a, b) : impl.bodies.sub(a, b);
  return out;
}

Ciphertext Evaluator::add(const Ciphertext& a, const Ciphertext& b, double peak) const {
  return combine(*impl_, a, b, Sign::plus, peak);
}

Ciphertext Evaluator::sub(const Ciphertext& a, const Ciphertext& b) const {
  return combine(*impl_, a, b, Sign::minus);
}

Ciphertext Evaluator::negate(const Ciphertext& a) const {
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  impl_->require_range(out);
  out.body() = impl_->bodies.negate(a);
  return out;
}

void Evaluator::add_inplace(Ciphertext& a, const Ciphertext& b, double peak) const {
  if (a.parts.size() < b.parts.size()) {
    a = add(a, b, peak);
    return;
  }
  impl_->check(a);
  impl_->check(b);
  impl_->check_pair(a.level, a.scale, b.level, b.scale, a.batch(), b.batch(), true);
  rlwe::common_key(a.key_id, b.key_id);
  Estimate sum = sum_estimate(*impl_, a, b, Sign::plus);
  sum += impl_->scale_mismatch(b.estimate, a.scale, b.scale);
  bound_by_claim(sum, peak);
  impl_->require_range(sum, a.scale, a.level);
  impl_->bodies.add_inplace(a, b);
  a.log_slots = std::max(a.log_slots, b.log_slots);
  a.estimate = sum;
}

static Ciphertext combine_plain(const Evaluator::Impl& impl, const Ciphertext& a,
                                const Plaintext& b, Sign sign) {
  impl.check(a);
  impl.check(b);
  impl.check_pair(a.level, a.scale, b.level, b.scale, a.batch(), b.poly.batch(), true);
  Ciphertext out = impl.shell(a);
  out.log_slots = std::max(a.log_slots, b.log_slots);
  const Estimate plain = impl.known(b);
  out.estimate = impl.noise.add(impl.known(a), plain);
  out.estimate += impl.scale_mismatch(plain, a.scale, b.scale);
  impl.require_range(out);
  out.body() =
      sign == Sign::plus ? impl.bodies.add_plain(a, b.poly) : impl.bodies.sub_plain(a, b.poly);
  return out;
}

Ciphertext Evaluator::add_plain(const Ciphertext& a, const Plaintext& b) const {
  return combine_plain(*impl_, a, b, Sign::plus);
}

Ciphertext Evaluator::sub_plain(const Ciphertext& a, const Plaintext& b) const {
  return combine_plain(*impl_, a, b, Sign::minus);
}

Ciphertext Evaluator::add_plain(const Ciphertext& a, const CompactPlaintext& b) const {
  impl_->check(a);
  return combine_plain(*impl_, a, impl_->encoder.expand(b, a.level), Sign::plus);
}

Ciphertext Evaluator::sub_plain(const Ciphertext& a, const CompactPlaintext& b) const {
  impl_->check(a);
  return combine_plain(*impl_, a, impl_->encoder.expand(b, a.level), Sign::minus);
}

}  // namespace jali::ckks
