// Randomness is never used twice, neither by forked processes nor by copies of one state nor by
// threads. Whoever sees two encryptions with the same randomness learns the difference of their
// messages.
#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "fixture.h"
#include "forked.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/schemes/ckks/encryptor.h"
#include "jali/schemes/ckks/secret/encryptor.h"
#include "jali/schemes/ckks/secret/release.h"

namespace jali::testing {
namespace {

const Scheme kSmall{"w52_scale40", Word::w52, 40, 1};

void append(ForkedBytes& out, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const std::uint8_t*>(data);
  out.insert(out.end(), from, from + bytes);
}

std::size_t distinct(const std::vector<ForkedBytes>& all) {
  std::set<std::string> texts;
  for (const ForkedBytes& bytes : all) texts.emplace(bytes.begin(), bytes.end());
  return texts.size();
}

/// Runs everything that draws randomness. The bytes of two runs are equal if and only if they drew
/// the same.
class Draws {
 public:
  struct Draw {
    std::string name;
    std::function<ForkedBytes()> bytes;
  };

  Draws()
      : zero_(w_.encoder().encode(std::vector<Complex>(w_.params->slots()), 1, 0,
                                  w_.params->scale(0))),
        pk_(std::make_shared<const rlwe::PublicKey>(w_.keygen->public_key(*w_.sk))),
        anyone_(pk_, w_.ring) {}

  World& world() { return w_; }
  ckks::Ciphertext secret_encryption() { return w_.encryptor->encrypt(zero_); }
  ckks::Ciphertext public_encryption() { return anyone_.encrypt(zero_); }

  std::vector<Draw> all() {
    return {
        {"uniform part of a secret-key encryption",
         [this] { return row(secret_encryption().parts[1]); }},
        {"its seed", [this] { return bytes(*secret_encryption().seed); }},
        {"its error", [this] { return row(w_.decryptor->decrypt(secret_encryption()).poly); }},
        {"first part of a public-key encryption",
         [this] { return row(public_encryption().parts[0]); }},
        {"second part of a public-key encryption",
         [this] { return row(public_encryption().parts[1]); }},
        {"secret key", [this] { return row(w_.keygen->secret_key().poly()); }},
        {"seed of a public key", [this] { return bytes(w_.keygen->public_key(*w_.sk).seed); }},
        {"error of a public key",
         [this] {
           const auto pk = w_.keygen->public_key(*w_.sk);
           ring::Poly e = rlwe::expand_a(*w_.ring, *w_.params, pk);
           w_.ring->ops().mul(e.view(), e.view(), w_.sk->at(*w_.ring, e.primes()).view());
           w_.ring->ops().add(e.view(), e.view(), pk.b.view());
           return row(e);
         }},
        {"seed of a switching key",
         [this] { return bytes(w_.keygen->galois_key(5, *w_.sk).seed); }},
        {"noise of a release",
         [this] {
           ckks::ReleasePolicy policy{.origin = ckks::BoundOrigin::derived, .statistical_bits = 20};
           const auto slots =
               ckks::release(*w_.decryptor, w_.encoder(), *w_.ring, released_, policy);
           ForkedBytes out;
           append(out, slots.data(), slots.size() * sizeof(Complex));
           return out;
         }},
    };
  }

 private:
  static ForkedBytes row(const ring::Poly& x) {
    ForkedBytes out;
    append(out, x.row(0), 64);
    return out;
  }
  static ForkedBytes bytes(const random::Seed& seed) { return {seed.begin(), seed.end()}; }

  World w_{kSmall, {}};
  ckks::Ciphertext released_{w_.encrypt(w_.vector())};
  ckks::Plaintext zero_;
  std::shared_ptr<const rlwe::PublicKey> pk_;
  ckks::PublicEncryptor anyone_;
};

TEST(Randomness, DiffersBetweenAProcessAndItsChild) {
  Draws draws;
  for (const auto& draw : draws.all()) {
    const ForkedBytes child = in_children(1, draw.bytes)[0];
    const ForkedBytes here = draw.bytes();
    ASSERT_EQ(child.size(), here.size());
    EXPECT_NE(child, here) << draw.name;
  }
}

// All children begin with the same memory, like machines that are restored from one snapshot.
TEST(Randomness, DiffersWheneverOneStateIsContinued) {
  constexpr std::size_t kTimes = 50;
  Draws draws;
  for (const auto& draw : draws.all()) {
    draw.bytes();  // the state has been used before
    const auto all = in_children(kTimes, draw.bytes);
    EXPECT_EQ(distinct(all), kTimes) << draw.name;
  }
}

TEST(Randomness, NoSeedRepeatsInTenThousandEncryptionsOfForkedWorkers) {
  constexpr std::size_t kWorkers = 50, kEach = 200;
  Draws draws;
  const auto all = in_children(kWorkers, [&] {
    ForkedBytes seeds;
    for (std::size_t i = 0; i < kEach; ++i) {
      append(seeds, draws.secret_encryption().seed->data(), sizeof(random::Seed));
    }
    return seeds;
  });
  std::vector<ForkedBytes> seeds;
  for (const ForkedBytes& worker : all) {
    ASSERT_EQ(worker.size(), kEach * sizeof(random::Seed));
    for (auto at = worker.begin(); at != worker.end(); at += sizeof(random::Seed)) {
      seeds.emplace_back(at, at + sizeof(random::Seed));
    }
  }
  EXPECT_EQ(distinct(seeds), kWorkers * kEach);
}

/// The seeds of encryptions that several threads make with one encryptor at the same time.
std::set<random::Seed> seeds_by_threads(ckks::SecretEncryptor& encryptor,
                                        const ckks::Plaintext& plaintext, std::size_t threads,
                                        std::size_t each) {
  std::vector<std::vector<random::Seed>> seeds(threads);
  std::vector<std::thread> running;
  for (auto& own : seeds) {
    running.emplace_back([&] {
      for (std::size_t i = 0; i < each; ++i) own.push_back(*encryptor.encrypt(plaintext).seed);
    });
  }
  for (auto& thread : running) thread.join();
  std::set<random::Seed> out;
  for (const auto& own : seeds) out.insert(own.begin(), own.end());
  return out;
}

TEST(Randomness, NoSeedRepeatsInThreads) {
  constexpr std::size_t kThreads = 4, kEach = 250;
  World w(kSmall, {});
  const auto zero =
      w.encoder().encode(std::vector<Complex>(w.params->slots()), 1, 0, w.params->scale(0));
  EXPECT_EQ(seeds_by_threads(*w.encryptor, zero, kThreads, kEach).size(), kThreads * kEach);
  // An encryptor with a given seed uses the seed's expansion in order. No thread gets a part of it
  // twice.
  ckks::SecretEncryptor seeded(w.sk, w.ring, random::os_seed());
  EXPECT_EQ(seeds_by_threads(seeded, zero, kThreads, kEach).size(), kThreads * kEach);
}

// Tests and the golden vectors rely on this: seeds follow from a given one by the rule of
// random::SeedSource.
TEST(Randomness, FollowsFromAGivenSeed) {
  World w(kSmall, {});
  const auto zero =
      w.encoder().encode(std::vector<Complex>(w.params->slots()), 1, 0, w.params->scale(0));
  const random::Seed root = random::os_seed();
  std::vector<random::Seed> expansion(6);
  random::Prng prng(root, 0);
  for (auto& seed : expansion) prng.fill(seed);
  ckks::SecretEncryptor one(w.sk, w.ring, root), two(w.sk, w.ring, root);
  for (const std::size_t first : {0, 2, 4}) {
    const auto x = one.encrypt(zero), y = two.encrypt(zero);
    EXPECT_EQ(*x.seed, expansion[first]);
    EXPECT_EQ(0, std::memcmp(x.parts[0].data(), y.parts[0].data(), x.parts[0].bytes()));
    // The error is expanded from the next seed.
    ring::Poly e = w.ring->make(x.parts[0].primes(), 1, ring::Form::coeff);
    w.ring->ops().sample_small(e.view(), backend::Small::error, expansion[first + 1], 0);
    w.ring->to_ntt(e);
    const auto m = w.decryptor->decrypt(x);
    EXPECT_EQ(0, std::memcmp(m.poly.data(), e.data(), e.bytes()));
  }
  rlwe::KeyGenerator keygen(w.params, w.ring, root);
  for (std::uint64_t k = 0; k < 6; k += 2) {
    random::Seed seed;
    random::Prng(root, k).fill(seed);
    EXPECT_EQ(keygen.public_key(*w.sk).seed, seed);
  }
}

}  // namespace
}  // namespace jali::testing
