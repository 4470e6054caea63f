// The client's side: keys, encoding, encryption, decryption, release.
#include <cmath>

#include "jali/schemes/ckks/secret/decryption.h"
#include "run.h"

namespace jali::fuzz {

namespace {

constexpr Operation kOperations[] = {
    {"decryption",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const auto all = r.ev().encoder().decode_all(r.world.decryptor.decrypt(x));
       const auto check = r.in.once_in(2) ? ckks::Check::yes : ckks::Check::no;
       auto slots = ckks::decrypt(r.world.decryptor, r.ev().encoder(), x, check);
       slots.insert(slots.end(), all.begin(), all.end());
       for (const Complex z : slots) {
         if (std::isnan(z.real()) || std::isnan(z.imag())) stop("a decrypted slot is not a number");
       }
       ckks::ReleasePolicy policy;
       if (r.in.once_in(2)) policy.origin = ckks::BoundOrigin::derived;
       policy.error_bound = r.in.once_in(2) ? ckks::worst_case_noise(x) : r.in.number();
       policy.largest = r.in.once_in(2) ? x.estimate.peak : r.in.number();
       if (r.in.once_in(3)) policy.releases = r.in.number();
       if (r.in.once_in(3)) policy.statistical_bits = r.in.integer();
       for (const Complex z : ckks::release(r.world.decryptor, r.ev().encoder(), *r.world.o.ring, x,
                                            policy, r.in.seed())) {
         if (std::isnan(z.real()) || std::isnan(z.imag())) stop("a released slot is not a number");
       }
     }},
    {"encoding",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const auto v = r.vector(x);
       const std::size_t batch = r.count();
       const int level = r.level(), log_slots = r.in.once_in(2) ? x.log_slots : r.in.integer();
       const ckks::Plaintext p = r.ev().encoder().encode(v, batch, level, r.scale(), log_slots);
       (void)r.ev().encoder().decode(p);
     }},
    {"plaintext",
     [](Run& r) {
       if (auto p = r.world.forger.plaintext(r.in)) {
         (void)r.ev().encoder().decode(*p);
         ckks::SecretEncryptor encryptor(r.world.o.sk, r.world.o.ring, r.in.seed());
         r.keep(encryptor.encrypt(*p, r.in.number()));
       }
     }},
    {"public key",
     [](Run& r) {
       if (auto key = r.world.forger.public_key(r.in)) {
         ckks::PublicEncryptor encryptor(std::make_shared<const rlwe::PublicKey>(std::move(*key)),
                                         r.world.o.ring, r.in.seed());
         r.keep(encryptor.encrypt(r.plaintext(r.any()), r.in.number()));
       }
     }},
};

}  // namespace

std::span<const Operation> client_operations() { return kOperations; }

}  // namespace jali::fuzz
