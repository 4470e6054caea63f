// Sums, differences and products with polynomials and numbers.
#include <algorithm>

#include "jali/base/error.h"
#include "jali/rlwe/evaluator.h"

namespace jali::rlwe {

using ring::Poly;

Ciphertext Evaluator::add(const Ciphertext& a, const Ciphertext& b) const {
  check(a);
  check(b);
  check_pair(a.level, b.level, a.batch(), b.batch());
  Ciphertext out{common_key(a.key_id, b.key_id), {}, a.level, {}};
  const std::size_t parts = std::max(a.parts.size(), b.parts.size());
  for (std::size_t i = 0; i < parts; ++i) {
    Poly part = like(a);
    if (i >= b.parts.size()) {
      part = ring()->copy(a.parts[i]);
    } else if (i >= a.parts.size()) {
      part = ring()->zero(a.parts[0].primes(), a.batch());  // b may have a batch of 1
      ring()->ops().add(part.view(), part.view(), b.parts[i].view());
    } else {
      ring()->ops().add(part.view(), a.parts[i].view(), b.parts[i].view());
    }
    out.parts.push_back(std::move(part));
  }
  return out;
}

Ciphertext Evaluator::sub(const Ciphertext& a, const Ciphertext& b) const {
  check(a);
  check(b);
  check_pair(a.level, b.level, a.batch(), b.batch());
  Ciphertext out{common_key(a.key_id, b.key_id), {}, a.level, {}};
  const std::size_t parts = std::max(a.parts.size(), b.parts.size());
  for (std::size_t i = 0; i < parts; ++i) {
    Poly part = like(a);
    if (i >= b.parts.size()) {
      part = ring()->copy(a.parts[i]);
    } else if (i >= a.parts.size()) {
      part = ring()->zero(a.parts[0].primes(), a.batch());
      ring()->ops().sub(part.view(), part.view(), b.parts[i].view());
    } else {
      ring()->ops().sub(part.view(), a.parts[i].view(), b.parts[i].view());
    }
    out.parts.push_back(std::move(part));
  }
  return out;
}

Ciphertext Evaluator::negate(const Ciphertext& a) const {
  check(a);
  Ciphertext out{a.key_id, {}, a.level, {}};
  for (const auto& part : a.parts) {
    Poly negated = like(a);
    ring()->ops().neg(negated.view(), part.view());
    out.parts.push_back(std::move(negated));
  }
  return out;
}

void Evaluator::add_inplace(Ciphertext& a, const Ciphertext& b) const {
  if (a.parts.size() < b.parts.size()) {
    a = add(a, b);
    return;
  }
  check(a);
  check(b);
  check_pair(a.level, b.level, a.batch(), b.batch());
  const KeyId key_id = common_key(a.key_id, b.key_id);
  for (std::size_t i = 0; i < b.parts.size(); ++i) {
    ring()->ops().add(a.parts[i].view(), a.parts[i].view(), b.parts[i].view());
  }
  a.key_id = key_id;
  a.seed.reset();
}

Ciphertext Evaluator::add_plain(const Ciphertext& a, const Poly& b) const {
  check(a);
  check_pair(a.level, a.level, a.batch(), b.batch());
  Ciphertext out{a.key_id, {}, a.level, {}};
  out.parts.push_back(like(a));
  ring()->ops().add(out.parts[0].view(), a.parts[0].view(), b.view());
  for (std::size_t i = 1; i < a.parts.size(); ++i) out.parts.push_back(ring()->copy(a.parts[i]));
  return out;
}

Ciphertext Evaluator::sub_plain(const Ciphertext& a, const Poly& b) const {
  check(a);
  check_pair(a.level, a.level, a.batch(), b.batch());
  Ciphertext out{a.key_id, {}, a.level, {}};
  out.parts.push_back(like(a));
  ring()->ops().sub(out.parts[0].view(), a.parts[0].view(), b.view());
  for (std::size_t i = 1; i < a.parts.size(); ++i) out.parts.push_back(ring()->copy(a.parts[i]));
  return out;
}

Ciphertext Evaluator::multiply_plain(const Ciphertext& a, const Poly& b) const {
  check(a);
  check_pair(a.level, a.level, a.batch(), b.batch());
  Ciphertext out{a.key_id, {}, a.level, {}};
  for (const auto& part : a.parts) {
    Poly product = like(a);
    ring()->ops().mul(product.view(), part.view(), b.view());
    out.parts.push_back(std::move(product));
  }
  return out;
}

Ciphertext Evaluator::multiply_integer(const Ciphertext& a, std::int64_t b) const {
  check(a);
  Ciphertext out{a.key_id, {}, a.level, {}};
  for (const auto& part : a.parts) {
    Poly product = like(a);
    ring()->ops().mul_scalar(product.view(), part.view(),
                             ring::residues(*ring(), part.primes(), b));
    out.parts.push_back(std::move(product));
  }
  return out;
}

}  // namespace jali::rlwe
