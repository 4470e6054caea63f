#include "jali/client/text.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "jali/params/name.h"

namespace jali::client {

namespace {

constexpr std::size_t kMostCharacters = 1000;

struct Range {
  std::uint32_t first, last;
};

// The general categories Cf, Cs, Co, Zl, Zp and Zs of Unicode 14 but the space, and the last two
// code points of a plane, which are never characters. Control characters (Cc) are no names
// (params::is_name). Code points without a character yet are let through.
constexpr Range kNotPrintable[] = {
    {0x00a0, 0x00a0},   {0x00ad, 0x00ad},   {0x0600, 0x0605},   {0x061c, 0x061c},
    {0x06dd, 0x06dd},   {0x070f, 0x070f},   {0x0890, 0x0891},   {0x08e2, 0x08e2},
    {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},
    {0x205f, 0x2064},   {0x2066, 0x206f},   {0x3000, 0x3000},   {0xd800, 0xf8ff},
    {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
    {0x13430, 0x13438}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001},
    {0xe0020, 0xe007f}, {0xf0000, 0x10ffff}};

bool is_printable(std::uint32_t code) {
  return (code & 0xfffe) != 0xfffe && std::ranges::none_of(kNotPrintable, [&](const Range& range) {
           return range.first <= code && code <= range.last;
         });
}

std::string formatted(const char* format, double x) {
  char text[64];
  std::snprintf(text, sizeof(text), format, x);
  return text;
}

}  // namespace

std::string counted(std::uint64_t count, std::string_view what) {
  const std::string digits = std::to_string(count);
  std::string out;
  for (std::size_t k = 0; k < digits.size(); ++k) {
    if (k > 0 && (digits.size() - k) % 3 == 0) out += ',';
    out += digits[k];
  }
  return out.append(" ").append(what).append(count == 1 ? "" : "s");
}

std::string bytes_text(double count) {
  if (count < 1024) return formatted("%.0f B", count);
  for (const char* unit : {"%.1f KiB", "%.1f MiB"}) {
    count /= 1024;
    if (count < 1024) return formatted(unit, count);
  }
  return formatted("%.1f GiB", count / 1024);
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return formatted("%.2f s", seconds);
  return seconds >= 1e-3 ? formatted("%.2f ms", seconds * 1e3)
                         : formatted("%.1f us", seconds * 1e6);
}

std::string number_text(double x) { return formatted("%g", x); }

bool is_printable_name(std::string_view name) {
  if (!params::is_name(name)) return false;
  std::size_t characters = 0;
  for (std::size_t at = 0; at < name.size(); ++characters) {
    const auto first = static_cast<std::uint8_t>(name[at++]);
    const int ones = std::countl_one(first);
    std::uint32_t code = first & (0x7fu >> ones);
    for (int k = 1; k < ones; ++k)
      code = code << 6 | (static_cast<std::uint8_t>(name[at++]) & 0x3fu);
    if (!is_printable(code)) return false;
  }
  return characters >= 1 && characters <= kMostCharacters;
}

}  // namespace jali::client
