// Keys satisfy their defining equations, with errors of the stated size.
#include <algorithm>
#include <cstring>
#include <ostream>
#include <type_traits>

#include "fixture.h"
#include "jali/rlwe/key_switch.h"

namespace jali::testing {
namespace {

class KeysTest : public ::testing::TestWithParam<Scheme> {};

// docs/security.md: secrets have no implicit copies and no printing.
template <class T>
concept Printable = requires(std::ostream& out, const T& x) { out << x; };
static_assert(!std::is_copy_constructible_v<rlwe::SecretKey> &&
              !std::is_copy_assignable_v<rlwe::SecretKey> && !Printable<rlwe::SecretKey>);
static_assert(!std::is_copy_constructible_v<ring::Poly> && !Printable<ring::Poly>);

// The centred coefficients of x modulo its first prime, which is enough if x is small.
std::vector<double> small_coefficients(const World& w, const ring::Poly& x) {
  const PrimeIndex first[] = {x.primes()[0]};
  ring::Poly y = w.ring->select(x, first);
  w.ring->to_coeff(y);
  return ring::to_doubles(*w.ring, y, 1);
}

double deviation(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum / static_cast<double>(v.size()));
}

TEST_P(KeysTest, SecretIsTernaryOnEveryLimb) {
  World w(GetParam(), {});
  int histogram[3] = {0, 0, 0};
  ring::Poly s = w.ring->copy(w.sk->poly());
  w.ring->to_coeff(s);
  for (std::size_t k = 0; k < s.n(); ++k) {
    const std::uint64_t q0 = w.params->primes()[0];
    const std::uint64_t v = s.at(0, 0, k);
    const int sign = v == q0 - 1 ? -1 : static_cast<int>(v);
    ASSERT_LE(std::abs(sign), 1);
    ++histogram[sign + 1];
    for (std::size_t i = 0; i < s.limbs(); ++i) {
      const std::uint64_t q = w.params->primes()[i];
      ASSERT_EQ(s.at(i, 0, k), sign < 0 ? q - 1 : static_cast<std::uint64_t>(sign));
    }
  }
  // Each value comes a third of the time, within 7 standard deviations of Binomial(1024, 1/3).
  for (const int count : histogram) EXPECT_NEAR(count, 1024 / 3.0, 7 * 15.1);
}

// docs/security.md: the name of a key is drawn at random and does not come from the secret.
TEST(KeyIdTest, IsDrawnForEverySecret) {
  const Scheme setup{"small", Word::w52, 40, 1};
  World w(setup, {}), other(setup, {});
  EXPECT_FALSE(w.sk->id().is_none());
  EXPECT_NE(w.sk->id(), other.sk->id());
  EXPECT_NE(w.keygen->secret_key().id(), w.sk->id());
  const random::Seed root = random::os_seed();
  rlwe::KeyGenerator first(w.params, w.ring, root), again(w.params, w.ring, root);
  const rlwe::SecretKey one = first.secret_key();
  EXPECT_EQ(one.id(), again.secret_key().id());  // a seed gives the same key with the same name
  EXPECT_NE(one.id(), first.secret_key().id());
  // The secret is the first of the seeds. Its expansion does not hold the name, and neither do the
  // seeds.
  for (std::uint64_t stream = 0; stream < 8; ++stream) {
    random::Prng prng(root, stream);
    std::vector<std::uint8_t> bytes(4096);
    prng.fill(bytes);
    const auto& id = one.id().bytes;
    EXPECT_EQ(std::search(bytes.begin(), bytes.end(), id.begin(), id.end()), bytes.end());
  }
}

TEST(KeyIdTest, IsCarriedByEveryKey) {
  World w({"small", Word::w52, 40, 1}, {});
  EXPECT_EQ(w.keys->key_id, w.sk->id());
  EXPECT_EQ(rlwe::host_copy(*w.ring, *w.keys).key_id, w.sk->id());
  const auto pk = w.keygen->public_key(*w.sk);
  EXPECT_EQ(pk.key_id, w.sk->id());
  EXPECT_EQ(rlwe::host_copy(*w.ring, pk).key_id, w.sk->id());
  EXPECT_EQ(rlwe::to_string({}), "");
  rlwe::KeyId id;
  id.bytes[0] = 0xa5;
  EXPECT_EQ(rlwe::to_string(id), "a5" + std::string(30, '0'));
}

TEST_P(KeysTest, PublicKeyIsAnEncryptionOfZero) {
  World w(GetParam(), {});
  const auto pk = w.keygen->public_key(*w.sk);
  const auto s = w.sk->at(*w.ring, w.params->q_primes());
  ring::Poly e = rlwe::expand_a(*w.ring, *w.params, pk);
  w.ring->ops().mul(e.view(), e.view(), s.view());
  w.ring->ops().add(e.view(), e.view(), pk.b.view());
  const double sd = deviation(small_coefficients(w, e));
  EXPECT_GT(sd, 0.8 * w.params->error_std());
  EXPECT_LT(sd, 1.2 * w.params->error_std());
}

TEST_P(KeysTest, SwitchKeyHoldsPTimesTheGadget) {
  World w(GetParam(), {});
  const auto all = w.params->all_primes();
  ring::Poly from = w.ring->make_secret(all);
  w.ring->ops().automorphism_ntt(from.view(), w.sk->poly().view(), 5);
  const auto key = w.keygen->galois_key(5, *w.sk);
  ASSERT_EQ(key.b.size(), w.params->dnum());
  EXPECT_EQ(key.bytes(), w.params->switch_key_bytes());
  const auto p_mod = ring::product_residues(*w.ring, all, w.params->p_primes());
  for (std::size_t d = 0; d < key.b.size(); ++d) {
    // b + a s - P g_d s' is the error: the same small integers modulo every prime.
    ring::Poly e = rlwe::expand_uniform(*w.ring, key.seed, static_cast<std::uint32_t>(d), all);
    w.ring->ops().mul(e.view(), e.view(), w.sk->poly().view());
    w.ring->ops().add(e.view(), e.view(), key.b[d].view());
    std::vector<std::uint64_t> gadget(all.size(), 0);
    for (std::size_t i = w.params->digit_begin(d); i < w.params->digit_begin(d + 1); ++i) {
      gadget[i] = p_mod[i] == 0 ? 0 : w.params->primes()[i] - p_mod[i];
    }
    w.ring->ops().mul_scalar_add(e.view(), from.view(), gadget);
    const auto reference = small_coefficients(w, e);
    EXPECT_LT(deviation(reference), 1.2 * w.params->error_std());
    EXPECT_GT(deviation(reference), 0.8 * w.params->error_std());
    for (std::size_t i = 1; i < all.size(); ++i) {
      const PrimeIndex one[] = {all[i]};
      ring::Poly limb = w.ring->select(e, one);
      w.ring->to_coeff(limb);
      ASSERT_EQ(ring::to_doubles(*w.ring, limb, 1), reference) << "limb " << i;
    }
  }
}

TEST_P(KeysTest, ExpandedKeysHoldTheirLevelAlone) {
  World w(GetParam(), {});
  for (int level = 0; level <= w.params->top(); ++level) {
    const auto key = w.keygen->relinearisation_key(*w.sk, level);
    const auto primes = w.params->key_primes(level);
    const auto expanded = rlwe::expand(*w.ring, *w.params, key);
    EXPECT_EQ(expanded.primes, primes);
    ASSERT_EQ(expanded.digits, w.params->key_digits(level));
    ASSERT_EQ(expanded.data.bytes(), 2 * (key.bytes() - key.seed.size()));
    const auto* at = static_cast<const std::byte*>(expanded.data.data());
    for (std::size_t d = 0; d < expanded.digits; ++d) {
      const ring::Poly a =
          rlwe::expand_uniform(*w.ring, key.seed, static_cast<std::uint32_t>(d), primes);
      for (const ring::Poly* half : {&key.b[d], &a}) {
        EXPECT_EQ(std::memcmp(at, half->data(), half->bytes()), 0) << "level " << level;
        at += half->bytes();
      }
    }
  }
}

TEST_P(KeysTest, EveryLevelSwitchesWithinItsNoise) {
  World w(GetParam(), {});
  const rlwe::KeySwitcher switcher(w.params, w.ring);
  const auto key = rlwe::expand(*w.ring, *w.params, *w.keys->relinearisation);
  for (int level = 0; level <= w.params->depth(); ++level) {
    const auto& primes = w.params->level(level).primes;
    random::Seed seed{};
    seed[0] = static_cast<std::uint8_t>(level);
    const ring::Poly x = rlwe::expand_uniform(*w.ring, seed, 7, primes, 2);
    auto acc = switcher.switch_key(x, level, key);
    // mod_up and product, one after the other, give the same bits.
    const auto ext = switcher.mod_up(x, level);
    const auto again = switcher.product(ext, 2, level, key, 1);
    EXPECT_EQ(0, std::memcmp(acc.c0.data(), again.c0.data(), acc.c0.bytes()));
    EXPECT_EQ(0, std::memcmp(acc.c1.data(), again.c1.data(), acc.c1.bytes()));
    // c0 + c1 s = x s^2 + small
    ring::Poly e = switcher.reduce(acc.c1, level);
    const auto s = w.sk->at(*w.ring, primes);
    const auto& ops = w.ring->ops();
    ring::Poly s2x = w.ring->copy(x);
    ops.mul(e.view(), e.view(), s.view());
    const ring::Poly c0 = switcher.reduce(acc.c0, level);
    ops.add(e.view(), e.view(), c0.view());
    ops.mul(s2x.view(), s2x.view(), s.view());
    ops.mul(s2x.view(), s2x.view(), s.view());
    ops.sub(e.view(), e.view(), s2x.view());
    const double sd = deviation(small_coefficients(w, e));
    const double predicted = std::sqrt(w.evaluator->noise().key_switch(level).variance);
    EXPECT_GT(sd, 0.7 * predicted) << "level " << level;
    EXPECT_LT(sd, 1.4 * predicted) << "level " << level;
  }
}

TEST_P(KeysTest, SizesAreKnownBeforehand) {
  const std::vector<int> rotations{1, 2, 2, 0, -1, 511};
  World w(GetParam(), rotations);  // 511 = -1 modulo 512 slots
  EXPECT_EQ(w.keys->galois.size(), 4u);  // 1, 2, -1 and conjugation
  EXPECT_EQ(w.keys->bytes(), w.params->key_bytes(rotations, true));
}

TEST_P(KeysTest, SeedsMakeKeysReproducible) {
  World w(GetParam(), {});
  random::Seed seed{};
  seed[3] = 9;
  rlwe::KeyGenerator one(w.params, w.ring, seed), two(w.params, w.ring, seed);
  const auto a = one.secret_key(), b = two.secret_key();
  EXPECT_EQ(0, std::memcmp(a.poly().data(), b.poly().data(), a.poly().bytes()));
  const auto c = two.secret_key();
  EXPECT_NE(0, std::memcmp(a.poly().data(), c.poly().data(), a.poly().bytes()));
}

INSTANTIATE_TEST_SUITE_P(Setups, KeysTest, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
