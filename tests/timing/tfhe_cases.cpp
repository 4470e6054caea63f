// The cases of TFHE for secret_flow: keys of every kind, encryption, decryption of messages and of garbage, and the bytes of a
// secret key.
#include <algorithm>
#include <random>

#include "../tfhe_literals.h"
#include "client.h"
#include "flow.h"
#include "jali/base/error.h"
#include "jali/lwe/secret/key_generator.h"
#include "jali/tfhe/secret/client.h"
#include "jali/wire/secret/tfhe_secret_key.h"

namespace jali::timing {
namespace {

using test::TfheShape;
using tfhe::Order;
using tfhe::Rotation;
using tfhe::Torus;

class TfheCases {
 public:
  explicit TfheCases(const TfheShape& shape)
      : label_("TFHE " + test::name_of(shape) + ": "), params_(test::insecure_params(shape)) {}

  void run() {
    keys();
    encryption();
    decryption();
    bytes();
  }

 private:
  random::Seed hidden_seed() {
    random::Seed seed = fresh_seed(random_);
    hide(seed.data(), seed.size());
    return seed;
  }
  lwe::SecretKey hidden_key() {
    lwe::SecretKey key = lwe::KeyGenerator(params_).secret_key();
    hide(key.small().data(), key.small().size());
    hide(key.large().data(), key.large().size());
    return key;
  }
  static bool hidden(const device::Buffer& bodies) {
    return all_hidden(bodies.data(), bodies.bytes());
  }

  void keys() {
    check(label_ + "secret key", [&] {
      const auto key = lwe::KeyGenerator(params_, 1, hidden_seed()).secret_key();
      return all_hidden(key.small().data(), key.small().size()) &&
             all_hidden(key.large().data(), key.large().size());
    });
    // Seeds of the system are not hidden, because those of masks are public. The sampler of errors is a case of its own.
    const lwe::SecretKey key = hidden_key();
    lwe::KeyGenerator generator(params_);
    check(label_ + "bootstrapping key", [&] {
      const auto made = generator.rotation_key(key);
      return all_hidden(made.bodies.data(), made.bytes() - sizeof(made.seed));
    });
    check(label_ + "key-switching key", [&] {
      const auto made = generator.switch_key(key);
      return all_hidden(made.bodies.data(), made.bytes() - sizeof(made.seed));
    });
    check(label_ + "packing key", [&] {
      const auto made = generator.packing_key(key);
      return all_hidden(made.bodies.data(), made.bytes() - sizeof(made.seed));
    });
    check(label_ + "errors", [&] {
      std::vector<std::int64_t> errors(100);
      const random::Seed seed = hidden_seed();
      random::Prng prng(seed, 0);
      random::sample_tuniform(prng, params_->noise_bits(), errors);
      return all_hidden(errors.data(), errors.size() * sizeof(errors[0]));
    });
  }

  void encryption() {
    auto key = std::make_shared<const lwe::SecretKey>(hidden_key());
    tfhe::Client client(key);
    std::vector<std::uint64_t> values(20, 1);
    hide(values.data(), values.size() * sizeof(values[0]));
    check(label_ + "encrypt", [&] {
      const auto x = client.encrypt(values);
      const auto* const rows = static_cast<const std::uint8_t*>(x.data->data.data());
      const std::size_t word = backend::torus_bytes(x.data->torus);
      bool all = true;
      for (std::size_t i = 1; i <= x.size(); ++i) {
        all = all && all_hidden(rows + i * x.data->row_bytes() - word, word);
      }
      return all;
    });
  }

  void decryption() {
    tfhe::Client honest(params_);
    const auto x = honest.encrypt(std::vector<std::uint64_t>(20, 1));
    auto garbage = x;
    auto data = std::make_shared<lwe::LweBlock>(
        lwe::make_lwe(*device::Pool::create(), x.data->torus, x.data->dimension, x.size()));
    random::Prng(fresh_seed(random_), 0)
        .fill({static_cast<std::uint8_t*>(data->data.data()), data->bytes()});
    garbage.data = data;
    const auto& bits = honest.secret_key();
    hide(bits.small().data(), bits.small().size());
    hide(bits.large().data(), bits.large().size());
    for (const auto* one : {&x, &std::as_const(garbage)}) {
      const std::string what = one == &x ? "of messages" : "of garbage";
      check(label_ + "decrypt without a comparison, " + what, [&] {
        const auto values = honest.decrypt(*one, tfhe::Check::no);
        return all_hidden(values.data(), 1);  // the bytes above the value are known to be 0
      });
      check(label_ + "decrypt and compare, " + what, [&] {
        try {
          const auto values = honest.decrypt(*one);
          return one == &x && all_hidden(values.data(), 1);
        } catch (const WrongDecryption&) {
          return one != &x;
        }
      });
    }
  }

  void bytes() {
    const lwe::SecretKey key = hidden_key();
    SecretVector<std::uint8_t> written;
    check(label_ + "secret key to bytes", [&] {
      written = wire::secret_to_bytes(key);
      return all_hidden(written.data() + wire::kHeaderBytes + sizeof(KeyId),
                        (key.small().size() + key.large().size()) / 8);
    });
    check(label_ + "secret key from bytes", [&] {
      const auto read = wire::tfhe_secret_from_bytes(written, params_, {std::size_t{1} << 24, 0});
      return all_hidden(read.small().data(), read.small().size()) &&
             all_hidden(read.large().data(), read.large().size());
    });
  }

  std::mt19937_64 random_{std::random_device{}()};
  std::string label_;
  tfhe::ParamsPtr params_;
};

}  // namespace

void tfhe_cases() {
  for (const TfheShape& shape :
       {TfheShape{Rotation::classic, 1, Order::switch_first, Torus::t64, 12, 2, 256},
        TfheShape{Rotation::classic, 1, Order::bootstrap_first, Torus::t64, 12, 1, 1024},
        TfheShape{Rotation::multi_bit, 2, Order::switch_first, Torus::t32, 12, 1, 256},
        TfheShape{Rotation::block_binary, 3, Order::bootstrap_first, Torus::t64, 12, 1, 256}}) {
    TfheCases(shape).run();
  }
}

}  // namespace jali::timing
