#include "jali/random/prng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "../hex.h"
#include "jali/base/error.h"
#include "jali/base/hash.h"
#include "jali/random/chacha.h"

namespace jali::random {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes from_hex(const std::string& s) {
  Bytes out;
  for (std::size_t i = 0; i + 1 < s.size(); i += 2) {
    out.push_back(static_cast<std::uint8_t>(std::stoi(s.substr(i, 2), nullptr, 16)));
  }
  return out;
}

using test::hex;

Seed counting_seed() {
  Seed seed;
  for (std::size_t i = 0; i < 32; ++i) seed[i] = static_cast<std::uint8_t>(i);
  return seed;
}

std::vector<ChaChaFn*> variants() {
  std::vector<ChaChaFn*> out{chacha20_portable};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) out.push_back(chacha20_avx2);
  if (chacha20_best() == chacha20_avx512) out.push_back(chacha20_avx512);
#endif
  return out;
}

struct BlockVector {
  const char* key;
  std::uint32_t counter;
  const char* nonce;
  const char* block;
};

// RFC 8439, section 2.3.2 and appendix A.1, test vectors 1 to 5.
const BlockVector kBlocks[] = {
    {"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", 1,
     "000000090000004a00000000",
     "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
     "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"},
    {"0000000000000000000000000000000000000000000000000000000000000000", 0,
     "000000000000000000000000",
     "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
     "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"},
    {"0000000000000000000000000000000000000000000000000000000000000000", 1,
     "000000000000000000000000",
     "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
     "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"},
    {"0000000000000000000000000000000000000000000000000000000000000001", 1,
     "000000000000000000000000",
     "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
     "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0"},
    {"00ff000000000000000000000000000000000000000000000000000000000000", 2,
     "000000000000000000000000",
     "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
     "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096"},
    {"0000000000000000000000000000000000000000000000000000000000000000", 0,
     "000000000000000000000002",
     "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
     "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d"},
};

TEST(ChaCha20, BlockVectorsOfTheStandard) {
  for (ChaChaFn* chacha : variants()) {
    for (const BlockVector& v : kBlocks) {
      std::uint32_t state[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
      const Bytes key = from_hex(v.key), nonce = from_hex(v.nonce);
      std::memcpy(state + 4, key.data(), 32);
      std::memcpy(state + 13, nonce.data(), 12);
      // The block must come out right wherever it falls in a group.
      for (std::uint32_t back = 0; back <= std::min<std::uint32_t>(v.counter, 2); ++back) {
        Bytes out(kGroupBytes);
        state[12] = v.counter - back;
        chacha(state, 1, out.data());
        EXPECT_EQ(hex(std::span(out).subspan(64 * back, 64)), v.block);
        EXPECT_EQ(state[12], v.counter - back + kGroupBlocks);
      }
    }
  }
}

TEST(ChaCha20, EveryInstructionSetGivesTheSameBytes) {
  const Seed fresh = os_seed();
  std::uint32_t start[16];
  std::memcpy(start, fresh.data(), 32);
  std::memcpy(start + 8, fresh.data(), 32);
  start[12] &= 0x7ffffff0;
  for (const std::size_t groups : {1, 2, 7}) {
    Bytes want(groups * kGroupBytes);
    std::uint32_t state[16];
    std::copy_n(start, 16, state);
    chacha20_portable(state, groups, want.data());
    for (ChaChaFn* chacha : variants()) {
      Bytes got(want.size() + 1, 0xa5);
      std::copy_n(start, 16, state);
      chacha(state, groups, got.data());
      EXPECT_EQ(got.back(), 0xa5) << "wrote past the end";
      got.pop_back();
      EXPECT_EQ(got, want) << "seed " << hex(fresh);
    }
  }
}

// RFC 8439, section 2.4.2: plaintext xor ciphertext, from block 1, nonce 00000000 0000004a
// 00000000, which is stream 0x4a000000 00000000.
TEST(Prng, KeystreamOfTheStandard) {
  const std::string text =
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
      "sunscreen would be it.";
  const Bytes cipher = from_hex(
      "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
      "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
      "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
      "5af90bbf74a35be6b40b8eedf2785e42874d");
  ASSERT_EQ(text.size(), cipher.size());
  Prng prng(counting_seed(), std::uint64_t{0x4a000000} << 32);
  prng.seek(64);
  Bytes stream(cipher.size());
  prng.fill(stream);
  for (std::size_t i = 0; i < cipher.size(); ++i) {
    ASSERT_EQ(stream[i] ^ static_cast<std::uint8_t>(text[i]), cipher[i]) << "byte " << i;
  }
}

TEST(Prng, PiecesSeeksAndWordsAgreeWithTheStream) {
  const Seed seed = os_seed();
  Bytes whole(9000);
  Prng(seed, 7).fill(whole);
  // Pieces of every kind of size.
  for (const std::size_t step : {1, 3, 63, 64, 1000, 1023, 1024, 1025, 2048, 5000}) {
    Prng prng(seed, 7);
    Bytes got(whole.size());
    for (std::size_t i = 0; i < got.size(); i += step) {
      prng.fill(std::span(got).subspan(i, std::min(step, got.size() - i)));
    }
    ASSERT_EQ(got, whole) << "step " << step << ", seed " << hex(seed);
  }
  Prng prng(seed, 7);
  for (std::size_t at = 0; at + 8 <= whole.size(); at += 8) {
    std::uint64_t want = 0;
    for (std::size_t i = 8; i-- > 0;) want = want << 8 | whole[at + i];
    ASSERT_EQ(prng.next_u64(), want) << "byte " << at;
  }
  for (const std::size_t at : {0, 1, 63, 64, 1023, 1024, 1025, 4096, 7900}) {
    prng.seek(at);
    Bytes got(1100);
    prng.fill(got);
    ASSERT_TRUE(std::equal(got.begin(), got.end(), whole.begin() + static_cast<long>(at)))
        << "seek " << at << ", seed " << hex(seed);
  }
}

TEST(Prng, EndsAfterTwoToThe38Bytes) {
  const std::uint64_t end = std::uint64_t{1} << 38;
  Prng prng(counting_seed(), 0);
  prng.seek(end - 8);
  prng.next_u64();
  EXPECT_THROW(prng.next_u64(), InternalError);
  prng.seek(end - 1024);
  Bytes too_much(2048);
  EXPECT_THROW(prng.fill(too_much), InternalError);
  EXPECT_THROW(prng.seek(end), InvalidArgument);
  // Block 2^32 - 1 is not block 0's neighbour by wrapping.
  prng.seek(end - 64);
  Bytes last(64), first(64);
  prng.fill(last);
  prng.seek(0);
  prng.fill(first);
  EXPECT_NE(last, first);
}

TEST(Prng, StreamsAndSeedsAreIndependent) {
  const Seed seed = os_seed();
  std::vector<std::pair<Seed, std::uint64_t>> sources;
  for (const std::uint64_t stream : {0ull, 1ull, 2ull, 1ull << 16, 1ull << 32, 1ull << 63, ~0ull}) {
    sources.emplace_back(seed, stream);
  }
  Seed other = seed;
  other[31] ^= 0x80;
  sources.emplace_back(other, 0);
  constexpr std::size_t kBytes = 1 << 16;
  std::vector<Bytes> streams;
  for (const auto& [s, stream] : sources) {
    streams.emplace_back(kBytes);
    Prng(s, stream).fill(streams.back());
  }
  // Bits that differ: binomial with mean 2^18 and deviation 2^8.5; 7 deviations, failure < 1e-10.
  for (std::size_t i = 0; i < streams.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::int64_t differ = 0;
      for (std::size_t k = 0; k < kBytes; ++k) {
        differ += std::popcount(static_cast<unsigned>(streams[i][k] ^ streams[j][k]));
      }
      EXPECT_LT(std::abs(differ - (1 << 18)), 7 * 363) << i << " " << j << " " << hex(seed);
    }
  }
}

TEST(Prng, GoldenBytes) {
  Bytes out(100000);
  Prng(counting_seed(), 0x0123456789abcdef).fill(out);
  EXPECT_EQ(hex(hash256(out)), "cdfa6cc0e4e6214d360bd719496489097505f84a1d014eac88affbe266633f79");
}

TEST(Prng, WipesItself) {
  alignas(Prng) unsigned char memory[sizeof(Prng)];
  Prng* prng = new (memory) Prng(counting_seed(), 1);
  prng->next_u64();
  const auto count = [&](const Bytes& needle) {
    const volatile unsigned char* p = memory;
    Bytes now(sizeof(Prng));
    for (std::size_t i = 0; i < now.size(); ++i) now[i] = p[i];
    return std::search(now.begin(), now.end(), needle.begin(), needle.end()) != now.end();
  };
  const Seed seed = counting_seed();
  const Bytes key(seed.begin(), seed.begin() + 16);
  Bytes stream(32);
  Prng(seed, 1).fill(stream);
  ASSERT_TRUE(count(key));
  ASSERT_TRUE(count(stream));
  prng->~Prng();
  EXPECT_FALSE(count(key));
  EXPECT_FALSE(count(stream));
  // Zero everywhere but in the public counters at the end.
  std::size_t nonzero = 0;
  const volatile unsigned char* p = memory;
  for (std::size_t i = 0; i < 64 + 1024; ++i) nonzero += p[i] != 0;
  EXPECT_EQ(nonzero, 0u);
}

TEST(Wipe, ClearsExactlyTheGivenBytes) {
  Bytes data(100, 0xff);
  wipe(data.data() + 10, 80);
  for (std::size_t i = 0; i < data.size(); ++i) {
    EXPECT_EQ(data[i], i >= 10 && i < 90 ? 0 : 0xff) << i;
  }
  wipe(nullptr, 0);
}

TEST(OsSeed, IsFresh) {
  const Seed a = os_seed(), b = os_seed();
  EXPECT_NE(a, b);
  EXPECT_NE(a, Seed{});
}

}  // namespace
}  // namespace jali::random
