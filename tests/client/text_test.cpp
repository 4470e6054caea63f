#include "jali/client/text.h"

#include <gtest/gtest.h>

#include <string>

namespace jali::client {
namespace {

TEST(Text, NumbersOfThings) {
  EXPECT_EQ(counted(1, "example"), "1 example");
  EXPECT_EQ(counted(0, "example"), "0 examples");
  EXPECT_EQ(counted(1234567, "number"), "1,234,567 numbers");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(0x1p31), "2.0 GiB");
  EXPECT_EQ(bytes_text(0x1p44), "16384.0 GiB");
  EXPECT_EQ(seconds_text(2.5), "2.50 s");
  EXPECT_EQ(seconds_text(0.00123), "1.23 ms");
  EXPECT_EQ(number_text(-0.25), "-0.25");
}

TEST(Text, NamesOnWhichATerminalActsAreNone) {
  for (const char* good : {"x", "x[3] of y", "größe", "数", "a\xf0\x9f\x8c\x8d"}) {
    EXPECT_TRUE(is_printable_name(good)) << good;
  }
  for (const char* bad :
       {"", "x\x1b[2J", "a\nb", "\x7f", "\xc2\x85", "\xe2\x80\xaetxt", "\xe2\x80\x8b",
        "\xef\xbb\xbf", "\xc2\xa0", "\xe2\x80\xa8", "\xf3\xa0\x80\x81", "\xff", "\xed\xa0\x80",
        "\xc0\x80", "\xef\xbf\xbf", "\xee\x80\x80"}) {
    EXPECT_FALSE(is_printable_name(bad)) << bad;
  }
  EXPECT_TRUE(is_printable_name(std::string(1000, 'x')));
  EXPECT_FALSE(is_printable_name(std::string(1001, 'x')));
}

}  // namespace
}  // namespace jali::client
