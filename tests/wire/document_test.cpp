// Programs and recorded graphs as bytes: what is written comes back, and nothing else is accepted.
#include "jali/wire/document.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "jali/base/error.h"

namespace jali::wire {
namespace {

constexpr std::array<double, 6> kNumbers{1, -2.5, 0, 1e300, 3, 0.125};

std::span<const std::uint8_t> bytes_of(std::span<const double> numbers) {
  return {reinterpret_cast<const std::uint8_t*>(numbers.data()), numbers.size_bytes()};
}

DocumentView known() {
  const std::span<const double> all(kNumbers);
  return {R"({"a": {"array": 0}, "b": {"array": 1}})",
          {{{2, 2}, bytes_of(all.first(4))},
           {{}, bytes_of(all.subspan(4, 1))},
           {{1}, bytes_of(all.last(1))}}};
}

TEST(Document, ComesBack) {
  for (const Kind kind : {kProgram, kGraph}) {
    const Bytes bytes = to_bytes(kind, known());
    const DocumentView read = document_from_bytes(bytes, kind);
    EXPECT_EQ(read.text, known().text);
    ASSERT_EQ(read.arrays.size(), 3u);
    EXPECT_EQ(read.arrays[0].shape, (std::vector<std::uint32_t>{2, 2}));
    double last = 0;
    std::memcpy(&last, &read.arrays[0].values[24], sizeof(last));
    EXPECT_EQ(last, 1e300);
    EXPECT_EQ(to_bytes(kind, read), bytes);
  }
  EXPECT_TRUE(document_from_bytes(to_bytes(kGraph, {}), kGraph).arrays.empty());
}

TEST(Document, OfAnotherKindIsRefusedByItsName) {
  try {
    document_from_bytes(to_bytes(kGraph, known()), kProgram);
    ADD_FAILURE() << "a graph is taken for a program";
  } catch (const CorruptData& error) {
    EXPECT_NE(std::string(error.what()).find("recorded graph, not a compiled program"),
              std::string::npos)
        << error.what();
  }
}

TEST(Document, WhatCannotBeReadIsNotWritten) {
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  for (const DocumentView& wrong : std::vector<DocumentView>{
           {"", {{{}, bytes_of({&not_a_number, 1})}}},
           {"", {{{0}, {}}}},
           {"", {{{2}, bytes_of(std::span(kNumbers).first(1))}}},
           {"", {{std::vector<std::uint32_t>(9, 1), bytes_of(std::span(kNumbers).first(1))}}},
       }) {
    EXPECT_THROW(to_bytes(kGraph, wrong), InvalidArgument);
  }
  const std::string long_text(kMostText + std::size_t{1}, 'x');
  EXPECT_THROW(to_bytes(kGraph, {long_text, {}}), InvalidArgument);
}

TEST(Document, LimitsHoldForBytesAndMemory) {
  const Bytes bytes = to_bytes(kProgram, known());
  Limits limits;
  limits.max_bytes = bytes.size() - 1;
  EXPECT_THROW(document_from_bytes(bytes, kProgram, limits), LimitExceeded);
  const DocumentView many{
      "", std::vector<NumbersView>(1000, {{}, bytes_of(std::span(kNumbers).first(1))})};
  const Bytes small = to_bytes(kProgram, many);
  limits.max_bytes = small.size();  // an array takes more memory than bytes
  EXPECT_THROW(document_from_bytes(small, kProgram, limits), LimitExceeded);
}

TEST(Document, EveryOtherByteIsRefused) {
  const Bytes valid = to_bytes(kProgram, known());
  for (std::size_t at = kHeaderBytes; at < valid.size() - kChecksumBytes; ++at) {
    for (const int change : {1, 0x80, 0xff}) {
      Bytes bytes = valid;
      bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ change);
      seal_frame(bytes);
      try {  // another text or other numbers are another document
        EXPECT_EQ(to_bytes(kProgram, document_from_bytes(bytes, kProgram)), bytes);
      } catch (const CorruptData&) {
      }
    }
  }
  for (std::size_t length = 0; length < valid.size() - kFrameBytes; ++length) {
    Bytes bytes(valid.begin(), valid.begin() + static_cast<std::ptrdiff_t>(kHeaderBytes + length));
    bytes.resize(bytes.size() + kChecksumBytes);
    seal_frame(bytes);
    EXPECT_THROW(document_from_bytes(bytes, kProgram), CorruptData) << length;
  }
}

}  // namespace
}  // namespace jali::wire
