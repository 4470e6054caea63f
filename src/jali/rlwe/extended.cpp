// Hoisting: many automorphisms of one ciphertext share its ModUp (Halevi and Shoup 2018), and sums
// of their results share one division by P (double hoisting; Bossuat et al. 2021).
#include <algorithm>

#include "jali/base/error.h"
#include "jali/rlwe/evaluator.h"

namespace jali::rlwe {

namespace {

void check_batches(const Extended& a, const Extended& b) {
  require<InvalidArgument>(a.c0.batch() == b.c0.batch(),
                           "extended ciphertexts of different batches: make them equal");
}

// Weights have the operand's primes, and either one row for all vectors of the batch or one row for
// each.
void check_weights(const Extended& a, const ring::Poly& weights) {
  require<InvalidArgument>(weights.n() == a.c0.n() && weights.word() == a.c0.word() &&
                               std::ranges::equal(weights.primes(), a.c0.primes()),
                           "encode diagonals over the primes of the operand's level and of P");
  require<InvalidArgument>(weights.batch() == 1 || weights.batch() == a.c0.batch(),
                           "a diagonal has one row, or one for each vector of the batch");
}

}  // namespace

Lifted Evaluator::lift_digits(const Ciphertext& a) const {
  check(a);
  require<InvalidArgument>(a.parts.size() == 2, "relinearise before hoisting");
  const auto primes = switcher_->extended_primes(a.level);
  return {{primes.begin(), primes.end()}, switcher_->mod_up(a.parts[1], a.level)};
}

Hoisted Evaluator::hoist(const Ciphertext& a) const { return {lift_digits(a), &a}; }

Accumulator Evaluator::product_of_lifted(const Lifted& lifted, const Ciphertext& source,
                                         std::uint64_t element) const {
  return switcher_->product(lifted.ext, source.batch(), source.level,
                            galois_key(element, source.level), element);
}

ring::Poly Evaluator::turned_first_part(const Ciphertext& source, std::uint64_t element) const {
  ring::Poly turned = like(source);
  ring()->ops().automorphism_ntt(turned.view(), source.parts[0].view(), element);
  return turned;
}

Ciphertext Evaluator::rotate_lifted(const Lifted& lifted, const Ciphertext& source,
                                    int steps) const {
  const std::uint64_t g = ring::galois_element(params()->n(), steps);
  if (g == 1) return copy(source);
  const auto acc = product_of_lifted(lifted, source, g);
  const ring::Poly turned = turned_first_part(source, g);
  return {source.key_id,
          switcher_->reduce_pair(acc.c0, acc.c1, source.level, &turned),
          source.level,
          {}};
}

Extended Evaluator::rotate_lifted_extended(const Lifted& lifted, const Ciphertext& source,
                                           int steps) const {
  const std::uint64_t g = ring::galois_element(params()->n(), steps);
  if (g == 1) return extend(source);
  auto acc = product_of_lifted(lifted, source, g);
  switcher_->add_times_p(acc.c0, turned_first_part(source, g), source.level);
  return {source.key_id, std::move(acc.c0), std::move(acc.c1), source.level};
}

backend::Rotated Evaluator::rotated_view(const Lifted& lifted, const Ciphertext& source,
                                         int steps) const {
  backend::Rotated out;
  out.c0 = source.parts[0].view();
  out.c1 = source.parts[1].view();
  out.g = ring::galois_element(params()->n(), steps);
  if (out.g == 1) return out;
  out.ext = {lifted.ext.data(), lifted.primes, source.batch()};
  out.key = galois_key(out.g, source.level).view();
  return out;
}

void Evaluator::rotated_sums(std::span<const Rotation> rotations,
                             std::span<const backend::WeightedSum> sums) const {
  require<InvalidArgument>(!rotations.empty(), "sums of rotations need a rotation");
  const Ciphertext& first = *rotations[0].source;
  std::vector<backend::Rotated> views;
  for (const Rotation& r : rotations) {
    common_key(first.key_id, r.source->key_id);
    check_pair(first.level, r.source->level, first.batch(), r.source->batch());
    views.push_back(r.view);
  }
  switcher_->rotated_sums(views, first.level, sums);
}

Extended Evaluator::extend(const Ciphertext& a) const {
  check(a);
  require<InvalidArgument>(a.parts.size() == 2, "relinearise before extending");
  const auto primes = switcher_->extended_primes(a.level);
  Extended out{a.key_id, {}, {}, a.level};
  out.c0 = ring()->zero(primes, a.batch());
  out.c1 = ring()->zero(primes, a.batch());
  switcher_->add_times_p(out.c0, a.parts[0], a.level);
  switcher_->add_times_p(out.c1, a.parts[1], a.level);
  return out;
}

Extended Evaluator::copy(const Extended& a) const {
  Extended out{a.key_id, {}, {}, a.level};
  out.c0 = ring()->copy(a.c0);
  out.c1 = ring()->copy(a.c1);
  return out;
}

Ciphertext Evaluator::reduce(const Extended& a) const {
  check(a);
  return {a.key_id, switcher_->reduce_pair(a.c0, a.c1, a.level), a.level, {}};
}

Ciphertext Evaluator::reduce_rescale(const Extended& a) const {
  check(a);
  return {a.key_id, switcher_->reduce_pair(a.c0, a.c1, a.level - 1), a.level - 1, {}};
}

Extended Evaluator::multiply_accumulate(std::span<const Extended* const> a,
                                        std::span<const ring::Poly* const> weights) const {
  require<InvalidArgument>(!a.empty() && a.size() == weights.size(),
                           "multiply_accumulate needs one diagonal for each operand, and at least "
                           "one operand");
  const Extended& first = *a[0];
  Extended out{first.key_id, {}, {}, first.level};
  std::vector<backend::ConstView> c0, c1, plain;
  for (std::size_t k = 0; k < a.size(); ++k) {
    check(*a[k]);
    check_batches(first, *a[k]);
    out.key_id = common_key(out.key_id, a[k]->key_id);
    check_weights(first, *weights[k]);
    check_pair(first.level, a[k]->level, first.c0.batch(), a[k]->c0.batch());
    c0.push_back(a[k]->c0.view());
    c1.push_back(a[k]->c1.view());
    plain.push_back(weights[k]->view());
  }
  out.c0 = ring()->make(first.c0.primes(), first.c0.batch());
  out.c1 = ring()->make(first.c1.primes(), first.c1.batch());
  ring()->ops().inner_product(out.c0.view(), c0, plain);
  ring()->ops().inner_product(out.c1.view(), c1, plain);
  return out;
}

void Evaluator::add_inplace(Extended& a, const Extended& b) const {
  check(a);
  check(b);
  check_pair(a.level, b.level, a.c0.batch(), b.c0.batch());
  a.key_id = common_key(a.key_id, b.key_id);
  const auto& ops = ring()->ops();
  ops.add(a.c0.view(), a.c0.view(), b.c0.view());
  ops.add(a.c1.view(), a.c1.view(), b.c1.view());
}

void Evaluator::rotate_accumulate(Extended& acc, const Extended& a, int steps) const {
  check(acc);
  const Extended* one[] = {&a};
  rotate_accumulate(acc, one, {&steps, 1});
}

void Evaluator::rotate_accumulate(Extended& acc, std::span<const Extended* const> a,
                                  std::span<const int> steps) const {
  require<InvalidArgument>(!a.empty() && a.size() == steps.size(),
                           "rotate_accumulate needs one rotation for each operand, and at least "
                           "one operand");
  // An operand that is acc itself is copied, because acc is written while the operands are read.
  std::vector<Extended> copies;
  copies.reserve(a.size());
  std::vector<const Extended*> turning, still;
  std::vector<backend::Turned> terms;
  KeyId key_id = acc.key_id;
  for (std::size_t k = 0; k < a.size(); ++k) {
    check(*a[k]);
    const Extended& like = acc.c0.empty() ? *a[0] : acc;
    check_batches(like, *a[k]);
    key_id = common_key(key_id, a[k]->key_id);
    check_pair(like.level, a[k]->level, like.c0.batch(), a[k]->c0.batch());
    const Extended& x = a[k] == &acc ? copies.emplace_back(copy(acc)) : *a[k];
    const std::uint64_t g = ring::galois_element(params()->n(), steps[k]);
    if (g == 1) {
      still.push_back(&x);
      continue;
    }
    // sigma(c0) stays over Q P. sigma(c1) is divided by P and key-switched; the result is added
    // before its own division.
    terms.push_back({x.c0.view(), x.c1.view(), g, galois_key(g, x.level).view()});
    turning.push_back(&x);
  }
  for (const Extended* x : still) {
    if (acc.c0.empty()) {
      acc = copy(*x);
    } else {
      add_inplace(acc, *x);
    }
  }
  acc.key_id = key_id;
  if (terms.empty()) return;
  const bool accumulate = !acc.c0.empty();
  if (!accumulate) {
    acc.level = turning[0]->level;
    acc.c0 = ring()->make(turning[0]->c0.primes(), turning[0]->c0.batch());
    acc.c1 = ring()->make(turning[0]->c1.primes(), turning[0]->c1.batch());
  }
  Accumulator sum{std::move(acc.c0), std::move(acc.c1)};
  switcher_->outer_sum(sum, terms, acc.level, accumulate);
  acc.c0 = std::move(sum.c0);
  acc.c1 = std::move(sum.c1);
}

}  // namespace jali::rlwe
