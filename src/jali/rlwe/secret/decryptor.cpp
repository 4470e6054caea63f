#include "jali/rlwe/secret/decryptor.h"

#include <utility>

#include "jali/base/error.h"

namespace jali::rlwe {

Decryptor::Decryptor(std::shared_ptr<const SecretKey> sk, std::shared_ptr<const ring::Ring> ring)
    : sk_(std::move(sk)), ring_(std::move(ring)) {}

Plaintext Decryptor::decrypt(const Ciphertext& ciphertext) const {
  require<KeyMismatch>(agree(ciphertext.key_id, sk_->id()),
                       "the ciphertext was made for another secret key: decrypt it with the client "
                       "that encrypted its inputs, or that made the public key they were encrypted "
                       "with");
  require<InvalidArgument>(ciphertext.parts.size() == 2 || ciphertext.parts.size() == 3,
                           "a ciphertext has 2 or 3 parts");
  const auto& ops = ring_->ops();
  const auto primes = ciphertext.parts[0].primes();
  const ring::Poly s = sk_->at(*ring_, primes);

  // Horner's rule in s: (c2 s + c1) s + c0, in memory that is wiped. Parts on another device are
  // fetched.
  const ring::Poly& last = ciphertext.parts.back();
  Plaintext out{ring_->make_secret(last.primes(), ring::Form::ntt, last.batch()), ciphertext.level};
  ring_->place(out.poly.data(), last);
  for (std::size_t part = ciphertext.parts.size() - 1; part-- > 0;) {
    ops.mul(out.poly.view(), out.poly.view(), s.view());
    const ring::Poly& next = ciphertext.parts[part];
    const ring::Poly fetched = ring_->holds(next) ? ring::Poly() : ring_->import(next);
    ops.add(out.poly.view(), out.poly.view(), (fetched.empty() ? next : fetched).view());
  }
  return out;
}

}  // namespace jali::rlwe
