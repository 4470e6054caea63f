// Sums and products of a ciphertext and a number.
#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "jali/base/error.h"
#include "jali/schemes/ckks/evaluator_impl.h"
#include "jali/schemes/ckks/range.h"

namespace jali::ckks {

namespace {

using ring::Poly;

}  // namespace

// out = a (re + im X^(N/2)) for integers re, im.
static Poly times_gaussian_integer(const Evaluator::Impl& impl, const Poly& a, double re,
                                   double im) {
  const auto& ops = impl.ring->ops();
  Poly out = impl.ring->make(a.primes(), a.batch());
  ops.mul_scalar(out.view(), a.view(), ring::residues(*impl.ring, a.primes(), re));
  if (im != 0) {
    const Poly unit = impl.ring->select(impl.imaginary_unit, a.primes());
    Poly turned = impl.ring->make(a.primes(), a.batch());
    ops.mul(turned.view(), a.view(), unit.view());
    ops.mul_scalar_add(out.view(), turned.view(), ring::residues(*impl.ring, a.primes(), im));
  }
  return out;
}

static void require_finite(std::complex<double> b) {
  require<InvalidArgument>(std::isfinite(b.real()) && std::isfinite(b.imag()),
                           "a constant operand must be finite");
}

void Evaluator::Impl::require_room(double constant, int level) const {
  const double bits = std::log2(std::max(std::fabs(constant), 1.0));
  require<InvalidArgument>(bits < params->level(level).log_q - 1, [&] {
    return "the constant needs " + std::to_string(bits) + " bits once scaled, and level " +
           std::to_string(level) + " holds " + std::to_string(params->level(level).log_q - 1) +
           ": use a smaller constant, or a higher level" +
           with_more_room(*params, bits - (params->level(level).log_q - 1));
  });
}

Ciphertext Evaluator::add_scalar(const Ciphertext& a, std::complex<double> b) const {
  impl_->check(a);
  require_finite(b);
  const auto& ops = impl_->ring->ops();
  const double re = std::nearbyint(b.real() * a.scale), im = std::nearbyint(b.imag() * a.scale);
  impl_->require_room(std::max(std::fabs(re), std::fabs(im)), a.level);
  Ciphertext out = impl_->shell(a);
  out.estimate = impl_->noise.add_constant(out.estimate, b, a.scale);
  impl_->require_range(out);
  Poly first = impl_->like(a);
  ops.add_scalar(first.view(), a.parts[0].view(), ring::residues(*impl_->ring, first.primes(), re));
  if (im != 0) {
    const Poly unit = impl_->ring->select(impl_->imaginary_unit, first.primes());
    Poly constant = impl_->ring->make(first.primes());
    ops.mul_scalar(constant.view(), unit.view(), ring::residues(*impl_->ring, first.primes(), im));
    ops.add(first.view(), first.view(), constant.view());
  }
  out.parts.push_back(std::move(first));
  for (std::size_t i = 1; i < a.parts.size(); ++i) {
    out.parts.push_back(impl_->ring->copy(a.parts[i]));
  }
  return out;
}

Ciphertext Evaluator::multiply_scalar(const Ciphertext& a, std::complex<double> b,
                                      double scale) const {
  impl_->check(a);
  require_finite(b);
  require<InvalidArgument>(std::isfinite(scale) && scale >= 1, "the scale must be at least 1");
  impl_->require_scale(a.scale * scale, a.level);
  const double re = std::nearbyint(b.real() * scale), im = std::nearbyint(b.imag() * scale);
  Ciphertext out = impl_->shell(a);
  out.scale = a.scale * scale;
  const double rounding = std::hypot(re - b.real() * scale, im - b.imag() * scale);
  out.estimate = impl_->noise.multiply_constant(out.estimate, std::abs(b), std::hypot(re, im));
  out.estimate += impl_->scale_mismatch(a.estimate, a.scale * rounding, 0);
  out.estimate.set_real(a.estimate, b.imag() == 0);
  impl_->require_range(out);
  for (const auto& part : a.parts) {
    out.parts.push_back(times_gaussian_integer(*impl_, part, re, im));
  }
  return out;
}

Ciphertext Evaluator::multiply_integer(const Ciphertext& a, std::int64_t b) const {
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  const double magnitude = std::fabs(static_cast<double>(b));
  out.estimate = impl_->noise.multiply_constant(out.estimate, magnitude, magnitude);
  impl_->require_range(out);
  out.body() = impl_->bodies.multiply_integer(a, b);
  return out;
}

Ciphertext Evaluator::Impl::turned(const Ciphertext& a, const Poly& monomial) const {
  check(a);
  Ciphertext out = shell(a);
  out.estimate.set_real(a.estimate, false);
  require_range(out);
  const Poly factor = ring->select(monomial, a.parts[0].primes());
  out.body() = bodies.multiply_plain(a, factor);
  return out;
}

Ciphertext Evaluator::multiply_i(const Ciphertext& a) const {
  return impl_->turned(a, impl_->imaginary_unit);
}

Ciphertext Evaluator::multiply_monomial(const Ciphertext& a, std::size_t exponent) const {
  Ciphertext out = impl_->turned(a, impl_->engine->monomial(exponent));
  // Slots that repeat are those of a polynomial in X^(N/2/slots).
  while (exponent % ((impl_->params->n() / 2) >> out.log_slots) != 0) ++out.log_slots;
  return out;
}

void Evaluator::prepare_monomial(std::size_t exponent) const { impl_->engine->monomial(exponent); }

}  // namespace jali::ckks
