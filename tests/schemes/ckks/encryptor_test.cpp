#include <cstring>

#include "fixture.h"

namespace jali::testing {
namespace {

class EncryptorTest : public ::testing::TestWithParam<Scheme> {};

TEST_P(EncryptorTest, SecretKeyEncryptionHasItsNoiseAtEveryLevel) {
  World w(GetParam(), {});
  for (int level = 0; level <= w.params->depth(); ++level) {
    const auto z = w.vector();
    const auto c = w.encrypt(z, level);
    EXPECT_TRUE(c.seed.has_value());
    w.expect(c, z, 0.85, 1.15);
  }
}

TEST_P(EncryptorTest, PublicKeyEncryptionHasItsNoise) {
  World w(GetParam(), {});
  const auto pk = std::make_shared<const rlwe::PublicKey>(w.keygen->public_key(*w.sk));
  ckks::PublicEncryptor encryptor(pk, w.ring);
  for (int level = 0; level <= w.params->depth(); ++level) {
    const auto z = w.vector();
    const auto c =
        encryptor.encrypt(w.encoder().encode(z, 1, level, w.params->scale(level)), kMagnitude);
    w.expect(c, z, 0.85, 1.15);
  }
}

TEST_P(EncryptorTest, BatchesAreIndependent) {
  World w(GetParam(), {});
  const auto z = w.vector(1, 3 * w.params->slots());
  const auto c = w.encrypt(z, -1, -1, 3);
  EXPECT_EQ(c.batch(), 3u);
  w.expect(c, z, 0.85, 1.15);
  // The uniform parts differ, so entries of a batch share no randomness.
  EXPECT_NE(0, std::memcmp(c.parts[1].row(0, 0), c.parts[1].row(0, 1), c.parts[1].row_bytes()));
}

TEST_P(EncryptorTest, SameMessageTwiceGivesUnrelatedCiphertexts) {
  World w(GetParam(), {});
  const auto z = w.vector();
  const auto a = w.encrypt(z), b = w.encrypt(z);
  std::size_t equal = 0;
  for (std::size_t k = 0; k < w.params->n(); ++k) {
    equal += a.parts[0].at(0, 0, k) == b.parts[0].at(0, 0, k);
  }
  EXPECT_LT(equal, 4u);
}

TEST_P(EncryptorTest, NothingOfTheMessageTravelsBesideTheCiphertext) {
  World w(GetParam(), {});
  const auto pk = std::make_shared<const rlwe::PublicKey>(w.keygen->public_key(*w.sk));
  ckks::PublicEncryptor anyone(pk, w.ring);
  const auto encode = [&](const std::vector<Complex>& z) {
    return w.encoder().encode(z, 1, 0, w.params->scale(0));
  };
  const auto small = encode(w.vector(1e-3)), large = encode(w.vector(1));
  const auto same = [](const ckks::Ciphertext& a, const ckks::Ciphertext& b) {
    EXPECT_EQ(a.estimate.variance, b.estimate.variance);
    EXPECT_EQ(a.estimate.message, b.estimate.message);
    EXPECT_EQ(a.estimate.peak, b.estimate.peak);
    EXPECT_EQ(a.estimate.error, b.estimate.error);
    EXPECT_EQ(a.estimate.noise, b.estimate.noise);
    EXPECT_EQ(a.scale, b.scale);
    EXPECT_EQ(a.log_slots, b.log_slots);
  };
  same(w.encryptor->encrypt(small), w.encryptor->encrypt(large));
  same(anyone.encrypt(small), anyone.encrypt(large));
}

TEST_P(EncryptorTest, RefusesNumbersBeyondTheDeclaredPeak) {
  World w(GetParam(), {});
  const auto encode = [&](Complex largest) {
    auto z = w.vector(0.5);
    z.back() = largest;
    return w.encoder().encode(z, 1, 0, w.params->scale(0));
  };
  EXPECT_THROW(w.encryptor->encrypt(encode(8.1)), InvalidArgument);
  EXPECT_THROW(w.encryptor->encrypt(encode({0, -8.1})), InvalidArgument);
  EXPECT_THROW(w.encryptor->encrypt(encode(1.1), {0.5, 1}), InvalidArgument);
  EXPECT_NO_THROW(w.encryptor->encrypt(encode(8.1), 2));
  EXPECT_NO_THROW(w.encryptor->encrypt(encode(1.1), {0.5, 1.1}));
  for (const double bad : {-1.0, double(NAN), double(INFINITY)}) {
    EXPECT_THROW(w.encryptor->encrypt(encode(0.5), bad), InvalidArgument);
    EXPECT_THROW(w.encryptor->encrypt(encode(0.5), {1, bad}), InvalidArgument);
  }
}

TEST_P(EncryptorTest, RefusesARootMeanSquareAboveTheDeclaredOne) {
  World w(GetParam(), {});
  const auto pk = std::make_shared<const rlwe::PublicKey>(w.keygen->public_key(*w.sk));
  ckks::PublicEncryptor anyone(pk, w.ring);
  const std::size_t slots = w.params->slots();
  const auto equal = [&](double number, std::size_t batch = 1) {
    return w.encoder().encode(std::vector<Complex>(batch * slots, number), batch, 0,
                              w.params->scale(0));
  };
  const double most = 1 + 4 / std::sqrt(static_cast<double>(slots));
  for (const double magnitude : {0.25, 1.0}) {
    const double held = magnitude * most;
    EXPECT_NO_THROW(w.encryptor->encrypt(equal(held - 1e-9), magnitude));
    EXPECT_THROW(w.encryptor->encrypt(equal(held + 1e-9), magnitude), InvalidArgument);
    EXPECT_THROW(anyone.encrypt(equal(held + 1e-9), magnitude), InvalidArgument);
    // A batch is one larger sample.
    EXPECT_THROW(w.encryptor->encrypt(equal(held - 1e-9, 2), magnitude), InvalidArgument);
    params::Declared of_examples = magnitude;
    of_examples.calibrated = true;
    EXPECT_NO_THROW(w.encryptor->encrypt(equal(held + 1e-9), of_examples));
  }
}

TEST_P(EncryptorTest, AnotherKeyReadsNothing) {
  World w(GetParam(), {}), other(GetParam(), {});
  const auto z = w.vector();
  ckks::Ciphertext c = w.encrypt(z);
  EXPECT_THROW(other.decryptor->decrypt(c), KeyMismatch);
  c.key_id = other.sk->id();  // somebody wrote a false name
  const auto got = other.encoder().decode(other.decryptor->decrypt(c));
  EXPECT_GT(max_error(got, z), 1.0);
}

TEST_P(EncryptorTest, RefusesOtherParameters) {
  World w(GetParam(), {});
  Scheme changed = GetParam();
  changed.depth += 1;
  World other(changed, {});
  const auto c = other.encrypt(other.vector());
  EXPECT_THROW(w.decryptor->decrypt(c), ParamsMismatch);
  const auto plain = other.encoder().encode(other.vector(), 1, 0, 1e6);
  EXPECT_THROW(w.encryptor->encrypt(plain), ParamsMismatch);
}

INSTANTIATE_TEST_SUITE_P(Setups, EncryptorTest, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
