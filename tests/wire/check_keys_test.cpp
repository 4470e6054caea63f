// Keys that are checked and forgotten, and keys that are made and written one by one.
#include <gtest/gtest.h>

#include <random>

#include "jali/base/error.h"
#include "jali/wire/key_writer.h"
#include "jali/wire/keys.h"
#include "objects.h"
#include "tampering.h"

namespace jali::wire {
namespace {

using namespace testing;

class CheckKeys : public ::testing::Test {
 protected:
  CheckKeys() {
    demand.relinearise = 1;
    demand.galois = {{5, 2}, {25, 0}, {2 * o.params->n() - 1, -1}};
    rlwe::KeyGenerator generator(o.params, o.ring, test_seed(9));
    bytes = to_bytes(generator.keys_for(*o.sk, demand));
  }
  CheckedKeys checked(std::span<const std::uint8_t> in, const Limits& limits = kLimits) const {
    const Source source = memory_source(in);
    auto found = check_keys(source, *o.params, *o.ring, limits);
    require_end(source);
    return found;
  }
  bool is_read(std::span<const std::uint8_t> in) const {
    try {
      const Source source = memory_source(in);
      read_keys(source, o.params, *o.ring, kLimits);
      require_end(source);
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  bool is_checked(std::span<const std::uint8_t> in) const {
    try {
      checked(in);
      return true;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::corrupt_data || error.code() == ErrorCode::version ||
                  error.code() == ErrorCode::params_mismatch ||
                  error.code() == ErrorCode::limit_exceeded)
          << error.what();
      return false;
    }
  }

  Objects o{small_literal(Word::w52, 40, 3)};
  rlwe::KeyDemand demand;
  Bytes bytes;
};

TEST_F(CheckKeys, SaysWhatTheyAreFor) {
  const CheckedKeys found = checked(bytes);
  EXPECT_EQ(found.key_id, o.sk->id());
  EXPECT_EQ(found.demand, demand);
  EXPECT_EQ(sent_bytes(*o.params, demand), bytes.size());
  rlwe::KeyDemand top = demand;
  top.galois[5] = o.params->top();  // every level
  rlwe::KeyGenerator generator(o.params, o.ring, test_seed(9));
  EXPECT_EQ(sent_bytes(*o.params, top), to_bytes(generator.keys_for(*o.sk, top)).size());
}

TEST_F(CheckKeys, TakesTheMemoryOfOneKey) {
  // The residues of 40 bits take words of 64, so that all keys together take more memory than
  // bytes.
  const Limits limits{bytes.size() + 1, 0};
  EXPECT_EQ(checked(bytes, limits).demand, demand);
  std::span<const std::uint8_t> in = bytes;
  EXPECT_THROW(read_keys(memory_source(in), o.params, *o.ring, limits), LimitExceeded);
  EXPECT_THROW(checked(bytes, {bytes.size() - 1, 0}), LimitExceeded);
}

TEST_F(CheckKeys, RefusesWhatReadingRefuses) {
  std::mt19937_64 random{0x6a616c69};
  int accepted = 0;
  for (int k = 0; k < 90; ++k) {
    Bytes bad = scrambled(bytes, k, random);
    if (k % 3 != 0) std::copy_n(bytes.begin(), kHeaderBytes, bad.begin());
    bad = k % 5 == 0 ? bad : sealed(bad);
    EXPECT_EQ(is_checked(bad), is_read(bad)) << k;
    accepted += is_read(bad) ? 1 : 0;
  }
  EXPECT_GT(accepted, 3) << "other residues";
  for (std::size_t bit = 0; bit < 8 * 60; bit += 2) {
    const Bytes bad = sealed(flipped(bytes, bit));
    EXPECT_EQ(is_checked(bad), is_read(bad)) << bit;
  }
  for (const std::size_t size : cuts(bytes.size(), 120, 40, random)) {
    EXPECT_FALSE(is_checked(cut(bytes, size)));
  }
  Bytes longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(is_checked(longer));
  Bytes damaged = bytes;
  damaged.back() ^= 1;
  EXPECT_THROW(checked(damaged), CorruptData);
  // A polynomial of zeros, which hides nothing.
  Bytes empty = bytes;
  std::fill_n(empty.begin() + kHeaderBytes + 16 + 5 + 2 + 32, 16384, 0);
  EXPECT_THROW(checked(sealed(empty)), CorruptData);
}

TEST_F(CheckKeys, KeysThatAreWrittenOneByOneHaveTheSameBytes) {
  rlwe::KeyGenerator generator(o.params, o.ring, test_seed(9));
  Bytes out;
  std::size_t pieces = 0;
  KeyWriter writer(*o.params, o.sk->id(), demand, [&](std::span<const std::uint8_t> piece) {
    out.insert(out.end(), piece.begin(), piece.end());
    ++pieces;
  });
  generator.make(*o.sk, demand,
                 {[&](rlwe::SwitchKey key) { writer.relinearisation(key); },
                  [&](std::uint64_t element, rlwe::SwitchKey key) { writer.galois(element, key); },
                  [&](rlwe::EncapsulationKeys keys) { writer.encapsulation(keys); }});
  EXPECT_TRUE(writer.finish().empty());
  EXPECT_EQ(out, bytes);
  EXPECT_GE(pieces, 2u);
}

TEST_F(CheckKeys, AWriterThatGetsOtherKeysSaysSo) {
  KeyWriter writer(*o.params, o.sk->id(), demand, [](std::span<const std::uint8_t>) {});
  EXPECT_THROW(writer.finish(), InternalError);
}

}  // namespace
}  // namespace jali::wire
