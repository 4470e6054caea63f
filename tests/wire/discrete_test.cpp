// Bytes of exact integers: what is written is read back, and anything else is refused.
#include "jali/wire/discrete.h"

#include <cmath>
#include <limits>
#include <random>

#include "../schemes/discrete/world.h"
#include "jali/wire/keys.h"
#include "tampering.h"

namespace jali::wire {
namespace {

using discrete::Case;
using discrete::Ciphertext;
using discrete::kN;
using discrete::Multiplication;
using discrete::Numbers;
using discrete::World;
using namespace testing;

std::vector<Case> cases() {
  const auto bgv = Multiplication::bgv;
  const auto coefficients = discrete::Packing::coefficients;
  return {{"w32", Word::w32, 65537, 0, 1},
          {"w52_integers59", Word::w52, {}, 59, 1},
          {"bfv_w64", Word::w64, 65537, 0, 1, Multiplication::bfv},
          {"coefficients", Word::w52, discrete::kTwoTo64, 0, 1, bgv, coefficients}};
}

class DiscreteWire : public ::testing::TestWithParam<Case> {
 protected:
  World w{GetParam()};
  Ciphertext load(const Bytes& bytes) const {
    return discrete_ciphertext_from_bytes(bytes, w.params, *w.ring, kLimits);
  }
  DiscreteArray load_array(const Bytes& bytes) const {
    return discrete_array_from_bytes(bytes, w.params, *w.ring, kLimits);
  }
  Bytes again(const Bytes& bytes) const { return to_bytes(load_array(bytes)); }
};

TEST_P(DiscreteWire, WhatIsWrittenIsReadBack) {
  JALI_SEEDED(rng);
  const auto params = discrete_params_from_bytes(to_bytes(*w.params), kLimits);
  EXPECT_EQ(params->hash(), w.params->hash());
  EXPECT_EQ(to_bytes(*params), to_bytes(*w.params));
  const discrete::Evaluator e = w.evaluator();
  const Numbers x = w.numbers(rng, -9, 9, 2 * kN);
  const auto plaintext = w.encoder().encode(x, 2, w.noise().range(-9, 9));
  const Ciphertext seeded = w.secret_encryptor.encrypt(plaintext);
  const Ciphertext fresh = w.encryptor.encrypt(plaintext), sum = e.add(fresh, fresh);
  EXPECT_LT(to_bytes(seeded).size(), 0.6 * static_cast<double>(to_bytes(fresh).size()));
  for (const Ciphertext* c : {&seeded, &fresh, &sum}) {
    const Bytes bytes = to_bytes(*c);
    const Ciphertext read = load(bytes);
    EXPECT_EQ(to_bytes(read), bytes);
    EXPECT_EQ(read.key_id, c->key_id);
    EXPECT_EQ(read.level, c->level);
    EXPECT_EQ(read.factor, c->factor);
    EXPECT_EQ(read.estimate.slot, c->estimate.slot);
    EXPECT_EQ(read.estimate.coefficient, c->estimate.coefficient);
    EXPECT_EQ(read.estimate.range, c->estimate.range);
    EXPECT_EQ(w.decrypt(read), w.decrypt(*c));
  }
  const Ciphertext residues = w.encrypt_residues(w.numbers(rng, -9, 9));
  EXPECT_EQ(load(to_bytes(residues)).estimate.range, w.noise().residues());
}

TEST_P(DiscreteWire, ArraysKeepWhereTheirElementsLie) {
  using ckks::View;
  const auto fresh = [&] {
    return w.secret_encryptor.encrypt(
        w.encoder().encode(Numbers(2 * kN, 3), 2, w.noise().range(0, 3)));
  };
  const std::int32_t row = kN / 2;
  const View views[] = {{{{4, row}, {row, 1}}, 0, 0},  // all slots
                        {{{2, row}, {3, -1}}, kN + 2, 0},
                        {{{1, 1}, {30, 16}, {2, 5}}, 7, 0},
                        {{}, 4 * kN / 2 - 1, 0},  // one number, in the last slot
                        {std::vector<View::Axis>(View::kMostAxes), 0, 0}};
  for (const View& view : views) {
    for (const bool padded : {false, true}) {
      const DiscreteArray a{fresh(), view, padded};
      const Bytes bytes = to_bytes(a);
      const DiscreteArray read = load_array(bytes);
      EXPECT_EQ(read.view, view);
      EXPECT_EQ(read.padded, padded);
      EXPECT_EQ(to_bytes(read), bytes);
      EXPECT_EQ(w.decrypt(read.block), Numbers(2 * kN, 3));
      EXPECT_THROW(load(bytes), CorruptData) << "a ciphertext whose range holds for all numbers";
    }
  }
  const DiscreteArray bare = load_array(to_bytes(fresh()));
  EXPECT_FALSE(bare.view);
  EXPECT_EQ(to_bytes(bare), to_bytes(bare.block));
  EXPECT_EQ(bare.rows(), 4u);
  // A period is one of row 0 of one vector.
  const auto one = w.encrypt(Numbers(kN, 3), 0, 3);
  const DiscreteArray repeated{load(to_bytes(one)), View{{{8, 1}}, 0, 16}, false};
  EXPECT_EQ(load_array(to_bytes(repeated)).view, repeated.view);
  const auto unwritten = [&](Ciphertext block, View view) {
    EXPECT_THROW(to_bytes(DiscreteArray{std::move(block), std::move(view), false}),
                 InvalidArgument);
  };
  unwritten(fresh(), {{{8, 1}}, 0, 16});
  unwritten(fresh(), {{{4, row}, {row, 1}}, 1, 0});
  unwritten(fresh(), {{{2, 0}}, 0, 0});
  unwritten(fresh(), {{}, 2 * kN, 0});
  unwritten(load(to_bytes(one)), {{{17, 1}}, 0, 16});
  unwritten(load(to_bytes(one)), {{{2, 1}}, 0, kN});
}

// Offsets in the payload: packing 63, axes 64, count and stride of the first 65 and 69, of the
// second 73 and 77, first address 81, period 85, seed 89.
TEST_P(DiscreteWire, ViewsThatDoNotFitAreRefused) {
  const DiscreteArray a{
      w.secret_encryptor.encrypt(w.encoder().encode(Numbers(kN, 1), 1, w.noise().range(0, 1))),
      ckks::View{{{2, kN / 2}, {30, 4}}, 3, 0}, true};
  const Bytes valid = to_bytes(a);
  const auto refused = [&](const Bytes& bytes, const char* what) {
    EXPECT_EQ(judged(what, bytes, [&] { return again(bytes); }), Outcome::refused) << what;
  };
  const auto accepted = [&](const Bytes& bytes, const char* what) {
    EXPECT_EQ(judged(what, bytes, [&] { return again(bytes); }), Outcome::accepted) << what;
  };
  for (const std::uint8_t packing : {0, 2, 4, 5, 7, 128, 255}) {
    refused(patched(valid, 63, packing), "packing");
  }
  accepted(patched(valid, 63, std::uint8_t{1}), "other slots may hold anything");
  for (const std::uint8_t axes : {0, 1, 3, 16, 17, 255}) {
    refused(patched(valid, 64, axes), "axes");
  }
  for (const std::uint32_t count : {0u, 3u, 1u << 31, 0xffffffffu}) {
    refused(patched(valid, 65, count), "count of rows");
  }
  accepted(patched(valid, 73, std::uint32_t{kN / 8}), "count");
  refused(patched(valid, 73, std::uint32_t{kN / 8 + 1}), "count past the end");
  for (const std::int32_t stride : {-4, 0, static_cast<int>(kN), 1 << 30, -(1 << 30)}) {
    refused(patched(valid, 69, stride), "stride");
  }
  for (const std::uint32_t first : {static_cast<std::uint32_t>(kN), 1u << 31, 0xffffffffu}) {
    refused(patched(valid, 81, first), "first");
  }
  for (const std::uint32_t period : {1u, 3u, 64u, static_cast<std::uint32_t>(kN), 0xffffffffu}) {
    refused(patched(valid, 85, period), "period");
  }
  refused(patched(valid, 89, std::uint8_t{2}), "no flag");
}

// Keys are those of RLWE: T is in none of them.
TEST_P(DiscreteWire, KeysAreRead) {
  const auto keys =
      from_bytes<rlwe::EvaluationKeys>(to_bytes(*w.keys({1})), w.params, *w.ring, kLimits);
  const discrete::Evaluator e(
      w.engine, std::make_shared<const rlwe::EvaluationKeys>(host_copy(*w.ring, keys)));
  const Ciphertext a = w.encrypt(Numbers(kN, 3), 3, 3);
  if (w.params->packing() == discrete::Packing::slots) {
    EXPECT_EQ(w.decrypt(e.square(a)), Numbers(kN, 9));
    EXPECT_EQ(w.decrypt(e.rotate(a, 1)), Numbers(kN, 3));
  }
  const auto public_key =
      from_bytes<rlwe::PublicKey>(to_bytes(*w.public_key), w.params, *w.ring, kLimits);
  EXPECT_EQ(to_bytes(public_key), to_bytes(*w.public_key));
}

TEST_P(DiscreteWire, DamagedBytesAreRefused) {
  JALI_SEEDED(rng);
  const Ciphertext a = w.secret_encryptor.encrypt(
      w.encoder().encode(w.numbers(rng, -9, 9), 1, w.noise().range(-9, 9)));
  const Bytes valid = to_bytes(a), params = to_bytes(*w.params);
  const auto load_params = [&](const Bytes& bytes) {
    return to_bytes(*discrete_params_from_bytes(bytes, kLimits));
  };
  for (const std::size_t size : cuts(valid.size(), 180, 20, rng)) {
    EXPECT_EQ(judged("cut", cut(valid, size), [&] { return again(cut(valid, size)); }),
              Outcome::refused);
  }
  for (std::size_t size = 0; size < params.size(); ++size) {
    EXPECT_EQ(judged("cut", cut(params, size), [&] { return load_params(cut(params, size)); }),
              Outcome::refused);
  }
  for (std::size_t bit = 0; bit < params.size() * 8; ++bit) {
    const Bytes bad = sealed(flipped(params, bit));
    judged("parameters, bit " + std::to_string(bit), bad, [&] { return load_params(bad); });
  }
  for (int i = 0; i < 200; ++i) {
    const Bytes bad = flipped(valid, rng() % (valid.size() * 8));
    EXPECT_EQ(judged("flipped", bad, [&] { return again(bad); }), Outcome::refused);
    // With a checksum that fits, the contents decide: the same bytes, or refused.
    const Bytes fits = sealed(flipped(valid, rng() % (wire::kHeaderBytes + 90) * 8 + rng() % 8));
    judged("sealed", fits, [&] { return again(fits); });
    const Bytes mixed = sealed(scrambled(valid, i, rng));
    judged("scrambled", mixed, [&] { return again(mixed); });
  }
}

// Offsets in the payload: level 0, batch 2, key 6, factor 22, slot 30, coefficient 38, low 46, high
// 54, wraps 62, packing 63, seed 64.
TEST_P(DiscreteWire, LiesThatNoCiphertextCanTellAreRefused) {
  const Bytes valid = to_bytes(
      w.secret_encryptor.encrypt(w.encoder().encode(Numbers(kN, 1), 1, w.noise().range(0, 1))));
  const auto refused = [&](const Bytes& bytes, const char* what) {
    EXPECT_EQ(judged(what, bytes, [&] { return again(bytes); }), Outcome::refused) << what;
  };
  const double inf = std::numeric_limits<double>::infinity();
  const std::uint64_t t = w.params->modulus().value();
  refused(patched(valid, 0, std::uint16_t{2}), "level");
  refused(patched(valid, 2, std::uint32_t{0}), "no batch");
  refused(patched(valid, 2, std::uint32_t{0xffffffff}), "a huge batch");
  refused(patched(valid, 22, std::uint64_t{0}), "factor 0");
  if (t != 0) refused(patched(valid, 22, t + 1), "factor above T");
  if (t == 0) refused(patched(valid, 22, std::uint64_t{2}), "factor 2");
  for (const std::size_t at : {30, 38}) {
    for (const double x : {-1.0, -0.0, inf, 1e301, std::nan("")}) {
      refused(patched(valid, at, x), "noise");
    }
  }
  refused(patched(valid, 46, std::int64_t{2}), "low above high");
  refused(patched(valid, 62, std::uint8_t{1}), "wraps with another range");
  refused(patched(valid, 62, std::uint8_t{2}), "no flag");
  refused(patched(valid, 64, std::uint8_t{2}), "no flag");
  if (t != 0) {
    refused(patched(valid, 46, std::numeric_limits<std::int64_t>::min()), "wider than T");
    refused(patched(valid, 54, static_cast<std::int64_t>(t)), "wider than T by one");
    EXPECT_NO_THROW(load(patched(valid, 54, static_cast<std::int64_t>(t - 1))));
  }
  // What no evaluator makes is not written either.
  const auto unwritten = [&](auto change) {
    Ciphertext c = load(valid);
    change(c);
    EXPECT_THROW(to_bytes(c), Error);
  };
  unwritten([](Ciphertext& c) { c.factor = 0; });
  unwritten([](Ciphertext& c) { c.level = 7; });
  unwritten([](Ciphertext& c) { c.params.reset(); });
  unwritten([](Ciphertext& c) { c.parts.pop_back(); });
  unwritten([](Ciphertext& c) { c.estimate.slot = std::nan(""); });
  unwritten([](Ciphertext& c) { c.estimate.range = {1, 0, false}; });
  unwritten([](Ciphertext& c) { (*c.seed)[0] ^= 1; });
}

TEST_P(DiscreteWire, ObjectsOfOthersAreRefused) {
  Case other = GetParam();
  other.depth += 1;
  const World unlike(other);
  const Bytes bytes = to_bytes(w.encrypt(Numbers(kN, 1), 0, 1));
  EXPECT_THROW(discrete_ciphertext_from_bytes(bytes, unlike.params, *unlike.ring, kLimits),
               ParamsMismatch);
  EXPECT_THROW(discrete_ciphertext_from_bytes(bytes, w.params, *unlike.ring, kLimits),
               ParamsMismatch);
  EXPECT_THROW(discrete_ciphertext_from_bytes(to_bytes(*w.params), w.params, *w.ring, kLimits),
               CorruptData);
  EXPECT_THROW(discrete_params_from_bytes(to_bytes(*w.params)), InsecureParams);
}

INSTANTIATE_TEST_SUITE_P(All, DiscreteWire, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.label; });

TEST(DiscreteWireParams, SecureOnesAreReadWithoutLimits) {
  for (const int depth : {0, 3}) {
    for (const int integers : {0, 59}) {
      discrete::Literal l;
      l.depth = depth;
      l.integers = integers;
      l.name = "a name";
      const auto p = discrete::Params::create(l);
      const auto read = discrete_params_from_bytes(to_bytes(*p));
      EXPECT_EQ(read->hash(), p->hash());
      EXPECT_EQ(read->literal().name, "a name");
      Limits strict;
      strict.min_security = 256;
      if (p->security() < 256) {
        EXPECT_THROW(discrete_params_from_bytes(to_bytes(*p), strict), InsecureParams);
      }
    }
  }
}

}  // namespace
}  // namespace jali::wire
