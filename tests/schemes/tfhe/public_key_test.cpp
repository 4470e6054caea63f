// Encryption under the compact public key: what comes back, with which noise, what is refused, and
// what an owner of data can see.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "../../seeded.h"
#include "jali/base/error.h"
#include "jali/params/lwe_security.h"
#include "jali/params/tfhe_noise.h"
#include "jali/params/tfhe_presets.h"
#include "jali/schemes/tfhe/secret/encryptor.h"
#include "world.h"

namespace jali::tfhe {
namespace {

using test::counting;
using test::TfheShape;
using test::TfheWorld;
using test::Values;

/// The shapes of every order, torus and rotation, and one whose key is several polynomials.
std::vector<TfheShape> shapes() {
  std::vector<TfheShape> out = test::every_shape();
  out.push_back({Rotation::classic, 1, Order::switch_first, Torus::t64, 5, 3});
  out.push_back({Rotation::classic, 1, Order::switch_first, Torus::t64, 4, 1, 2048});
  return out;
}

PublicEncryptor encryptor_of(Client& client, int threads = 1) {
  return PublicEncryptor(std::make_shared<const lwe::PublicKey>(client.public_key()), threads);
}

Values random_values(std::mt19937_64& rng, std::size_t count, std::uint64_t below) {
  Values out(count);
  for (auto& v : out) v = rng() % below;
  return out;
}

TEST(PublicKey, EncryptsWhatTheClientDecryptsAndEvaluatorsTake) {
  JALI_SEEDED(rng);
  for (const TfheShape& shape : shapes()) {
    SCOPED_TRACE(test::name_of(shape));
    TfheWorld world(shape);
    PublicEncryptor owner = encryptor_of(world.client, 2);
    const Evaluator& ev = *world.evaluator;
    // One message, a full polynomial, one more, and several polynomials.
    const std::size_t N = shape.N;
    for (const std::size_t count : {std::size_t{1}, N / 2, N, N + 1, 2 * N + 7}) {
      const Values values = random_values(rng, count, 16);
      const CompactCiphertext x = owner.encrypt(values, 15);
      EXPECT_EQ(world.client.decrypt(x), values);
      if (count > N / 2) continue;  // what follows holds for many rows if it does for some
      const Ciphertext bound = ev.bind(x);
      EXPECT_EQ(world.decrypt(bound), values);
      EXPECT_EQ(bound.max_degree(), 15u);
      EXPECT_EQ(bound.history.norm2(), 1);
      EXPECT_TRUE(bound.history.known());
      EXPECT_TRUE(bound.history.independent());
    }
    EXPECT_EQ(owner.encrypt(Values{1}).degree, 3u);
    EXPECT_EQ(world.client.decrypt(owner.encrypt(Values{})), Values{});
    EXPECT_EQ(ev.bind(owner.encrypt(Values{})).size(), 0u);
    // Two owners and the client together.
    PublicEncryptor other = encryptor_of(world.client);
    const Values a = random_values(rng, 6, 4), b = random_values(rng, 6, 4),
                 c = random_values(rng, 6, 4);
    const Ciphertext sum =
        ev.add(ev.add(ev.bind(owner.encrypt(a)), ev.bind(other.encrypt(b))), world.encrypt(c));
    Values expected(6);
    for (std::size_t i = 0; i < 6; ++i) expected[i] = a[i] + b[i] + c[i];
    EXPECT_EQ(world.decrypt(sum), expected);
    EXPECT_EQ(sum.history.norm2(), 3);
    const LookUpTable table(world.params, [](std::uint64_t v) { return (v * v + 1) % 16; });
    for (auto& v : expected) v = (v * v + 1) % 16;
    EXPECT_EQ(world.decrypt(ev.apply(sum, table)), expected);
  }
}

TEST(PublicKey, SizesAreThoseThatAreStated) {
  Client client(test::insecure_params());
  const lwe::PublicKey key = client.public_key();
  EXPECT_EQ(key.bytes(), client.params()->public_key_bytes());
  EXPECT_EQ(key.bytes(), 32 + 256 * 8u);
  EXPECT_EQ(key.key_id(), client.key_id());
  PublicEncryptor owner = encryptor_of(client);
  EXPECT_EQ(owner.encrypt(Values(5)).bytes(), (256 + 5) * 8u);
  EXPECT_EQ(owner.encrypt(Values(256 + 5)).bytes(), (2 * 256 + 256 + 5) * 8u);
}

/// Errors on the torus, of the first coefficient of `count` encryptions of 0.
std::vector<double> errors_of_zeros(Client& client, PublicEncryptor& owner, std::size_t count) {
  std::vector<double> out;
  const Params& params = *client.params();
  const double step = std::ldexp(1.0, -1 - params.message_bits() - params.carry_bits());
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(client.errors(owner.encrypt(Values{0}))[0] * step);
  }
  return out;
}

// Of 32 keys with 150 encryptions each. The variance of one key differs from the mean of all by
// about 4% (||E||^2 and the weight of the secret), and a mean square of 4,800 values by 2%:
// together 2.2%, of which 6.2 make a chance of 10^-9.
TEST(PublicKey, NoiseIsThatOfTheFormulaFromBothSides) {
  for (const std::size_t k : {1u, 2u}) {
    for (const Torus torus : {Torus::t32, Torus::t64}) {
      TfheShape shape;
      shape.k = k;
      shape.torus = torus;
      const ParamsPtr params = test::insecure_params(shape);
      double sum = 0, count = 0;
      for (int of = 0; of < 32; ++of) {
        Client client(params);
        PublicEncryptor owner = encryptor_of(client);
        for (const double e : errors_of_zeros(client, owner, 150)) {
          sum += e * e;
          ++count;
        }
      }
      const double formula = NoiseModel(params->literal()).fresh_public();
      EXPECT_GT(sum / count, formula * 0.86) << k;
      EXPECT_LT(sum / count, formula * 1.14) << k;
    }
  }
}

// With a mean that is not 0, R would give all ciphertexts of one key a common error, of half the
// key's own share of the variance, and sums of n would have n^2 of it. Of 64 keys' mean errors over
// 400 encryptions, each is normal with 1/400 of the variance.
TEST(PublicKey, ErrorsOfDifferentEncryptionsUnderOneKeyAreIndependent) {
  const ParamsPtr params = test::insecure_params();
  const double variance = NoiseModel(params->literal()).fresh_public();
  double sum = 0;
  for (int of = 0; of < 64; ++of) {
    Client client(params);
    PublicEncryptor owner = encryptor_of(client);
    double mean = 0;
    for (const double e : errors_of_zeros(client, owner, 400)) mean += e / 400;
    sum += mean * mean * 400 / variance;
  }
  // chi^2 of 64 degrees: 64 +- 6.2 sqrt(128) and its tail; a common error would make it above 64
  // * 50.
  EXPECT_LT(sum / 64, 3);
}

// The bits of the secret have the mean 1/2, so that errors of coefficients near each other are
// alike: a sum of m has up to m^2 / 2 of their variance. public_norm2 counts m^2, and counting m
// would be too little.
TEST(PublicKey, SumsWithinOnePolynomialHaveNoMoreNoiseThanIsCounted) {
  const ParamsPtr params = test::insecure_params();
  const std::size_t N = params->N().value;
  const NoiseModel model(params->literal());
  const double step = std::ldexp(1.0, -1 - params->message_bits() - params->carry_bits());
  double sum = 0;
  constexpr int kRuns = 1500;
  std::optional<Client> client;
  std::optional<PublicEncryptor> owner;
  for (int run = 0; run < kRuns; ++run) {
    if (run % 50 == 0) {
      owner.reset();
      client.emplace(params);
      owner.emplace(std::make_shared<const lwe::PublicKey>(client->public_key()));
    }
    double total = 0;
    for (const double e : client->errors(owner->encrypt(Values(N)))) total += e * step;
    sum += total * total;
  }
  const double one = model.fresh_public(), m = static_cast<double>(N), measured = sum / kRuns;
  EXPECT_GT(measured, 10 * m * one);
  EXPECT_LT(measured, m * m * one);
  EXPECT_DOUBLE_EQ(
      model.public_norm2(Order::switch_first, N) * model.bootstrapped(Order::switch_first),
      m * one);
}

TEST(PublicKey, EveryPresetHoldsItsNoiseAndItsSecurity) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(std::string(preset.name));
    const Literal literal = literal_of(preset);
    const NoiseModel model(literal);
    EXPECT_EQ(public_batch(literal), preset.N);
    // A message counts as one bootstrapped ciphertext, with room: log2_p_fail is that of the
    // parameters.
    EXPECT_LT(model.public_norm2(literal.order, preset.N), 0.002);
    // The key and the ciphertexts are GLWE encryptions under binary secrets of k N bits with the
    // errors of the large key.
    EXPECT_GE(
        lwe_security(1, preset.k * preset.N, log2_noise(preset.glwe_noise_bits, preset.torus)),
        literal.security);
    Client client(Params::create(literal), 2);
    PublicEncryptor owner = encryptor_of(client, 2);
    const Values values = counting(client.params()->value_modulus());
    EXPECT_EQ(client.decrypt(owner.encrypt(values, values.size() - 1)), values);
  }
}

TEST(PublicKey, AMessageCountsNoMoreThanABootstrappedCiphertextWhateverTheParameters) {
  JALI_SEEDED(rng);
  for (const TfheShape& shape : shapes()) {
    Literal literal = test::insecure_literal(shape);
    for (int round = 0; round < 200; ++round) {
      const int word = backend::torus_bits(literal.torus);
      const int levels = 1 + static_cast<int>(rng() % 4);
      literal.rotation_gadget = {
          1 + static_cast<int>(rng() % static_cast<std::uint64_t>(std::min(31, word / levels))),
          levels};
      literal.switch_gadget = {1 + static_cast<int>(rng() % 8), 1 + static_cast<int>(rng() % 4)};
      literal.lwe_noise_bits = static_cast<int>(rng() % 31);
      literal.glwe_noise_bits = static_cast<int>(rng() % static_cast<std::uint64_t>(word - 1));
      literal.n = LweDimension(static_cast<std::size_t>(literal.group) * (1 + rng() % 900));
      const NoiseModel model(literal);
      const std::size_t most = public_batch(literal);
      ASSERT_GE(most, 1u);
      ASSERT_LE(most, literal.N.value);
      EXPECT_LE(model.public_norm2(literal.order, most), 1 + 1e-9);
      if (most < literal.N.value) {
        EXPECT_GT(model.public_norm2(literal.order, most + 1), 1 - 1e-9);
      }
    }
  }
}

TEST(PublicKey, EqualBytesAreEqualErrors) {
  TfheWorld world;
  PublicEncryptor owner = encryptor_of(world.client);
  const CompactCiphertext x = owner.encrypt(Values{1, 2, 3});
  const Evaluator& ev = *world.evaluator;
  const Ciphertext a = ev.bind(x), b = ev.bind(x), c = ev.bind(owner.encrypt(Values{1, 2, 3}));
  EXPECT_EQ(ev.add(a, b).history.norm2(), 4);
  EXPECT_EQ(ev.add(a, c).history.norm2(), 2);
}

/// What an owner who has no message of its own can make of another owner's ciphertext.
TEST(PublicKey, CopiesOfOtherOwnersCiphertextsCountAsTheSameErrors) {
  TfheWorld world;
  const Evaluator& ev = *world.evaluator;
  const Params& params = *world.params;
  const std::size_t N = params.N().value;
  const CompactCiphertext x = encryptor_of(world.client).encrypt(Values(N, 1));
  const auto changed = [&](const auto& change) {
    CompactCiphertext out = x;
    auto words = std::make_shared<device::Buffer>(device::Pool::create()->allocate(x.bytes()));
    std::memcpy(words->data(), x.words->data(), x.bytes());
    change(static_cast<std::uint64_t*>(words->data()));
    out.words = std::move(words);
    return ev.bind(out);
  };
  const auto of = [&](const Ciphertext& a, std::uint32_t i) {
    const std::uint32_t index[] = {i};
    return ev.gather(a, index);
  };
  const auto both = [&](const Ciphertext& a, const Ciphertext& b) {
    return ev.add(a, b).history.norm2();
  };
  const Ciphertext bound = ev.bind(x);
  const Ciphertext raised = changed([&](std::uint64_t* w) { w[N] += params.step(); });
  EXPECT_EQ(both(of(bound, 0), of(raised, 0)), 4);
  EXPECT_EQ(both(of(bound, 0), of(raised, 1)), 2);
  const Ciphertext negated = changed([&](std::uint64_t* w) {
    for (std::size_t i = 0; i < 2 * N; ++i) w[i] = 0 - w[i];
  });
  EXPECT_EQ(both(of(bound, 3), of(negated, 3)), 4);
  const Ciphertext turned = changed([&](std::uint64_t* w) {  // times X
    for (std::uint64_t* const part : {w, w + N}) {
      std::rotate(part, part + N - 1, part + N);
      part[0] = 0 - part[0];
    }
  });
  EXPECT_EQ(both(of(bound, 3), of(turned, 4)), 4);
  EXPECT_EQ(both(of(bound, N - 1), of(turned, 0)), 4);
  EXPECT_EQ(both(of(bound, 3), of(turned, 3)), 2);
  // A look-up of the copy with a constant is the same as one of a turned table.
  const LookUpTable one(world.params, [](std::uint64_t v) { return v < 4 ? v : 0; });
  const LookUpTable other(world.params,
                          [](std::uint64_t v) { return v >= 1 && v < 5 ? v - 1 : 0; });
  EXPECT_EQ(both(ev.apply(of(bound, 0), one), ev.apply(of(raised, 0), other)), 4);
  // A message without a mask has no error.
  const Ciphertext clear = changed([&](std::uint64_t* w) {
    std::fill(w, w + N, 0);
    w[N] = 3 * params.step();
    w[N + 1] = 3 * params.step() + 1;
  });
  EXPECT_EQ(of(clear, 0).history.norm2(), 0);
  EXPECT_EQ(of(clear, 1).history.norm2(), 1);
  EXPECT_EQ(world.decrypt(of(clear, 0)), Values{3});
}

TEST(PublicKey, NothingIsRepeated) {
  Client client(test::insecure_params());
  const lwe::PublicKey one = client.public_key(), two = client.public_key();
  EXPECT_NE(one.zeros.seed, two.zeros.seed);
  PublicEncryptor owner = encryptor_of(client, 2);
  std::set<std::uint64_t> words;
  std::size_t count = 0, ones = 0;
  for (int i = 0; i < 3; ++i) {
    const CompactCiphertext x = owner.encrypt(Values(3 * 256));
    const auto* const at = static_cast<const std::uint64_t*>(x.words->data());
    for (std::size_t w = 0; w < x.bytes() / 8; ++w) {
      words.insert(at[w]);
      ones += static_cast<std::size_t>(std::popcount(at[w]));
    }
    count += x.bytes() / 8;
  }
  EXPECT_EQ(words.size(), count) << "two of 4,608 uniform words of 64 bits are equal with 2^-41";
  const double bits = 64 * static_cast<double>(count);
  EXPECT_NEAR(static_cast<double>(ones), bits / 2, 6.2 * std::sqrt(bits) / 2);
}

TEST(PublicKey, IsReproducedFromItsSeeds) {
  random::Seed seed{};
  seed[0] = 9;
  const ParamsPtr params = test::insecure_params();
  Values values(3 * 256);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 4;
  const auto words = [&](int threads) {
    Client client(params, 1, seed);
    PublicEncryptor owner(std::make_shared<const lwe::PublicKey>(client.public_key()), threads,
                          seed);
    const CompactCiphertext x = owner.encrypt(values);
    const auto* const at = static_cast<const std::uint64_t*>(x.words->data());
    return std::vector<std::uint64_t>(at, at + x.bytes() / 8);
  };
  EXPECT_EQ(words(1), words(3));
}

TEST(PublicKey, RefusesWhatDoesNotFit) {
  const ParamsPtr params = test::insecure_params();
  TfheWorld world(params);
  PublicEncryptor owner = encryptor_of(world.client);
  EXPECT_THROW(owner.encrypt(Values{4}), InvalidArgument);
  EXPECT_THROW(owner.encrypt(Values{static_cast<std::uint64_t>(-1)}), InvalidArgument);
  EXPECT_THROW(owner.encrypt(Values{0}, 16), InvalidArgument);
  EXPECT_THROW(PublicEncryptor(nullptr), InvalidArgument);
  lwe::PublicKey nameless = world.client.public_key();
  nameless.zeros.key_id = {};
  EXPECT_THROW(PublicEncryptor(std::make_shared<const lwe::PublicKey>(std::move(nameless))),
               InvalidArgument);
  lwe::PublicKey small = world.client.public_key();
  small.zeros.N = PolynomialSize(128);
  EXPECT_THROW(PublicEncryptor(std::make_shared<const lwe::PublicKey>(std::move(small))),
               ParamsMismatch);

  // Another client's, and other parameters'.
  Client other(params);
  const CompactCiphertext foreign = encryptor_of(other).encrypt(Values{1});
  EXPECT_THROW(world.evaluator->bind(foreign), KeyMismatch);
  EXPECT_THROW(world.client.decrypt(foreign), KeyMismatch);
  TfheShape shape;
  shape.n = 14;
  Client far(test::insecure_params(shape));
  const CompactCiphertext unlike = encryptor_of(far).encrypt(Values{1});
  EXPECT_THROW(world.evaluator->bind(unlike), ParamsMismatch);
  EXPECT_THROW(world.client.decrypt(unlike), ParamsMismatch);
  EXPECT_THROW(world.client.decrypt(CompactCiphertext{}), InvalidArgument);
  EXPECT_THROW(world.evaluator->bind(CompactCiphertext{}), InvalidArgument);
  CompactCiphertext x = owner.encrypt(Values(3));
  x.count = 300;
  EXPECT_THROW(world.evaluator->bind(x), InvalidArgument);

  // Decryption's check is as narrow as the noise: a change far below half a step is found.
  CompactCiphertext damaged = owner.encrypt(Values{1});
  auto* const word = static_cast<std::uint64_t*>(const_cast<void*>(damaged.words->data()));
  word[256] += params->step() / 1000;
  EXPECT_THROW(world.client.decrypt(damaged), WrongDecryption);
  EXPECT_EQ(world.client.decrypt(damaged, Check::no), Values{1});
}

}  // namespace
}  // namespace jali::tfhe
