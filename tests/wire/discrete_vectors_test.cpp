// The objects of exact integers in vectors/v1 can be read for ever, mean what they meant, and
// writing them again gives the same bytes.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "../hex.h"
#include "discrete_objects.h"
#include "jali/base/hash.h"
#include "jali/schemes/discrete/secret/decryptor.h"
#include "jali/wire/keys.h"
#include "tampering.h"

namespace jali::wire {
namespace {

using discrete::Packing;
using testing::DiscreteObjects;
using testing::kLimits;
using Numbers = std::vector<std::int64_t>;

Bytes read(const std::string& name) {
  std::ifstream in(std::string(JALI_VECTORS) + "/v1/" + name + ".jali", std::ios::binary);
  EXPECT_TRUE(in.good()) << "vectors/v1/" << name << ".jali is missing";
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Vector {
  const char* name;
  const char* sha256;  // first half
};

const Vector kVectors[] = {
    {"discrete_ciphertext_array", "84beb51f93d86db70799d7cca5da9758"},
    {"discrete_ciphertext_coefficients", "9a4bde888bdd95fa83d6a0704a30e5de"},
    {"discrete_ciphertext_computed", "4488829f18a25a10f788c4aadad67799"},
    {"discrete_ciphertext_fresh", "aa6686d49c3d1985bf24fa7df6447202"},
    {"discrete_ciphertext_padded", "db4f174f3b8efc41b6841b5c8fcddef1"},
    {"discrete_evaluation_keys", "0dc17a5e9cefbf71593c018ad1e111fe"},
    {"discrete_params", "0a7680295e7d511723fba90d87e13b81"},
    {"discrete_params_coefficients", "380222e7ea827b158f35c15c95ed716b"},
    {"discrete_public_key", "e6d7753529b0281fb0e3760b7472d135"},
    {"discrete_secret_key", "78254b291845180f7053f8dc64b8687a"},
    {"discrete_secret_key_coefficients", "506c176526936eebad5d70a4146f8a8c"},
};

TEST(DiscreteVectors, FilesAreUnchanged) {
  for (const Vector& v : kVectors) {
    EXPECT_EQ(test::hex(hash256(read(v.name))).substr(0, 32), v.sha256) << v.name;
  }
}

struct Stored {
  explicit Stored(const std::string& suffix)
      : params(discrete_params_from_bytes(read("discrete_params" + suffix), kLimits)),
        ring(discrete::make_ring(*params)),
        sk(std::make_shared<const rlwe::SecretKey>(
            secret_from_bytes(read("discrete_secret_key" + suffix), params, *ring))),
        decryptor(sk, ring, params) {}
  DiscreteArray array(const std::string& name) const {
    return discrete_array_from_bytes(read(name), params, *ring, kLimits);
  }
  Numbers decrypt(const discrete::Ciphertext& x) const {
    const auto out = decryptor.decrypt(x);
    return {out.begin(), out.end()};
  }
  discrete::ParamsPtr params;
  std::shared_ptr<const ring::Ring> ring;
  std::shared_ptr<const rlwe::SecretKey> sk;
  discrete::Decryptor decryptor;
};

TEST(DiscreteVectors, AreWrittenAgainAsRead) {
  for (const std::string suffix : {"", "_coefficients"}) {
    const Stored s(suffix);
    EXPECT_EQ(to_bytes(*s.params), read("discrete_params" + suffix));
    const auto secret = secret_to_bytes(*s.sk, *s.ring);
    EXPECT_EQ(Bytes(secret.begin(), secret.end()), read("discrete_secret_key" + suffix));
  }
  const Stored s("");
  for (const char* kind : {"fresh", "computed", "array", "padded"}) {
    const std::string name = std::string("discrete_ciphertext_") + kind;
    EXPECT_EQ(to_bytes(s.array(name)), read(name)) << name;
  }
  const Stored c("_coefficients");
  EXPECT_EQ(to_bytes(c.array("discrete_ciphertext_coefficients")),
            read("discrete_ciphertext_coefficients"));
  const auto keys = read("discrete_evaluation_keys"), public_key = read("discrete_public_key");
  EXPECT_EQ(to_bytes(from_bytes<rlwe::EvaluationKeys>(keys, s.params, *s.ring)), keys);
  EXPECT_EQ(to_bytes(from_bytes<rlwe::PublicKey>(public_key, s.params, *s.ring)), public_key);
}

TEST(DiscreteVectors, MeanWhatTheyMeant) {
  const Stored s("");
  const DiscreteObjects made(testing::discrete_literal(Word::w52, Packing::slots));
  EXPECT_EQ(s.params->hash(), made.params->hash());
  const Numbers want = made.values();
  const auto fresh = s.array("discrete_ciphertext_fresh").block;
  EXPECT_EQ(s.decrypt(fresh), want);
  EXPECT_EQ(fresh.estimate.range, (discrete::Range{-16, 16, false}));
  Numbers squares = want;
  for (std::int64_t& v : squares) v = (2 * v - 3) * (2 * v - 3);
  const auto computed = s.array("discrete_ciphertext_computed").block;
  EXPECT_EQ(s.decrypt(computed), squares);
  // The same computation with the stored keys gives the same bytes.
  const discrete::Evaluator e(
      discrete::Engine::make(s.params, s.ring),
      std::make_shared<const rlwe::EvaluationKeys>(
          from_bytes<rlwe::EvaluationKeys>(read("discrete_evaluation_keys"), s.params, *s.ring)));
  EXPECT_EQ(to_bytes(e.square(e.add_integer(e.add(fresh, fresh), -3))),
            read("discrete_ciphertext_computed"));
  const std::size_t row = s.params->n() / 2;
  const Numbers moved = s.decrypt(e.rotate(fresh, 1));
  EXPECT_EQ(moved[0], want[1]);
  EXPECT_EQ(moved[row - 1], want[0]);
  EXPECT_EQ(moved[2 * row - 1], want[row]);
  const DiscreteArray array = s.array("discrete_ciphertext_array");
  EXPECT_EQ(array.view, made.array().view);
  EXPECT_FALSE(array.padded);
  EXPECT_TRUE(s.array("discrete_ciphertext_padded").padded);
  EXPECT_EQ(s.decrypt(array.block), want);
  // The public key still encrypts for the secret key.
  discrete::PublicEncryptor encryptor(
      std::make_shared<const rlwe::PublicKey>(
          from_bytes<rlwe::PublicKey>(read("discrete_public_key"), s.params, *s.ring)),
      s.ring, s.params);
  EXPECT_EQ(s.decrypt(encryptor.encrypt(e.encoder().encode(want, 1, e.noise().range(-16, 16)))),
            want);
  const Stored c("_coefficients");
  EXPECT_EQ(c.decrypt(c.array("discrete_ciphertext_coefficients").block), want);
}

}  // namespace
}  // namespace jali::wire
