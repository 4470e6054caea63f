// Automorphisms, hoisting, and sums of rotations before their division by P.
#include <optional>

#include "jali/base/error.h"
#include "jali/schemes/discrete/evaluator.h"

namespace jali::discrete {

Ciphertext Evaluator::automorphism(const Ciphertext& a, std::uint64_t element) const {
  check_slots("a rotation");
  check_here(a);
  require<InvalidArgument>(element % 2 == 1 && element < 2 * params()->n(),
                           "a Galois element is odd and below 2N");
  if (element == 1) return copy(a);
  Ciphertext out = shell(a.key_id, {a.level, a.factor, noise().key_switch(a.estimate, a.level)});
  out.body() = bodies_.automorphism(a, element);
  return out;
}

Ciphertext Evaluator::rotate(const Ciphertext& a, int steps) const {
  return automorphism(a, ring::galois_element(params()->n(), steps));
}

Ciphertext Evaluator::swap_rows(const Ciphertext& a) const {
  return automorphism(a, ring::conjugation_element(params()->n()));
}

Extended Evaluator::extended_shell(const Ciphertext& a, const Estimate& estimate) const {
  Extended out;
  out.params = params();
  out.factor = a.factor;
  out.estimate = estimate;
  return out;
}

Hoisted Evaluator::hoist(const Ciphertext& a) const {
  check_slots("a rotation");
  check_here(a);
  return {bodies_.lift_digits(a), &a};
}

namespace {

const Ciphertext& source_of(const Hoisted& a) {
  require<InvalidArgument>(a.source != nullptr, "an empty Hoisted: use Evaluator::hoist");
  return *a.source;
}

}  // namespace

Ciphertext Evaluator::rotate_hoisted(const Hoisted& a, int steps) const {
  const Ciphertext& source = source_of(a);
  check_here(source);
  if (ring::galois_element(params()->n(), steps) == 1) return copy(source);
  Ciphertext out = shell(source.key_id, {source.level, source.factor,
                                         noise().key_switch(source.estimate, source.level)});
  out.body() = bodies_.rotate_hoisted(a, steps);
  return out;
}

Extended Evaluator::extend(const Ciphertext& a) const {
  check_here(a);
  Extended out = extended_shell(a, a.estimate);
  out.body() = bodies_.extend(a);
  return out;
}

Extended Evaluator::rotate_extended(const Hoisted& a, int steps) const {
  const Ciphertext& source = source_of(a);
  check_here(source);
  if (ring::galois_element(params()->n(), steps) == 1) return extend(source);
  Extended out = extended_shell(source, noise().key_product(source.estimate, source.level));
  out.body() = bodies_.rotate_extended(a, steps);
  return out;
}

Rotation Evaluator::rotation(const Hoisted& a, int steps) const {
  const Ciphertext& source = source_of(a);
  check_here(source);
  Rotation out{{bodies_.rotation(a, steps)}, source.factor, source.estimate};
  if (out.view.g != 1) out.estimate = noise().key_product(out.estimate, source.level);
  return out;
}

void Evaluator::rotated_sums(std::span<const Rotation> rotations,
                             std::span<const backend::WeightedSum> sums) const {
  require<InvalidArgument>(!rotations.empty(), "sums of rotations need a rotation");
  std::vector<rlwe::Rotation> bodies;
  for (const Rotation& r : rotations) {
    require<InvalidArgument>(r.factor == rotations[0].factor,
                             "rotations of one sum need one factor: drop_to one level");
    bodies.push_back({r.source, r.view});
  }
  bodies_.rotated_sums(bodies, sums);
}

void Evaluator::add_inplace(Extended& a, const Extended& b, Overflow overflow) const {
  require<InvalidArgument>(a.factor == b.factor,
                           "operands of one sum need one factor: drop_to one level");
  const Estimate estimate = noise().add(a.estimate, b.estimate, overflow);
  bodies_.add_inplace(a.body(), b.body());
  a.estimate = estimate;
}

// An operand's second part is divided by P, and switched again.
void Evaluator::rotate_accumulate(Extended& acc, std::span<const Extended* const> a,
                                  std::span<const int> steps) const {
  require<InvalidArgument>(!a.empty() && a.size() == steps.size(),
                           "rotate_accumulate needs one rotation for each operand, and at least "
                           "one operand");
  const Extended& first = acc.c0.empty() ? *a[0] : acc;
  std::optional<Estimate> sum;
  if (!acc.c0.empty()) sum = acc.estimate;
  std::vector<const rlwe::Extended*> bodies;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const Extended& x = *a[k];
    require<InvalidArgument>(first.factor == x.factor,
                             "operands of one sum need one factor: drop_to one level");
    const bool turns = ring::galois_element(params()->n(), steps[k]) != 1;
    const Estimate turned = turns ? noise().key_switch(x.estimate, x.level) : x.estimate;
    sum = sum ? noise().add(*sum, turned, Overflow::refuse) : turned;
    bodies.push_back(&x);
  }
  const ParamsPtr params_of_sum = first.params;
  const std::uint64_t factor = first.factor;
  bodies_.rotate_accumulate(acc.body(), bodies, steps);
  acc.params = params_of_sum;
  acc.factor = factor;
  acc.estimate = *sum;
}

Ciphertext Evaluator::reduce(const Extended& a) const {
  Ciphertext out =
      shell(a.key_id, {a.level, a.factor, noise().divide(a.estimate, a.level, a.level)});
  out.body() = bodies_.reduce(a);
  return out;
}

Ciphertext Evaluator::reduce_rescale(const Extended& a) const {
  require<DepthExhausted>(a.level >= 1, [&] {
    return "no level is left to divide by: make the parameters with depth=" +
           std::to_string(params()->depth() + 1);
  });
  const PlainModulus& t = params()->modulus();
  const std::uint64_t quotient = params()->quotient(a.level, a.level - 1);
  Ciphertext out = shell(a.key_id, {a.level - 1, t.mul(a.factor, t.inverse(quotient)),
                                    noise().divide(a.estimate, a.level, a.level - 1)});
  out.body() = bodies_.reduce_rescale(a);
  return out;
}

}  // namespace jali::discrete
