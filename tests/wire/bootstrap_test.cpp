// Parameters and keys of bootstrapping as bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "../seeded.h"
#include "jali/base/error.h"
#include "objects.h"

namespace jali::wire {
namespace {

using jali::testing::Loader;
using jali::testing::Objects;

ckks::Literal literal(Word word) {
  auto l = jali::testing::small_literal(word, word == Word::w32 ? 50 : 40, 2);
  l.bootstrap.emplace();
  l.bootstrap->cts_levels = 2;
  l.bootstrap->stc_levels = 1;
  l.bootstrap->stc_bits = l.scale_bits;
  l.bootstrap->head_bits = word == Word::w32 ? 6 : 0;
  return l;
}

rlwe::EvaluationKeys keys_of(const Objects& o) {
  rlwe::KeyGenerator keygen(o.params, o.ring, jali::testing::test_seed(7));
  auto keys = keygen.evaluation_keys(*o.sk, {{1, 2}, {2, -1}}, 5, o.params->top() - 1);
  keys.encapsulation = keygen.encapsulation_keys(*o.sk);
  return keys;
}

void expect_equal(const ring::Poly& a, const ring::Poly& b) {
  ASSERT_TRUE(std::ranges::equal(a.primes(), b.primes()));
  ASSERT_EQ(a.bytes(), b.bytes());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0);
}

TEST(BootstrapBytes, ParametersAndKeysComeBack) {
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    const Objects o(literal(word));
    const auto params = params_from_bytes(to_bytes(*o.params), testing::kAnySecurity);
    EXPECT_EQ(params->hash(), o.params->hash());
    EXPECT_EQ(params->bootstrap(), o.params->bootstrap());
    const auto keys = keys_of(o);
    const auto& p = *o.params;
    EXPECT_EQ(keys.bytes(), p.switch_key_bytes(2) + p.switch_key_bytes() + p.switch_key_bytes(5) +
                                p.switch_key_bytes(p.top() - 1) + p.encapsulation_key_bytes());
    const auto back = from_bytes<rlwe::EvaluationKeys>(to_bytes(keys), params, *o.ring);
    ASSERT_TRUE(back.encapsulation.has_value() && back.relinearisation.has_value());
    EXPECT_EQ(back.relinearisation->level, p.top() - 1);
    for (const auto& [element, key] : keys.galois) {
      EXPECT_EQ(back.galois.at(element).level, key.level);
    }
    EXPECT_EQ(back.encapsulation->to_sparse_seed, keys.encapsulation->to_sparse_seed);
    EXPECT_EQ(back.encapsulation->to_dense_seed, keys.encapsulation->to_dense_seed);
    expect_equal(back.encapsulation->to_sparse, keys.encapsulation->to_sparse);
    expect_equal(back.encapsulation->to_dense, keys.encapsulation->to_dense);
    EXPECT_EQ(to_bytes(back), to_bytes(keys));
  }
}

TEST(BootstrapBytes, KeysWithAConstantRowAreRefused) {
  for (const Word word : {Word::w32, Word::w64}) {
    const Objects o(literal(word));
    const Bytes valid = to_bytes(keys_of(o));
    const auto load = [&](const Bytes& b) {
      return from_bytes<rlwe::EvaluationKeys>(b, o.params, *o.ring);
    };
    for (const bool sparse : {true, false}) {
      auto keys = load(valid);
      ring::Poly& b = sparse ? keys.encapsulation->to_sparse : keys.encapsulation->to_dense;
      std::memset(b.row(b.primes().size() - 1), 0, b.row_bytes());
      EXPECT_THROW(load(to_bytes(keys)), CorruptData);
    }
  }
}

// No byte is ignored: changed bytes are refused, or the object that is read writes exactly these
// bytes again.
TEST(BootstrapBytes, DamageIsRefused) {
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937 random(seed);
  const Objects o(literal(Word::w52));
  const auto refused = [&](Bytes bytes, auto load) {
    try {
      const Bytes again = load(bytes);
      ADD_FAILURE() << "accepted, seed " << seed;
    } catch (const Error&) {
    }
  };
  const auto load_params = [](const Bytes& b) {
    return to_bytes(*params_from_bytes(b, testing::kAnySecurity));
  };
  const auto load_keys = [&](const Bytes& b) {
    return to_bytes(from_bytes<rlwe::EvaluationKeys>(b, o.params, *o.ring));
  };
  const Bytes params = to_bytes(*o.params), keys = to_bytes(keys_of(o));
  for (std::size_t i = 0; i < params.size(); ++i) {
    Bytes bytes = params;
    bytes[i] ^= static_cast<std::uint8_t>(1 + random() % 255);
    refused(bytes, load_params);
    refused(Bytes(params.begin(), params.begin() + static_cast<std::ptrdiff_t>(i)), load_params);
  }
  for (int i = 0; i < 40; ++i) {
    Bytes bytes = keys;
    bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1 + random() % 255);
    refused(bytes, load_keys);
    refused(Bytes(keys.begin(), keys.end() - static_cast<std::ptrdiff_t>(1 + random() % 100000)),
            load_keys);
  }
  // Keys of bootstrapping are refused if the parameters have no bootstrapping.
  auto plain = literal(Word::w52);
  plain.bootstrap.reset();
  const Objects p(plain);
  EXPECT_THROW(from_bytes<rlwe::EvaluationKeys>(keys, p.params, *p.ring), ParamsMismatch);
}

}  // namespace
}  // namespace jali::wire
