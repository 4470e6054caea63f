// ModRaise under an encapsulated sparse secret (Bossuat, Troncoso-Pastoriza and Hubaux, eprint
// 2022/024). At level 0 the ciphertext is switched from the dense secret to the sparse one, raised,
// and switched back. With (d_0, d_1) the ciphertext under the sparse secret t, its centred lifts
// have the phase
//   d_0 + d_1 t = phase + q_0 I,
// where |I| is small because t has few nonzero coefficients. As |d_1| < q_0 / 2, one digit is
// enough to switch back.
#include <algorithm>

#include "jali/base/error.h"
#include "jali/rlwe/evaluator.h"

namespace jali::rlwe {

namespace {

using ring::Poly;

/// ModUp of x as one digit: its centred lift to `primes`.
Poly lift(const ring::Ring& ring, const Poly& x, std::span<const PrimeIndex> primes) {
  std::vector<PrimeIndex> all(primes.begin(), primes.end());
  all.insert(all.end(), x.primes().begin(), x.primes().end());
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const auto limbs = static_cast<std::uint32_t>(x.limbs());
  Poly out = ring.make(all, x.batch());
  ring.engine().rlwe().mod_up(out.view(), x.view(), {&limbs, 1});
  return all.size() == primes.size() ? std::move(out) : ring.select(out, primes);
}

}  // namespace

Ciphertext Evaluator::raise(const Ciphertext& a, int level) const {
  check(a);
  const auto& ring = *this->ring();
  const auto& ops = ring.ops();
  const auto& rlwe = ring.engine().rlwe();
  require<InvalidArgument>(a.parts.size() == 2 && a.level == 0,
                           "raise takes ciphertexts of two parts at level 0");
  require<KeyMissing>(has_encapsulation(),
                      "no keys for bootstrapping: make the keys with bootstrap=True");
  const Encapsulation& key = *keys_->encapsulation;
  const auto& base = params()->level(0).primes;

  // Switch to the sparse secret: (c_0, 0) + P'^-1 c_1 (b, a).
  const Poly small = lift(ring, a.parts[1], key.sparse_b.primes());
  Poly x0 = ring.make(small.primes(), a.batch()), x1 = ring.make(small.primes(), a.batch());
  ops.mul(x0.view(), small.view(), key.sparse_b.view());
  ops.mul(x1.view(), small.view(), key.sparse_a.view());
  Poly d0 = ring.make(base, a.batch()), d1 = ring.make(base, a.batch());
  const backend::ConstView c0 = a.parts[0].view();
  rlwe.scale_down_pair(d0.view(), d1.view(), x0.view(), x1.view(), &c0, nullptr);

  // Raise, and switch back to the dense secret: (d_0, 0) + P^-1 d_1 (b, a).
  const auto& to = params()->level(level).primes;
  const Poly raised = lift(ring, d0, to);
  const Poly wide = lift(ring, d1, switcher_->extended_primes(level));
  Poly y0 = ring.make(wide.primes(), a.batch()), y1 = ring.make(wide.primes(), a.batch());
  ops.mul(y0.view(), wide.view(), ring.select(key.dense_b, wide.primes()).view());
  ops.mul(y1.view(), wide.view(), ring.select(key.dense_a, wide.primes()).view());
  Ciphertext out{a.key_id, {}, level, {}};
  out.parts.push_back(ring.make(to, a.batch()));
  out.parts.push_back(ring.make(to, a.batch()));
  const backend::ConstView addend = raised.view();
  rlwe.scale_down_pair(out.parts[0].view(), out.parts[1].view(), y0.view(), y1.view(), &addend,
                       nullptr);
  return out;
}

}  // namespace jali::rlwe
