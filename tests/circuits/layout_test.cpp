#include "jali/circuits/layout.h"

#include <gtest/gtest.h>

#include <numeric>

#include "jali/base/error.h"

namespace jali::circuits {
namespace {

TEST(Layout, PackAndUnpackAreInverse) {
  for (std::size_t size : {1u, 5u, 8u, 16u, 17u, 40u}) {
    const Layout layout = Layout::periodic(size, 16);
    layout.check();
    EXPECT_EQ(layout.ciphertexts(), (size + 15) / 16);
    std::vector<double> x(3 * size);
    std::iota(x.begin(), x.end(), 1.0);
    const auto packed = layout.pack(x, 3);
    for (const auto& p : packed) EXPECT_EQ(p.size(), 48u);
    EXPECT_EQ(layout.unpack(packed, 3), x);
  }
}

TEST(Layout, PeriodicRepeatsAndFillsWithZeros) {
  const Layout layout = Layout::periodic(3, 16);
  EXPECT_EQ(layout.period(), 4u);
  const std::vector<double> x{1, 2, 3};
  EXPECT_EQ(layout.pack(x)[0],
            (std::vector<double>{1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0}));
  EXPECT_EQ(Layout::periodic(3, 16, 8).period(), 8u);
  EXPECT_EQ(Layout::periodic(16, 16).period(), 16u);
  EXPECT_EQ(Layout::periodic(1, 16).period(), 1u);
}

TEST(Layout, UnpackTakesTheFirstSlotThatHoldsAnElement) {
  const Layout layout{2, 4, {{kNothing, 1, 0, 1}}};
  const std::vector<std::vector<double>> slots{{9, 5, 7, 6}};
  EXPECT_EQ(layout.unpack(slots), (std::vector<double>{7, 5}));
}

TEST(Layout, RefusesWhatDoesNotFit) {
  EXPECT_THROW(Layout::periodic(0, 16), InvalidArgument);
  EXPECT_THROW(Layout::periodic(3, 12), InvalidArgument);
  EXPECT_THROW(Layout::periodic(5, 16, 4), InvalidArgument);
  EXPECT_THROW((Layout{2, 4, {{0, 0, 0, 0}}}.check()), InvalidArgument);
  EXPECT_THROW((Layout{1, 4, {{0, 1, 0, 0}}}.check()), InvalidArgument);
  EXPECT_THROW((Layout{1, 4, {{0, 0}}}.check()), InvalidArgument);
  const Layout layout = Layout::periodic(3, 4);
  EXPECT_THROW(layout.pack(std::vector<double>{1, 2}), InvalidArgument);
  EXPECT_THROW(layout.unpack(std::vector<std::vector<double>>{{1, 2}}), InvalidArgument);
  EXPECT_THROW(layout.unpack(std::vector<std::vector<double>>{}), InvalidArgument);
}

}  // namespace
}  // namespace jali::circuits
