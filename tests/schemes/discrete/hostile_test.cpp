// What an attacker or an accident may change: nothing of it is decrypted to wrong numbers without a
// word.
#include <limits>

#include "jali/rlwe/keys.h"
#include "world.h"

namespace jali::discrete {
namespace {

Ciphertext copy_of(const World& w, const Ciphertext& a) {
  Ciphertext out;
  out.body() = rlwe::Evaluator(w.params, w.ring, nullptr).copy(a);
  out.key_id = a.key_id;
  out.params = a.params;
  out.factor = a.factor;
  out.estimate = a.estimate;
  return out;
}

class DiscreteHostile : public ::testing::TestWithParam<Case> {
 protected:
  World w{GetParam()};
};

TEST_P(DiscreteHostile, AnotherKeyIsFoundOut) {
  JALI_SEEDED(rng);
  World other(GetParam());
  Ciphertext a = w.encrypt(w.numbers(rng, 0, 9), 0, 9);
  EXPECT_THROW(other.decrypt(a), KeyMismatch);
  a.key_id = other.secret->id();
  EXPECT_THROW(other.decrypt(a), WrongDecryption);
  a.key_id = {};
  EXPECT_THROW(other.decrypt(a), WrongDecryption);
  // Not even if numbers may be anything, for as long as there is a budget.
  Ciphertext residues = w.encrypt_residues(w.numbers(rng, 0, 9));
  residues.key_id = {};
  EXPECT_THROW(other.decrypt(residues), WrongDecryption);
  EXPECT_NO_THROW(other.decrypt(residues, Check::no));
}

TEST_P(DiscreteHostile, AlteredCiphertextsAreFoundOut) {
  JALI_SEEDED(rng);
  const std::int64_t b = w.params->modulus().high();
  const Numbers x = w.numbers(rng, -b, b);
  const Ciphertext a = w.encrypt(x, -b, b);
  const auto altered = [&](auto change) {
    Ciphertext out = copy_of(w, a);
    change(out);
    return out;
  };
  // One residue of a part, in NTT form.
  EXPECT_THROW(w.decrypt(altered([&](Ciphertext& c) {
    auto* row = static_cast<std::byte*>(c.parts[rng() % 2].row(0, 0));
    row[0] ^= std::byte{1};
  })),
               WrongDecryption);
  // Another level's factor, range or noise.
  EXPECT_THROW(w.decrypt(altered([](Ciphertext& c) { c.factor = 0; })), InvalidArgument);
  EXPECT_THROW(w.decrypt(altered([](Ciphertext& c) { c.estimate.range = {-3, 3, false}; })),
               WrongDecryption);
  EXPECT_THROW(
      w.decrypt(altered([](Ciphertext& c) { c.estimate.slot = c.estimate.coefficient = 1; })),
      WrongDecryption);
  for (const double lie : {1e299, 1e300, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(
        w.decrypt(altered([&](Ciphertext& c) { c.estimate.slot = c.estimate.coefficient = lie; })),
        DepthExhausted);
  }
  EXPECT_THROW(w.decrypt(altered([](Ciphertext& c) { c.params.reset(); })), InvalidArgument);
  EXPECT_THROW(w.decrypt(Ciphertext()), InvalidArgument);
  EXPECT_EQ(w.decrypt(a), x);
}

TEST_P(DiscreteHostile, ObjectsOfOthersAreRefused) {
  JALI_SEEDED(rng);
  const Evaluator e = w.evaluator();
  World client(GetParam());
  Case changed = GetParam();
  changed.depth += 1;
  World params(changed);
  const Numbers x = w.numbers(rng, 0, 9);
  const Ciphertext a = w.encrypt(x, 0, 9), theirs = client.encrypt(x, 0, 9);
  const Ciphertext unlike = params.encrypt(x, 0, 9);
  EXPECT_THROW(e.add(a, theirs), KeyMismatch);
  EXPECT_THROW(e.add(theirs, a), KeyMismatch);
  EXPECT_THROW(e.sub(a, unlike), ParamsMismatch);
  EXPECT_THROW(e.multiply_integer(unlike, 2), ParamsMismatch);
  EXPECT_THROW(e.add_plain(a, params.encoder().encode_clear(x, 1)), ParamsMismatch);
  EXPECT_THROW(e.add_plain(a, Plaintext()), ParamsMismatch);
  EXPECT_THROW(e.add(a, Ciphertext()), InvalidArgument);
  EXPECT_THROW(w.decrypt(unlike), ParamsMismatch);
  EXPECT_THROW(w.encryptor.encrypt(params.encoder().encode_clear(x, 1)), ParamsMismatch);
  EXPECT_THROW(w.encryptor.encrypt(Plaintext()), InvalidArgument);
  EXPECT_THROW(w.encryptor.encrypt(w.encoder().encode_clear(x, 1), w.params->top() + 1),
               InvalidArgument);
  EXPECT_THROW(Encoder(params.params, w.ring), ParamsMismatch);
  EXPECT_THROW(Decryptor(w.secret, params.host, params.params), ParamsMismatch);
  EXPECT_THROW(PublicEncryptor(w.public_key, params.host, params.params), ParamsMismatch);
  EXPECT_THROW(e.drop_to(a, a.level + 1), InvalidArgument);
  EXPECT_THROW(e.drop_to(a, -1), InvalidArgument);
  const Evaluator none(w.engine, nullptr);
  EXPECT_EQ(w.decrypt(none.add(a, a)), times(x, {2}));
  if (w.params->packing() == Packing::slots) {
    EXPECT_THROW(none.square(a), KeyMissing);
    EXPECT_THROW(none.swap_rows(a), KeyMissing);
    EXPECT_THROW(e.automorphism(a, 2), InvalidArgument);
    EXPECT_THROW(e.rotate_hoisted({}, 1), InvalidArgument);
  }
}

TEST_P(DiscreteHostile, VectorsWithoutNumbersAreRefused) {
  for (const std::size_t batch : {std::size_t{0}, std::size_t{1}, std::size_t{1} << 55}) {
    EXPECT_THROW(w.encoder().encode({}, batch, w.noise().range(0, 1)), InvalidArgument);
    EXPECT_THROW(w.encoder().encode_clear({}, batch), InvalidArgument);
  }
}

std::vector<Case> setups() {
  return {{"w32", Word::w32, 65537, 0, 1},
          {"w52_integers59", Word::w52, {}, 59, 1},
          {"bfv_w64", Word::w64, 65537, 0, 1, Multiplication::bfv},
          {"coefficients", Word::w52, kTwoTo64, 0, 1, Multiplication::bgv, Packing::coefficients}};
}

INSTANTIATE_TEST_SUITE_P(All, DiscreteHostile, ::testing::ValuesIn(setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::discrete
