// Tests under valgrind's memcheck whether a branch or an address depends on a secret (A. Langley,
// ctgrind, 2010). Secrets are marked as undefined memory, and memcheck reports every conditional
// jump and every address that depends on such memory. It checks the machine code that this run
// executes. Valgrind knows AVX2 but not AVX-512, whose kernels decrypt_time measures.
//
//   valgrind --error-exitcode=99 secret_flow           every case; each says how many reports it
//   caused valgrind --error-exitcode=99 secret_flow --branch  a branch on a secret key: must be
//   reported valgrind --error-exitcode=99 secret_flow --address a look-up by a secret key: must be
//   reported
#include <cstdio>
#include <span>
#include <string_view>

#include "client.h"
#include "flow.h"
#include "jali/base/error.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/ckks/encryptor.h"
#include "jali/schemes/ckks/secret/decryption.h"
#include "jali/schemes/ckks/secret/decryptor.h"
#include "jali/schemes/ckks/secret/encryptor.h"
#include "jali/schemes/ckks/secret/release.h"
#include "jali/wire/secret/secret_key.h"

namespace jali::timing {
namespace {

constexpr int kLogN = 10;

using timing::hide;
using timing::show;
void hide(const ring::Poly& x) { hide(x.data(), x.bytes()); }
void show(const ring::Poly& x) { show(x.data(), x.bytes()); }

class Cases {
 public:
  explicit Cases(const Scheme& scheme)
      : label_(scheme.label + ": "),
        params_(make_params(scheme, kLogN)),
        ring_(ckks::make_ring(*params_, "cpu/avx2", 1)),
        encoder_(params_, ring_) {}

  void run() {
    keys();
    encryption();
    for (const int level : {params_->top(), params_->top() / 2, 0}) {
      for (const int log_slots : {kLogN - 1, 3}) decryption(level, log_slots);
    }
    release();
    bytes();
  }

 private:
  random::Seed hidden_seed() {
    random::Seed seed = fresh_seed(random_);
    hide(seed.data(), seed.size());
    return seed;
  }
  std::shared_ptr<const rlwe::SecretKey> hidden_key() {
    auto sk = std::make_shared<const rlwe::SecretKey>(
        rlwe::KeyGenerator(params_, ring_, fresh_seed(random_)).secret_key());
    hide(sk->poly());
    return sk;
  }

  void keys() {
    rlwe::KeyGenerator generator(params_, ring_, hidden_seed());
    check(label_ + "ternary secret key", [&] {
      const rlwe::SecretKey sk = generator.secret_key();
      return all_hidden(sk.poly().data(), sk.poly().bytes());
    });
    const auto sk = hidden_key();
    check(label_ + "public key", [&] {
      const rlwe::PublicKey pk = generator.public_key(*sk);
      return all_hidden(pk.b.data(), pk.b.bytes());
    });
    check(label_ + "relinearisation key", [&] {
      const rlwe::SwitchKey key = generator.relinearisation_key(*sk);
      return all_hidden(key.b[0].data(), key.b[0].bytes());
    });
    check(label_ + "rotation key", [&] {
      const rlwe::SwitchKey key = generator.galois_key(ring::galois_element(params_->n(), 1), *sk);
      return all_hidden(key.b[0].data(), key.b[0].bytes());
    });
    check(label_ + "sparse secret", [&] {
      ring::Poly s = ring_->make_secret(params_->q_primes(), ring::Form::coeff);
      ring_->ops().sample_sparse(s.view(), 32, hidden_seed(), 0);
      return all_hidden(s.data(), s.bytes());
    });
  }

  void encryption() {
    const int level = params_->top();
    for (const int log_slots : {kLogN - 1, 3}) {
      auto values = uniform_vector(random_, std::size_t{1} << log_slots);
      hide(values.data(), values.size() * sizeof(Complex));
      ckks::Plaintext plain;
      check(label_ + "encode 2^" + std::to_string(log_slots) + " slots", [&] {
        plain = encoder_.encode(values, 1, level, params_->scale(level), log_slots);
        return all_hidden(plain.poly.data(), plain.poly.bytes());
      });
      check(label_ + "encrypt under the secret key", [&] {
        ckks::SecretEncryptor encryptor(hidden_key(), ring_, hidden_seed());
        const ckks::Ciphertext c = encryptor.encrypt(plain);
        return all_hidden(c.parts[0].data(), c.parts[0].bytes());
      });
      check(label_ + "encrypt under the public key", [&] {
        auto pk = std::make_shared<rlwe::PublicKey>(
            rlwe::KeyGenerator(params_, ring_).public_key(*hidden_key()));
        show(pk->b);  // published
        ckks::PublicEncryptor encryptor(pk, ring_, hidden_seed());
        const ckks::Ciphertext c = encryptor.encrypt(plain);
        return all_hidden(c.parts[0].data(), c.parts[0].bytes());
      });
    }
  }

  void decryption(int level, int log_slots) {
    const auto sk = hidden_key();
    ckks::Ciphertext c;
    c.params = params_;
    c.level = level;
    c.scale = params_->scale(level);
    c.log_slots = log_slots;
    const auto primes = params_->level(level).primes;
    for (std::size_t parts = 0; parts < 3; ++parts) {
      c.parts.push_back(rlwe::expand_uniform(*ring_, fresh_seed(random_), 0, primes, /*batch=*/2));
      if (parts == 0) continue;
      check(label_ + "decrypt and decode " + std::to_string(parts + 1) + " parts at level " +
                std::to_string(level) + ", 2^" + std::to_string(log_slots) + " slots",
            [&] {
              const auto values = encoder_.decode(ckks::Decryptor(sk, ring_).decrypt(c));
              return all_hidden(values.data(), values.size() * sizeof(Complex));
            });
      // Garbage, which is compared with what the ciphertext says, and refused: one bit is told.
      c.estimate = params::NoiseModel(*params_).fresh_secret({1, 1}, c.scale, c.log_slots);
      c.estimate.real = true;
      check(label_ + "decrypt and compare " + std::to_string(parts + 1) + " parts at level " +
                std::to_string(level) + ", 2^" + std::to_string(log_slots) + " slots",
            [&] {
              try {
                ckks::decrypt(ckks::Decryptor(sk, ring_), encoder_, c);
                return false;
              } catch (const WrongDecryption&) {
                return true;
              }
            });
    }
  }

  // The decrypted value is garbage here. It is refused, but only after the noise has been added to
  // it.
  void release() {
    const auto sk = hidden_key();
    ckks::Ciphertext c;
    c.params = params_;
    c.level = params_->top();
    c.scale = params_->scale(c.level);
    c.log_slots = 3;
    c.estimate = params::NoiseModel(*params_).fresh_secret({1, 8}, c.scale, c.log_slots);
    const auto primes = params_->level(c.level).primes;
    for (int part = 0; part < 2; ++part) {
      c.parts.push_back(rlwe::expand_uniform(*ring_, fresh_seed(random_), 0, primes));
    }
    check(label_ + "release", [&] {
      try {
        const ckks::Decryptor decryptor(sk, ring_);
        const ckks::ReleasePolicy policy{.origin = ckks::BoundOrigin::derived,
                                         .statistical_bits = 20};
        ckks::release(decryptor, encoder_, *ring_, c, policy, hidden_seed());
      } catch (const WrongDecryption&) {
      }
      return true;
    });
  }

  void bytes() {
    const auto sk = hidden_key();
    wire::SecretBytes written;
    check(label_ + "secret key to bytes", [&] {
      written = wire::secret_to_bytes(*sk, *ring_);
      return all_hidden(written.data() + wire::kHeaderBytes + sizeof(rlwe::KeyId),
                        params_->n() / 4);
    });
    check(label_ + "secret key from bytes", [&] {
      const rlwe::SecretKey read = wire::secret_from_bytes(written, params_, *ring_);
      return all_hidden(read.poly().data(), read.poly().bytes());
    });
  }

  std::mt19937_64 random_{std::random_device{}()};
  std::string label_;
  ckks::ParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  ckks::Encoder encoder_;
};

void samplers() {
  std::mt19937_64 random(std::random_device{}());
  for (const double std : {3.2, 1e6, 0x1p40, 0x1p60}) {
    check("Gaussian of deviation " + std::to_string(std), [&] {
      random::Seed seed = fresh_seed(random);
      hide(seed.data(), seed.size());
      random::Prng prng(seed, 0);
      std::vector<std::int64_t> noise(1000);
      random::sample_gaussian(prng, std, noise);
      return all_hidden(noise.data(), noise.size() * sizeof(noise[0]));
    });
  }
}

/// The planted cases, which must be reported.
void planted(std::string_view how) {
  std::mt19937_64 random(std::random_device{}());
  const auto params = make_params(schemes()[0], kLogN);
  const auto ring = ckks::make_ring(*params, "cpu/avx2", 1);
  const rlwe::SecretKey sk = rlwe::KeyGenerator(params, ring).secret_key();
  hide(sk.poly());
  const std::uint64_t x = sk.poly().at(0, 0, 0);
  volatile std::uint8_t table[256] = {};
  [[maybe_unused]] volatile int seen = 0;
  if (how == "--branch") {
    if (x > 1000) seen = 1;
  } else {
    seen = table[x & 255];
  }
}

}  // namespace
}  // namespace jali::timing

int main(int argc, char** argv) {
  using namespace jali::timing;
  if (RUNNING_ON_VALGRIND == 0) {
    std::fputs("secret_flow sees nothing by itself: run it under valgrind (make timing)\n", stderr);
    return 2;
  }
  if (argc > 1) {
    planted(argv[1]);
    return 0;
  }
  samplers();
  for (const Scheme& scheme : schemes()) Cases(scheme).run();
  discrete_cases();
  tfhe_cases();
  std::printf("%d cases failed\n", failures);
  return failures == 0 ? 0 : 1;
}
