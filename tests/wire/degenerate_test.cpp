// Keys that hide nothing are refused: they are empty or constant, or their secret is none. Honest
// keys are all accepted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "../seeded.h"
#include "jali/base/error.h"
#include "jali/random/prng.h"
#include "objects.h"

namespace jali::wire {
namespace {

using testing::Objects;
using testing::small_literal;

class Degenerate : public ::testing::TestWithParam<Word> {
 protected:
  Objects o{small_literal(GetParam(), 40, 1)};
  std::mt19937_64 random{jali::test::test_seed()};

  void set(ring::Poly& x, std::size_t limb, std::size_t k, std::uint64_t value) const {
    if (x.word() == Word::w32) {
      static_cast<std::uint32_t*>(x.row(limb))[k] = static_cast<std::uint32_t>(value);
    } else {
      static_cast<std::uint64_t*>(x.row(limb))[k] = value;
    }
  }
  void fill(ring::Poly& x, std::size_t limb, std::uint64_t value) const {
    for (std::size_t k = 0; k < x.n(); ++k) set(x, limb, k, value);
  }
  /// A polynomial with coefficients as small as errors, over the primes of x and in NTT form.
  ring::Poly small_poly(std::span<const PrimeIndex> primes, int most) {
    std::vector<std::int64_t> e(o.params->n());
    for (auto& v : e) v = static_cast<std::int64_t>(random() % (2 * most + 1)) - most;
    ring::Poly x = o.ring->make(primes, 1, ring::Form::coeff);
    o.ring->ops().from_int64(x.view(), e);
    o.ring->to_ntt(x);
    return x;
  }
  rlwe::PublicKey public_key() const {
    return from_bytes<rlwe::PublicKey>(to_bytes(o.pk), o.params, *o.ring);
  }
  void expect_refused(const rlwe::PublicKey& key, const std::string& what) const {
    EXPECT_THROW(from_bytes<rlwe::PublicKey>(to_bytes(key), o.params, *o.ring), CorruptData)
        << what;
  }
  /// Makes b = c a + small modulo one prime, and leaves it honest modulo the others.
  void spoil(rlwe::PublicKey& key, std::size_t limb, int c, const ring::Poly& e) const {
    const ring::Poly a = rlwe::expand_a(*o.ring, *o.params, key);
    const std::uint64_t q = o.ring->prime(key.b.primes()[limb]);
    for (std::size_t k = 0; k < a.n(); ++k) {
      const std::uint64_t x = c == 0 ? 0 : c > 0 ? a.at(limb, 0, k) : (q - a.at(limb, 0, k)) % q;
      set(key.b, limb, k, (x + e.at(limb, 0, k)) % q);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Words, Degenerate, ::testing::Values(Word::w32, Word::w52, Word::w64),
                         [](const auto& info) { return std::string(word_name(info.param)); });

Bytes patched_secret(const Bytes& valid, const std::vector<std::uint8_t>& payload) {
  Bytes bytes = valid;
  std::copy(payload.begin(), payload.end(), bytes.begin() + kHeaderBytes + sizeof(rlwe::KeyId));
  seal_frame(bytes);
  return bytes;
}

TEST_P(Degenerate, KeysOfNoSecretAreRefused) {
  const auto unnamed = [](Bytes bytes) {
    std::fill_n(bytes.begin() + kHeaderBytes, sizeof(rlwe::KeyId), 0);
    seal_frame(bytes);
    return bytes;
  };
  const auto secret = secret_to_bytes(*o.sk, *o.ring);
  const Bytes bytes(secret.begin(), secret.end());
  EXPECT_THROW(secret_from_bytes(unnamed(bytes), o.params, *o.ring), CorruptData);
  EXPECT_THROW(from_bytes<rlwe::PublicKey>(unnamed(to_bytes(o.pk)), o.params, *o.ring),
               CorruptData);
  EXPECT_THROW(from_bytes<rlwe::EvaluationKeys>(unnamed(to_bytes(*o.keys)), o.params, *o.ring),
               CorruptData);
  rlwe::PublicKey key = public_key();
  key.key_id = {};
  EXPECT_THROW(to_bytes(key), InvalidArgument);
}

TEST_P(Degenerate, HonestKeysAreTaken) {
  for (int k = 0; k < 100; ++k) {
    rlwe::KeyGenerator keygen(o.params, o.ring);
    const auto sk = keygen.secret_key();
    const auto bytes = secret_to_bytes(sk, *o.ring);
    EXPECT_NO_THROW(secret_from_bytes(bytes, o.params, *o.ring));
    if (k % 10 != 0) continue;
    EXPECT_NO_THROW(
        from_bytes<rlwe::PublicKey>(to_bytes(keygen.public_key(sk)), o.params, *o.ring));
    const int rotations[] = {1, 2};
    EXPECT_NO_THROW(from_bytes<rlwe::EvaluationKeys>(
        to_bytes(keygen.evaluation_keys(sk, rotations, true)), o.params, *o.ring));
  }
}

TEST_P(Degenerate, SecretsThatAreNoUniformTernaryOnesAreRefused) {
  const auto honest = secret_to_bytes(*o.sk, *o.ring);
  const Bytes valid(honest.begin(), honest.end());
  const std::size_t n = o.params->n();
  std::vector<std::string> answers;
  const auto refused = [&](const std::vector<std::uint8_t>& payload, const std::string& what) {
    try {
      secret_from_bytes(patched_secret(valid, payload), o.params, *o.ring);
      ADD_FAILURE() << what << " is accepted";
    } catch (const CorruptData& error) {
      answers.emplace_back(error.what());
    }
  };
  refused(std::vector<std::uint8_t>(n / 4, 0), "zero");
  refused(std::vector<std::uint8_t>(n / 4, 0x55), "all ones");
  refused(std::vector<std::uint8_t>(n / 4, 0xaa), "all minus ones");
  refused(std::vector<std::uint8_t>(n / 4, 0x99), "ones and minus ones, no zero");
  refused(std::vector<std::uint8_t>(n / 4, 0x11), "ones and zeros");
  refused(std::vector<std::uint8_t>(n / 4, 0x22), "minus ones and zeros");
  refused(std::vector<std::uint8_t>(n / 4, 0xff), "no coefficients");
  std::vector<std::uint8_t> sparse(n / 4, 0);
  for (std::size_t k = 0; k < 32; ++k) sparse[random() % sparse.size()] |= 1;
  refused(sparse, "a sparse one");
  // One count lies just beyond the bound, sqrt(N (128 + log2 6) ln 2 / 2) from N/3. The other two
  // share what is left.
  const double t = std::sqrt(static_cast<double>(n) * (128 + std::log2(6.0)) * std::log(2.0) / 2);
  for (const unsigned kind : {0u, 1u, 2u}) {
    for (const bool past : {false, true}) {
      const auto count = static_cast<std::size_t>(static_cast<double>(n) / 3 + t) + (past ? 1 : 0);
      std::vector<std::uint8_t> payload(n / 4, 0);
      for (std::size_t k = 0; k < n; ++k) {
        const unsigned code = k < count ? kind : k % 2 == 0 ? (kind + 1) % 3 : (kind + 2) % 3;
        payload[k / 4] |= static_cast<std::uint8_t>(code << 2 * (k % 4));
      }
      if (past) {
        refused(payload, "too many of kind " + std::to_string(kind));
      } else {
        EXPECT_NO_THROW(secret_from_bytes(patched_secret(valid, payload), o.params, *o.ring));
      }
    }
  }
  // The answer is the same for all, so it tells nothing about the key.
  for (const std::string& answer : answers) EXPECT_EQ(answer, answers.front());
}

TEST_P(Degenerate, PublicKeysThatAreEmptyOrConstantAreRefused) {
  for (std::size_t limb = 0; limb < o.pk.b.primes().size(); ++limb) {
    const std::uint64_t q = o.ring->prime(o.pk.b.primes()[limb]);
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, q / 3, q - 1}) {
      auto key = public_key();
      fill(key.b, limb, value);
      expect_refused(key, "constant modulo prime " + std::to_string(limb));
    }
  }
  auto key = public_key();
  for (std::size_t limb = 0; limb < key.b.primes().size(); ++limb) fill(key.b, limb, 0);
  expect_refused(key, "b = 0");
}

// If b = e, b = a + e or b = -a + e, whoever knows a, which is public, can read encryptions. One
// such prime is enough to read messages that are small beside it.
TEST_P(Degenerate, PublicKeysWithoutASecretAreRefused) {
  for (const int most : {1, 21, 1 << 12}) {
    for (std::size_t limb = 0; limb < o.pk.b.primes().size(); ++limb) {
      for (const int c : {-1, 0, 1}) {
        auto key = public_key();
        spoil(key, limb, c, small_poly(key.b.primes(), most));
        expect_refused(key, std::to_string(c) + " a + e, |e| <= " + std::to_string(most));
      }
    }
  }
  // This is why: anybody can read what such a key encrypts.
  auto broken = std::make_shared<rlwe::PublicKey>(public_key());
  const ring::Poly e = small_poly(broken->b.primes(), 21);
  for (std::size_t limb = 0; limb < broken->b.primes().size(); ++limb) spoil(*broken, limb, 0, e);
  const auto x = ckks::PublicEncryptor(broken, o.ring).encrypt(o.plaintext(1));
  ckks::Plaintext read = o.plaintext(1);
  read.poly = o.ring->copy(x.parts[0]);
  const auto got = ckks::Encoder(o.params, o.ring).decode(read);
  const auto want = Objects::values(got.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_LT(std::abs(got[i] - want[i]), 1e-3);
}

TEST_P(Degenerate, SwitchingKeysWithAConstantRowAreRefused) {
  const Bytes one = to_bytes(o.switch_key, *o.params), all = to_bytes(*o.keys);
  const auto count = o.switch_key.b.size(), rows = o.switch_key.b[0].primes().size();
  for (std::size_t digit = 0; digit < count; ++digit) {
    for (std::size_t limb = 0; limb < rows; ++limb) {
      for (const std::uint64_t value : {0, 1}) {
        auto key = from_bytes<rlwe::SwitchKey>(one, o.params, *o.ring);
        fill(key.b[digit], limb, value);
        EXPECT_THROW(from_bytes<rlwe::SwitchKey>(to_bytes(key, *o.params), o.params, *o.ring),
                     CorruptData);
        auto keys = from_bytes<rlwe::EvaluationKeys>(all, o.params, *o.ring);
        fill(keys.relinearisation->b[digit], limb, value);
        EXPECT_THROW(from_bytes<rlwe::EvaluationKeys>(to_bytes(keys), o.params, *o.ring),
                     CorruptData);
        keys = from_bytes<rlwe::EvaluationKeys>(all, o.params, *o.ring);
        fill(keys.galois.rbegin()->second.b[digit], limb, value);
        EXPECT_THROW(from_bytes<rlwe::EvaluationKeys>(to_bytes(keys), o.params, *o.ring),
                     CorruptData);
      }
    }
  }
}

// 0 = x - x is a result like any other, and its bytes are read.
TEST_P(Degenerate, CiphertextsOfNothingAreTaken) {
  const auto x = o.ciphertext(1);
  const auto zero = o.evaluator->sub(x, x);
  for (std::size_t k = 0; k < o.params->n(); ++k) ASSERT_EQ(zero.parts[0].at(0, 0, k), 0u);
  EXPECT_NO_THROW(from_bytes<ckks::Ciphertext>(to_bytes(zero), o.params, *o.ring));
}

}  // namespace
}  // namespace jali::wire
