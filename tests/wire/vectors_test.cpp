// The objects of vectors/v1 can be read for ever, and writing them again gives the same bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "../hex.h"
#include "jali/base/hash.h"
#include "objects.h"

namespace jali::wire {
namespace {

using testing::Objects;

Bytes read(const std::string& name) {
  std::ifstream in(std::string(JALI_VECTORS) + "/v1/" + name + ".jali", std::ios::binary);
  EXPECT_TRUE(in.good()) << "vectors/v1/" << name << ".jali is missing";
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string digest(const Bytes& bytes) { return test::hex(hash256(bytes)).substr(0, 32); }

struct Vector {
  const char* name;
  const char* sha256;  // first half
};

const Vector kVectors[] = {
    {"ciphertext_correlated", "d57c20104e863a4f4fe5beb55daf3b90"},
    {"ciphertext_cube", "62e816ef274dc5834b7df8bb9e24dbf3"},
    {"ciphertext_fresh", "9ea2050a81ada0d968f2fda63b8ee5b4"},
    {"ciphertext_fresh_w32", "7b3518780e23e1e60b89a375a135c1a3"},
    {"ciphertext_fresh_w64", "9cedd0e3013cd47a80e638789a86c413"},
    {"ciphertext_product", "1fbc327bb366813f76207f7a3d791268"},
    {"ciphertext_tiled", "a6d9b4a901e1bf69fdc83ae3428f5fd3"},
    {"evaluation_keys", "9e88c80a75613a6db88e57b336177af8"},
    {"params", "df2542ed458df77e82b5de8f9e4b9149"},
    {"params_w32", "57a71f5771c11407ff16dae4fd3524b6"},
    {"params_w64", "5dfe4e23a17bb3c69fddedd35591ec1e"},
    {"plaintext", "57db90c3a96f16409f7e2a545969561a"},
    {"public_key", "1b570a5accb87fd078c655a3f6fa62b8"},
    {"secret_key", "d3ed55015161b9e3679d0dd1ece0dab7"},
    {"switch_key", "9fe037bd0b3058e371885830d7f251a5"},
};

TEST(Vectors, FilesAreUnchanged) {
  for (const Vector& v : kVectors) EXPECT_EQ(digest(read(v.name)), v.sha256) << v.name;
}

class Version1 : public ::testing::Test {
 protected:
  ckks::ParamsPtr params = params_from_bytes(read("params"), testing::kAnySecurity);
  std::shared_ptr<const ring::Ring> ring = ckks::make_ring(*params);
  std::shared_ptr<const rlwe::SecretKey> sk =
      std::make_shared<rlwe::SecretKey>(secret_from_bytes(read("secret_key"), params, *ring));

  std::vector<std::complex<double>> decrypt(const ckks::Ciphertext& x) const {
    return ckks::Encoder(params, ring).decode(ckks::Decryptor(sk, ring).decrypt(x));
  }
};

TEST_F(Version1, IsWrittenAgainAsRead) {
  EXPECT_EQ(to_bytes(*params), read("params"));
  const auto secret = secret_to_bytes(*sk, *ring);
  EXPECT_EQ(Bytes(secret.begin(), secret.end()), read("secret_key"));
  const auto again = [&]<class T>(const char* name, std::type_identity<T>) {
    const Bytes bytes = read(name);
    EXPECT_EQ(to_bytes(from_bytes<T>(bytes, params, *ring)), bytes) << name;
  };
  again("plaintext", std::type_identity<ckks::Plaintext>{});
  again("ciphertext_tiled", std::type_identity<ckks::Ciphertext>{});
  again("ciphertext_correlated", std::type_identity<ckks::Ciphertext>{});
  again("ciphertext_cube", std::type_identity<ckks::Ciphertext>{});
  again("ciphertext_fresh", std::type_identity<ckks::Ciphertext>{});
  again("ciphertext_product", std::type_identity<ckks::Ciphertext>{});
  again("public_key", std::type_identity<rlwe::PublicKey>{});
  again("evaluation_keys", std::type_identity<rlwe::EvaluationKeys>{});
  const Bytes key = read("switch_key");
  EXPECT_EQ(to_bytes(from_bytes<rlwe::SwitchKey>(key, params, *ring), *params), key);
}

TEST_F(Version1, MeansWhatItMeant) {
  const auto want = Objects::values(params->slots());
  const auto expect = [&](const ckks::Ciphertext& x, auto&& f, double tolerance) {
    const auto got = decrypt(x);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_LT(std::abs(got[i] - f(i)), tolerance) << "slot " << i;
    }
  };
  const auto fresh = from_bytes<ckks::Ciphertext>(read("ciphertext_fresh"), params, *ring);
  expect(fresh, [&](std::size_t i) { return want[i]; }, 1e-5);
  EXPECT_EQ(fresh.packing.length, 100u);
  // The square, at scale 2^60, does not fit the modulus of level 0: it is compared as integers.
  auto keys = std::make_shared<rlwe::EvaluationKeys>(
      from_bytes<rlwe::EvaluationKeys>(read("evaluation_keys"), params, *ring));
  const ckks::Evaluator evaluator(params, ring, keys);
  const auto product = from_bytes<ckks::Ciphertext>(read("ciphertext_product"), params, *ring);
  auto unclaimed = evaluator.copy(fresh);
  unclaimed.estimate.peak = unclaimed.estimate.error = unclaimed.estimate.noise = 0;
  const auto square = evaluator.square(unclaimed);
  for (std::size_t p = 0; p < 3; ++p) {
    EXPECT_EQ(
        std::memcmp(square.parts[p].data(), product.parts[p].data(), product.parts[p].bytes()), 0);
  }
  expect(
      evaluator.rotate(fresh, 1), [&](std::size_t i) { return want[(i + 1) % want.size()]; }, 1e-4);
  // The public key still encrypts for the secret key.
  auto pk = std::make_shared<rlwe::PublicKey>(
      from_bytes<rlwe::PublicKey>(read("public_key"), params, *ring));
  ckks::PublicEncryptor encryptor(pk, ring);
  const auto plain = ckks::Encoder(params, ring).encode(want, 1, 0, params->scale(0));
  expect(encryptor.encrypt(plain), [&](std::size_t i) { return want[i]; }, 1e-4);
  const auto small = from_bytes<ckks::Plaintext>(read("plaintext"), params, *ring);
  const auto decoded = ckks::Encoder(params, ring).decode(small);
  ASSERT_EQ(decoded.size(), 16u);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_LT(std::abs(decoded[i] - want[i]), 1e-5);
}

TEST(Vectors, OtherWords) {
  for (const char* word : {"_w32", "_w64"}) {
    // Parameters with 32-bit words were written before the format had the plan of their levels.
    Limits limits = testing::kAnySecurity;
    limits.search = true;
    const auto params = params_from_bytes(read(std::string("params") + word), limits);
    EXPECT_EQ(word_name(params->word()), std::string_view(word).substr(1));
    const auto ring = ckks::make_ring(*params);
    const Bytes bytes = read(std::string("ciphertext_fresh") + word);
    EXPECT_EQ(to_bytes(from_bytes<ckks::Ciphertext>(bytes, params, *ring)), bytes);
  }
}

}  // namespace
}  // namespace jali::wire
