// When a client is gone, nothing that opens its ciphertexts or that it decrypted is left in the
// process's memory, also if the decryption failed or the machine had no memory for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <optional>

#include "../../tfhe_literals.h"
#include "allocations.h"
#include "jali/base/error.h"
#include "jali/schemes/tfhe/secret/client.h"
#include "jali/schemes/tfhe/secret/encryptor.h"
#include "jali/wire/secret/tfhe_secret_key.h"
#include "process_memory.h"
#include "sanitized.h"

namespace jali::tfhe {
namespace {

using jali::testing::found_after;
using jali::testing::needles;
using jali::testing::Secrets;
using random::Prng;
using random::Seed;
using test::TfheShape;
using Names = std::vector<std::string>;
using Values = std::vector<std::uint64_t>;

constexpr std::size_t kCount = 64;
constexpr std::size_t kPart = 512;  // bytes of a long vector that are looked for

/// Seed k that random::SeedSource makes of a root.
Seed expanded(const Seed& root, std::uint64_t k) {
  Seed seed;
  Prng(root, k).fill(seed);
  return seed;
}

class TfheResidue : public ::testing::TestWithParam<TfheShape> {
 protected:
  void SetUp() override {
    if (backend::test::kSanitized) GTEST_SKIP() << jali::testing::kNotSearched;
  }
  /// Values whose words are nowhere else.
  Values values() const {
    std::uint8_t bytes[kCount];
    Prng(root_, 1000).fill(bytes);
    Values out(kCount);
    for (std::size_t i = 0; i < kCount; ++i) out[i] = bytes[i] & 1;
    wipe(bytes, sizeof(bytes));
    return out;
  }
  /// The first numbers of the error of row `row`.
  static std::vector<std::int64_t> error(const Seed& seed, std::uint64_t row, int bits,
                                         std::size_t count) {
    std::vector<std::int64_t> out(count);
    Prng prng(seed, row);
    random::sample_tuniform(prng, bits, out);
    return out;
  }

  /// Not the first words: the allocator overwrites those of memory that is given back. Of long
  /// vectors two parts, because a copy may have been overwritten in part.
  template <class T>
  static void add(Secrets& secrets, const std::string& name, const std::vector<T>& x) {
    const std::size_t skipped = 32 / sizeof(T), most = kPart / sizeof(T);
    const std::size_t count = std::min(x.size() - skipped, most);
    secrets.add(name, x.data() + skipped, count * sizeof(T));
    if (x.size() - skipped > most) {
      secrets.add(name + ", the end", x.data() + x.size() - count, count * sizeof(T));
    }
  }

  /// By the order in which lwe::KeyGenerator and Client take their seeds.
  void name_key(Secrets& secrets) const {
    const Seed root = expanded(root_, 0);
    secrets.add_seed("root of the keys", root);
    for (const std::uint64_t k : {0, 1, 3, 5}) {
      secrets.add_seed("seed " + std::to_string(k), expanded(root, k));
      secrets.add_stream("stream of seed " + std::to_string(k), expanded(root, k), 0);
    }
    const auto polynomial = error(expanded(root, 5), 0, params_->literal().glwe_noise_bits, 64);
    add(secrets, "errors of the bootstrapping key", polynomial);
    std::vector<std::uint8_t> small(96), large(96);
    Prng of_small(expanded(root, 0), 0), of_large(expanded(root, 1), 0);
    if (params_->literal().rotation == Rotation::block_binary) {
      random::sample_one_hot(of_small, static_cast<std::size_t>(params_->literal().group), small);
    } else {
      random::sample_bits(of_small, small);
    }
    random::sample_bits(of_large, large);
    add(secrets, "small secret", small);
    add(secrets, "large secret", large);
    std::vector<std::uint64_t> masks(64);
    for (std::size_t i = 0; i < 64; ++i) masks[i] = 0 - std::uint64_t{large[i]};
    add(secrets, "large secret as masks", masks);
    std::vector<std::uint8_t> packed(12);
    for (std::size_t i = 0; i < 8 * packed.size(); ++i) {  // as wire/ has them
      packed[i / 8] = static_cast<std::uint8_t>(packed[i / 8] | small[i] << (i % 8));
    }
    secrets.add("small secret as bits", packed.data(), packed.size());
  }
  void name_values(Secrets& secrets) const {
    const Seed root = expanded(root_, 1);
    secrets.add_seed("root of encryptions", root);
    secrets.add_seed("seed of errors", expanded(root, 1));
    const Values plain = values();
    std::vector<std::uint64_t> scaled(kCount), phases(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      scaled[i] = plain[i] * params_->step();
      const auto e = error(expanded(root, 1), i, params_->noise_bits(), 1)[0];
      phases[i] = scaled[i] + static_cast<std::uint64_t>(e);
      if (params_->ciphertext_torus() == Torus::t32) phases[i] &= 0xffffffff;
    }
    add(secrets, "values", plain);
    add(secrets, "messages", scaled);
    add(secrets, "phases", phases);
  }
  Ciphertext encrypted(Client& client) const {
    Values plain = values();
    const WipedAtEnd wiped(plain);
    return client.encrypt(plain);
  }

  const ParamsPtr params_ = test::insecure_params(GetParam());
  const Seed root_ = random::os_seed();
};

TEST_P(TfheResidue, TheSearchFindsWhatIsKept) {
  const auto wanted = needles([&](Secrets& s) { name_key(s), name_values(s); });
  EXPECT_EQ(jali::testing::found_in_process(wanted), Names{});
  std::optional<Client> client;
  Values kept;
  const Names found = found_after(wanted, [&] {
    client.emplace(params_, 1, root_);
    kept = client->decrypt(encrypted(*client));
  });
  for (const char* name :
       {"root of the keys", "root of encryptions", "small secret", "large secret", "values"}) {
    EXPECT_NE(std::ranges::find(found, name), found.end()) << name;
  }
  wipe(kept.data(), kept.size() * sizeof(kept[0]));
}

TEST_P(TfheResidue, OfAClientThatIsGone) {
  const auto wanted = needles([&](Secrets& s) { name_key(s), name_values(s); });
  lwe::EvaluationKeys kept;
  Ciphertext sent;
  EXPECT_EQ(found_after(wanted,
                        [&] {
                          Client client(params_, 2, root_);
                          kept = client.evaluation_keys(true);
                          sent = encrypted(client);
                          Values plain = client.decrypt(sent);
                          const WipedAtEnd wiped(plain);
                          auto errors = client.errors(sent);
                          const WipedAtEnd wiped_errors(errors);
                          const auto bytes = wire::secret_to_bytes(client.secret_key());
                          wire::tfhe_secret_from_bytes(bytes, params_, {std::size_t{1} << 24, 0});
                        }),
            Names{});
  EXPECT_EQ(sent.size(), kCount);
}

TEST_P(TfheResidue, OfAnEncryptorThatIsGone) {
  Client client(params_, 1, root_);
  const auto key = std::make_shared<const lwe::PublicKey>(client.public_key());
  const Seed owner_root = random::os_seed();
  const std::size_t words = params_->large().value;
  const auto wanted = needles([&](Secrets& s) {
    const Seed seed = expanded(owner_root, 0);
    s.add_seed("root of an owner", owner_root);
    s.add_seed("seed of an encryption", seed);
    std::vector<std::uint8_t> plus(words), minus(words);
    Prng bits(seed, 0);
    random::sample_bits(bits, plus);
    random::sample_bits(bits, minus);
    add(s, "one half of R", plus);
    add(s, "other half of R", minus);
    std::vector<std::int64_t> r(words);
    for (std::size_t i = 0; i < words; ++i) r[i] = plus[i] - minus[i];
    add(s, "R", r);
    add(s, "errors", error(seed, 1, params_->literal().glwe_noise_bits, words));
    const Values plain = values();
    std::vector<std::uint64_t> scaled(kCount);
    for (std::size_t i = 0; i < kCount; ++i) scaled[i] = plain[i] * params_->step(params_->torus());
    add(s, "values", plain);
    add(s, "messages", scaled);
  });
  CompactCiphertext sent;
  EXPECT_EQ(found_after(wanted,
                        [&] {
                          PublicEncryptor owner(key, 2, owner_root);
                          Values plain = values();
                          const WipedAtEnd wiped(plain);
                          sent = owner.encrypt(plain);
                        }),
            Names{"root of an owner"});  // this test has it
  Values plain = client.decrypt(sent);
  const WipedAtEnd wiped(plain);
  EXPECT_EQ(plain.size(), kCount);
}

TEST_P(TfheResidue, OfADecryptionThatFails) {
  Client client(params_, 1, root_);
  Ciphertext sent = encrypted(client);
  std::ranges::fill(sent.degree, 0);  // one of 64 random bits is not 0
  const auto wanted = needles([&](Secrets& s) { name_values(s); });
  // The root of encryptions lies in the client, which is still there.
  const Names living{"root of encryptions"};
  EXPECT_EQ(found_after(wanted, [&] { EXPECT_THROW(client.decrypt(sent), WrongDecryption); }),
            living);
}

TEST_P(TfheResidue, OfADecryptionWithoutMemory) {
  Client client(params_, 1, root_);
  const Ciphertext sent = encrypted(client);
  const auto wanted = needles([&](Secrets& s) { name_values(s); });
  const Names living{"root of encryptions"};
  bool done = false;
  int failed = 0;
  for (int left = 0; !done; ++left) {
    const auto work = [&] {
      test::allocations_left = left;
      try {
        Values plain = client.decrypt(sent);
        const WipedAtEnd wiped(plain);
        done = true;
      } catch (const std::bad_alloc&) {
        ++failed;
      }
      test::allocations_left = -1;
    };
    EXPECT_EQ(found_after(wanted, work), living) << "allocation " << left << " failed";
  }
  EXPECT_GE(failed, 2);  // the phases and the result, at least
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TfheResidue,
    ::testing::Values(
        TfheShape{Rotation::classic, 1, Order::switch_first, Torus::t64, 96, 2, 512, 1, 1},
        TfheShape{Rotation::block_binary, 3, Order::bootstrap_first, Torus::t64, 96, 1, 1024, 1, 1},
        TfheShape{Rotation::multi_bit, 2, Order::switch_first, Torus::t32, 96, 1, 512, 1, 0}));

}  // namespace
}  // namespace jali::tfhe
