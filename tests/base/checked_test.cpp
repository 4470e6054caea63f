#include "jali/base/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace jali {
namespace {

TEST(Checked, EveryPairOfBytes) {
  using U8 = std::uint8_t;
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b = 0; b < 256; ++b) {
      const auto x = static_cast<U8>(a), y = static_cast<U8>(b);
      if (a + b < 256) {
        EXPECT_EQ(checked_add(x, y), a + b);
      } else {
        EXPECT_THROW(checked_add(x, y), InvalidArgument);
      }
      if (a * b < 256) {
        EXPECT_EQ(checked_mul(x, y), a * b);
      } else {
        EXPECT_THROW((checked_mul<LimitExceeded>(x, y)), LimitExceeded);
      }
    }
  }
}

TEST(Checked, CastKeepsTheNumberOrThrows) {
  EXPECT_EQ(checked_cast<std::uint8_t>(255), 255);
  EXPECT_THROW(checked_cast<std::uint8_t>(256), InvalidArgument);
  EXPECT_THROW(checked_cast<std::uint64_t>(-1), InvalidArgument);
  EXPECT_THROW((checked_cast<std::int32_t, CorruptData>(std::uint64_t{1} << 31)), CorruptData);
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(checked_cast<std::int64_t>(lowest), lowest);
}

}  // namespace
}  // namespace jali
