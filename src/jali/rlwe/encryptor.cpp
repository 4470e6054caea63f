#include "jali/rlwe/encryptor.h"

#include <utility>

namespace jali::rlwe {

using backend::Small;

ring::Poly small_poly(const ring::Ring& ring, const random::SecretSeed& seed, std::uint64_t stream,
                      std::span<const PrimeIndex> primes, std::size_t batch, backend::Small kind) {
  ring::Poly out = ring.make_secret(primes, ring::Form::coeff, batch);
  ring.ops().sample_small(out.view(), kind, seed.bytes(), stream);
  ring.to_ntt(out);
  return out;
}

PublicEncryptor::PublicEncryptor(std::shared_ptr<const PublicKey> pk,
                                 std::shared_ptr<const ring::Ring> ring,
                                 const std::optional<random::Seed>& seed)
    : pk_(std::move(pk)),
      ring_(std::move(ring)),
      a_(expand_a(*ring_, *pk_->params, *pk_)),
      seeds_(seed, random::SeedSource::Order::bytes) {}

Ciphertext PublicEncryptor::encrypt(const Plaintext& plaintext) {
  const auto& ops = ring_->ops();
  const auto primes = plaintext.poly.primes();
  const std::size_t batch = plaintext.poly.batch();
  const random::SecretSeed seed = seeds_.next();

  // (v b + e0 + m, v a + e1)
  const ring::Poly v = small_poly(*ring_, seed, 0, primes, batch, Small::ternary);
  Ciphertext out{pk_->key_id, {}, plaintext.level, {}};
  const ring::Poly* halves[] = {&pk_->b, &a_};
  for (int part = 0; part < 2; ++part) {
    const ring::Poly half = ring_->select(*halves[part], primes);
    ring::Poly c =
        small_poly(*ring_, seed, static_cast<std::uint64_t>(part) + 1, primes, batch, Small::error);
    ring::Poly public_part = ring_->make(primes, batch);
    ops.mul(public_part.view(), v.view(), half.view());
    ops.add(public_part.view(), public_part.view(), c.view());
    out.parts.push_back(std::move(public_part));
  }
  ops.add(out.parts[0].view(), out.parts[0].view(), plaintext.poly.view());
  return out;
}

}  // namespace jali::rlwe
