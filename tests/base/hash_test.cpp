#include "jali/base/hash.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "../hex.h"

namespace jali {
namespace {

std::span<const std::uint8_t> bytes(std::string_view s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

using test::hex;

// The examples of FIPS 180-4 (NIST, "SHA-256 example", and the SHA-2 additional vectors).
TEST(Hash256, StandardVectors) {
  EXPECT_EQ(hex(hash256(bytes(""))),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(hash256(bytes("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(hash256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(hash256(bytes(std::string(1000000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  // Lengths on both sides of the padding boundary.
  EXPECT_EQ(hex(hash256(bytes(std::string(55, '\0')))),
            "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7");
  EXPECT_EQ(hex(hash256(bytes(std::string(56, '\0')))),
            "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb");
  EXPECT_EQ(hex(hash256(bytes(std::string(64, '\0')))),
            "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b");
}

TEST(Hash256, PiecesGiveTheWhole) {
  std::vector<std::uint8_t> data(517);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i * 37 + 11);
  const Digest whole = hash256(data);
  for (std::size_t first = 0; first <= data.size(); ++first) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{63}, std::size_t{64}, data.size()}) {
      Hash256 hash;
      hash.update(std::span(data).first(first));
      for (std::size_t i = first; i < data.size(); i += step) {
        hash.update(std::span(data).subspan(i, std::min(step, data.size() - i)));
      }
      ASSERT_EQ(hash.digest(), whole) << "first piece " << first << ", step " << step;
      ASSERT_EQ(hash.digest(), whole) << "digest() changed the state";
    }
  }
}

TEST(Hash256, PortableEqualsFast) {
  std::vector<std::uint8_t> data;
  for (std::size_t size = 0; size < 400; ++size) {
    ASSERT_EQ(detail::hash256_portable(data), hash256(data)) << "size " << size;
    data.push_back(static_cast<std::uint8_t>(size * size + 7));
  }
}

}  // namespace
}  // namespace jali
