#include "jali/approx/sign.h"

#include <utility>

#include "jali/base/error.h"
#include "support.h"

namespace jali::approx::testing {
namespace {

void expect_sign(const Composite& c, double bound) {
  const Interval far{c.gap, bound}, near{0, c.gap};
  EXPECT_LE(largest_seen(far, [&](Real x) { return c(x) - 1; }), c.error);
  // The largest errors lie at the near end.
  EXPECT_LE(largest_seen({c.gap, std::min(10 * c.gap, bound)}, [&](Real x) { return c(x) - 1; }),
            c.error);
  EXPECT_GE(Real{1.02} * largest_seen(
                             {c.gap, std::min(100 * c.gap, bound)},
                             [&](Real x) { return c(x) - 1; }, 20'000),
            c.error)
      << "the bound is tight";
  Real least = 1;
  EXPECT_LE(largest_seen(near,
                         [&](Real x) {
                           least = std::min(least, c(x));
                           return c(x);
                         }),
            1 + c.error);
  EXPECT_GE(least, 0) << "the sign is right in the gap, too";
  for (const double x : {c.gap / 3, c.gap, bound / 2, bound}) EXPECT_EQ(c(-x), -c(x)) << "odd";
  for (std::size_t i = 0; i + 1 < c.stages.size(); ++i) {
    EXPECT_LE(largest_seen({-1, 1}, [&, i](Real x) { return c.stages[i](i == 0 ? x * bound : x); }),
              1)
        << "every stage stays in the interval of the next";
  }
}

TEST(Sign, IsAsExactAsItSays) {
  const std::pair<double, double> wanted[] = {{0.3, 0.5},     {0.3, 1e-6},    {0.0625, 0.01},
                                              {0x1p-8, 0.5},  {0x1p-8, 1e-6}, {1e-4, 0.01},
                                              {0x1p-20, 0.01}};
  for (const auto& [gap, error] : wanted) {
    const Composite c = sign(1, gap, error);
    EXPECT_LE(c.error, error);
    expect_sign(c, 1);
  }
  expect_sign(sign(37.5, 0.25, 0.01), 37.5);
  expect_sign(sign(1e-6, 1e-9, 0.01), 1e-6);
}

// Lee et al. measure comparisons of numbers in [0, 1]: alpha bits are a gap of 2^-alpha and an
// error of 2^(1 - alpha) of the sign. For alpha = 4 one polynomial of degree 27 does it, five
// levels.
TEST(Sign, TakesFewLevels) {
  EXPECT_EQ(sign(1, 0x1p-4, 0x1p-3).depth(), 5);
  EXPECT_EQ(sign(1, 0x1p-4, 0x1p-3).stages.size(), 1u);
  EXPECT_LE(sign(1, 0x1p-4, 0x1p-3).stages[0].degree(), 27u);
  int last = 0;
  for (int alpha = 2; alpha <= 12; alpha += 2) {
    const Composite c = sign(1, std::exp2(-alpha), std::exp2(1 - alpha));
    EXPECT_GE(c.depth(), last) << "more precision does not cost less";
    EXPECT_LE(c.depth(), 1.35 * alpha + 1) << alpha;
    last = c.depth();
    int sum = 0;
    for (const Series& p : c.stages) sum += depth_of(p.degree());
    EXPECT_EQ(sum, last);
  }
  EXPECT_EQ(depth_of(1), 1);
  EXPECT_EQ(depth_of(7), 3);
  EXPECT_EQ(depth_of(8), 4);
}

TEST(Sign, RefusesWhatItCannotDo) {
  EXPECT_THROW(sign(1, 0, 0.1), InvalidArgument);
  EXPECT_THROW(sign(1, 1, 0.1), InvalidArgument);
  EXPECT_THROW(sign(1, 2, 0.1), InvalidArgument);
  EXPECT_THROW(sign(1, 1e-9, 0.1), InvalidArgument);
  EXPECT_THROW(sign(1, 0.1, 1), InvalidArgument);
  EXPECT_THROW(sign(1, 0.1, 1e-13), InvalidArgument);
  EXPECT_THROW(sign(NAN, 0.1, 0.1), InvalidArgument);
  EXPECT_THROW(sign(HUGE_VAL, 0.1, 0.1), InvalidArgument);
  EXPECT_THROW(sign(-1, -2, 0.1), InvalidArgument);
}

}  // namespace
}  // namespace jali::approx::testing
