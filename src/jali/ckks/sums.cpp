// Sums and differences of ciphertexts, and of a ciphertext and a plaintext.
#include <algorithm>
#include <cmath>

#include "jali/base/error.h"
#include "jali/ckks/evaluator_impl.h"

namespace jali::ckks {

namespace {

using ring::Poly;

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
  const auto& ops = impl.ring->ops();
  Ciphertext out = impl.shell(a, b);
  out.estimate = sum_estimate(impl, a, b, sign);
  out.estimate += impl.scale_mismatch(b.estimate, a.scale, b.scale);
  bound_by_claim(out.estimate, peak);
  impl.require_range(out);
  const std::size_t parts = std::max(a.parts.size(), b.parts.size());
  for (std::size_t i = 0; i < parts; ++i) {
    Poly part = impl.like(a);
    if (i >= b.parts.size()) {
      part = impl.ring->copy(a.parts[i]);
    } else if (i >= a.parts.size()) {
      // The part is 0 +- b; b may have a batch of 1.
      part = impl.ring->zero(a.parts[0].primes(), a.batch());
      if (sign == Sign::plus) {
        ops.add(part.view(), part.view(), b.parts[i].view());
      } else {
        ops.sub(part.view(), part.view(), b.parts[i].view());
      }
    } else if (sign == Sign::plus) {
      ops.add(part.view(), a.parts[i].view(), b.parts[i].view());
    } else {
      ops.sub(part.view(), a.parts[i].view(), b.parts[i].view());
    }
    out.parts.push_back(std::move(part));
  }
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
  for (const auto& part : a.parts) {
    Poly negated = impl_->like(a);
    impl_->ring->ops().neg(negated.view(), part.view());
    out.parts.push_back(std::move(negated));
  }
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
  const rlwe::KeyId key_id = rlwe::common_key(a.key_id, b.key_id);
  Estimate sum = sum_estimate(*impl_, a, b, Sign::plus);
  sum += impl_->scale_mismatch(b.estimate, a.scale, b.scale);
  bound_by_claim(sum, peak);
  impl_->require_range(sum, a.scale, a.level);
  for (std::size_t i = 0; i < b.parts.size(); ++i) {
    impl_->ring->ops().add(a.parts[i].view(), a.parts[i].view(), b.parts[i].view());
  }
  a.key_id = key_id;
  a.seed.reset();
  a.log_slots = std::max(a.log_slots, b.log_slots);
  a.estimate = sum;
}

static Ciphertext combine_plain(const Evaluator::Impl& impl, const Ciphertext& a,
                                const Plaintext& b, Sign sign) {
  impl.check(a);
  impl.check(b);
  impl.check_pair(a.level, a.scale, b.level, b.scale, a.batch(), b.poly.batch(), true);
  const auto& ops = impl.ring->ops();
  Ciphertext out = impl.shell(a);
  out.log_slots = std::max(a.log_slots, b.log_slots);
  const Estimate plain = impl.known(b);
  out.estimate = impl.noise.add(impl.known(a), plain);
  out.estimate += impl.scale_mismatch(plain, a.scale, b.scale);
  impl.require_range(out);
  Poly first = impl.like(a);
  if (sign == Sign::plus) {
    ops.add(first.view(), a.parts[0].view(), b.poly.view());
  } else {
    ops.sub(first.view(), a.parts[0].view(), b.poly.view());
  }
  out.parts.push_back(std::move(first));
  for (std::size_t i = 1; i < a.parts.size(); ++i) out.parts.push_back(impl.ring->copy(a.parts[i]));
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
