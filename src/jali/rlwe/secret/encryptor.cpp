#include "jali/rlwe/secret/encryptor.h"

#include <utility>

#include "jali/rlwe/encryptor.h"
#include "jali/rlwe/keys.h"

namespace jali::rlwe {

SecretEncryptor::SecretEncryptor(std::shared_ptr<const SecretKey> sk,
                                 std::shared_ptr<const ring::Ring> ring,
                                 const std::optional<random::Seed>& seed)
    : sk_(std::move(sk)), ring_(std::move(ring)), seeds_(seed, random::SeedSource::Order::bytes) {}

Ciphertext SecretEncryptor::encrypt(const Plaintext& plaintext) {
  const auto& ops = ring_->ops();
  const auto primes = plaintext.poly.primes();
  const std::size_t batch = plaintext.poly.batch();
  const random::Seed uniform_seed = seeds_.next().bytes();

  // (m + e - a s, a)
  ring::Poly a = expand_uniform(*ring_, uniform_seed, 0, primes, batch);
  const ring::Poly s = sk_->at(*ring_, primes);
  const ring::Poly e = small_poly(*ring_, seeds_.next(), 0, primes, batch, backend::Small::error);
  ring::Poly b = ring_->make(primes, batch);
  ops.mul(b.view(), a.view(), s.view());
  ops.sub(b.view(), e.view(), b.view());
  ops.add(b.view(), b.view(), plaintext.poly.view());

  Ciphertext out{sk_->id(), {}, plaintext.level, uniform_seed};
  out.parts.push_back(std::move(b));
  out.parts.push_back(std::move(a));
  return out;
}

}  // namespace jali::rlwe
