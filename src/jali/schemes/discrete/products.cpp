// Products. The comments name x, the phase, and T, Q and f as discrete::Params does.
#include <algorithm>
#include <deque>
#include <numeric>

#include "jali/backend/rlwe_ops.h"
#include "jali/base/error.h"
#include "jali/schemes/discrete/evaluator.h"
#include "jali/schemes/discrete/operands.h"

namespace jali::discrete {

namespace {

std::vector<std::uint64_t> t_modulo(const ring::Ring& ring, std::span<const PrimeIndex> primes,
                                    std::uint64_t t) {
  std::vector<std::uint64_t> out;
  for (const PrimeIndex i : primes) out.push_back(t % ring.prime(i));
  return out;
}

}  // namespace

Evaluator::Body Evaluator::times_t(const Body& a) const {
  Body out{a.key_id, {}, a.level, {}};
  for (const ring::Poly& part : a.parts) {
    ring::Poly scaled = ring()->make(part.primes(), part.batch());
    ring()->ops().mul_scalar(scaled.view(), part.view(),
                             t_modulo(*ring(), part.primes(), params()->modulus().value()));
    out.parts.push_back(std::move(scaled));
  }
  return out;
}

Ciphertext Evaluator::multiply(const Ciphertext& a, const Ciphertext& b, Overflow overflow) const {
  check_slots("a product of ciphertexts");
  check_here(a);
  check_here(b);
  const bool same = &a == &b;
  const int level = noise().product_level(known(a), known(b), same, overflow);
  noise().require_level(level);
  const Known result = noise().product(known(a), known(b), same, level, overflow);
  Ciphertext out = shell(rlwe::common_key(a.key_id, b.key_id), result);
  const Operand x = a.level == level ? Operand(a) : Operand(drop_to(a, level));
  const Operand other = same               ? Operand(*x)
                        : b.level == level ? Operand(b)
                                           : Operand(drop_to(b, level));
  if (params()->multiplication() == Multiplication::bfv) {
    Body product{out.key_id, product_bfv(*x, *other), level, {}};
    out.body() = bodies_.relinearise(product);
    return out;
  }
  // T x1 x2. The multiplication by T is one of an operand's two parts.
  rlwe::Terms terms;
  const Body scaled = times_t(*x);
  rlwe::Evaluator::check_pair(scaled.level, other->level, scaled.batch(), other->batch());
  require<InvalidArgument>(scaled.batch() == other->batch(),
                           "the operands of a product need equal batches");
  terms.add_product(scaled, *other, false);
  out.parts = bodies_.combine_relinearise(terms, scaled.batch(), level, level - 1);
  return out;
}

Ciphertext Evaluator::square(const Ciphertext& a, Overflow overflow) const {
  return multiply(a, a, overflow);
}

Ciphertext Evaluator::sum_of_products(
    std::span<const std::pair<const Ciphertext*, const Ciphertext*>> factors,
    Overflow overflow) const {
  require<InvalidArgument>(!factors.empty(), "a sum of products needs at least one product");
  if (params()->multiplication() == Multiplication::bfv) {
    Ciphertext out = multiply(*factors[0].first, *factors[0].second, overflow);
    for (const auto& [a, b] : factors.subspan(1))
      out = add(out, multiply(*a, *b, overflow), overflow);
    return out;
  }
  check_slots("a product of ciphertexts");
  // All products are computed at one level, of operands that have its factor, so that they have
  // one factor.
  int high = params()->top();
  for (const auto& [a, b] : factors) {
    for (const Ciphertext* x : {a, b}) {
      check_here(*x);
      const bool own = x->factor == params()->factor(x->level);
      high = std::min(high, own ? x->level : x->level - 1);
    }
  }
  const NoiseModel& model = noise();
  const auto sum_at = [&](int level) {
    Known out;
    for (std::size_t k = 0; k < factors.size(); ++k) {
      const auto& [a, b] = factors[k];
      const Known x = model.brought(known(*a), level), y = model.brought(known(*b), level);
      const Estimate e = model.multiply_bgv(x.estimate, y.estimate, a == b, overflow);
      out.estimate = k == 0 ? e : model.add(out.estimate, e, overflow);
    }
    out.level = level - 1;
    out.factor = params()->factor(level - 1);
    out.estimate = model.divide(model.key_product(out.estimate, level), level, level - 1);
    return out;
  };
  model.require_level(high);
  int level = high;
  double best = model.budget(sum_at(high).estimate, high - 1);
  for (int l = high - 1; l >= 1; --l) {
    const double budget = model.budget(sum_at(l).estimate, l - 1);
    if (budget < best - 0.5) break;
    best = std::max(best, budget);
    level = l;
  }
  rlwe::KeyId key_id = factors[0].first->key_id;
  for (const auto& [a, b] : factors) {
    key_id = rlwe::common_key(key_id, rlwe::common_key(a->key_id, b->key_id));
  }
  Ciphertext out = shell(key_id, sum_at(level));
  const std::size_t batch = factors[0].first->batch();
  std::deque<Operand> operands;
  std::deque<Body> scaled;
  rlwe::Terms terms;
  for (const auto& [a, b] : factors) {
    require<InvalidArgument>(a->batch() == batch && b->batch() == batch,
                             "the operands of a product need equal batches");
    const Operand x = a->level == level ? Operand(*a) : Operand(drop_to(*a, level));
    scaled.push_back(times_t(*x));
    operands.push_back(b->level == level ? Operand(*b) : Operand(drop_to(*b, level)));
    terms.add_product(scaled.back(), *operands.back(), false);
  }
  out.parts = bodies_.combine_relinearise(terms, batch, level, level - 1);
  return out;
}

Ciphertext Evaluator::multiply_plain(const Ciphertext& a, const Plaintext& b,
                                     Overflow overflow) const {
  check_slots("a product with a plaintext");
  check_here(a);
  check(b);
  const int level = noise().plain_level(known(a), b.range, overflow);
  const Known result = noise().plain_product(known(a), b.range, level, overflow);
  Ciphertext out = shell(a.key_id, result);
  const Operand x = a.level == level ? Operand(a) : Operand(drop_to(a, level));
  out.body() =
      bodies_.multiply_plain(*x, encoder().lifted(b, level, noise().plain_factor(known(*x))));
  return out;
}

// The parts, centred modulo Q, are lifted to the primes of Q and B. The product of the phases times
// T is then exact as an integer; it is divided by Q with rounding, and the quotient, which is less
// than half of B, is lifted from B to Q.
std::vector<ring::Poly> Evaluator::product_bfv(const Body& a, const Body& b) const {
  require<InvalidArgument>(a.batch() == b.batch(), "the operands of a product need equal batches");
  const auto& q = params()->level(a.level).primes;
  const auto basis = params()->product_primes(a.level);
  std::vector<PrimeIndex> all = q;
  all.insert(all.end(), basis.begin(), basis.end());
  const auto& ops = ring()->engine().rlwe();
  const auto lift = [&](const ring::Poly& x) {
    ring::Poly out = ring()->make(all, x.batch());
    const auto digit = static_cast<std::uint32_t>(x.limbs());
    ops.mod_up(out.view(), x.view(), {&digit, 1});
    return out;
  };
  // T goes into one operand, which has two polynomials where the product has three.
  const auto t = t_modulo(*ring(), all, params()->modulus().value());
  const bool same = &a == &b;
  std::vector<ring::Poly> x, y, d;
  for (std::size_t i = 0; i < 2; ++i) {
    x.push_back(lift(a.parts[i]));
    y.push_back(same ? ring()->make(all, a.batch()) : lift(b.parts[i]));
    ring()->ops().mul_scalar(y[i].view(), (same ? x : y)[i].view(), t);
  }
  for (int i = 0; i < 3; ++i) d.push_back(ring()->make(all, a.batch()));
  ops.tensor(d[0].view(), d[1].view(), d[2].view(), x[0].view(), x[1].view(), y[0].view(),
             y[1].view());
  std::vector<ring::Poly> out;
  for (const ring::Poly& part : d) {
    ring::Poly quotient = ring()->make(basis, a.batch());
    ops.scale_down(quotient.view(), part.view(), nullptr);
    out.push_back(ring()->select(lift(quotient), q));
  }
  return out;
}

}  // namespace jali::discrete
