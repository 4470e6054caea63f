#include "jali/ckks/encryptor.h"

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/ckks/encryptor_impl.h"
#include "jali/ckks/range.h"

namespace jali::ckks {

using backend::Small;

ring::Poly small_poly(const ring::Ring& ring, const random::SecretSeed& seed, std::uint64_t stream,
                      std::span<const PrimeIndex> primes, std::size_t batch, backend::Small kind) {
  ring::Poly out = ring.make_secret(primes, ring::Form::coeff, batch);
  ring.ops().sample_small(out.view(), kind, seed.bytes(), stream);
  ring.to_ntt(out);
  return out;
}

Ciphertext shell(const Plaintext& plaintext, const rlwe::KeyId& key_id) {
  Ciphertext out;
  out.params = plaintext.params;
  out.key_id = key_id;
  out.level = plaintext.level;
  out.scale = plaintext.scale;
  out.log_slots = plaintext.log_slots;
  return out;
}

params::Lineage fresh_lineage() {
  std::array<std::uint8_t, sizeof(params::Lineage::root)> bytes;
  random::os_fill(bytes);
  std::uint64_t root = 0;
  std::memcpy(&root, bytes.data(), bytes.size());
  return params::lineage_of(root);
}

void check_same(const rlwe::Params& a, const rlwe::Params& b) {
  require<ParamsMismatch>(&a == &b || a.hash() == b.hash(),
                          "the plaintext and the key belong to different parameters");
}

void check_declared(const Plaintext& plaintext, const params::Declared& declared) {
  const double magnitude = declared.magnitude, peak = declared.peak;
  require<InvalidArgument>(
      std::isfinite(magnitude) && magnitude >= 0 && std::isfinite(peak) && peak >= 0,
      "magnitude and peak must be finite and not negative");
  // The modulus of a number is rounded, hence the tolerance. The error reveals that a number is too
  // large, and nothing else.
  const bool within = plaintext.peak <= peak * (1 + 0x1p-50);
  declassify(within);
  require<InvalidArgument>(within, [&] {
    return "a number is above the declared peak of " + shown(peak) +
           ": pass magnitude=, the root mean square of this kind of numbers, and peak=, the largest"
           " of them (8 times the magnitude unless it is given)";
  });
  // Slots are a sample of their kind. The root mean square of n normal numbers exceeds that of the
  // kind by 4 / sqrt(n) of it, which is 5.7 standard deviations, in less than one of a million
  // samples (decision 0034).
  const auto slots = static_cast<double>(plaintext.poly.batch() << plaintext.log_slots);
  const bool typical =
      declared.calibrated || plaintext.message <= magnitude * (1 + 4 / std::sqrt(slots));
  declassify(typical);
  require<InvalidArgument>(typical, [&] {
    return "the root mean square of the numbers is above the declared magnitude of " +
           shown(magnitude) +
           ": declare the root mean square of this kind of numbers as their magnitude, and the "
           "largest of them as their peak. Precision is estimated from the magnitude";
  });
  require_peak(*plaintext.params, peak, plaintext.scale, plaintext.level);
}

PublicEncryptor::PublicEncryptor(std::shared_ptr<const rlwe::PublicKey> pk,
                                 std::shared_ptr<const ring::Ring> ring,
                                 const std::optional<random::Seed>& seed)
    : pk_(std::move(pk)),
      ring_(std::move(ring)),
      a_(rlwe::expand_a(*ring_, *pk_->params, *pk_)),
      seeds_(seed, random::SeedSource::Order::bytes) {}

Ciphertext PublicEncryptor::encrypt(const Plaintext& plaintext, const params::Declared& declared) {
  check_declared(plaintext, declared);
  check_same(*plaintext.params, *pk_->params);
  const auto& ops = ring_->ops();
  const auto primes = plaintext.poly.primes();
  const std::size_t batch = plaintext.poly.batch();
  const random::SecretSeed seed = seeds_.next();

  // (v b + e0 + m, v a + e1)
  const ring::Poly v = small_poly(*ring_, seed, 0, primes, batch, Small::ternary);
  Ciphertext out = shell(plaintext, pk_->key_id);
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
  out.estimate =
      params::NoiseModel(*out.params)
          .fresh_public(declared, out.scale, out.log_slots, fresh_lineage(), plaintext.real);
  return out;
}

}  // namespace jali::ckks
