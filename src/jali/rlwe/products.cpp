// Products of ciphertexts, and divisions to lower levels.
#include "jali/base/error.h"
#include "jali/rlwe/evaluator.h"

namespace jali::rlwe {

using ring::Poly;

static void require_factors(const Ciphertext& a, const Ciphertext& b) {
  Evaluator::check_pair(a.level, b.level, a.batch(), b.batch());
  require<InvalidArgument>(a.parts.size() == 2 && b.parts.size() == 2,
                           "relinearise the operands of a product first");
  require<InvalidArgument>(a.batch() == b.batch(), "the operands of a product need equal batches");
}

Ciphertext Evaluator::multiply(const Ciphertext& a, const Ciphertext& b) const {
  check(a);
  check(b);
  require_factors(a, b);
  Ciphertext out{common_key(a.key_id, b.key_id), {}, a.level, {}};
  for (int i = 0; i < 3; ++i) out.parts.push_back(like(a));
  ring()->engine().rlwe().tensor(out.parts[0].view(), out.parts[1].view(), out.parts[2].view(),
                                 a.parts[0].view(), a.parts[1].view(), b.parts[0].view(),
                                 b.parts[1].view());
  return out;
}

std::vector<Poly> Evaluator::combine(const Terms& terms, std::span<const PrimeIndex> primes,
                                     std::size_t batch) const {
  std::vector<Poly> out;
  for (int i = 0; i < (terms.has_products() ? 3 : 2); ++i)
    out.push_back(ring()->make(primes, batch));
  ring()->engine().rlwe().combine(out[0].view(), out[1].view(),
                                  terms.has_products() ? out[2].view() : backend::View{},
                                  terms.view());
  return out;
}

Ciphertext Evaluator::rescale(const Ciphertext& a) const { return divide(a, a.level - 1); }

Ciphertext Evaluator::divide(const Ciphertext& a, int to) const {
  check(a);
  Ciphertext out{a.key_id, {}, to, {}};
  out.parts = switcher_->reduce_pair(a.parts[0], a.parts[1], out.level);
  if (a.parts.size() == 3) out.parts.push_back(switcher_->reduce(a.parts[2], out.level));
  return out;
}

Ciphertext Evaluator::multiply_relinearise_rescale(const Ciphertext& a, const Ciphertext& b) const {
  check(a);
  check(b);
  require_factors(a, b);
  Terms product;
  product.add_product(a, b, false);
  return {common_key(a.key_id, b.key_id),
          combine_relinearise_rescale(product, a.batch(), a.level),
          a.level - 1,
          {}};
}

Ciphertext Evaluator::select(const Ciphertext& a, int level) const {
  check(a);
  Ciphertext out{a.key_id, {}, level, {}};
  const auto& primes = params()->level(level).primes;
  for (const auto& part : a.parts) out.parts.push_back(ring()->select(part, primes));
  return out;
}

Ciphertext Evaluator::multiply_divide(const Ciphertext& a, double factor, int start, int to) const {
  check(a);
  const auto& primes = params()->level(start).primes;
  const auto residues = ring::residues(*ring(), primes, factor);
  const auto multiply = [&](const Poly& x0, const Poly& x1) {
    const backend::Combination::Multiple term{x0.view(), x1.view(), residues};
    std::vector<Poly> d;
    for (int i = 0; i < 2; ++i) d.push_back(ring()->make(primes, a.batch()));
    ring()->engine().rlwe().combine(d[0].view(), d[1].view(), {}, {{}, {&term, 1}});
    return d;
  };
  Ciphertext out{a.key_id, {}, to, {}};
  const auto pair = multiply(a.parts[0], a.parts[1]);
  out.parts = switcher_->reduce_pair(pair[0], pair[1], to);
  for (std::size_t i = 2; i < a.parts.size(); ++i) {
    out.parts.push_back(switcher_->reduce(multiply(a.parts[i], a.parts[i])[0], to));
  }
  return out;
}

}  // namespace jali::rlwe
