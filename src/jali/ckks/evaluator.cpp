#include "jali/ckks/evaluator.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "jali/base/error.h"
#include "jali/ckks/evaluator_impl.h"

namespace jali::ckks {

namespace {

using ring::Poly;

std::string to_string(double x) { return std::to_string(x); }

}  // namespace

Evaluator::Impl::Impl(CkksParamsPtr p, std::shared_ptr<const ring::Ring> r,
                      std::shared_ptr<const ExpandedKeys> k)
    : params(std::move(p)),
      ring(std::move(r)),
      encoder(params, ring),
      noise(*params),
      switcher(params, ring),
      keys(std::move(k)) {
  // The imaginary unit: X^(N/2) is i in every slot, as zeta^(5^j N/2) = i.
  Poly i_poly = ring->zero(params->q_primes(), 1, ring::Form::coeff);
  std::vector<std::int64_t> monomial(params->n(), 0);
  monomial[params->n() / 2] = 1;
  ring->ops().from_int64(i_poly.view(), monomial);
  ring->to_ntt(i_poly);
  imaginary_unit = std::move(i_poly);
}

static std::shared_ptr<const ExpandedKeys> expanded(const params::CkksParams& params,
                                                    const ring::Ring& ring,
                                                    const rlwe::EvaluationKeys* keys) {
  auto out = std::make_shared<ExpandedKeys>();
  if (keys == nullptr) return out;
  require<ParamsMismatch>(keys->params->hash() == params.hash(),
                          "the evaluation keys belong to other parameters");
  if (keys->relinearisation) {
    out->relinearisation = rlwe::expand(ring, params, *keys->relinearisation);
  }
  if (keys->encapsulation) {
    out->encapsulation = expand_encapsulation(ring, params, *keys->encapsulation);
  }
  for (const auto& [element, key] : keys->galois) {
    out->galois.emplace(element, rlwe::expand(ring, params, key));
  }
  return out;
}

const rlwe::ExpandedKey& Evaluator::Impl::galois_key(std::uint64_t element, int level) const {
  const auto it = keys->galois.find(element);
  require<KeyMissing>(it != keys->galois.end(), [&] {
    const std::size_t n = params->n();
    if (element == ring::conjugation_element(n)) {
      return std::string("no key for conjugation: make the keys with conjugate=True");
    }
    std::uint64_t g = 1;
    for (std::size_t k = 0; k < n / 2; ++k, g = g * 5 % (2 * n)) {
      if (g == element) {
        return "no key for rotation by " + std::to_string(k) + " (= " +
               std::to_string(static_cast<std::int64_t>(k) - static_cast<std::int64_t>(n / 2)) +
               "): add it to rotations when the keys are made";
      }
    }
    return "no key for the automorphism X -> X^" + std::to_string(element);
  });
  require_serves(it->second, level);
  return it->second;
}

void Evaluator::Impl::check(const Ciphertext& a) const {
  check_parameters(a);
  require<InvalidArgument>(a.parts.empty() || ring->holds(a.parts[0]),
                           "the ciphertext is in another device's memory: bring it here first");
}

void Evaluator::Impl::check(const Plaintext& a) const {
  require<ParamsMismatch>(a.params != nullptr && a.params->hash() == params->hash(),
                          "the plaintext and the evaluator belong to different parameters");
  require<InvalidArgument>(ring->holds(a.poly),
                           "the plaintext is in another device's memory: encode it with the "
                           "evaluator's own encoder");
}

void Evaluator::Impl::check_parameters(const Ciphertext& a) const {
  require<ParamsMismatch>(a.params == params || (a.params && a.params->hash() == params->hash()),
                          "the ciphertext and the evaluator belong to different parameters");
}

Ciphertext Evaluator::Impl::shell(const Ciphertext& a) const {
  Ciphertext out;
  out.params = params;
  out.level = a.level;
  out.scale = a.scale;
  out.log_slots = a.log_slots;
  out.estimate = a.estimate;
  return out;
}

Poly Evaluator::Impl::like(const Ciphertext& a) const {
  return ring->make(a.parts[0].primes(), a.batch());
}

double Evaluator::Impl::scale_error_variance(double message, double scale_a, double scale_b) const {
  // A relative difference d of the scales is an error d m scale in every slot; N coefficients share
  // the slots' variance.
  const double error = message * (scale_a - scale_b);
  return error * error / static_cast<double>(params->n());
}

void Evaluator::Impl::check_pair(int level_a, double scale_a, int level_b, double scale_b,
                                 std::size_t batch_a, std::size_t batch_b,
                                 bool scales_matter) const {
  require<InvalidArgument>(level_a == level_b, [&] {
    return "operands are at levels " + std::to_string(level_a) + " and " + std::to_string(level_b) +
           ": bring one down with drop_to or adjust";
  });
  require<InvalidArgument>(batch_a == batch_b || batch_b == 1, [&] {
    return "operands have batches of " + std::to_string(batch_a) + " and " +
           std::to_string(batch_b) + ": they must be equal, or the second 1";
  });
  require<ScaleMismatch>(!scales_matter || std::fabs(scale_a / scale_b - 1) < 0x1p-20, [&] {
    return "operands have scales 2^" + to_string(std::log2(scale_a)) + " and 2^" +
           to_string(std::log2(scale_b)) + ": rescale or adjust one to the other";
  });
}

Evaluator::Evaluator(CkksParamsPtr params, std::shared_ptr<const ring::Ring> ring,
                     std::shared_ptr<const rlwe::EvaluationKeys> keys)
    : impl_(std::make_unique<Impl>(params, ring, expanded(*params, *ring, keys.get()))) {}

static CkksParamsPtr checked_part(CkksParamsPtr part, const params::CkksParams& of) {
  require<ParamsMismatch>(part != nullptr && part->whole().hash() == of.hash(),
                          "these are no part of the evaluator's parameters");
  return part;
}

Evaluator::Evaluator(CkksParamsPtr part, const Evaluator& whole)
    : impl_(std::make_unique<Impl>(checked_part(std::move(part), *whole.impl_->params),
                                   whole.impl_->ring, whole.impl_->keys)) {}

Evaluator::~Evaluator() = default;

const CkksParamsPtr& Evaluator::params() const { return impl_->params; }
const std::shared_ptr<const ring::Ring>& Evaluator::ring() const { return impl_->ring; }
const Encoder& Evaluator::encoder() const { return impl_->encoder; }
const params::NoiseModel& Evaluator::noise() const { return impl_->noise; }

bool Evaluator::has_rotation(int steps, int level) const {
  return has_galois(ring::galois_element(impl_->params->n(), steps), level);
}

bool Evaluator::has_galois(std::uint64_t element, int level) const {
  if (element == 1) return true;
  const auto key = impl_->keys->galois.find(element);
  return key != impl_->keys->galois.end() && impl_->serves(key->second, level);
}

bool Evaluator::has_relinearisation(int level) const {
  const auto& key = impl_->keys->relinearisation;
  return key.has_value() && impl_->serves(*key, level);
}

Ciphertext Evaluator::copy(const Ciphertext& a) const {
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  for (const auto& part : a.parts) out.parts.push_back(impl_->ring->copy(part));
  out.seed = a.seed;
  out.packing = a.packing;
  return out;
}

bool Evaluator::is_here(const Ciphertext& a) const {
  return a.parts.empty() || impl_->ring->holds(a.parts[0]);
}

Ciphertext Evaluator::bring(const Ciphertext& a) const {
  impl_->check_parameters(a);
  Ciphertext out = impl_->shell(a);
  for (const auto& part : a.parts) out.parts.push_back(impl_->ring->import(part));
  out.seed = a.seed;
  out.packing = a.packing;
  return out;
}

Ciphertext Evaluator::send_back(const Ciphertext& a) const {
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  for (const auto& part : a.parts) out.parts.push_back(impl_->ring->host_copy(part));
  out.seed = a.seed;
  out.packing = a.packing;
  return out;
}

// --- HADD ---------------------------------------------------------------------------------------

namespace {

enum class Sign { plus, minus };

// The terms of a + a are not independent: noise and message double. (Those of a - a cancel: less than is said.)
Estimate sum_estimate(const params::NoiseModel& noise, const Ciphertext& a, const Ciphertext& b,
                      Sign sign) {
  if (&a == &b && sign == Sign::plus) return noise.multiply_constant(a.estimate, 2, 2);
  return noise.add(a.estimate, b.estimate);
}

}  // namespace

static Ciphertext combine(const Evaluator::Impl& impl, const Ciphertext& a, const Ciphertext& b,
                          Sign sign) {
  impl.check(a);
  impl.check(b);
  impl.check_pair(a.level, a.scale, b.level, b.scale, a.batch(), b.batch(), true);
  const auto& ops = impl.ring->ops();
  Ciphertext out = impl.shell(a);
  const std::size_t parts = std::max(a.parts.size(), b.parts.size());
  for (std::size_t i = 0; i < parts; ++i) {
    Poly part = impl.like(a);
    if (i >= b.parts.size()) {
      part = impl.ring->copy(a.parts[i]);
    } else if (i >= a.parts.size()) {
      // 0 +- b, b possibly of batch 1
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
  out.log_slots = std::max(a.log_slots, b.log_slots);
  out.estimate = sum_estimate(impl.noise, a, b, sign);
  out.estimate.variance += impl.scale_error_variance(b.estimate.message, a.scale, b.scale);
  return out;
}

Ciphertext Evaluator::add(const Ciphertext& a, const Ciphertext& b) const {
  return combine(*impl_, a, b, Sign::plus);
}

Ciphertext Evaluator::sub(const Ciphertext& a, const Ciphertext& b) const {
  return combine(*impl_, a, b, Sign::minus);
}

Ciphertext Evaluator::negate(const Ciphertext& a) const {
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  for (const auto& part : a.parts) {
    Poly negated = impl_->like(a);
    impl_->ring->ops().neg(negated.view(), part.view());
    out.parts.push_back(std::move(negated));
  }
  return out;
}

void Evaluator::add_inplace(Ciphertext& a, const Ciphertext& b) const {
  if (a.parts.size() < b.parts.size()) {
    a = add(a, b);
    return;
  }
  impl_->check(a);
  impl_->check(b);
  impl_->check_pair(a.level, a.scale, b.level, b.scale, a.batch(), b.batch(), true);
  for (std::size_t i = 0; i < b.parts.size(); ++i) {
    impl_->ring->ops().add(a.parts[i].view(), a.parts[i].view(), b.parts[i].view());
  }
  a.seed.reset();
  a.log_slots = std::max(a.log_slots, b.log_slots);
  const double mismatch = impl_->scale_error_variance(b.estimate.message, a.scale, b.scale);
  a.estimate = sum_estimate(impl_->noise, a, b, Sign::plus);
  a.estimate.variance += mismatch;
}

static Ciphertext combine_plain(const Evaluator::Impl& impl, const Ciphertext& a,
                                const Plaintext& b, Sign sign) {
  impl.check(a);
  impl.check(b);
  impl.check_pair(a.level, a.scale, b.level, b.scale, a.batch(), b.poly.batch(), true);
  const auto& ops = impl.ring->ops();
  Ciphertext out = impl.shell(a);
  Poly first = impl.like(a);
  if (sign == Sign::plus) {
    ops.add(first.view(), a.parts[0].view(), b.poly.view());
  } else {
    ops.sub(first.view(), a.parts[0].view(), b.poly.view());
  }
  out.parts.push_back(std::move(first));
  for (std::size_t i = 1; i < a.parts.size(); ++i) out.parts.push_back(impl.ring->copy(a.parts[i]));
  out.log_slots = std::max(a.log_slots, b.log_slots);
  const Estimate plain{impl.noise.encoding_variance(), b.message};
  out.estimate = impl.noise.add(a.estimate, plain);
  out.estimate.variance += impl.scale_error_variance(b.message, a.scale, b.scale);
  return out;
}

Ciphertext Evaluator::add_plain(const Ciphertext& a, const Plaintext& b) const {
  return combine_plain(*impl_, a, b, Sign::plus);
}

Ciphertext Evaluator::sub_plain(const Ciphertext& a, const Plaintext& b) const {
  return combine_plain(*impl_, a, b, Sign::minus);
}

// --- constants ----------------------------------------------------------------------------------

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
    return "the constant needs " + to_string(bits) + " bits once scaled and level " +
           std::to_string(level) + " holds " + to_string(params->level(level).log_q);
  });
}

void Evaluator::Impl::add_constant(Estimate& estimate, std::complex<double> b) const {
  // Rounding of the constant touches one coefficient of N, at most twice.
  estimate = noise.add(estimate, {0, std::abs(b)});
  estimate.variance += noise.encoding_variance() * 2 / static_cast<double>(params->n());
}

Ciphertext Evaluator::add_scalar(const Ciphertext& a, std::complex<double> b) const {
  impl_->check(a);
  require_finite(b);
  const auto& ops = impl_->ring->ops();
  const double re = std::nearbyint(b.real() * a.scale), im = std::nearbyint(b.imag() * a.scale);
  impl_->require_room(std::max(std::fabs(re), std::fabs(im)), a.level);
  Ciphertext out = impl_->shell(a);
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
  impl_->add_constant(out.estimate, b);
  return out;
}

Ciphertext Evaluator::multiply_scalar(const Ciphertext& a, std::complex<double> b,
                                      double scale) const {
  impl_->check(a);
  require_finite(b);
  require<InvalidArgument>(std::isfinite(scale) && scale >= 1, "the scale must be at least 1");
  const double re = std::nearbyint(b.real() * scale), im = std::nearbyint(b.imag() * scale);
  Ciphertext out = impl_->shell(a);
  for (const auto& part : a.parts) {
    out.parts.push_back(times_gaussian_integer(*impl_, part, re, im));
  }
  out.scale = a.scale * scale;
  const double rounding = std::hypot(re - b.real() * scale, im - b.imag() * scale);
  out.estimate = impl_->noise.multiply_constant(a.estimate, std::abs(b), std::hypot(re, im));
  out.estimate.variance += impl_->scale_error_variance(a.estimate.message, a.scale * rounding, 0);
  return out;
}

Ciphertext Evaluator::multiply_integer(const Ciphertext& a, std::int64_t b) const {
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  for (const auto& part : a.parts) {
    Poly product = impl_->like(a);
    impl_->ring->ops().mul_scalar(product.view(), part.view(),
                                  ring::residues(*impl_->ring, part.primes(), b));
    out.parts.push_back(std::move(product));
  }
  const double magnitude = std::fabs(static_cast<double>(b));
  out.estimate = impl_->noise.multiply_constant(a.estimate, magnitude, magnitude);
  return out;
}

Ciphertext Evaluator::multiply_i(const Ciphertext& a) const {
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  const Poly unit = impl_->ring->select(impl_->imaginary_unit, a.parts[0].primes());
  for (const auto& part : a.parts) {
    Poly product = impl_->like(a);
    impl_->ring->ops().mul(product.view(), part.view(), unit.view());
    out.parts.push_back(std::move(product));
  }
  return out;
}

// --- CMULT --------------------------------------------------------------------------------------

Ciphertext Evaluator::multiply_plain(const Ciphertext& a, const Plaintext& b) const {
  impl_->check(a);
  impl_->check(b);
  impl_->check_pair(a.level, a.scale, b.level, b.scale, a.batch(), b.poly.batch(), false);
  Ciphertext out = impl_->shell(a);
  for (const auto& part : a.parts) {
    Poly product = impl_->like(a);
    impl_->ring->ops().mul(product.view(), part.view(), b.poly.view());
    out.parts.push_back(std::move(product));
  }
  out.scale = a.scale * b.scale;
  out.log_slots = std::max(a.log_slots, b.log_slots);
  out.estimate = impl_->noise.multiply_plain(a.estimate, a.scale, b.message, b.scale);
  return out;
}

// --- HMULT --------------------------------------------------------------------------------------

// A product's metadata, its operands checked.
static Ciphertext product_shell(const Evaluator::Impl& impl, const Ciphertext& a,
                                const Ciphertext& b) {
  impl.check(a);
  impl.check(b);
  impl.check_pair(a.level, a.scale, b.level, b.scale, a.batch(), b.batch(), false);
  require<InvalidArgument>(a.parts.size() == 2 && b.parts.size() == 2,
                           "relinearise the operands of a product first");
  require<InvalidArgument>(a.batch() == b.batch(), "the operands of a product need equal batches");
  Ciphertext out = impl.shell(a);
  out.scale = a.scale * b.scale;
  out.log_slots = std::max(a.log_slots, b.log_slots);
  out.estimate = impl.noise.multiply(a.estimate, a.scale, b.estimate, b.scale);
  return out;
}

Ciphertext Evaluator::multiply(const Ciphertext& a, const Ciphertext& b) const {
  Ciphertext out = product_shell(*impl_, a, b);
  for (int i = 0; i < 3; ++i) out.parts.push_back(impl_->like(a));
  impl_->ring->ops().tensor(out.parts[0].view(), out.parts[1].view(), out.parts[2].view(),
                            a.parts[0].view(), a.parts[1].view(), b.parts[0].view(),
                            b.parts[1].view());
  return out;
}

Ciphertext Evaluator::square(const Ciphertext& a) const {
  Ciphertext out = multiply(a, a);
  // The two cross terms m e are one and the same: their sum has four times the variance of one, not
  // twice.
  const double message = a.estimate.message * a.scale;
  out.estimate.variance += 2 * message * message * a.estimate.variance;
  return out;
}

Ciphertext Evaluator::relinearise(const Ciphertext& a) const {
  if (a.parts.size() == 2) return copy(a);
  impl_->check(a);
  const auto acc =
      impl_->switcher.switch_key(a.parts[2], a.level, impl_->relinearisation_key(a.level));
  Ciphertext out = impl_->shell(a);
  out.parts = impl_->switcher.reduce_pair(acc.c0, acc.c1, a.level, &a.parts[0], &a.parts[1]);
  out.estimate = impl_->noise.relinearise(a.estimate, a.level);
  return out;
}

Ciphertext Evaluator::rescale(const Ciphertext& a) const {
  impl_->check(a);
  impl_->require_level(a.level, 1);
  const double ratio = impl_->ratio(a.level, a.level - 1);
  Ciphertext out = impl_->shell(a);
  out.parts = impl_->switcher.reduce_pair(a.parts[0], a.parts[1], a.level - 1);
  if (a.parts.size() == 3) out.parts.push_back(impl_->switcher.reduce(a.parts[2], a.level - 1));
  out.level = a.level - 1;
  out.scale = a.scale / ratio;
  out.estimate = impl_->noise.rescale(a.estimate, ratio);
  if (a.parts.size() == 3) out.estimate.variance += impl_->noise.square_rescale_variance();
  return out;
}

Ciphertext Evaluator::Impl::reduced(const rlwe::Accumulator& acc, Ciphertext out) const {
  const double quotient = ratio(out.level, out.level - 1);
  out.parts = switcher.reduce_pair(acc.c0, acc.c1, out.level - 1);
  out.estimate = noise.relinearise_rescale(out.estimate, out.level, quotient);
  out.level -= 1;
  out.scale /= quotient;
  return out;
}

Ciphertext Evaluator::relinearise_rescale(const Ciphertext& a) const {
  if (a.parts.size() == 2) return rescale(a);
  impl_->check(a);
  impl_->require_level(a.level, 1);
  const auto acc = impl_->switcher.switch_joined(a.parts[0], a.parts[1], a.parts[2], a.level,
                                                 impl_->relinearisation_key(a.level));
  return impl_->reduced(acc, impl_->shell(a));
}

Ciphertext Evaluator::multiply_relinearise_rescale(const Ciphertext& a, const Ciphertext& b) const {
  Ciphertext out = product_shell(*impl_, a, b);
  impl_->require_level(a.level, 1);
  const backend::Combination::Product product{a.parts[0].view(), a.parts[1].view(),
                                              b.parts[0].view(), b.parts[1].view()};
  const auto acc = impl_->switcher.switch_combination({{&product, 1}}, a.batch(), a.level,
                                                      impl_->relinearisation_key(a.level));
  return impl_->reduced(acc, std::move(out));
}

// --- levels -------------------------------------------------------------------------------------

Ciphertext Evaluator::drop_to(const Ciphertext& a, int level) const {
  impl_->check(a);
  require<InvalidArgument>(level >= 0 && level <= a.level, [&] {
    return "cannot drop from level " + std::to_string(a.level) + " to " + std::to_string(level);
  });
  if (level == a.level) return copy(a);
  const auto& from = impl_->params->level(a.level).primes;
  const auto& to = impl_->params->level(level).primes;
  if (!std::includes(from.begin(), from.end(), to.begin(), to.end())) {
    // Small words: the lower level has primes the upper one lacks.
    return adjust(a, level, a.scale);
  }
  Ciphertext out = impl_->shell(a);
  for (const auto& part : a.parts) out.parts.push_back(impl_->ring->select(part, to));
  out.level = level;
  return out;
}

Ciphertext Evaluator::adjust(const Ciphertext& a, int level, double scale, double near) const {
  impl_->check(a);
  require<InvalidArgument>(level >= 0 && level < a.level, [&] {
    return "adjust needs a lower level than " + std::to_string(a.level) + ", not " +
           std::to_string(level);
  });
  require<InvalidArgument>(std::isfinite(scale) && scale > 0, "the scale must be positive");
  // One factor, an integer, and one division: from the level just above when its limbs are at hand and leave the
  // factor enough bits, else from a's.
  const auto& from = impl_->params->level(a.level).primes;
  const auto& above = impl_->params->level(level + 1).primes;
  const auto exact_factor = [&](int start) { return scale / a.scale * impl_->ratio(start, level); };
  // Off by 2^-20 of the message, or by 8 units of the result: its division rounds by more in every slot.
  const double most_off = std::max(0x1p-20, 8 / scale);
  const auto precise = [&](double exact, double off) {
    const double integer = std::nearbyint(exact);
    return integer >= 1 && std::fabs(integer / exact - 1) < off;
  };
  const bool nested = level + 1 < a.level &&
                      std::includes(from.begin(), from.end(), above.begin(), above.end()) &&
                      precise(exact_factor(level + 1), std::min(near, most_off));
  const int start = nested ? level + 1 : a.level;
  require<ScaleMismatch>(precise(exact_factor(start), most_off), [&] {
    return "a scale of 2^" + to_string(std::log2(a.scale)) + " cannot be brought to 2^" +
           to_string(std::log2(scale)) + " by level " + std::to_string(level) + ": rescale first";
  });
  const double ratio = impl_->ratio(start, level);
  const double factor = std::nearbyint(exact_factor(start));
  Ciphertext out = impl_->shell(a);
  const auto& primes = nested ? above : from;
  const auto residues = ring::residues(*impl_->ring, primes, factor);
  const auto multiply = [&](const Poly& x0, const Poly& x1) {
    const backend::Combination::Multiple term{x0.view(), x1.view(), residues};
    std::vector<Poly> d;
    for (int i = 0; i < 2; ++i) d.push_back(impl_->ring->make(primes, a.batch()));
    impl_->ring->ops().combine(d[0].view(), d[1].view(), {}, {{}, {&term, 1}});
    return d;
  };
  const auto pair = multiply(a.parts[0], a.parts[1]);
  out.parts = impl_->switcher.reduce_pair(pair[0], pair[1], level);
  for (std::size_t i = 2; i < a.parts.size(); ++i) {
    out.parts.push_back(impl_->switcher.reduce(multiply(a.parts[i], a.parts[i])[0], level));
  }
  out.level = level;
  out.scale = scale;
  const double exact = a.scale * factor / ratio;
  out.estimate = impl_->noise.multiply_constant(a.estimate, 1, factor);
  out.estimate = impl_->noise.rescale(out.estimate, ratio);
  if (a.parts.size() == 3) out.estimate.variance += impl_->noise.square_rescale_variance();
  out.estimate.variance += impl_->scale_error_variance(a.estimate.message, exact, scale);
  return out;
}

// --- HROTATE ------------------------------------------------------------------------------------

Ciphertext Evaluator::automorphism(const Ciphertext& a, std::uint64_t element) const {
  impl_->check(a);
  require<InvalidArgument>(a.parts.size() == 2, "relinearise before an automorphism");
  if (element == 1) return copy(a);
  const auto& key = impl_->galois_key(element, a.level);
  Ciphertext out = impl_->shell(a);
  out.parts = impl_->switcher.rotate(a.parts[0], a.parts[1], element, a.level, key);
  out.estimate = impl_->noise.rotate(a.estimate, a.level);
  return out;
}

Ciphertext Evaluator::rotate(const Ciphertext& a, int steps) const {
  return automorphism(a, ring::galois_element(impl_->params->n(), steps));
}

Ciphertext Evaluator::conjugate(const Ciphertext& a) const {
  return automorphism(a, ring::conjugation_element(impl_->params->n()));
}

}  // namespace jali::ckks
