#include "jali/wire/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "jali/base/error.h"
#include "jali/base/hash.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::wire {
namespace {

// The frame knows no scheme.
constexpr Scheme kScheme{7};
constexpr Kind kPlaintext{kScheme, Object::plaintext};

ParamsHash some_hash() {
  ParamsHash hash;
  for (std::size_t i = 0; i < hash.size(); ++i) hash[i] = static_cast<std::uint8_t>(200 - i);
  return hash;
}

std::vector<std::uint8_t> sample() {
  Writer writer(kPlaintext, some_hash(), 0);
  writer.u8(0x12);
  writer.u16(0x3456);
  writer.u32(0x789abcde);
  writer.u64(0x0123456789abcdef);
  writer.i32(-2);
  writer.f64(-1.5);
  const auto room = writer.extend(3);
  room[0] = 7, room[1] = 8, room[2] = 9;
  return writer.finish();
}

TEST(Frame, LayoutIsAsDocumented) {
  const auto bytes = sample();
  const std::vector<std::uint8_t> start = {'J', 'A', 'L', 'I', 1, 0, 7, 2};
  ASSERT_EQ(bytes.size(), 48u + 30 + 16);
  EXPECT_TRUE(std::equal(start.begin(), start.end(), bytes.begin()));
  EXPECT_EQ(std::memcmp(some_hash().data(), &bytes[8], 32), 0);
  const std::vector<std::uint8_t> body = {30,   0,    0,    0,    0,    0,    0,    0,  // length
                                          0x12,  // u8
                                          0x56, 0x34,  // u16
                                          0xde, 0xbc, 0x9a, 0x78,  // u32
                                          0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 1,  // u64
                                          0xfe, 0xff, 0xff, 0xff,  // i32
                                          0,    0,    0,    0,    0,    0,    0xf8, 0xbf,  // f64
                                          7,    8,    9};
  EXPECT_TRUE(std::equal(body.begin(), body.end(), bytes.begin() + 40));
  const Digest digest = hash256(std::span(bytes).first(bytes.size() - 16));
  EXPECT_EQ(std::memcmp(digest.data(), &bytes[bytes.size() - 16], 16), 0);
}

TEST(Frame, ReaderGivesBackWhatWasWritten) {
  const auto bytes = sample();
  const Frame frame = open_frame(bytes, kPlaintext, {});
  EXPECT_EQ(frame.params_hash, some_hash());
  Reader reader(frame, {});
  EXPECT_EQ(reader.u8(), 0x12);
  EXPECT_EQ(reader.u16(), 0x3456);
  EXPECT_EQ(reader.u32(), 0x789abcdeu);
  EXPECT_EQ(reader.u64(), 0x0123456789abcdefu);
  EXPECT_EQ(reader.i32(), -2);
  EXPECT_EQ(reader.f64(), -1.5);
  EXPECT_THROW(reader.finish(), CorruptData);
  EXPECT_THROW(reader.raw(4), CorruptData);
  EXPECT_THROW(reader.raw(~std::uint64_t{0}), CorruptData);
  EXPECT_EQ(reader.raw(3)[2], 9);
  reader.finish();
  EXPECT_THROW(reader.u8(), CorruptData);
}

TEST(Frame, EveryBitIsCovered) {
  const auto bytes = sample();
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto bad = bytes;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    EXPECT_THROW(open_frame(bad, {}), Error) << "bit " << bit;
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(open_frame(std::span(bytes).first(size), {}), CorruptData) << "size " << size;
  }
}

TEST(Frame, LongOnesCanBeEndedBetweenPieces) {
  std::vector<std::uint8_t> bytes = sample(), whole(std::size_t{40} << 20, 3);
  std::copy_n(bytes.begin(), kHeaderBytes, whole.begin());
  int calls = 0;
  seal_frame(whole, [&] { ++calls; });
  EXPECT_EQ(calls, 3);
  const Digest digest = hash256(std::span(whole).first(whole.size() - kChecksumBytes));
  EXPECT_TRUE(std::equal(whole.end() - kChecksumBytes, whole.end(), digest.begin()));
  open_frame(whole, {}, [&] { ++calls; });
  EXPECT_EQ(calls, 6);
  EXPECT_THROW(open_frame(whole, {}, [] { throw Unsupported("stop"); }), Unsupported);
}

TEST(Frame, TellsWhatIsWrong) {
  const auto expect = [](std::vector<std::uint8_t> bytes, ErrorCode code, Limits limits = {}) {
    try {
      open_frame(bytes, kPlaintext, limits);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
    }
  };
  auto bytes = sample();
  expect(bytes, ErrorCode::limit_exceeded, {bytes.size() - 1});
  open_frame(bytes, {bytes.size()});
  bytes[4] = 2;
  expect(bytes, ErrorCode::version);  // recognised before anything else of a later format is judged
  bytes = sample();
  bytes[7] = static_cast<std::uint8_t>(Object::secret_key);
  seal_frame(bytes);
  expect(bytes, ErrorCode::corrupt_data);
  EXPECT_EQ(open_frame(bytes, {}).kind, (Kind{kScheme, Object::secret_key}));
  bytes = sample();
  bytes[6] = 8;
  seal_frame(bytes);
  expect(bytes, ErrorCode::corrupt_data);  // the same object of another scheme
  EXPECT_EQ(open_frame(bytes, {}).kind, (Kind{Scheme{8}, Object::plaintext}));
  bytes = sample();
  bytes.push_back(0);
  expect(bytes, ErrorCode::corrupt_data);
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{29}, std::uint64_t{31},
                                     ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    bytes = sample();
    std::memcpy(&bytes[40], &length, 8);
    expect(bytes, ErrorCode::corrupt_data);
  }
}

TEST(Reader, ChecksFlagsMagnitudesAndMemory) {
  Writer writer(kPlaintext, some_hash(), 0);
  for (const std::uint8_t x : {0, 1, 2}) writer.u8(x);
  for (const double x : {0.0, 1e300, -1e-300, HUGE_VAL, std::nan("")}) writer.f64(x);
  const auto bytes = writer.finish();
  Reader reader(open_frame(bytes, {}), {1000});
  EXPECT_FALSE(reader.flag());
  EXPECT_TRUE(reader.flag());
  EXPECT_THROW(reader.flag(), CorruptData);
  EXPECT_EQ(reader.magnitude("x"), 0);
  EXPECT_EQ(reader.magnitude("x"), 1e300);
  for (int i = 0; i < 3; ++i) EXPECT_THROW(reader.magnitude("x"), CorruptData);
  reader.charge(600);
  EXPECT_THROW(reader.charge(401), LimitExceeded);
  reader.charge(400);
  EXPECT_THROW(reader.charge(~std::uint64_t{0}), LimitExceeded);
}

}  // namespace
}  // namespace jali::wire
