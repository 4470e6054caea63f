// A client encrypts the numbers of a manifest's inputs, and refuses what it must not send; it
// decrypts replies, and refuses those that mean nothing.
#include "jali/client/secret/client.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "../seeded.h"
#include "jali/base/error.h"
#include "jali/rlwe/host_ring.h"
#include "jali/schemes/ckks/packing.h"
#include "support.h"

namespace jali::client {
namespace {

using namespace testing;
using ckks::Check;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Clients : public ::testing::Test {
 protected:
  Clients() : client(manifest, hold(o.params, o.ring, o.sk, test_seed(5))) {}

  /// Numbers within the range of the inputs.
  std::vector<double> numbers(std::size_t count, std::size_t size) {
    JALI_SEEDED(random);
    std::uniform_real_distribution<double> any(-1.5, 2.5);
    std::vector<double> out(count * size);
    for (double& x : out) x = any(random);
    return out;
  }
  Message reply(const std::vector<std::vector<double>>& outputs, std::uint64_t examples,
                bool single = false) {
    return reply_with(manifest, client.holder(), outputs, examples, single);
  }
  template <class E, class Call>
  std::string refused(const Call& call) {
    try {
      call();
    } catch (const E& error) {
      return error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "another error: " << error.what();
    }
    ADD_FAILURE() << "accepted";
    return "";
  }

  Objects o{small_literal(Word::w52, 40, 2)};
  Manifest manifest = small_manifest(o.params);
  Client client;
};

TEST_F(Clients, CiphertextsAreThoseOfTheEncryptor) {
  const auto x = numbers(6, 5), y = numbers(6, 3);
  const Examples inputs[] = {{x, 6}, {y, 6}};
  const Message request = client.encrypt(inputs);
  EXPECT_NO_THROW(check(request, manifest, fingerprint(manifest), Direction::request));
  // The same, number by number: slot k lanes + b of vector c is number contents[k] of example 4 c +
  // b, of 6; the last is repeated.
  ckks::SecretEncryptor encryptor(o.sk, o.ring, test_seed(5));
  const ckks::Encoder encoder(o.params, o.ring);
  const std::vector<double>* given[] = {&x, &y};
  const std::size_t lanes = 4, slots = o.params->slots();
  for (std::size_t k = 0; k < 2; ++k) {
    const Port& port = manifest.inputs[k];
    const auto contents = port.layout.contents();
    for (std::size_t c = 0; c < request.arrays[k].size(); ++c) {
      std::vector<double> rows(2 * slots);
      for (std::size_t chunk = 0; chunk < 2; ++chunk) {
        for (std::size_t s = 0; s < slots; ++s) {
          const std::int32_t number = contents[c * slots / lanes + s / lanes];
          const std::size_t example = std::min<std::size_t>(4 * chunk + s % lanes, 5);
          if (number < 0) continue;
          rows[chunk * slots + s] =
              ((*given[k])[example * port.size() + static_cast<std::size_t>(number)] - 0.5) / 2;
        }
      }
      params::Declared declared(port.rms, 1.0);
      declared.calibrated = true;
      auto expected = encryptor.encrypt(encoder.encode(std::span<const double>(rows), 2, port.level,
                                                       o.params->scale(port.level), 9),
                                        declared);
      expected.packing = ckks::packing_of_fresh(slots, 9, true, false);
      EXPECT_EQ(wire::to_bytes(*request.arrays[k][c]), wire::to_bytes(expected)) << k << ", " << c;
    }
  }
}

TEST_F(Clients, OneExampleIsNoBatch) {
  const auto x = numbers(1, 5), y = numbers(1, 3);
  const Examples inputs[] = {{x, 1, true}, {y, 1, true}};
  const Message request = client.encrypt(inputs);
  EXPECT_TRUE(request.single);
  EXPECT_FALSE(ckks::is_batched(*request.arrays[0][0]));
  EXPECT_EQ(request.arrays[0][0]->batch(), 1u);
}

TEST_F(Clients, NumbersOutsideOfTheRangeAreRefusedAndNotShown) {
  auto x = numbers(3, 5), y = numbers(3, 3);
  x[1 * 5 + 4] = 17.25;
  x[2 * 5 + 0] = -1.500001;
  const Examples bad[] = {{x, 3}, {y, 3}};
  const std::string text = refused<InvalidArgument>([&] { client.encrypt(bad); });
  EXPECT_TRUE(
      text.starts_with("x[4] of example 1 is not among the numbers for which the program was "
                       "calibrated, -1.5 to 2.5"))
      << text;
  EXPECT_NE(text.find("2 numbers lie outside in all"), std::string::npos) << text;
  EXPECT_EQ(text.find("17"), std::string::npos) << "it tells the number";
  for (const double x0 : {kNan, std::numeric_limits<double>::infinity()}) {
    x = numbers(3, 5), x[7] = x0;
    const Examples worse[] = {{x, 3}, {y, 3}};
    EXPECT_NE(
        refused<InvalidArgument>([&] { client.encrypt(worse); }).find("holds NaN or infinity"),
        std::string::npos);
  }
  x = numbers(3, 5);
  x[0] = 2.5, x[1] = -1.5;
  const Examples edges[] = {{x, 3}, {y, 3}};
  EXPECT_NO_THROW(client.encrypt(edges));
}

TEST_F(Clients, OtherCountsAreRefused) {
  const auto x = numbers(3, 5), y = numbers(3, 3);
  const std::span<const double> less(x.data(), 14), few(y.data(), 6);
  const std::vector<std::vector<Examples>> wrong = {
      {{x, 3}},
      {{x, 3}, {y, 3}, {y, 3}},
      {{less, 3}, {y, 3}},
      {{x, 3}, {few, 2}},
      {{{}, 0}, {{}, 0}},
      {{x, 2}, {y, 2}},
      {{x, 3, true}, {y, 3, true}},
      {{x, ~std::uint64_t{0}}, {y, 3}},
      {{std::span(x).first(5), 1, true}, {std::span(y).first(3), 1}}};
  for (const auto& inputs : wrong) EXPECT_THROW(client.encrypt(inputs), InvalidArgument);
}

TEST_F(Clients, ResultsComeBack) {
  std::vector<double> y(6 * 18), z(6);
  for (std::size_t k = 0; k < y.size(); ++k) y[k] = 0.5 + 0.4 * std::sin(static_cast<double>(k));
  for (std::size_t k = 0; k < z.size(); ++k) z[k] = -1.4 + 0.7 * static_cast<double>(k);
  const auto results = client.decrypt(reply({y, z}, 6));
  ASSERT_EQ(results.size(), 2u);
  ASSERT_EQ(results[0].size(), y.size());
  ASSERT_EQ(results[1].size(), z.size());
  for (std::size_t k = 0; k < y.size(); ++k) EXPECT_NEAR(results[0][k], y[k], 1e-5);
  for (std::size_t k = 0; k < z.size(); ++k) EXPECT_NEAR(results[1][k], z[k], 1e-5);
}

TEST_F(Clients, ResultsBeyondTheRangeAreRefusedWithTheExamples) {
  std::vector<double> y(6 * 18, 0.5), z(6, 1);
  y[2 * 18 + 17] = 1.34 + 2.2, z[4] = -1.45;  // by more than the margin of 1.01 and noise
  const Message far = reply({y, z}, 6);
  const std::string text = refused<WrongDecryption>([&] { client.decrypt(far); });
  EXPECT_TRUE(
      text.starts_with("y: a result is beyond the range of the calibration and may be wrong. It "
                       "concerns 1 example of 6; the first is example 2."))
      << text;
  EXPECT_NE(text.find("calibrated for results from -1.17 to 1.34"), std::string::npos) << text;
  EXPECT_EQ(client.decrypt(far, Check::no)[0].size(), y.size());
  z[4] = 9, y[2 * 18 + 17] = 1;
  EXPECT_TRUE(
      refused<WrongDecryption>([&] { client.decrypt(reply({y, z}, 6)); }).starts_with("z: "));
}

TEST_F(Clients, NoNumberBeyondTheRangePasses) {
  const Port& port = manifest.outputs[1];  // -1.5 to 2.5, sent as -1 to 1 with a peak of 1
  const auto is_beyond = [&](double x, double bits) {
    return beyond_range(port, {&x, 1}, bits)[0] != 0;
  };
  for (const double bits : {8.0, 20.0}) {
    const double room = 0.01 + kSigmas * std::pow(2.0, -bits);
    for (const double sign : {-1.0, 1.0}) {
      EXPECT_FALSE(is_beyond(sign * (1 + room * 0.999), bits));
      EXPECT_TRUE(is_beyond(sign * (1 + room * 1.001), bits));
    }
    EXPECT_TRUE(is_beyond(kNan, bits));
    EXPECT_TRUE(is_beyond(std::numeric_limits<double>::infinity(), bits));
  }
}

TEST_F(Clients, AlteredRepliesAreRefused) {
  const std::vector<double> y(18, 0.5), z(1, 1);
  Message good = reply({y, z}, 1, /*single=*/true);
  EXPECT_NO_THROW(client.decrypt(good));
  ckks::Ciphertext other = o.ciphertext(0);
  for (ring::Poly& part : other.parts) {
    // A residue more or less changes every slot by a random number modulo Q.
    *static_cast<std::uint64_t*>(part.row(0)) ^= 1;
  }
  other.estimate.peak = 2, other.estimate.message = 1;
  Message altered = good;
  altered.arrays[0] = {std::make_shared<const ckks::Ciphertext>(std::move(other))};
  const std::string text = refused<WrongDecryption>([&] { client.decrypt(altered); });
  EXPECT_TRUE(text.starts_with("y: this is not what the ciphertext says it holds")) << text;
  EXPECT_THROW(client.decrypt({good.program, 1, true, Direction::request, good.arrays}),
               InvalidArgument);
  Digest program = good.program;
  program[31] ^= 1;
  EXPECT_THROW(client.decrypt({program, 1, true, Direction::reply, good.arrays}), InvalidArgument);
}

TEST_F(Clients, AnotherClientsRepliesAreRefused) {
  const Client stranger(manifest, make_holder(o.params));
  const Message theirs = reply({std::vector<double>(18, 0.5), {1}}, 1);
  EXPECT_THROW(stranger.decrypt(theirs), KeyMismatch);
  EXPECT_THROW(stranger.decrypt(theirs, Check::no), KeyMismatch);
  const auto other = ckks::Params::create(small_literal(Word::w52, 39, 2));
  EXPECT_THROW(Client(manifest, make_holder(other)), ParamsMismatch);
}

TEST_F(Clients, KeysAreWrittenOneByOne) {
  wire::Bytes bytes;
  std::vector<std::size_t> told;
  client.make_keys(
      [&](std::span<const std::uint8_t> piece) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
      },
      kMostKeyBytes,
      [&](std::size_t done, std::size_t total) { told.push_back(100 * done + total); },
      test_seed(6));
  EXPECT_EQ(told, (std::vector<std::size_t>{104, 204, 304, 404}));
  rlwe::KeyGenerator generator(o.params, o.ring, test_seed(6));
  const auto keys = generator.evaluation_keys(*o.sk, {{-1, 1}, {1, 2}, {7, 0}}, rlwe::kNoKey, 1);
  EXPECT_EQ(bytes, wire::to_bytes(keys));
  const KeyCost cost = client.key_cost();
  EXPECT_EQ(cost.count, 4u);
  EXPECT_EQ(cost.made, keys.bytes());
  EXPECT_EQ(cost.sent, bytes.size());
}

TEST_F(Clients, WhatKeysCostIsSaidBeforeAnyIsMade) {
  const KeyCost cost = client.key_cost();
  const auto fail = [](std::span<const std::uint8_t>) { ADD_FAILURE() << "a key was made"; };
  const std::string text = refused<LimitExceeded>([&] { client.make_keys(fail, cost.made - 1); });
  // Each language has a name of its own for the limit.
  EXPECT_EQ(text.find("max"), std::string::npos) << text;
  const Allow allow = [](std::uint64_t bytes) { return "allow " + std::to_string(bytes); };
  const std::string more = refused<LimitExceeded>(
      [&] { client.make_keys(fail, cost.made - 1, {}, std::nullopt, allow); });
  EXPECT_EQ(more, text + ": if the program is worth it, allow " + std::to_string(cost.made));
  EXPECT_NE(text.find(cost.text()), std::string::npos) << text;
  EXPECT_NO_THROW(client.make_keys([](std::span<const std::uint8_t>) {}, cost.made));
  Manifest hostile = manifest;
  const int slots = static_cast<int>(o.params->slots());
  for (int step = 1 - slots; step < slots; ++step)
    hostile.demand.rotations[step] = o.params->depth();
  const Client asked(manifest_from_bytes(to_bytes(hostile), kAnySecurity), client.holder());
  EXPECT_THROW(asked.make_keys(fail, std::uint64_t{1} << 24), LimitExceeded);
}

}  // namespace
}  // namespace jali::client
