// The key switch of polynomials, and the operations on ciphertexts that switch a key:
// relinearisation and automorphisms.
#include "jali/rlwe/key_switch.h"

#include "jali/base/error.h"
#include "jali/rlwe/evaluator.h"

namespace jali::rlwe {

KeySwitcher::KeySwitcher(ParamsPtr params, std::shared_ptr<const ring::Ring> ring)
    : params_(std::move(params)), ring_(std::move(ring)) {
  const auto p = params_->p_primes();
  for (int l = 0; l <= params_->top(); ++l) {
    auto primes = params_->level(l).primes;
    p_mod_q_.push_back(ring::product_residues(*ring_, primes, p));
    primes.insert(primes.end(), p.begin(), p.end());
    extended_.push_back(std::move(primes));
  }
}

std::span<const PrimeIndex> KeySwitcher::extended_primes(int level) const {
  return extended_.at(static_cast<std::size_t>(level));
}

device::Buffer KeySwitcher::mod_up(const ring::Poly& x, int level) const {
  const auto& digits = params_->level(level).digit_limbs;
  const auto primes = extended_primes(level);
  auto ext = ring_->scratch(digits.size() * primes.size() * x.batch() * x.row_bytes());
  ops().mod_up({ext.data(), primes, x.batch()}, x.view(), digits);
  return ext;
}

Accumulator KeySwitcher::product(const device::Buffer& ext, std::size_t batch, int level,
                                 const ExpandedKey& key, std::uint64_t g) const {
  const auto primes = extended_primes(level);
  Accumulator acc{ring_->make(primes, batch), ring_->make(primes, batch)};
  ops().key_product(acc.c0.view(), acc.c1.view(), {ext.data(), primes, batch}, key.view(),
                    params_->level(level).digit_ids, g, /*accumulate=*/false);
  return acc;
}

void KeySwitcher::rotated_sums(std::span<const backend::Rotated> operands, int level,
                               std::span<const backend::WeightedSum> sums) const {
  ops().rotated_sums(operands, params_->level(level).digit_ids,
                     p_mod_q_[static_cast<std::size_t>(level)], sums);
}

Accumulator KeySwitcher::switch_key(const ring::Poly& x, int level, const ExpandedKey& key) const {
  const auto primes = extended_primes(level);
  const auto& at = params_->level(level);
  Accumulator acc{ring_->make(primes, x.batch()), ring_->make(primes, x.batch())};
  ops().key_switch(acc.c0.view(), acc.c1.view(), x.view(), at.digit_limbs, key.view(),
                   at.digit_ids);
  return acc;
}

Accumulator KeySwitcher::switch_add(const ring::Poly& c0, const ring::Poly& c1,
                                    const ring::Poly& c2, int level, const ExpandedKey& key) const {
  const auto primes = extended_primes(level);
  const auto& at = params_->level(level);
  Accumulator acc{ring_->make(primes, c2.batch()), ring_->make(primes, c2.batch())};
  ops().key_switch_add(acc.c0.view(), acc.c1.view(), c2.view(), at.digit_limbs, key.view(),
                       at.digit_ids,
                       {c0.view(), c1.view(), p_mod_q_[static_cast<std::size_t>(level)]});
  return acc;
}

Accumulator KeySwitcher::switch_combination(const backend::Combination& c, std::size_t batch,
                                            int level, const ExpandedKey& key) const {
  const auto primes = extended_primes(level);
  const auto& at = params_->level(level);
  Accumulator acc{ring_->make(primes, batch), ring_->make(primes, batch)};
  ops().combine_key_switch(acc.c0.view(), acc.c1.view(), c,
                           p_mod_q_[static_cast<std::size_t>(level)], at.digit_limbs, key.view(),
                           at.digit_ids);
  return acc;
}

std::vector<ring::Poly> KeySwitcher::rotate(const ring::Poly& c0, const ring::Poly& c1,
                                            std::uint64_t g, int level,
                                            const ExpandedKey& key) const {
  const auto primes = extended_primes(level);
  const auto& at = params_->level(level);
  Accumulator acc{ring_->make(primes, c1.batch()), ring_->make(primes, c1.batch())};
  std::vector<ring::Poly> out;
  for (int i = 0; i < 2; ++i) out.push_back(ring_->make(c0.primes(), c0.batch()));
  ops().rotate(out[0].view(), out[1].view(), acc.c0.view(), acc.c1.view(), c0.view(), c1.view(), g,
               at.digit_limbs, key.view(), at.digit_ids);
  return out;
}

void KeySwitcher::outer_sum(Accumulator& acc, std::span<const backend::Turned> terms, int level,
                            bool accumulate) const {
  const auto& at = params_->level(level);
  ops().outer_sum(acc.c0.view(), acc.c1.view(), terms, at.digit_limbs, at.digit_ids, accumulate);
}

void KeySwitcher::add_times_p(ring::Poly& x, const ring::Poly& c, int level) const {
  // P c is 0 modulo the primes of P, so only the level's limbs change.
  ring_->ops().mul_scalar_add(x.head(c.limbs()), c.view(),
                              p_mod_q_[static_cast<std::size_t>(level)]);
}

ring::Poly KeySwitcher::reduce(const ring::Poly& x, int to, const ring::Poly* addend) const {
  ring::Poly out = ring_->make(params_->level(to).primes, x.batch());
  if (addend != nullptr) {
    const backend::ConstView extra = addend->view();
    ops().scale_down(out.view(), x.view(), &extra);
  } else {
    ops().scale_down(out.view(), x.view(), nullptr);
  }
  return out;
}

std::vector<ring::Poly> KeySwitcher::reduce_pair(const ring::Poly& x0, const ring::Poly& x1, int to,
                                                 const ring::Poly* addend0,
                                                 const ring::Poly* addend1) const {
  const auto& primes = params_->level(to).primes;
  std::vector<ring::Poly> out;
  out.push_back(ring_->make(primes, x0.batch()));
  out.push_back(ring_->make(primes, x1.batch()));
  const auto view = [](const ring::Poly* p) { return p ? p->view() : backend::ConstView{}; };
  const backend::ConstView a0 = view(addend0), a1 = view(addend1);
  ops().scale_down_pair(out[0].view(), out[1].view(), x0.view(), x1.view(), addend0 ? &a0 : nullptr,
                        addend1 ? &a1 : nullptr);
  return out;
}

std::vector<ring::Poly> Evaluator::combine_relinearise(const Terms& terms, std::size_t batch,
                                                       int level, int to) const {
  const auto acc =
      switcher_->switch_combination(terms.view(), batch, level, relinearisation_key(level));
  return switcher_->reduce_pair(acc.c0, acc.c1, to);
}

std::vector<ring::Poly> Evaluator::combine_relinearise_rescale(const Terms& terms,
                                                               std::size_t batch, int level) const {
  return combine_relinearise(terms, batch, level, level - 1);
}

Ciphertext Evaluator::relinearise(const Ciphertext& a) const {
  if (a.parts.size() == 2) return copy(a);
  check(a);
  const auto acc = switcher_->switch_key(a.parts[2], a.level, relinearisation_key(a.level));
  return {a.key_id,
          switcher_->reduce_pair(acc.c0, acc.c1, a.level, &a.parts[0], &a.parts[1]),
          a.level,
          {}};
}

Ciphertext Evaluator::relinearise_rescale(const Ciphertext& a) const {
  if (a.parts.size() == 2) return rescale(a);
  check(a);
  const auto acc = switcher_->switch_add(a.parts[0], a.parts[1], a.parts[2], a.level,
                                         relinearisation_key(a.level));
  return {a.key_id, switcher_->reduce_pair(acc.c0, acc.c1, a.level - 1), a.level - 1, {}};
}

Ciphertext Evaluator::automorphism(const Ciphertext& a, std::uint64_t element) const {
  check(a);
  require<InvalidArgument>(a.parts.size() == 2, "relinearise before an automorphism");
  if (element == 1) return copy(a);
  const auto& key = galois_key(element, a.level);
  return {a.key_id, switcher_->rotate(a.parts[0], a.parts[1], element, a.level, key), a.level, {}};
}

Ciphertext Evaluator::rotate(const Ciphertext& a, int steps) const {
  return automorphism(a, ring::galois_element(params()->n(), steps));
}

}  // namespace jali::rlwe
