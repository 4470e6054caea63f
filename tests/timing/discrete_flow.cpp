// The cases of exact integers: encoding, encryption, and decryption with its comparison. Keys are
// those of RLWE, which secret_flow.cpp has.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flow.h"
#include "jali/base/error.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/discrete/make_ring.h"
#include "jali/schemes/discrete/secret/decryptor.h"
#include "jali/schemes/discrete/secret/encryptor.h"

namespace jali::timing {
namespace {

using discrete::Packing;

random::Seed hidden_seed() {
  random::Seed seed = random::os_seed();
  hide(seed.data(), seed.size());
  return seed;
}

bool all_hidden(const ring::Poly& x) { return timing::all_hidden(x.data(), x.bytes()); }
/// Whether the lowest byte of each number is hidden.
bool all_hidden(std::span<const std::int64_t> values) {
  for (const std::int64_t& value : values) {
    if (!timing::all_hidden(&value, 1)) return false;
  }
  return true;
}

class DiscreteCases {
 public:
  explicit DiscreteCases(const discrete::Literal& literal)
      : label_("exact integers, " + std::string(word_name(*literal.word)) + ", " +
               (literal.packing == Packing::coefficients ? "coefficients"
                : literal.integers != 0                  ? "integers of 59 bits"
                                                         : "T = 65537") +
               ": "),
        params_(discrete::Params::create(literal)),
        ring_(discrete::make_ring(*params_, "cpu/avx2", 1)),
        encoder_(params_, ring_) {}

  void run() {
    encryption();
    for (int level = params_->top(); level >= 0; --level) decryption(level);
  }

 private:
  std::shared_ptr<const rlwe::SecretKey> hidden_key() {
    auto sk =
        std::make_shared<const rlwe::SecretKey>(rlwe::KeyGenerator(params_, ring_).secret_key());
    hide(sk->poly().data(), sk->poly().bytes());
    return sk;
  }
  discrete::Range range() const { return discrete::NoiseModel(*params_).range(-100, 100); }
  std::vector<std::int64_t> hidden_numbers() const {
    std::vector<std::int64_t> values(params_->n());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::int64_t>(i % 201) - 100;
    }
    hide(values.data(), values.size() * sizeof(values[0]));
    return values;
  }

  void encryption() {
    discrete::Plaintext plaintext;
    check(label_ + "encode", [&] {
      plaintext = encoder_.encode(hidden_numbers(), 1, range());
      return plaintext.poly.empty() ? all_hidden(plaintext.coefficients)
                                    : all_hidden(plaintext.poly);
    });
    check(label_ + "encode modulo T", [&] {
      const auto residues =
          encoder_.encode(hidden_numbers(), 1, discrete::NoiseModel(*params_).residues());
      return residues.poly.empty() ? all_hidden(residues.coefficients) : all_hidden(residues.poly);
    });
    // That a number is outside of its range is told, and nothing else.
    check(label_ + "encode and refuse", [&] {
      try {
        encoder_.encode(hidden_numbers(), 1, discrete::NoiseModel(*params_).range(-100, 99));
        return false;
      } catch (const InvalidArgument&) {
        return true;
      }
    });
    check(label_ + "encrypt under the secret key", [&] {
      discrete::SecretEncryptor encryptor(hidden_key(), ring_, params_, hidden_seed());
      return all_hidden(encryptor.encrypt(plaintext).parts[0]);
    });
    check(label_ + "encrypt under the public key", [&] {
      auto pk = std::make_shared<rlwe::PublicKey>(
          rlwe::KeyGenerator(params_, ring_).public_key(*hidden_key()));
      show(pk->b.data(), pk->b.bytes());  // published
      discrete::PublicEncryptor encryptor(pk, ring_, params_, hidden_seed());
      return all_hidden(encryptor.encrypt(plaintext).parts[0]);
    });
  }

  void decryption(int level) {
    const auto sk = hidden_key();
    const discrete::Decryptor decryptor(sk, ring_, params_);
    const std::string at = " at level " + std::to_string(level);
    const auto sent = [&](const std::shared_ptr<const rlwe::SecretKey>& key) {
      discrete::SecretEncryptor encryptor(key, ring_, params_);
      discrete::Ciphertext c =
          encryptor.encrypt(encoder_.encode(hidden_numbers(), 1, range()), level);
      for (const ring::Poly& part : c.parts) show(part.data(), part.bytes());
      return c;
    };
    discrete::Ciphertext c = sent(sk);
    check(label_ + "decrypt" + at,
          [&] { return all_hidden(decryptor.decrypt(c, discrete::Check::no)); });
    check(label_ + "decrypt and compare" + at, [&] { return all_hidden(decryptor.decrypt(c)); });
    const auto refused = [&](const discrete::Ciphertext& x) {
      try {
        decryptor.decrypt(x);
        return false;
      } catch (const WrongDecryption&) {
        return true;
      }
    };
    // One bit is told of what is refused.
    c.estimate.range = {-99, 100, false};
    check(label_ + "refuse a number" + at, [&] { return refused(c); });
    c.estimate.slot = 0;
    check(label_ + "refuse the noise" + at, [&] { return refused(c); });
    discrete::Ciphertext other = sent(hidden_key());
    other.key_id = sk->id();
    check(label_ + "refuse another key's" + at, [&] { return refused(other); });
  }

  const std::string label_;
  const discrete::ParamsPtr params_;
  const std::shared_ptr<const ring::Ring> ring_;
  const discrete::Encoder encoder_;
};

}  // namespace

void discrete_cases() {
  // Every word; one prime of T and several; numbers in slots and in coefficients, whose residues
  // are computed by a division and by a mask.
  const auto with = [](Word word, int integers, Packing packing, std::uint64_t modulus) {
    discrete::Literal l;
    l.name = "insecure_timing";
    l.security = 0;
    l.log_n = 10;
    l.depth = 1;
    l.word = word;
    l.packing = packing;
    l.integers = integers;
    if (integers == 0) l.modulus = modulus;
    return l;
  };
  const auto slots = Packing::slots, coefficients = Packing::coefficients;
  DiscreteCases(with(Word::w32, 0, slots, 65537)).run();
  DiscreteCases(with(Word::w32, 59, slots, 0)).run();
  DiscreteCases(with(Word::w52, 0, slots, 65537)).run();
  DiscreteCases(with(Word::w64, 59, slots, 0)).run();
  DiscreteCases(with(Word::w52, 0, coefficients, discrete::kTwoTo64)).run();
  DiscreteCases(with(Word::w64, 0, coefficients, 1000)).run();
}

}  // namespace jali::timing
