// Bytes are cut, flipped, exchanged or inflated. Every loader answers with one jali::Error, or with
// an object whose bytes are exactly those that were read.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <random>

#include "allocations.h"
#include "jali/base/error.h"
#include "objects.h"
#include "tampering.h"

namespace jali::wire {
namespace {

using namespace testing;

Outcome judge(const Loader& loader, const Objects& o, const Bytes& bytes, const std::string& what,
              const Limits& limits = kLimits) {
  return judged(loader.name + ", " + what, bytes,
                [&] { return loader.load(bytes, *o.ring, limits); });
}

struct Case {
  const char* name;
  Word word;
  double scale_bits;
};

class Tamper : public ::testing::TestWithParam<Case> {
 protected:
  Objects o{small_literal(GetParam().word, GetParam().scale_bits, 1)};
  std::vector<Loader> loaders = all_loaders(o);
  std::mt19937_64 random{0x6a616c69};  // the same cases on every run; the fuzz targets explore

  const Loader& loader(const std::string& name) const {
    return *std::ranges::find(loaders, name, &Loader::name);
  }
  void expect_refused(const Loader& l, const Bytes& bytes, const std::string& what) {
    EXPECT_EQ(judge(l, o, bytes, what), Outcome::refused) << l.name << ", " << what;
  }
};

INSTANTIATE_TEST_SUITE_P(Words, Tamper,
                         ::testing::Values(Case{"w52", Word::w52, 40}, Case{"w64", Word::w64, 50},
                                           Case{"w32", Word::w32, 40}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Tamper, ValidBytesAreAccepted) {
  for (const Loader& l : loaders) EXPECT_EQ(judge(l, o, l.valid, "valid"), Outcome::accepted);
}

TEST_P(Tamper, Truncated) {
  for (const Loader& l : loaders) {
    for (const std::size_t size : cuts(l.valid.size(), 180, 40, random)) {
      const Bytes shorter = cut(l.valid, size);
      expect_refused(l, shorter, "cut to " + std::to_string(size));
      expect_refused(l, sealed(shorter), "cut to " + std::to_string(size) + " and sealed");
    }
    // With a valid frame around the shorter payload it is the contents that are too short.
    const auto payload = payload_of(l.valid);
    for (std::size_t size = 0; size < payload.size(); size += 1 + payload.size() / 60) {
      expect_refused(l, with_payload(l.valid, payload.first(size)),
                     "payload cut to " + std::to_string(size));
    }
    expect_refused(l, with_payload(l.valid, payload.first(payload.size() - 1)), "one byte short");
  }
}

TEST_P(Tamper, Extended) {
  for (const Loader& l : loaders) {
    for (const std::size_t extra : {1, 2, 8, 16, 32, 1000, 100000}) {
      Bytes longer = l.valid;
      longer.resize(longer.size() + extra);
      expect_refused(l, longer, "bytes appended");
      Bytes payload(payload_of(l.valid).begin(), payload_of(l.valid).end());
      payload.resize(payload.size() + extra, 0x41);
      expect_refused(l, with_payload(l.valid, payload), "payload extended");
    }
  }
}

TEST_P(Tamper, Flipped) {
  std::size_t cases = 0, accepted = 0;
  for (const Loader& l : loaders) {
    const std::size_t bits = 8 * l.valid.size();
    std::vector<std::size_t> at;
    for (std::size_t bit = 0; bit < std::min<std::size_t>(bits, 8 * 160); ++bit) at.push_back(bit);
    for (std::size_t k = 1; k <= 8 * 20; ++k) at.push_back(bits - k);
    for (int k = 0; k < 300; ++k) at.push_back(random() % bits);
    for (const std::size_t bit : at) {
      const Bytes bad = flipped(l.valid, bit);
      expect_refused(l, bad, "bit " + std::to_string(bit));
      const bool restored = sealed(bad) == l.valid;  // the flip was in the length or the checksum
      if (!restored) {
        accepted +=
            judge(l, o, sealed(bad), "sealed, bit " + std::to_string(bit)) == Outcome::accepted;
      }
      cases += 2;
    }
  }
  EXPECT_GE(cases, 2000u);
  EXPECT_GT(accepted, 100u) << "flips of residues and seeds give other objects of the same form";
  RecordProperty("cases", static_cast<int>(cases));
}

TEST_P(Tamper, Scrambled) {
  for (const Loader& l : loaders) {
    for (int k = 0; k < 100; ++k) {
      Bytes bad = scrambled(l.valid, k, random);
      bad[4] = 1, bad[5] = 0;
      judge(l, o, sealed(bad), "scrambled " + std::to_string(k));
      if (bad != l.valid) judge(l, o, bad, "scrambled, not sealed");
    }
  }
}

TEST_P(Tamper, Exchanged) {
  // Objects of every kind, of these and of other parameters, to every loader.
  const Case others[] = {
      {"", Word::w52, 40}, {"", Word::w52, 38}, {"", Word::w64, 50}, {"", Word::w32, 40}};
  for (const Case& other : others) {
    const Objects theirs(small_literal(other.word, other.scale_bits, 1));
    const bool same = theirs.params->hash() == o.params->hash();
    for (const Loader& given : all_loaders(theirs)) {
      for (const Loader& l : loaders) {
        const bool kind = std::equal(&given.valid[6], &given.valid[8], &l.valid[6]);  // and scheme
        const bool fits = kind && (same || l.name == "params");
        if (fits) {
          EXPECT_EQ(judge(l, o, given.valid, given.name), Outcome::accepted);
          continue;
        }
        expect_refused(l, given.valid, given.name);
        // The header names the expected kind and parameters, but the contents are those of another
        // object.
        Bytes relabelled = given.valid;
        std::copy_n(l.valid.begin(), kHeaderBytes, relabelled.begin());
        judge(l, o, sealed(relabelled), "relabelled " + given.name);
      }
    }
  }
}

TEST_P(Tamper, ResiduesNotBelowTheirPrimes) {
  for (const Loader& l : loaders) {
    if (l.name == "params") continue;
    // 16 bytes of ones cover a whole residue, which becomes 2^bits - 1. None of the offsets lies in
    // a seed.
    const std::size_t first = l.name.starts_with("evaluation_keys") || l.name == "switch_key" ? 64
                              : l.name == "ciphertext_cube" ? 192  // behind its lineage
                                                            : 128;
    const std::size_t last = payload_of(l.valid).size() - 16;
    for (const std::size_t at : {first, (first + last) / 2 + 64, last}) {
      Bytes bad = l.valid;
      std::fill_n(bad.begin() + static_cast<std::ptrdiff_t>(kHeaderBytes + at), 16, 0xff);
      expect_refused(l, sealed(bad), "residues of ones at " + std::to_string(at));
    }
  }
}

TEST_P(Tamper, ViewsThatLeaveTheirSlots) {
  ckks::Ciphertext x = o.ciphertext(o.params->depth(), 2);
  x.packing.length = 0;
  x.packing.batched = true;
  x.packing.view = ckks::View{{{3, 32}, {30, 1}}, 7, 0};  // of 1024 slots
  Loader l = loader("ciphertext_fresh");
  l.valid = wire::to_bytes(x);
  EXPECT_EQ(judge(l, o, l.valid, "an array"), Outcome::accepted);
  // Payload offsets of docs/format.md: the number of axes, count and stride of each, the first
  // address, the period.
  for (const std::uint8_t axes : {17, 128, 255})
    expect_refused(l, patched(l.valid, 78, axes), "axes");
  for (const std::uint32_t count : {0u, 100u, 1u << 31, 0xffffffffu}) {
    expect_refused(l, patched(l.valid, 79, count), "count");
  }
  for (const std::int32_t stride : {0, -32, 1000, 1 << 30, -(1 << 30)}) {
    expect_refused(l, patched(l.valid, 83, stride), "stride");
  }
  for (const std::uint32_t first : {1024u, 0x80000000u, 0xffffffffu}) {
    expect_refused(l, patched(l.valid, 95, first), "first");
  }
  for (const std::uint32_t period : {1u, 100u, 512u, 1024u, 0xffffffffu}) {
    expect_refused(l, patched(l.valid, 99, period), "period of two vectors");
  }
  expect_refused(l, patched(l.valid, 73, std::uint32_t{5}), "an array with a length");
  expect_refused(l, patched(l.valid, 77, std::uint8_t{16}), "an array that is no batch");
}

TEST_P(Tamper, FieldsOutOfRange) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  // Payload offsets of docs/format.md.
  for (const char* name : {"plaintext", "ciphertext_fresh", "ciphertext_product"}) {
    const Loader& l = loader(name);
    for (const std::uint16_t level : {2, 3, 255, 256, 0x7fff, 0x8000, 0xffff}) {
      expect_refused(l, patched(l.valid, 0, level), "level");
    }
    for (const std::uint8_t log_slots : {10, 11, 63, 64, 128, 255}) {
      expect_refused(l, patched(l.valid, 2, log_slots), "log_slots");
    }
    for (const std::uint32_t batch : {0u, 3u, 1u << 16, 1u << 31, 0xffffffffu}) {
      expect_refused(l, patched(l.valid, 3, batch), "batch");
    }
    for (const double scale : {0.0, -0.0, -1.0, 1e-300, 5e-324, 1e300, kNan, -kNan, kInf, -kInf}) {
      expect_refused(l, patched(l.valid, 7, scale), "scale " + std::to_string(scale));
    }
  }
  for (const double bad : {-1.0, -1e-300, kNan, kInf, -kInf}) {
    expect_refused(loader("plaintext"), patched(loader("plaintext").valid, 15, bad), "message");
    expect_refused(loader("plaintext"), patched(loader("plaintext").valid, 23, bad), "peak");
  }
  for (const char* name : {"ciphertext_fresh", "ciphertext_product"}) {
    const Loader& l = loader(name);
    const bool fresh = std::string(name) == "ciphertext_fresh";
    for (int parts = 0; parts < 256; ++parts) {
      if (parts == (fresh ? 2 : 3)) continue;
      expect_refused(l, patched(l.valid, 31, static_cast<std::uint8_t>(parts)), "parts");
    }
    for (int seeded = 0; seeded < 256; ++seeded) {
      if (seeded == (fresh ? 1 : 0)) continue;
      expect_refused(l, patched(l.valid, 32, static_cast<std::uint8_t>(seeded)), "seeded");
    }
    for (const double bad : {-1.0, -1e-300, kNan, kInf, -kInf}) {
      expect_refused(l, patched(l.valid, 33, bad), "variance");
      expect_refused(l, patched(l.valid, 41, bad), "message");
      expect_refused(l, patched(l.valid, 49, bad), "peak");
      expect_refused(l, patched(l.valid, 57, bad), "error");
      expect_refused(l, patched(l.valid, 65, bad), "noise");
    }
    for (const std::uint32_t length : {513u, 1024u, 0x80000000u, 0xffffffffu}) {
      expect_refused(l, patched(l.valid, 73, length), "length");
    }
    const Bytes sparse = patched(l.valid, 2, std::uint8_t{3});
    EXPECT_EQ(judge(l, o, patched(sparse, 73, std::uint32_t{8}), "all slots"), Outcome::accepted);
    expect_refused(l, patched(sparse, 73, std::uint32_t{9}), "length beyond the slots");
    for (const std::uint8_t packing : {16, 32, 64, 255}) {
      expect_refused(l, patched(l.valid, 77, packing), "packing");
    }
  }
  // 100 numbers from 512 on, in 2 windows of 64 that begin every 128 slots: first, window, stride,
  // count.
  const Loader& tiled = loader("ciphertext_tiled");
  EXPECT_EQ(judge(tiled, o, patched(tiled.valid, 78, 0xffffffffu), "first"), Outcome::accepted);
  for (const std::uint32_t window :
       {0u, 1u, 32u, 63u, 128u, 256u, 512u, 0x80000000u, 0xffffffffu}) {
    expect_refused(tiled, patched(tiled.valid, 82, window), "window");
  }
  for (const std::uint32_t stride : {0u, 32u, 64u, 127u, 512u, 0x80000000u, 0xffffffffu}) {
    expect_refused(tiled, patched(tiled.valid, 86, stride), "stride");
  }
  for (const std::uint32_t count : {0u, 1u, 3u, 8u, 0x2000000u, 0x80000000u, 0xffffffffu}) {
    expect_refused(tiled, patched(tiled.valid, 90, count), "count");
  }
  for (const std::uint32_t length : {0u, 129u, 512u}) {
    expect_refused(tiled, patched(tiled.valid, 73, length), "length of a tiled vector");
  }
  const Bytes nowhere = patched(patched(tiled.valid, 78, std::uint64_t{0}), 86, std::uint64_t{0});
  expect_refused(tiled, nowhere, "tiled, and all zero");
  const Loader& correlated = loader("ciphertext_correlated");
  for (const double principal : {1 + 0x1p-52, 512.0}) {
    EXPECT_EQ(judge(correlated, o, patched(correlated.valid, 78, principal), "principal"),
              Outcome::accepted);
  }
  for (const double principal :
       {-2.0, 0.0, 0.5, 1.0, 512.5, 1e300, std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    expect_refused(correlated, patched(correlated.valid, 78, principal), "principal");
  }
  const Loader& cube = loader("ciphertext_cube");
  const Loader& fresh = loader("ciphertext_fresh");
  expect_refused(fresh, patched(fresh.valid, 77, std::uint8_t{128}), "a lineage that is missing");
  // u64 root, u64 Galois element, u32 power (3), u32 degree, u64 inputs.
  for (const std::size_t at : {94, 98}) {
    for (const std::uint32_t degree : {1u, 2u, 65536u}) {
      if (at == 94 && degree == 1) continue;  // the lineage that the seed has
      EXPECT_EQ(judge(cube, o, patched(cube.valid, at, degree), "degree"), Outcome::accepted);
    }
    for (const std::uint32_t degree : {0u, 65537u, 0xffffffffu}) {
      expect_refused(cube, patched(cube.valid, at, degree), "degree");
    }
  }
  expect_refused(cube, patched(cube.valid, 94, 1u), "a lineage that the seed has, too");
  for (const std::uint64_t turn : {std::uint64_t{5}, std::uint64_t{2047}}) {
    EXPECT_EQ(judge(cube, o, patched(cube.valid, 86, turn), "turn"), Outcome::accepted);
  }
  for (const std::uint64_t turn :
       {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{2049}, ~std::uint64_t{0}}) {
    expect_refused(cube, patched(cube.valid, 86, turn), "turn");
  }
  const Bytes unknown = patched(cube.valid, 78, std::uint64_t{0});
  expect_refused(cube, unknown, "a power of unknown numbers");
  // Of unknown numbers there is a degree, and nothing else.
  const Bytes degree = patched(patched(unknown, 94, 1u), 102, std::uint64_t{0});
  EXPECT_EQ(judge(cube, o, patched(degree, 98, 3u), "a degree"), Outcome::accepted);
  expect_refused(cube, patched(patched(degree, 98, 3u), 102, std::uint64_t{1}), "unknown inputs");
  expect_refused(cube, patched(patched(degree, 98, 3u), 86, std::uint64_t{5}), "unknown and moved");
  const Loader& keys = loader("evaluation_keys");
  for (const std::uint8_t flag : {0, 2, 255}) {
    expect_refused(keys, patched(keys.valid, 16, flag), "relinearisation flag");
  }
  for (const std::uint32_t count : {0u, 2u, 4u, 1u << 20, 0x7fffffffu, 0xffffffffu}) {
    expect_refused(keys, patched(keys.valid, 17, count), "count of keys");
  }
  const std::size_t key_bytes = payload_of(loader("switch_key").valid).size();
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t at = 21 + key_bytes + i * (8 + key_bytes);
    for (const std::uint64_t element :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{6}, std::uint64_t{2048},
          std::uint64_t{2049}, ~std::uint64_t{0}}) {
      expect_refused(keys, patched(keys.valid, at, element), "Galois element");
    }
  }
  // Two keys of one element, and elements out of order.
  Bytes twice = keys.valid;
  const auto element_at = [&](std::size_t i) {
    return twice.begin() +
           static_cast<std::ptrdiff_t>(kHeaderBytes + 21 + key_bytes + i * (8 + key_bytes));
  };
  std::copy_n(element_at(0), 8, element_at(1));
  expect_refused(keys, sealed(twice), "one element twice");
  twice = keys.valid;
  std::swap_ranges(element_at(0), element_at(0) + 8, element_at(1));
  expect_refused(keys, sealed(twice), "elements out of order");

  const Loader& params = loader("params");
  for (const std::uint16_t depth : {2, 50, 200, 201, 0xffff}) {
    expect_refused(params, patched(params.valid, 0, depth), "depth");
  }
  for (const std::uint16_t security : {1, 127, 128, 256, 0xffff}) {
    expect_refused(params, patched(params.valid, 2, security), "security");
  }
  for (const std::uint16_t dnum : {0, 100, 0xffff}) {
    expect_refused(params, patched(params.valid, 4, dnum), "dnum");
  }
  for (const std::uint8_t log_n : {0, 1, 9, 11, 18, 64, 255}) {
    expect_refused(params, patched(params.valid, 6, log_n), "log_n");
  }
  for (const std::uint8_t word : {3, 4, 255}) {
    expect_refused(params, patched(params.valid, 7, word), "word");
  }
  for (const std::size_t at : {8, 16}) {
    for (const double bad : {-1.0, 1e-300, 14.9, 1e300, kNan, kInf, -kInf}) {
      if (at == 16 && bad >= 0 && bad < 100) continue;
      if (at == 16 && bad == 1e-300) continue;
      expect_refused(params, patched(params.valid, at, bad), "bits " + std::to_string(bad));
    }
  }
  for (const std::uint8_t length : {0, 12, 14, 255}) {
    expect_refused(params, patched(params.valid, 24, length), "length of the name");
  }
  expect_refused(params, patched(params.valid, 25, 'x'), "a name that no longer says insecure_");

  const Loader& secret = loader("secret_key");
  for (std::size_t k = 0; k < 4; ++k) {
    expect_refused(secret, patched(secret.valid, 77, static_cast<std::uint8_t>(3 << 2 * k)),
                   "a coefficient that is not ternary");
  }
}

TEST_P(Tamper, AnotherRing) {
  const Objects other(small_literal(Word::w52, 37, 1));
  for (const Loader& l : loaders) {
    if (l.name == "params") continue;
    EXPECT_THROW(l.load(l.valid, *other.ring, kLimits), ParamsMismatch) << l.name;
  }
}

// What loading may allocate beyond the limit, for error messages and small containers.
constexpr std::size_t kSlack = 8192;

TEST_P(Tamper, AllocationStaysWithinTheLimit) {
  for (const Loader& l : loaders) {
    if (l.name == "params")
      continue;  // allocates what its levels need, not what it reads; hostile_params_test.cpp
                 // bounds it
    // Measures the memory of the object itself: a fresh ring has an empty pool.
    const auto ring_bytes = [&](const Limits& limits, const Bytes& bytes, bool* accepted) {
      const auto ring = ckks::make_ring(*o.params);
      const Loader parsing{l.name, {}, l.load};
      const std::size_t before = testing::allocated_bytes();
      std::size_t used = 0;
      try {
        parsing.load(bytes, *ring, limits);
        *accepted = true;
      } catch (const Error& error) {
        *accepted = false;
        EXPECT_EQ(error.code(), ErrorCode::limit_exceeded) << error.what();
      }
      used = testing::allocated_bytes() - before;
      return used;
    };
    // A stream also has a piece of the bytes that it reads, at most kPieceBytes.
    const std::size_t piece = l.name.ends_with("_stream") ? l.valid.size() : 0;
    bool accepted = false;
    for (std::size_t limit = 0; !accepted; limit = limit + limit / 16 + 512) {
      ASSERT_LT(limit, kLimits.max_bytes) << l.name << " is never accepted";
      const std::size_t used = ring_bytes({limit}, l.valid, &accepted);
      if (!accepted) {
        EXPECT_LE(used, limit + piece + kSlack) << l.name << ", limit " << limit;
      }
      if (limit < l.valid.size()) {
        EXPECT_FALSE(accepted);
        EXPECT_LE(used, kSlack) << "refused before anything is read";
      }
    }
  }
}

TEST_P(Tamper, ClaimsAloneAllocateNothing) {
  // A ciphertext that claims a huge batch and carries a few bytes.
  for (const std::uint32_t batch : {1u << 10, 1u << 20, 0xffffffffu}) {
    for (const char* name : {"plaintext", "ciphertext_fresh", "ciphertext_product"}) {
      const Loader& l = loader(name);
      const Bytes bad = patched(l.valid, 3, batch);
      const std::size_t before = testing::allocated_bytes();
      EXPECT_THROW(l.load(bad, *o.ring, {}), CorruptData);
      EXPECT_LE(testing::allocated_bytes() - before, kSlack) << name << ", batch " << batch;
    }
  }
  const Loader& keys = loader("evaluation_keys");
  const Bytes bad = patched(keys.valid, 17, 0xffffffffu);
  const std::size_t before = testing::allocated_bytes();
  EXPECT_THROW(keys.load(bad, *o.ring, {}), CorruptData);
  EXPECT_LE(testing::allocated_bytes() - before, kSlack);
}

}  // namespace
}  // namespace jali::wire
