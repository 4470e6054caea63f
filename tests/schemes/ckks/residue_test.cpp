// When an encryption or the making of a key is done, nothing that opens it may be left in the
// process's memory. Who knows v has c0 - v b = m + e0. Who knows e gets the key from one known
// message, since a s = m + e - b.
#include <cstring>
#include <functional>

#include "fixture.h"
#include "process_memory.h"
#include "sanitized.h"

namespace jali::testing {
namespace {

using Names = std::vector<std::string>;

/// Adds the small numbers that `stream` of a seed gives: the bytes of the stream, the numbers, and
/// the polynomial in both forms.
void add_small(Secrets& secrets, const std::string& name, const World& w, backend::Small kind,
               const random::Seed& seed, std::uint64_t stream, std::span<const PrimeIndex> primes) {
  secrets.add_stream(name, seed, stream);
  std::vector<std::int64_t> values(64);
  random::Prng prng(seed, stream);
  kind == backend::Small::ternary ? random::sample_ternary(prng, values)
                                  : random::sample_error(prng, values);
  secrets.add(name + ", its numbers", values.data(), values.size() * sizeof(values[0]));
  ring::Poly x = w.ring->make_secret(primes, ring::Form::coeff);
  w.ring->ops().sample_small(x.view(), kind, seed, stream);
  secrets.add(name + ", its residues", x.row(0), 256);
  w.ring->to_ntt(x);
  secrets.add(name + ", its transform", x.row(0), 64);
}

/// The 32 bytes at `offset` of `stream`, as a seed.
random::Seed expanded(const random::Seed& root, std::uint64_t stream, std::uint64_t offset) {
  random::Seed seed;
  random::Prng prng(root, stream);
  prng.seek(offset);
  prng.fill(seed);
  return seed;
}

class ResidueTest : public ::testing::TestWithParam<Scheme> {
 protected:
  void SetUp() override {
    if (backend::test::kSanitized) GTEST_SKIP() << kNotSearched;
  }
  ckks::Plaintext zero() {
    return w_.encoder().encode(std::vector<Complex>(w_.params->slots()), 1, 0, w_.params->scale(0));
  }
  World w_{GetParam(), {}};
  const random::Seed root_ = random::os_seed();
};

TEST_P(ResidueTest, TheSearchFindsWhatIsThere) {
  const auto wanted = needles([&](Secrets& s) { s.add_seed("seed", expanded(root_, 0, 0)); });
  ASSERT_EQ(wanted.size(), 9u);
  EXPECT_TRUE(found_in_process(wanted).empty());
  std::vector<std::string> found;
  {  // memory that was freed; the allocator may have overwritten its first words
    const auto leaky = [&] {
      std::vector<random::Seed> many(100, expanded(root_, 0, 0));
      asm volatile("" : : "r"(many.data()) : "memory");
    };
    found = found_after(wanted, leaky);
  }
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0], "seed");
}

TEST_P(ResidueTest, OfASecretKeyEncryption) {
  const auto primes = w_.params->level(0).primes;
  const auto wanted = needles([&](Secrets& s) {
    const random::Seed seed = expanded(root_, 0, 32);
    s.add_seed("seed of the error", seed);
    add_small(s, "error", w_, backend::Small::error, seed, 0, primes);
  });
  ckks::SecretEncryptor encryptor(w_.sk, w_.ring, root_);
  const auto plaintext = zero();
  ckks::Ciphertext kept;
  EXPECT_EQ(found_after(wanted, [&] { kept = encryptor.encrypt(plaintext); }), Names{});
}

TEST_P(ResidueTest, OfAPublicKeyEncryption) {
  const auto primes = w_.params->level(0).primes;
  const auto wanted = needles([&](Secrets& s) {
    const random::Seed seed = expanded(root_, 0, 0);
    s.add_seed("seed", seed);
    add_small(s, "v", w_, backend::Small::ternary, seed, 0, primes);
    add_small(s, "e0", w_, backend::Small::error, seed, 1, primes);
    add_small(s, "e1", w_, backend::Small::error, seed, 2, primes);
  });
  const auto pk = std::make_shared<const rlwe::PublicKey>(w_.keygen->public_key(*w_.sk));
  ckks::PublicEncryptor encryptor(pk, w_.ring, root_);
  const auto plaintext = zero();
  ckks::Ciphertext kept;
  EXPECT_EQ(found_after(wanted, [&] { kept = encryptor.encrypt(plaintext); }), Names{});
}

// The public key lacks limbs, and the encryption fails on them after v has been drawn.
TEST_P(ResidueTest, OfAnEncryptionThatFails) {
  const int top = w_.params->depth();
  const auto plaintext =
      w_.encoder().encode(std::vector<Complex>(w_.params->slots()), 1, top, w_.params->scale(top));
  const auto wanted = needles([&](Secrets& s) {
    const random::Seed seed = expanded(root_, 0, 0);
    s.add_seed("seed", seed);
    add_small(s, "v", w_, backend::Small::ternary, seed, 0, plaintext.poly.primes());
  });
  auto broken = w_.keygen->public_key(*w_.sk);
  broken.b = w_.ring->select(broken.b, broken.b.primes().first(1));
  ckks::PublicEncryptor encryptor(std::make_shared<const rlwe::PublicKey>(std::move(broken)),
                                  w_.ring, root_);
  EXPECT_EQ(found_after(wanted, [&] { EXPECT_THROW(encryptor.encrypt(plaintext), InternalError); }),
            Names{});
}

TEST_P(ResidueTest, OfKeysThatAreGone) {
  const auto q = w_.params->q_primes();
  const auto all = w_.params->all_primes();
  const auto wanted = needles([&](Secrets& s) {
    s.add_seed("seed of the secret", expanded(root_, 0, 0));
    add_small(s, "secret", w_, backend::Small::ternary, expanded(root_, 0, 0), 0, all);
    s.add_seed("seed of the public key's error", expanded(root_, 2, 0));
    add_small(s, "the public key's error", w_, backend::Small::error, expanded(root_, 2, 0), 0, q);
    s.add_seed("seed of the switching key's error", expanded(root_, 4, 0));
    s.add_seed("seed of the next one's error", expanded(root_, 6, 0));
    add_small(s, "the switching key's error", w_, backend::Small::error, expanded(root_, 4, 0), 0,
              all);
  });
  rlwe::KeyGenerator keygen(w_.params, w_.ring, root_);
  std::vector<rlwe::PublicKey> kept;
  std::vector<rlwe::SwitchKey> kept_too;
  EXPECT_EQ(found_after(wanted,
                        [&] {
                          const auto sk = keygen.secret_key();
                          kept.push_back(keygen.public_key(sk));
                          kept_too.push_back(keygen.relinearisation_key(sk));
                          kept_too.push_back(keygen.galois_key(5, sk));
                        }),
            Names{});
}

INSTANTIATE_TEST_SUITE_P(Words, ResidueTest,
                         ::testing::Values(Scheme{"w52", Word::w52, 40, 1},
                                           Scheme{"w32", Word::w32, 28, 1},
                                           Scheme{"w64", Word::w64, 50, 1}),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
