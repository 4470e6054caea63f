// Hoisted rotations, and sums of them before their division by P (rlwe/extended.cpp).
#include <cmath>

#include "jali/base/error.h"
#include "jali/schemes/ckks/evaluator.h"
#include "jali/schemes/ckks/evaluator_impl.h"

namespace jali::ckks {

namespace {

/// What `like` says of its numbers, without a body. Like is a Ciphertext or an Extended.
template <class Like>
Extended extended_shell(const Evaluator::Impl& impl, const Like& like, const Estimate& estimate) {
  Extended out;
  out.params = impl.params;
  out.scale = like.scale;
  out.log_slots = like.log_slots;
  out.estimate = estimate;
  return out;
}

void check_hoisted(const Evaluator::Impl& impl, const Hoisted& a) {
  require<InvalidArgument>(a.source != nullptr, "an empty Hoisted: use Evaluator::hoist");
  impl.check(*a.source);
}

void check_extended(const Evaluator::Impl& impl, const Extended& a) {
  impl.check_origin(a);
  impl.bodies.check(a);
}

/// Throws unless b can be added to a.
void check_sum(const Evaluator::Impl& impl, const Extended& a, const Extended& b) {
  impl.check_pair(a.level, a.scale, b.level, b.scale, a.c0.batch(), b.c0.batch(), true);
}

std::vector<const rlwe::Extended*> bodies_of(std::span<const Extended* const> a) {
  return {a.begin(), a.end()};
}

}  // namespace

Hoisted Evaluator::hoist(const Ciphertext& a) const {
  impl_->check(a);
  return {impl_->bodies.lift_digits(a), &a};
}

Ciphertext Evaluator::rotate_hoisted(const Hoisted& a, int steps) const {
  check_hoisted(*impl_, a);
  const Ciphertext& source = *a.source;
  const std::uint64_t g = ring::galois_element(impl_->params->n(), steps);
  if (g == 1) return copy(source);
  Ciphertext out = impl_->shell(source);
  out.estimate = impl_->noise.rotate(out.estimate, source.level, g);
  impl_->require_range(out);
  out.body() = impl_->bodies.rotate_hoisted(a, steps);
  return out;
}

Extended Evaluator::extend(const Ciphertext& a) const {
  impl_->check(a);
  Extended out = extended_shell(*impl_, a, impl_->known(a));
  out.body() = impl_->bodies.extend(a);
  return out;
}

Extended Evaluator::rotate_extended(const Hoisted& a, int steps) const {
  check_hoisted(*impl_, a);
  const Ciphertext& source = *a.source;
  if (ring::galois_element(impl_->params->n(), steps) == 1) return extend(source);
  const Estimate rotated = impl_->noise.rotate_term(impl_->known(source), source.level);
  Extended out = extended_shell(*impl_, source, rotated);
  out.body() = impl_->bodies.rotate_extended(a, steps);
  return out;
}

Rotation Evaluator::rotation(const Hoisted& a, int steps) const {
  check_hoisted(*impl_, a);
  const Ciphertext& source = *a.source;
  Rotation out{impl_->bodies.rotation(a, steps), source.scale, impl_->known(source)};
  if (out.view.g != 1) out.estimate = impl_->noise.rotate_term(out.estimate, source.level);
  return out;
}

void Evaluator::rotated_sums(std::span<const Rotation> rotations,
                             std::span<const backend::WeightedSum> sums) const {
  require<InvalidArgument>(!rotations.empty(), "sums of rotations need a rotation");
  std::vector<rlwe::Rotation> bodies;
  const Rotation& first = rotations[0];
  for (const Rotation& r : rotations) {
    impl_->check_pair(first.source->level, first.scale, r.source->level, r.scale,
                      first.source->batch(), r.source->batch(), true);
    bodies.push_back({r.source, r.view});
  }
  impl_->bodies.rotated_sums(bodies, sums);
}

Ciphertext Evaluator::reduce(const Extended& a, double peak) const {
  check_extended(*impl_, a);
  impl_->require_scale(a.scale, a.level);
  Ciphertext out;
  out.params = impl_->params;
  out.level = a.level;
  out.scale = a.scale;
  out.log_slots = a.log_slots;
  Estimate sum = a.estimate;
  bound_by_claim(sum, peak);
  sum.end_term();
  out.estimate = impl_->known(sum, a.scale, a.level);
  out.estimate += impl_->noise.rounding();
  impl_->require_range(out);
  out.body() = impl_->bodies.reduce(a);
  return out;
}

Ciphertext Evaluator::reduce_rescale(const Extended& a, double peak) const {
  check_extended(*impl_, a);
  impl_->require_level(a.level, 1);
  const double ratio = impl_->ratio(a.level, a.level - 1);
  impl_->require_scale(a.scale / ratio, a.level - 1);
  Ciphertext out;
  out.params = impl_->params;
  out.level = a.level - 1;
  out.scale = a.scale / ratio;
  out.log_slots = a.log_slots;
  Estimate sum = a.estimate;
  bound_by_claim(sum, peak);
  sum.end_term();
  out.estimate = impl_->noise.rescale(impl_->known(sum, a.scale, a.level), ratio);
  impl_->require_range(out);
  out.body() = impl_->bodies.reduce_rescale(a);
  return out;
}

Extended Evaluator::multiply_accumulate(std::span<const Extended* const> a,
                                        std::span<const ring::Poly* const> diagonals, double scale,
                                        double message, double peak) const {
  require<InvalidArgument>(!a.empty() && a.size() == diagonals.size(),
                           "multiply_accumulate needs one diagonal for each operand, and at least "
                           "one operand");
  require<InvalidArgument>(
      std::isfinite(message) && message >= 0 && std::isfinite(peak) && peak >= 0,
      "message and peak of the diagonals must be finite and not negative");
  const Extended& first = *a[0];
  impl_->require_scale(first.scale * scale, first.level);
  const Estimate diagonal = impl_->noise.diagonal({message, peak}, scale, first.log_slots);
  std::optional<Estimate> sum;
  for (const Extended* x : a) {
    check_extended(*impl_, *x);
    check_sum(*impl_, first, *x);
    const Estimate weighed = impl_->noise.multiply(impl_->known(*x), x->scale, diagonal, scale);
    sum = sum ? impl_->noise.add(*sum, weighed) : weighed;
  }
  Extended out = extended_shell(*impl_, first, *sum);
  out.body() = impl_->bodies.multiply_accumulate(bodies_of(a), diagonals);
  out.scale = first.scale * scale;
  return out;
}

void Evaluator::add_inplace(Extended& a, const Extended& b) const {
  check_extended(*impl_, a);
  check_extended(*impl_, b);
  check_sum(*impl_, a, b);
  impl_->bodies.add_inplace(a.body(), b.body());
  a.estimate = impl_->noise.add(a.estimate, b.estimate);
}

void Evaluator::rotate_accumulate(Extended& acc, const Extended& a, int steps) const {
  check_extended(*impl_, acc);
  const Extended* one[] = {&a};
  rotate_accumulate(acc, one, {&steps, 1});
}

void Evaluator::rotate_accumulate(Extended& acc, std::span<const Extended* const> a,
                                  std::span<const int> steps) const {
  require<InvalidArgument>(!a.empty() && a.size() == steps.size(),
                           "rotate_accumulate needs one rotation for each operand, and at least "
                           "one operand");
  // The body adds operands that are not rotated first, and so does the estimate.
  std::vector<const Extended*> still, turning;
  for (std::size_t k = 0; k < a.size(); ++k) {
    check_extended(*impl_, *a[k]);
    check_sum(*impl_, acc.c0.empty() ? *a[0] : acc, *a[k]);
    const bool turns = ring::galois_element(impl_->params->n(), steps[k]) != 1;
    (turns ? turning : still).push_back(a[k]);
  }
  std::optional<Estimate> sum;
  if (!acc.c0.empty()) sum = acc.estimate;
  const auto add = [&](const Estimate& term) { sum = sum ? impl_->noise.add(*sum, term) : term; };
  for (const Extended* x : still) add(x->estimate);
  for (const Extended* x : turning) add(impl_->noise.rotate_sum(x->estimate, x->level));
  const Extended& first = !acc.c0.empty() ? acc : !still.empty() ? *still[0] : *turning[0];
  Extended out = extended_shell(*impl_, first, *sum);
  impl_->bodies.rotate_accumulate(acc.body(), bodies_of(a), steps);
  out.body() = std::move(acc.body());
  acc = std::move(out);
}

}  // namespace jali::ckks
