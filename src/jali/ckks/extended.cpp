// Hoisting: many automorphisms of one ciphertext share its ModUp (Halevi and Shoup 2018), and sums
// of their results share one division by P (double hoisting; Bossuat et al. 2021).
#include <algorithm>
#include <cmath>

#include "jali/base/error.h"
#include "jali/ckks/evaluator.h"
#include "jali/ckks/evaluator_impl.h"

namespace jali::ckks {

namespace {

Extended extended_shell(const Evaluator::Impl& impl, const Ciphertext& a) {
  Extended out;
  out.params = impl.params;
  out.key_id = a.key_id;
  out.level = a.level;
  out.scale = a.scale;
  out.log_slots = a.log_slots;
  out.estimate = impl.known(a);
  return out;
}

Extended copy_shell(const Extended& a) {
  Extended out;
  out.params = a.params;
  out.key_id = a.key_id;
  out.level = a.level;
  out.scale = a.scale;
  out.log_slots = a.log_slots;
  out.estimate = a.estimate;
  return out;
}

void check_hoisted(const Evaluator::Impl& impl, const Hoisted& a) {
  require<InvalidArgument>(a.source != nullptr, "an empty Hoisted: use Evaluator::hoist");
  impl.check(*a.source);
}

void check_extended(const Evaluator::Impl& impl, const Extended& a) {
  impl.check_origin(a);
  require<InvalidArgument>(!a.c0.empty() && !a.c1.empty(),
                           "an empty Extended: use Evaluator::extend");
}

void check_batches(const Extended& a, const Extended& b) {
  require<InvalidArgument>(a.c0.batch() == b.c0.batch(),
                           "extended ciphertexts of different batches: make them equal");
}

// A diagonal has the operand's primes, and either one row for all vectors of the batch or one row
// for each.
void check_diagonal(const Extended& a, const ring::Poly& diagonal) {
  require<InvalidArgument>(diagonal.n() == a.c0.n() && diagonal.word() == a.c0.word() &&
                               std::ranges::equal(diagonal.primes(), a.c0.primes()),
                           "encode diagonals over the primes of the operand's level and of P");
  require<InvalidArgument>(diagonal.batch() == 1 || diagonal.batch() == a.c0.batch(),
                           "a diagonal has one row, or one for each vector of the batch");
}

}  // namespace

Hoisted Evaluator::hoist(const Ciphertext& a) const {
  impl_->check(a);
  require<InvalidArgument>(a.parts.size() == 2, "relinearise before hoisting");
  const auto primes = impl_->switcher.extended_primes(a.level);
  Hoisted out;
  out.primes.assign(primes.begin(), primes.end());
  out.ext = impl_->switcher.mod_up(a.parts[1], a.level);
  out.source = &a;
  return out;
}

Ciphertext Evaluator::rotate_hoisted(const Hoisted& a, int steps) const {
  check_hoisted(*impl_, a);
  const Ciphertext& source = *a.source;
  const std::uint64_t g = ring::galois_element(impl_->params->n(), steps);
  if (g == 1) return copy(source);
  Ciphertext out = impl_->shell(source);
  out.estimate = impl_->noise.rotate(out.estimate, source.level, g);
  impl_->require_range(out);
  const auto acc = impl_->switcher.product(a.ext, source.batch(), source.level,
                                           impl_->galois_key(g, source.level), g);
  ring::Poly turned = impl_->like(source);
  impl_->ring->ops().automorphism_ntt(turned.view(), source.parts[0].view(), g);
  out.parts = impl_->switcher.reduce_pair(acc.c0, acc.c1, source.level, &turned);
  return out;
}

Extended Evaluator::extend(const Ciphertext& a) const {
  impl_->check(a);
  require<InvalidArgument>(a.parts.size() == 2, "relinearise before extending");
  const auto primes = impl_->switcher.extended_primes(a.level);
  Extended out = extended_shell(*impl_, a);
  out.c0 = impl_->ring->zero(primes, a.batch());
  out.c1 = impl_->ring->zero(primes, a.batch());
  impl_->switcher.add_times_p(out.c0, a.parts[0], a.level);
  impl_->switcher.add_times_p(out.c1, a.parts[1], a.level);
  return out;
}

Extended Evaluator::rotate_extended(const Hoisted& a, int steps) const {
  check_hoisted(*impl_, a);
  const Ciphertext& source = *a.source;
  const std::uint64_t g = ring::galois_element(impl_->params->n(), steps);
  if (g == 1) return extend(source);
  auto acc = impl_->switcher.product(a.ext, source.batch(), source.level,
                                     impl_->galois_key(g, source.level), g);
  ring::Poly turned = impl_->like(source);
  impl_->ring->ops().automorphism_ntt(turned.view(), source.parts[0].view(), g);
  impl_->switcher.add_times_p(acc.c0, turned, source.level);
  Extended out = extended_shell(*impl_, source);
  out.c0 = std::move(acc.c0);
  out.c1 = std::move(acc.c1);
  out.estimate = impl_->noise.rotate_term(out.estimate, source.level);
  return out;
}

Rotation Evaluator::rotation(const Hoisted& a, int steps) const {
  check_hoisted(*impl_, a);
  const Ciphertext& source = *a.source;
  Rotation out{&source, {}, source.scale, impl_->known(source)};
  out.view.c0 = source.parts[0].view();
  out.view.c1 = source.parts[1].view();
  out.view.g = ring::galois_element(impl_->params->n(), steps);
  if (out.view.g == 1) return out;
  out.view.ext = a.view();
  out.view.key = impl_->galois_key(out.view.g, source.level).view();
  out.estimate = impl_->noise.rotate_term(out.estimate, source.level);
  return out;
}

void Evaluator::rotated_sums(std::span<const Rotation> rotations,
                             std::span<const backend::WeightedSum> sums) const {
  require<InvalidArgument>(!rotations.empty(), "sums of rotations need a rotation");
  std::vector<backend::Rotated> views;
  for (const Rotation& r : rotations) {
    rlwe::common_key(rotations[0].source->key_id, r.source->key_id);
    impl_->check_pair(rotations[0].source->level, rotations[0].scale, r.source->level, r.scale,
                      rotations[0].source->batch(), r.source->batch(), true);
    views.push_back(r.view);
  }
  impl_->switcher.rotated_sums(views, rotations[0].source->level, sums);
}

Ciphertext Evaluator::reduce(const Extended& a, double peak) const {
  check_extended(*impl_, a);
  impl_->require_scale(a.scale, a.level);
  Ciphertext out;
  out.params = impl_->params;
  out.key_id = a.key_id;
  out.level = a.level;
  out.scale = a.scale;
  out.log_slots = a.log_slots;
  Estimate sum = a.estimate;
  bound_by_claim(sum, peak);
  sum.end_term();
  out.estimate = impl_->known(sum, a.scale, a.level);
  out.estimate += impl_->noise.rounding();
  impl_->require_range(out);
  out.parts = impl_->switcher.reduce_pair(a.c0, a.c1, a.level);
  return out;
}

Ciphertext Evaluator::reduce_rescale(const Extended& a, double peak) const {
  check_extended(*impl_, a);
  impl_->require_level(a.level, 1);
  const double ratio = impl_->ratio(a.level, a.level - 1);
  impl_->require_scale(a.scale / ratio, a.level - 1);
  Ciphertext out;
  out.params = impl_->params;
  out.key_id = a.key_id;
  out.level = a.level - 1;
  out.scale = a.scale / ratio;
  out.log_slots = a.log_slots;
  Estimate sum = a.estimate;
  bound_by_claim(sum, peak);
  sum.end_term();
  out.estimate = impl_->noise.rescale(impl_->known(sum, a.scale, a.level), ratio);
  impl_->require_range(out);
  out.parts = impl_->switcher.reduce_pair(a.c0, a.c1, a.level - 1);
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
  Extended out = copy_shell(first);
  std::vector<backend::ConstView> c0, c1, plain;
  const Estimate diagonal = impl_->noise.diagonal({message, peak}, scale, a[0]->log_slots);
  std::optional<Estimate> sum;
  for (std::size_t k = 0; k < a.size(); ++k) {
    check_extended(*impl_, *a[k]);
    check_batches(first, *a[k]);
    out.key_id = rlwe::common_key(out.key_id, a[k]->key_id);
    check_diagonal(first, *diagonals[k]);
    impl_->check_pair(first.level, first.scale, a[k]->level, a[k]->scale, first.c0.batch(),
                      a[k]->c0.batch(), true);
    c0.push_back(a[k]->c0.view());
    c1.push_back(a[k]->c1.view());
    plain.push_back(diagonals[k]->view());
    const Estimate weighed =
        impl_->noise.multiply(impl_->known(*a[k]), a[k]->scale, diagonal, scale);
    sum = sum ? impl_->noise.add(*sum, weighed) : weighed;
  }
  out.c0 = impl_->ring->make(first.c0.primes(), first.c0.batch());
  out.c1 = impl_->ring->make(first.c1.primes(), first.c1.batch());
  impl_->ring->ops().inner_product(out.c0.view(), c0, plain);
  impl_->ring->ops().inner_product(out.c1.view(), c1, plain);
  out.scale = first.scale * scale;
  out.estimate = *sum;
  return out;
}

void Evaluator::add_inplace(Extended& a, const Extended& b) const {
  check_extended(*impl_, a);
  check_extended(*impl_, b);
  impl_->check_pair(a.level, a.scale, b.level, b.scale, a.c0.batch(), b.c0.batch(), true);
  a.key_id = rlwe::common_key(a.key_id, b.key_id);
  const auto& ops = impl_->ring->ops();
  ops.add(a.c0.view(), a.c0.view(), b.c0.view());
  ops.add(a.c1.view(), a.c1.view(), b.c1.view());
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
  const auto copied = [&](const Extended& x) {
    Extended out = copy_shell(x);
    out.c0 = impl_->ring->copy(x.c0);
    out.c1 = impl_->ring->copy(x.c1);
    return out;
  };
  // An operand that is acc itself is copied, because acc is written while the operands are read.
  std::vector<Extended> copies;
  copies.reserve(a.size());
  std::vector<const Extended*> turning, still;
  std::vector<backend::Turned> terms;
  rlwe::KeyId key_id = acc.key_id;
  for (std::size_t k = 0; k < a.size(); ++k) {
    check_extended(*impl_, *a[k]);
    const Extended& like = acc.c0.empty() ? *a[0] : acc;
    check_batches(like, *a[k]);
    key_id = rlwe::common_key(key_id, a[k]->key_id);
    impl_->check_pair(like.level, like.scale, a[k]->level, a[k]->scale, like.c0.batch(),
                      a[k]->c0.batch(), true);
    const Extended& x = a[k] == &acc ? copies.emplace_back(copied(acc)) : *a[k];
    const std::uint64_t g = ring::galois_element(impl_->params->n(), steps[k]);
    if (g == 1) {
      still.push_back(&x);
      continue;
    }
    // sigma(c0) stays over Q P. sigma(c1) is divided by P and key-switched; the result is added
    // before its own division.
    terms.push_back({x.c0.view(), x.c1.view(), g, impl_->galois_key(g, x.level).view()});
    turning.push_back(&x);
  }
  for (const Extended* x : still) {
    if (acc.c0.empty()) {
      acc = copied(*x);
    } else {
      add_inplace(acc, *x);
    }
  }
  acc.key_id = key_id;
  if (terms.empty()) return;
  const bool accumulate = !acc.c0.empty();
  if (!accumulate) {
    acc = copy_shell(*turning[0]);
    acc.key_id = key_id;
    acc.c0 = impl_->ring->make(turning[0]->c0.primes(), turning[0]->c0.batch());
    acc.c1 = impl_->ring->make(turning[0]->c1.primes(), turning[0]->c1.batch());
  }
  for (std::size_t k = 0; k < turning.size(); ++k) {
    const Estimate rotated = impl_->noise.rotate_sum(turning[k]->estimate, acc.level);
    acc.estimate = k == 0 && !accumulate ? rotated : impl_->noise.add(acc.estimate, rotated);
  }
  rlwe::Accumulator sum{std::move(acc.c0), std::move(acc.c1)};
  impl_->switcher.outer_sum(sum, terms, acc.level, accumulate);
  acc.c0 = std::move(sum.c0);
  acc.c1 = std::move(sum.c1);
}

}  // namespace jali::ckks
