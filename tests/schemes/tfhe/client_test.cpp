// Encryption and decryption, and what decryption refuses.
#include "jali/schemes/tfhe/secret/client.h"

#include <gtest/gtest.h>

#include <cstring>

#include "../../lwe/phases.h"
#include "jali/base/error.h"
#include "world.h"

namespace jali::tfhe {
namespace {

using test::counting;
using test::TfheShape;
using test::Values;

TEST(Client, DecryptsWhatItEncryptsWithTheNoiseOfTheParameters) {
  for (const TfheShape& shape : test::every_shape()) {
    SCOPED_TRACE(test::name_of(shape));
    Client client(test::insecure_params(shape), 2);
    Values values(2000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 16;
    const Ciphertext x = client.encrypt(values, 15);
    EXPECT_EQ(client.decrypt(x), values);
    EXPECT_EQ(x.max_degree(), 15u);
    EXPECT_EQ(client.encrypt(Values{1}).max_degree(), 3u);
    std::vector<std::int64_t> noise;
    const auto& params = *client.params();
    for (const double error : client.errors(x)) {
      noise.push_back(std::llround(error * static_cast<double>(params.step())));
    }
    test::expect_tuniform(noise, params.noise_bits());
  }
}

TEST(Client, RefusesValuesWithoutRoom) {
  Client client(test::insecure_params());
  EXPECT_THROW(client.encrypt(Values{4}), InvalidArgument);
  EXPECT_THROW(client.encrypt(Values{static_cast<std::uint64_t>(-1)}), InvalidArgument);
  EXPECT_THROW(client.encrypt(Values{0}, 16), InvalidArgument);
  EXPECT_NO_THROW(client.encrypt(Values{15}, 15));
}

Ciphertext with_key(Ciphertext x, const KeyId& id) {
  x.key_id = id;
  return x;
}

TEST(Client, RefusesWhatItDidNotEncrypt) {
  const ParamsPtr params = test::insecure_params();
  Client mine(params), other(params);
  const Ciphertext x = mine.encrypt(counting(4));
  EXPECT_THROW(other.decrypt(x), KeyMismatch);
  TfheShape shape;
  shape.n = 14;
  EXPECT_THROW(Client(test::insecure_params(shape)).decrypt(x), ParamsMismatch);
  EXPECT_THROW(mine.decrypt(Ciphertext{}), InvalidArgument);
  // With a name that is right, the phases of another key are random: each of 64 passes with a
  // probability below 1/8.
  const Ciphertext named = with_key(mine.encrypt(Values(64)), other.key_id());
  EXPECT_THROW(other.decrypt(named), WrongDecryption);
  EXPECT_NO_THROW(other.decrypt(named, Check::no));
  // An error beyond what the history allows for, and a value above the degree.
  const auto changed = [&](std::uint64_t word) {
    Ciphertext y = mine.encrypt(Values{1});
    auto* const row = static_cast<std::uint64_t*>(const_cast<void*>(y.data->data.data()));
    row[y.data->dimension.value] += word;
    return y;
  };
  EXPECT_EQ(mine.decrypt(changed(0)), Values{1});
  EXPECT_EQ(mine.decrypt(changed(2 * params->step())), Values{3});
  EXPECT_THROW(mine.decrypt(changed(3 * params->step())), WrongDecryption);
  EXPECT_THROW(mine.decrypt(changed(0 - 2 * params->step())), WrongDecryption);
  EXPECT_THROW(mine.decrypt(changed(params->step() * 2 / 5)), WrongDecryption);
  EXPECT_EQ(mine.decrypt(changed(params->step() * 2 / 5), Check::no), Values{1});
}

TEST(Client, IsReproducedFromItsSeedAndFromItsKey) {
  const ParamsPtr params = test::insecure_params();
  const random::Seed seed = random::os_seed();
  Client a(params, 1, seed), b(params, 3, seed);
  EXPECT_EQ(a.key_id(), b.key_id());
  const Ciphertext x = a.encrypt(counting(4)), y = b.encrypt(counting(4));
  EXPECT_EQ(x.seed, y.seed);
  EXPECT_EQ(std::memcmp(x.data->data.data(), y.data->data.data(), x.data->bytes()), 0);
  EXPECT_EQ(b.decrypt(x), counting(4));
  // The key is a's, which outlives c.
  Client c(std::shared_ptr<const lwe::SecretKey>(std::shared_ptr<void>(), &a.secret_key()));
  EXPECT_EQ(c.decrypt(x), counting(4));
}

}  // namespace
}  // namespace jali::tfhe
