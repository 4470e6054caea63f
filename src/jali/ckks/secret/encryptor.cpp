#include "jali/ckks/secret/encryptor.h"

#include <utility>

#include "jali/ckks/encryptor_impl.h"
#include "jali/ckks/lineage.h"
#include "jali/rlwe/keys.h"

namespace jali::ckks {

using backend::Small;

SecretEncryptor::SecretEncryptor(std::shared_ptr<const rlwe::SecretKey> sk,
                                 std::shared_ptr<const ring::Ring> ring,
                                 const std::optional<random::Seed>& seed)
    : sk_(std::move(sk)), ring_(std::move(ring)), seeds_(seed, random::SeedSource::Order::bytes) {}

Ciphertext SecretEncryptor::encrypt(const Plaintext& plaintext, const params::Declared& declared) {
  check_declared(plaintext, declared);
  check_same(*plaintext.params, *sk_->params());
  const auto& ops = ring_->ops();
  const auto primes = plaintext.poly.primes();
  const std::size_t batch = plaintext.poly.batch();
  const random::Seed uniform_seed = seeds_.next().bytes();

  // (m + e - a s, a)
  ring::Poly a = rlwe::expand_uniform(*ring_, uniform_seed, 0, primes, batch);
  const ring::Poly s = sk_->at(*ring_, primes);
  const ring::Poly e = small_poly(*ring_, seeds_.next(), 0, primes, batch, Small::error);
  ring::Poly b = ring_->make(primes, batch);
  ops.mul(b.view(), a.view(), s.view());
  ops.sub(b.view(), e.view(), b.view());
  ops.add(b.view(), b.view(), plaintext.poly.view());

  Ciphertext out = shell(plaintext, sk_->id());
  out.parts.push_back(std::move(b));
  out.parts.push_back(std::move(a));
  out.seed = uniform_seed;
  out.estimate = params::NoiseModel(*out.params)
                     .fresh_secret(declared, out.scale, out.log_slots, lineage_of(uniform_seed),
                                   plaintext.real);
  return out;
}

}  // namespace jali::ckks
