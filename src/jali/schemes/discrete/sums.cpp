// Sums, differences, and products with integers.
#include "jali/base/error.h"
#include "jali/schemes/discrete/evaluator.h"
#include "jali/schemes/discrete/operands.h"

namespace jali::discrete {

Ciphertext Evaluator::sum(const Ciphertext& a, const Ciphertext& b, bool subtract,
                          Overflow overflow) const {
  check_here(a);
  check_here(b);
  const Pair pair = aligned(a, b);
  const Ciphertext &x = *pair.a, &y = *pair.b;
  const Estimate estimate = subtract ? noise().sub(x.estimate, y.estimate, overflow)
                                     : noise().add(x.estimate, y.estimate, overflow);
  Ciphertext out = shell(rlwe::common_key(a.key_id, b.key_id), {x.level, x.factor, estimate});
  out.body() = subtract ? bodies_.sub(x, y) : bodies_.add(x, y);
  return out;
}

Ciphertext Evaluator::add(const Ciphertext& a, const Ciphertext& b, Overflow overflow) const {
  return sum(a, b, false, overflow);
}

Ciphertext Evaluator::sub(const Ciphertext& a, const Ciphertext& b, Overflow overflow) const {
  return sum(a, b, true, overflow);
}

Ciphertext Evaluator::negate(const Ciphertext& a, Overflow overflow) const {
  check_here(a);
  Ciphertext out = shell(a.key_id, {a.level, a.factor, noise().negate(a.estimate, overflow)});
  out.body() = bodies_.negate(a);
  return out;
}

Ciphertext Evaluator::sum_plain(const Ciphertext& a, const Plaintext& b, bool subtract,
                                Overflow overflow) const {
  check_here(a);
  check(b);
  const Estimate estimate = subtract ? noise().sub_plain(a.estimate, b.range, overflow)
                                     : noise().add_plain(a.estimate, b.range, overflow);
  Ciphertext out = shell(a.key_id, {a.level, a.factor, estimate});
  const ring::Poly poly = encoder().scaled(b, a.level, a.factor);
  out.body() = subtract ? bodies_.sub_plain(a, poly) : bodies_.add_plain(a, poly);
  return out;
}

Ciphertext Evaluator::add_plain(const Ciphertext& a, const Plaintext& b, Overflow overflow) const {
  return sum_plain(a, b, false, overflow);
}

Ciphertext Evaluator::sub_plain(const Ciphertext& a, const Plaintext& b, Overflow overflow) const {
  return sum_plain(a, b, true, overflow);
}

// One number in every slot is a constant polynomial, which has one value in NTT form: mu / T modulo
// Q, where mu is the centred factor * b.
Ciphertext Evaluator::add_integer(const Ciphertext& a, std::int64_t b, Overflow overflow) const {
  check_here(a);
  if (params()->packing() == Packing::coefficients) {
    const std::vector<std::int64_t> all(params()->n(), b);
    return add_plain(a, encoder().encode_clear(all, 1), overflow);
  }
  Ciphertext out =
      shell(a.key_id, {a.level, a.factor, noise().add_constant(a.estimate, b, overflow)});
  const PlainModulus& t = params()->modulus();
  const std::int64_t mu = t.centred(t.mul(a.factor, t.reduce_signed(b)));
  std::vector<std::uint64_t> s;
  for (const PrimeIndex i : a.parts[0].primes()) {
    const arith::Modulus q(ring()->prime(i));
    s.push_back(q.mul(q.reduce_signed(mu), q.inverse(q.reduce(t.value()))));
  }
  out.body() = bodies_.copy(a);
  out.seed.reset();
  ring()->ops().add_scalar(out.parts[0].view(), a.parts[0].view(), s);
  return out;
}

Ciphertext Evaluator::multiply_integer(const Ciphertext& a, std::int64_t b,
                                       Overflow overflow) const {
  check_here(a);
  Ciphertext out =
      shell(a.key_id, {a.level, a.factor, noise().multiply_integer(a.estimate, b, overflow)});
  const PlainModulus& t = params()->modulus();
  out.body() = bodies_.multiply_integer(a, t.centred(t.reduce_signed(b)));
  return out;
}

}  // namespace jali::discrete
