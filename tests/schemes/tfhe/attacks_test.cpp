// What docs/security.md says that an attacker can do, done by one who sees no more than it says.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "../../lwe/phases.h"
#include "../../seeded.h"
#include "jali/base/error.h"
#include "world.h"

namespace jali::tfhe {
namespace {

using test::TfheShape;
using test::Values;
using Row = std::vector<std::uint64_t>;  // 64 unknowns a word

/// The solution of linear equations modulo 2, each in `unknowns` bits and one more for its right
/// side; empty if they do not determine it. By Gauss's elimination.
std::vector<std::uint8_t> solved(std::vector<Row> equations, std::size_t unknowns) {
  const auto bit = [](const Row& row, std::size_t i) { return row[i / 64] >> (i % 64) & 1; };
  for (std::size_t i = 0; i < unknowns; ++i) {
    std::size_t pivot = i;
    while (pivot < equations.size() && bit(equations[pivot], i) == 0) ++pivot;
    if (pivot == equations.size()) return {};
    std::swap(equations[i], equations[pivot]);
    for (std::size_t r = 0; r < equations.size(); ++r) {
      if (r == i || bit(equations[r], i) == 0) continue;
      for (std::size_t w = 0; w < equations[r].size(); ++w) equations[r][w] ^= equations[i][w];
    }
  }
  std::vector<std::uint8_t> out(unknowns);
  for (std::size_t i = 0; i < unknowns; ++i) {
    out[i] = static_cast<std::uint8_t>(bit(equations[i], unknowns));
  }
  return out;
}

std::vector<std::uint8_t> held(const Client& client) {
  const auto bits = client.secret_key().held();
  return {bits.begin(), bits.end()};
}

// b - m step - e = <a, s>, of which the lowest bit is an equation modulo 2.
TEST(Attack, ErrorsBesideTheirCiphertextsGiveTheKey) {
  Client client(test::insecure_params());
  const Params& params = *client.params();
  const std::size_t dimension = params.dimension().value;
  const Ciphertext x = client.encrypt(Values(dimension + 64, 1));
  const auto errors = client.errors(x);
  const auto* const words = static_cast<const std::uint64_t*>(x.data->data.data());
  std::vector<Row> equations;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto* const row = words + i * (dimension + 1);
    const auto error = std::llround(errors[i] * static_cast<double>(params.step()));
    const std::uint64_t right = row[dimension] - params.step() - static_cast<std::uint64_t>(error);
    Row equation(dimension / 64 + 1);
    for (std::size_t j = 0; j < dimension; ++j) equation[j / 64] |= (row[j] & 1) << (j % 64);
    equation[dimension / 64] |= (right & 1) << (dimension % 64);
    equations.push_back(std::move(equation));
  }
  EXPECT_EQ(solved(equations, dimension), held(client));
}

/// The ciphertext with the mask factor e_i and the body 0, under the name of the client's key: its
/// phase is -factor s_i.
Ciphertext asking(const Client& client, std::size_t i, std::uint64_t factor) {
  const Params& params = *client.params();
  auto data = std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*device::Pool::create(), Torus::t64, params.dimension(), 1));
  std::memset(data->data.data(), 0, data->bytes());
  static_cast<std::uint64_t*>(data->data.data())[i] = factor;
  const auto largest = static_cast<std::uint32_t>(params.value_modulus() - 1);
  return {client.params(), client.key_id(), std::move(data), {largest}, History::fresh(1), {}};
}

TEST(Attack, NumbersOfChosenCiphertextsGiveTheKey) {
  Client client(test::insecure_params());
  std::vector<std::uint8_t> found;
  for (std::size_t i = 0; i < client.params()->dimension().value; ++i) {
    const auto number = client.decrypt(asking(client, i, client.params()->step()), Check::no)[0];
    found.push_back(number != 0);
  }
  EXPECT_EQ(found, held(client));
}

TEST(Attack, WhetherADecryptionIsRefusedGivesTheKey) {
  Client client(test::insecure_params());
  std::vector<std::uint8_t> found;
  for (std::size_t i = 0; i < client.params()->dimension().value; ++i) {
    try {
      client.decrypt(asking(client, i, client.params()->step()));
      found.push_back(0);
    } catch (const WrongDecryption&) {
      found.push_back(1);
    }
  }
  EXPECT_EQ(found, held(client));
}

// Nobody who changes a body has to know anything, and nobody notices.
TEST(Attack, AnybodyCanAddToACiphertext) {
  Client client(test::insecure_params());
  Ciphertext x = client.encrypt(Values{1, 2});
  auto data = std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*device::Pool::create(), x.data->torus, x.data->dimension, 2));
  std::memcpy(data->data.data(), x.data->data.data(), x.data->bytes());
  auto* const words = static_cast<std::uint64_t*>(data->data.data());
  words[x.data->row_words() - 1] += 2 * client.params()->step();
  x.data = data;
  EXPECT_EQ(client.decrypt(x), (Values{3, 2}));
}

// A hand-made ciphertext of a value without mask or error is one of every key.
TEST(Attack, ClearNumbersAreReadByEverybody) {
  test::TfheWorld world;
  const Ciphertext clear = world.evaluator->clear(Values{3, 0, 7});
  EXPECT_TRUE(clear.key_id.is_none());
  EXPECT_EQ(world.decrypt(clear), (Values{3, 0, 7}));
  const Ciphertext host = world.evaluator->host_copy(clear);
  const auto* const words = static_cast<const std::uint64_t*>(host.data->data.data());
  const std::size_t row = host.data->row_words();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::all_of(words + i * row, words + (i + 1) * row - 1,
                            [](std::uint64_t mask) { return mask == 0; }));
    EXPECT_EQ(words[(i + 1) * row - 1] / world.params->step(), (Values{3, 0, 7})[i]);
  }
}

// A ciphertext whose error was left to grow until it may be as large as a step. Whether its look-up
// is right says whether the error is within half a step, which nobody without the key may know.
TEST(Attack, WhichLookUpsAreWrongTellsOfErrors) {
  JALI_SEEDED(rng);
  // The switch to the modulus 2N = 2^11 rounds n + 1 = 13 words by at most 1/2 each, together a
  // tenth of a step of 2^6.
  test::TfheWorld world(test::TfheShape{.N = 1024});
  const std::size_t count = 64;
  const std::uint64_t step = world.params->step();
  Ciphertext noisy = world.client.encrypt(Values(count, 5), 15);
  auto data = std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*device::Pool::create(), noisy.data->torus, noisy.data->dimension, count));
  std::memcpy(data->data.data(), noisy.data->data.data(), noisy.data->bytes());
  auto* const words = static_cast<std::uint64_t*>(data->data.data());
  std::vector<double> errors;
  for (std::size_t i = 0; i < count; ++i) {
    words[(i + 1) * data->row_words() - 1] += rng() % (2 * step) - step;
    const auto phase = test::lwe_phase(data->view(), i, world.client.secret_key().held());
    errors.push_back(static_cast<double>(test::centred(phase - 5 * step, Torus::t64)) /
                     static_cast<double>(step));
  }
  noisy.data = data;
  const LookUpTable same(world.params, [](std::uint64_t value) { return value; });
  const Values seen = world.decrypt(world.evaluator->apply(world.evaluator->bind(noisy), same));
  std::size_t told = 0, wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double error = std::abs(errors[i]);
    if (std::abs(error - 0.5) < 0.12) continue;  // the modulus switch decides
    EXPECT_EQ(seen[i] != 5, error > 0.5) << errors[i];
    ++told;
    wrong += seen[i] != 5;
  }
  // 76% of the errors tell, and half of these are outside. Each bound fails with a probability
  // below 1e-6.
  EXPECT_GT(told, 30u);
  EXPECT_GT(wrong, 4u);
}

}  // namespace
}  // namespace jali::tfhe
