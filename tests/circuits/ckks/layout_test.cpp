#include "jali/circuits/ckks/layout.h"

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

TEST(Layout, SaysHowItsCiphertextsLie) {
  const Layout natural = Layout::periodic(3, 16, 16), often = Layout::periodic(3, 16);
  EXPECT_EQ(natural.packing[0], ckks::packing_of_fresh(3, 4, false, false));
  EXPECT_NE(often.packing[0], natural.packing[0]);
  EXPECT_TRUE(natural.agrees(0, often.packing[0])) << "the first numbers are where they should be";
  EXPECT_FALSE(often.agrees(0, natural.packing[0])) << "behind them they are missing";
  ckks::Packing filled = natural.packing[0];
  filled.rest = params::kUnbounded;
  EXPECT_TRUE(natural.agrees(0, filled)) << "anything may lie behind";
  const Layout longer = Layout::periodic(40, 16);
  EXPECT_EQ(longer.packing[1].tiling.first, 16u);
  EXPECT_EQ(longer.packing[2].tiling, (ckks::Tiling{32, 8, 8, 1}));
  EXPECT_EQ(longer.element[2][9], 33);
  EXPECT_TRUE(longer.agrees(2, longer.packing[2]));
  EXPECT_EQ(often.described(), "3 numbers that repeat every 4 slots, in the other slots zeros");
  const Layout own{2, 4, {{kNothing, 1, 0, 1}}};
  EXPECT_FALSE(own.agrees(0, ckks::packing_of_fresh(2, 2, false, false)));
  EXPECT_NE(own.described().find("table"), std::string::npos);
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
