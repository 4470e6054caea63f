// The cases of TFHE: keys, encryption, decryption, and the bytes of a secret key.
#include <memory>
#include <random>
#include <span>

#include "../tfhe_literals.h"
#include "flow.h"
#include "jali/base/error.h"
#include "jali/random/prng.h"
#include "jali/schemes/tfhe/secret/client.h"
#include "jali/wire/secret/tfhe_secret_key.h"

namespace jali::timing {
namespace {

using Keys = std::shared_ptr<const lwe::SecretKey>;
using u64 = std::uint64_t;

constexpr std::size_t kCount = 5;  // of ciphertexts

random::Seed hidden_seed() {
  random::Seed seed = random::os_seed();
  hide(seed.data(), seed.size());
  return seed;
}

bool all_hidden(std::span<const std::uint8_t> bits) {
  return timing::all_hidden(bits.data(), bits.size());
}
bool all_hidden(const device::Buffer& x) { return timing::all_hidden(x.data(), x.bytes()); }
/// Whether the lowest byte of each number is hidden.
bool all_hidden(std::span<const u64> values) {
  for (const u64& value : values) {
    if (!timing::all_hidden(&value, 1)) return false;
  }
  return true;
}

/// The seed of a client whose keys and encryptions are reproducible is as secret as the key.
class TfheCases {
 public:
  explicit TfheCases(const test::TfheShape& shape)
      : label_("TFHE, " + test::name_of(shape) + ", N " + std::to_string(shape.N) + ": "),
        params_(test::insecure_params(shape)) {}

  void run() {
    keys();
    encryption();
    decryption();
    bytes();
  }

 private:
  Keys hidden_key() const {
    auto key = std::make_shared<const lwe::SecretKey>(lwe::KeyGenerator(params_).secret_key());
    hide(key->small().data(), key->small().size());
    hide(key->large().data(), key->large().size());
    return key;
  }

  void keys() {
    check(label_ + "secret key", [&] {
      const lwe::SecretKey key = lwe::KeyGenerator(params_, 1, hidden_seed()).secret_key();
      return all_hidden(key.small()) && all_hidden(key.large());
    });
    const Keys key = hidden_key();
    lwe::KeyGenerator generator(params_);
    check(label_ + "bootstrapping key",
          [&] { return all_hidden(generator.rotation_key(*key).rows.bodies); });
    check(label_ + "key-switching key",
          [&] { return all_hidden(generator.switch_key(*key).bodies); });
    check(label_ + "packing key", [&] { return all_hidden(generator.packing_key(*key).bodies); });
    check(label_ + "GGSW ciphertexts", [&] {
      std::vector<std::uint8_t> bits{0, 1, 1};
      hide(bits.data(), bits.size());
      return all_hidden(generator.ggsw(*key, bits).rows.bodies);
    });
    check(label_ + "GLWE ciphertexts", [&] {
      std::vector<u64> words(2 * params_->N().value, 1);
      hide(words.data(), words.size() * sizeof(u64));
      return all_hidden(generator.glwe(*key, words).bodies);
    });
  }

  void encryption() {
    check(label_ + "encrypt", [&] {
      tfhe::Client client(hidden_key(), 1, hidden_seed());
      std::vector<u64> values(kCount, 1);
      hide(values.data(), values.size() * sizeof(u64));
      const tfhe::Ciphertext c = client.encrypt(values);
      const auto* const row = static_cast<const std::uint8_t*>(c.data->data.data());
      bool hidden = true;
      for (std::size_t i = 1; i <= kCount; ++i) {
        const std::size_t word = backend::torus_bytes(c.data->torus);
        hidden = hidden && timing::all_hidden(row + i * c.data->row_bytes() - word, word);
      }
      return hidden;
    });
  }

  void decryption() {
    tfhe::Client client(hidden_key());
    const tfhe::Ciphertext c = client.encrypt(std::vector<u64>(kCount, 1));
    show(c.data->data.data(), c.data->bytes());  // sent
    check(label_ + "decrypt", [&] { return all_hidden(client.decrypt(c, tfhe::Check::no)); });
    check(label_ + "decrypt and compare", [&] { return all_hidden(client.decrypt(c)); });
    // Another key's ciphertext is compared with what it says of itself, and refused: one bit is
    // told.
    tfhe::Ciphertext other = tfhe::Client(params_).encrypt(std::vector<u64>(64, 1));
    other.key_id = client.key_id();
    check(label_ + "decrypt and refuse", [&] {
      try {
        client.decrypt(other);
        return false;
      } catch (const WrongDecryption&) {
        return true;
      }
    });
  }

  void bytes() {
    const Keys key = hidden_key();
    SecretVector<std::uint8_t> written;
    const std::size_t bits = key->small().size() + key->large().size();
    check(label_ + "secret key to bytes", [&] {
      written = wire::secret_to_bytes(*key);
      return timing::all_hidden(written.data() + wire::kHeaderBytes + sizeof(KeyId), bits / 8);
    });
    check(label_ + "secret key from bytes", [&] {
      wire::Limits limits;
      limits.min_security = 0;
      const lwe::SecretKey read = wire::tfhe_secret_from_bytes(written, params_, limits);
      return all_hidden(read.small()) && all_hidden(read.large());
    });
  }

  const std::string label_;
  const tfhe::ParamsPtr params_;
};

void samplers() {
  check("TUniform", [&] {
    random::Prng prng(hidden_seed(), 0);
    std::vector<std::int64_t> noise(1000);
    random::sample_tuniform(prng, 40, noise);
    for (const std::int64_t& x : noise) {
      if (!timing::all_hidden(&x, 1)) return false;
    }
    return true;
  });
}

}  // namespace

void tfhe_cases() {
  using tfhe::Order;
  using tfhe::Rotation;
  using tfhe::Torus;
  samplers();
  // Both ways of multiplying with the secret, by sums and by transforms; every kind of rotation,
  // word and order.
  TfheCases({Rotation::classic, 1, Order::switch_first, Torus::t64, 12, 1, 256}).run();
  TfheCases({Rotation::classic, 1, Order::switch_first, Torus::t64, 6, 1, 1024}).run();
  TfheCases({Rotation::multi_bit, 3, Order::bootstrap_first, Torus::t32, 6, 2, 256}).run();
  TfheCases({Rotation::block_binary, 2, Order::bootstrap_first, Torus::t64, 6, 1, 1024}).run();
}

}  // namespace jali::timing
