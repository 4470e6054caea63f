#include "jali/wire/residues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <span>
#include <vector>

#include "../seeded.h"

namespace jali::wire {
namespace {

const std::uint64_t kModuli[] = {3,
                                 12289,
                                 (1ull << 20) - 3,
                                 1ull << 25,
                                 1073479681,
                                 (1ull << 32) + 15,
                                 (1ull << 33) - 9,
                                 1125899904679937,
                                 (1ull << 57) - 13,
                                 (1ull << 58) + 3,
                                 2305843009211596801};

// The definition, one bit after the other.
std::vector<std::uint8_t> pack_slowly(const std::vector<std::uint64_t>& row, unsigned bits) {
  std::vector<std::uint8_t> out(row.size() * bits / 8);
  for (std::size_t i = 0; i < row.size(); ++i) {
    for (unsigned k = 0; k < bits; ++k) {
      const std::size_t at = i * bits + k;
      out[at / 8] |= static_cast<std::uint8_t>((row[i] >> k & 1) << at % 8);
    }
  }
  return out;
}

TEST(Residues, PackAsDefinedAndUnpackAgain) {
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random(seed);
  for (const std::uint64_t q : kModuli) {
    const auto bits = static_cast<unsigned>(std::bit_width(q - 1));
    for (const std::size_t n : {64, 128, 1024}) {
      std::vector<std::uint64_t> row(n);
      for (auto& x : row) x = random() % q;
      row[0] = q - 1, row[n - 1] = q - 1, row[1] = 0;
      std::vector<std::uint8_t> out(packed_row_bytes(n, q));
      ASSERT_EQ(out.size(), n * bits / 8);
      pack_row(row.data(), Word::w64, n, q, out);
      ASSERT_EQ(out, pack_slowly(row, bits)) << "q " << q << ", seed " << seed;
      std::vector<std::uint64_t> back(n, 1);
      EXPECT_TRUE(unpack_row(out, Word::w52, n, q, back.data()));
      EXPECT_EQ(back, row);
      if (q < (1ull << 32)) {
        std::vector<std::uint32_t> narrow(row.begin(), row.end()), narrow_back(n);
        std::vector<std::uint8_t> again(out.size());
        pack_row(narrow.data(), Word::w32, n, q, again);
        EXPECT_EQ(again, out);
        EXPECT_TRUE(unpack_row(again, Word::w32, n, q, narrow_back.data()));
        EXPECT_EQ(narrow_back, narrow);
      }
    }
  }
}

TEST(Residues, EveryWidthPacksInItsPlaceAndNowhereElse) {
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random(seed);
  constexpr std::uint8_t kFill = 0xa5;
  for (unsigned bits = 1; bits <= 62; ++bits) {
    // The least and the largest modulus of this width, and one between.
    const std::uint64_t half = std::uint64_t{1} << (bits - 1);
    for (const std::uint64_t q : {half + 1, half + 1 + random() % half, 2 * half}) {
      for (const std::size_t n : {64, 192, 320}) {
        SCOPED_TRACE(testing::Message()
                     << bits << " bits, q " << q << ", n " << n << ", seed " << seed);
        std::vector<std::uint64_t> row(n);
        for (auto& x : row) x = random() % q;
        row[n / 2] = row[n - 1] = q - 1;
        const auto want = pack_slowly(row, bits);
        // At an odd address, with bytes before and behind it.
        std::vector<std::uint8_t> bytes(want.size() + 17, kFill);
        const auto inside = std::span(bytes).subspan(3, want.size());
        pack_row(row.data(), Word::w64, n, q, inside);
        ASSERT_TRUE(std::ranges::equal(inside, want));
        EXPECT_EQ(std::ranges::count(bytes, kFill), 17 + std::ranges::count(want, kFill));
        std::vector<std::uint64_t> back(n + 1, 7);
        EXPECT_TRUE(unpack_row(inside, Word::w64, n, q, back.data()));
        EXPECT_EQ(back[n], 7U);
        back.pop_back();
        EXPECT_EQ(back, row);
        // No byte beyond the row is read. The copy has exactly the row's size, so that sanitizers
        // see its ends.
        const std::vector<std::uint8_t> exact(want);
        EXPECT_TRUE(unpack_row(exact, Word::w64, n, q, back.data()));
        if (bits > 32) continue;
        std::vector<std::uint32_t> narrow(row.begin(), row.end());
        std::vector<std::uint8_t> again(want.size());
        pack_row(narrow.data(), Word::w32, n, q, again);
        EXPECT_EQ(again, want);
        std::vector<std::uint32_t> narrow_back(n);
        EXPECT_TRUE(unpack_row(again, Word::w32, n, q, narrow_back.data()));
        EXPECT_EQ(narrow_back, narrow);
      }
    }
  }
}

TEST(Residues, RefusesEveryResidueThatIsNotBelowItsPrime) {
  constexpr std::size_t n = 128;
  for (const std::uint64_t q : kModuli) {
    const auto bits = static_cast<unsigned>(std::bit_width(q - 1));
    if (std::has_single_bit(q)) continue;  // every pattern is a residue
    for (std::size_t at = 0; at < n; ++at) {
      for (const std::uint64_t bad : {q, (std::uint64_t{1} << bits) - 1}) {
        std::vector<std::uint64_t> row(n, q - 1);
        row[at] = bad;
        std::vector<std::uint64_t> back(n);
        const auto bytes = pack_slowly(row, bits);
        EXPECT_FALSE(unpack_row(bytes, Word::w64, n, q, back.data()))
            << "q " << q << ", index " << at;
        if (bits > 32) continue;
        std::vector<std::uint32_t> narrow(n);
        EXPECT_FALSE(unpack_row(bytes, Word::w32, n, q, narrow.data()))
            << "q " << q << ", index " << at;
      }
    }
  }
}

}  // namespace
}  // namespace jali::wire
