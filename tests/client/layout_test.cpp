// Layouts against what the compiler lays: vectors/client/layouts.txt has layouts, each with its
// ciphertexts and the first 8 bytes of the SHA-256 of its contents (docs/format.md), or "refused".
#include "jali/client/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "../seeded.h"
#include "jali/base/hash.h"

namespace jali::client {
namespace {

constexpr std::uint64_t kMany = 1 << 20;  // ciphertexts

std::vector<std::int64_t> list(const std::string& text) {
  std::vector<std::int64_t> out;
  std::istringstream in(text == "-" ? "" : text);
  for (std::string item; std::getline(in, item, ',');) out.push_back(std::stoll(item));
  return out;
}

template <class T>
std::vector<T> list_of(const std::string& text) {
  const auto wide = list(text);
  return std::vector<T>(wide.begin(), wide.end());
}

std::string digest_of(const Layout& layout) {
  const auto contents = layout.contents();
  const Digest digest = hash256({reinterpret_cast<const std::uint8_t*>(contents.data()),
                                 contents.size() * sizeof(contents[0])});
  std::ostringstream out;
  for (std::size_t k = 0; k < 8; ++k) {
    out << "0123456789abcdef"[digest[k] >> 4] << "0123456789abcdef"[digest[k] & 15];
  }
  return out.str();
}

bool is_accepted(const Layout& layout, std::uint64_t most = kMany) {
  try {
    layout.check(most);
    return true;
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::strchr(error.what(), ':'), nullptr) << "it does not name the field";
    return false;
  }
}

TEST(Layout, IsThatOfTheCompiler) {
  std::ifstream file(JALI_VECTORS "/client/layouts.txt");
  std::size_t accepted = 0, refused = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string kind, shape, grid, table, ciphertexts, digest;
    Layout layout;
    in >> kind >> layout.slots >> shape >> layout.period >> layout.gap >> grid;
    std::uint64_t copies = 1, count = 1, width = 1;
    in >> copies >> count >> width >> table >> ciphertexts >> digest;
    layout.shape = list_of<std::uint64_t>(shape);
    layout.grid = list_of<std::uint64_t>(grid);
    if (kind == "repeated") layout.kind = Layout::Kind::repeated, layout.width = copies;
    if (kind == "skewed") {
      layout.kind = Layout::Kind::skewed, layout.count = count, layout.width = width;
    }
    if (kind == "gathered") {
      layout.kind = Layout::Kind::gathered, layout.table = list_of<std::int32_t>(table);
    }
    EXPECT_EQ(is_accepted(layout), ciphertexts != "refused") << line;
    if (ciphertexts == "refused") {
      ++refused;
      continue;
    }
    ++accepted;
    EXPECT_EQ(std::to_string(layout.ciphertexts()), ciphertexts) << line;
    EXPECT_EQ(digest_of(layout), digest) << line;
  }
  EXPECT_GT(accepted, 300u);
  EXPECT_GT(refused, 50u);
}

Layout grid(std::vector<std::uint64_t> shape, std::uint64_t gap, std::vector<std::uint64_t> on) {
  Layout layout;
  layout.slots = layout.period = 1 << 14;
  layout.shape = std::move(shape);
  layout.gap = gap;
  layout.grid = std::move(on);
  return layout;
}

TEST(Layout, AddressesAreCheckedWithoutAListOfThem) {
  JALI_SEEDED(random);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  int apart = 0, together = 0;
  for (int k = 0; k < 3000; ++k) {
    std::vector<std::uint64_t> shape(1 + below(4)), on;
    for (auto& x : shape) x = 1 + below(6);
    const std::uint64_t gap = below(2) == 0 ? 1 : 1 + below(3);
    for (std::size_t a = 1; a < shape.size(); ++a) {
      on.push_back(
          std::max<std::int64_t>(1, static_cast<std::int64_t>(shape[a] * gap + below(6)) - 3));
    }
    const Layout layout = grid(shape, gap, on);
    const auto addresses = layout.addresses();
    ASSERT_EQ(addresses.size(), layout.size());
    EXPECT_EQ(layout.extent(), *std::ranges::max_element(addresses) + 1);
    const bool is_apart =
        std::set<std::uint64_t>(addresses.begin(), addresses.end()).size() == addresses.size();
    (is_apart ? apart : together) += 1;
    if (layout.extent() > layout.period) continue;
    EXPECT_EQ(is_accepted(layout), is_apart) << "case " << k;
  }
  EXPECT_GT(apart, 500);
  EXPECT_GT(together, 500);
}

TEST(Layout, NumbersComeBack) {
  JALI_SEEDED(random);
  std::vector<Layout> layouts{grid({5}, 1, {}), grid({2, 3, 4}, 2, {8, 8}), grid({}, 1, {})};
  Layout repeated = grid({3, 2}, 1, {});
  repeated.kind = Layout::Kind::repeated, repeated.width = 4, repeated.period = 32;
  Layout skewed = grid({4, 6}, 1, {});
  skewed.kind = Layout::Kind::skewed, skewed.count = 4, skewed.width = 2;
  Layout gathered = grid({3}, 1, {});
  gathered.kind = Layout::Kind::gathered, gathered.slots = 4,
  gathered.table = {2, -1, 0, 1, 1, 2, -1, 0};
  layouts.insert(layouts.end(), {repeated, skewed, gathered});
  for (Layout& layout : layouts) {
    if (layout.kind != Layout::Kind::gathered) layout.slots = 64;
    layout.period = std::min(layout.period, layout.slots);
    layout.check(kMany);
    const std::size_t lanes = 4, pitch = layout.slots * lanes + 8;
    std::vector<double> slots(layout.ciphertexts() * pitch, 7.5), numbers(layout.size()),
        again(layout.size());
    const auto contents = layout.contents();
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      for (double& x : numbers) x = static_cast<double>(random() % 1000);
      pack(layout, numbers, slots, pitch, lanes, lane);
      unpack(layout, slots, pitch, lanes, lane, again);
      EXPECT_EQ(numbers, again);
      for (std::size_t at = 0; at < contents.size(); ++at) {
        const double held = slots[at / layout.slots * pitch + at % layout.slots * lanes + lane];
        EXPECT_EQ(held, contents[at] < 0 ? 0 : numbers[static_cast<std::size_t>(contents[at])]);
      }
    }
    EXPECT_EQ(std::ranges::count(slots, 7.5),
              static_cast<std::ptrdiff_t>(8 * layout.ciphertexts()));
  }
}

TEST(Layout, HostileSizesAreRefusedWithoutWork) {
  const std::uint64_t many = kMostNumbers;
  for (const Layout& bad :
       {grid({many, many}, 1, {many}), grid({many}, 64, {1}), grid({4, 0}, 1, {4}),
        grid({1, many}, 64, {many}), grid({1, many, 1}, 64, {1, many}),
        grid({1, 1, 1, 1, 1}, 64, {1, 1, 1, 1}), grid({2, 2}, 1, {1})}) {
    EXPECT_FALSE(is_accepted(bad, 4096));
  }
  EXPECT_FALSE(is_accepted(grid({2, many / 2}, 1, {many / 2 - 1})));
}

}  // namespace
}  // namespace jali::client
