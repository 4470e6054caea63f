// Messages of another program, another direction or other arrays are refused, as are bytes that
// were changed.
#include "jali/client/message.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "jali/base/error.h"
#include "support.h"
#include "tampering.h"

namespace jali::client {
namespace {

using namespace testing;

class Messages : public ::testing::Test {
 protected:
  Messages() {
    message.program = print;
    message.examples = 6;  // of 4 lanes, in a batch of 2
    for (const Port& port : manifest.inputs) {
      auto& array = message.arrays.emplace_back();
      for (std::uint64_t k = 0; k < port.layout.ciphertexts(); ++k) array.push_back(fresh(2));
    }
  }
  CiphertextPtr fresh(std::size_t batch) const {
    return std::make_shared<const ckks::Ciphertext>(o.ciphertext(o.params->depth(), batch));
  }
  Message read(const wire::Bytes& bytes, Direction direction = Direction::request) const {
    return message_from_bytes(bytes, manifest, print, direction, *o.ring, kLimits);
  }

  Objects o{small_literal(Word::w52, 40, 1)};
  Manifest manifest = small_manifest(o.params);
  Digest print = fingerprint(manifest);
  Message message;
  std::mt19937_64 random{0x6a616c69};
};

TEST_F(Messages, ComeBack) {
  const wire::Bytes bytes = to_bytes(message);
  const Message again = read(bytes);
  EXPECT_EQ(to_bytes(again), bytes);
  EXPECT_EQ(again.examples, 6u);
  ASSERT_EQ(again.arrays.size(), 2u);
  ASSERT_EQ(again.arrays[1].size(), 2u);
  EXPECT_EQ(wire::to_bytes(*again.arrays[1][1]), wire::to_bytes(*message.arrays[1][1]));
}

TEST_F(Messages, WithoutCiphertextsAreNotWritten) {
  EXPECT_THROW(to_bytes(Message{}), InvalidArgument);
  message.arrays[1][0] = nullptr;
  EXPECT_THROW(to_bytes(message), InvalidArgument);
  const Objects other(small_literal(Word::w52, 39, 1));
  message.arrays[1][0] = std::make_shared<const ckks::Ciphertext>(other.ciphertext(1, 2));
  EXPECT_THROW(to_bytes(message), ParamsMismatch);
}

TEST_F(Messages, OfOthersAreRefused) {
  struct Case {
    std::function<void(Message&)> change;
    const char* sentence;
  };
  const std::vector<Case> cases = {
      {[](Message& m) { m.program[0] ^= 1; }, "another program"},
      {[](Message& m) { m.direction = Direction::reply; }, "a server's reply"},
      {[](Message& m) { m.arrays.pop_back(); }, "other arrays"},
      {[](Message& m) { m.arrays[1].pop_back(); }, "other arrays"},
      {[](Message& m) { m.examples = 4; }, "do not hold the 4 examples"},
      {[](Message& m) { m.examples = 9; }, "do not hold the 9 examples"},
      {[](Message& m) { m.examples = 0; }, "do not hold the 0 examples"},
      {[](Message& m) { m.examples = ~std::uint64_t{0}; }, "do not hold"},
      {[](Message& m) { m.single = true; }, "is of one example"},
      {[&](Message& m) { m.arrays[0][0] = fresh(1); }, "do not hold"},
      {[&](Message& m) { m.arrays[0][0] = nullptr; }, "holds no ciphertext"},
      {[&](Message& m) {
         m.arrays[0][0] = std::make_shared<const ckks::Ciphertext>(o.ciphertext(1, 2, 4));
       },
       "do not hold"},
  };
  for (const Case& one : cases) {
    Message changed = message;
    one.change(changed);
    try {
      check(changed, manifest, print, Direction::request);
      ADD_FAILURE() << one.sentence;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(one.sentence), std::string::npos) << error.what();
    }
  }
  try {
    check(message, manifest, print, Direction::reply);
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("the message is a request"), std::string::npos);
  }
  const Objects other(small_literal(Word::w52, 39, 1));
  Message theirs = message;
  theirs.arrays[0][0] = std::make_shared<const ckks::Ciphertext>(other.ciphertext(1, 2));
  EXPECT_THROW(check(theirs, manifest, print, Direction::request), ParamsMismatch);
}

TEST_F(Messages, ThatWereChangedAreRefused) {
  const wire::Bytes valid = to_bytes(message);
  EXPECT_THROW(message_from_bytes(valid, manifest, print, Direction::request, *o.ring, {1000}),
               LimitExceeded);
  // The announcement of a message is checked before its ciphertexts are read, so that those errors
  // are of the caller's kind.
  const auto judge = [&](const wire::Bytes& bytes) {
    try {
      return judged("message", bytes, [&] {
        try {
          return to_bytes(read(bytes));
        } catch (const InvalidArgument& error) {
          throw CorruptData(error.what());
        }
      });
    } catch (const std::exception&) {
      return Outcome::refused;
    }
  };
  for (const std::size_t size : cuts(valid.size(), 200, 40, random)) {
    EXPECT_EQ(judge(cut(valid, size)), Outcome::refused);
    EXPECT_EQ(judge(sealed(cut(valid, size))), Outcome::refused);
  }
  for (std::size_t bit = 0; bit < 8 * 300; ++bit) {
    EXPECT_EQ(judge(flipped(valid, bit)), Outcome::refused);
    judge(sealed(flipped(valid, bit)));
  }
  for (int k = 0; k < 200; ++k) judge(sealed(scrambled(valid, k, random)));
  wire::Bytes longer(payload_of(valid).begin(), payload_of(valid).end());
  longer.resize(longer.size() + 64);
  EXPECT_EQ(judge(with_payload(valid, longer)), Outcome::refused);
}

}  // namespace
}  // namespace jali::client
