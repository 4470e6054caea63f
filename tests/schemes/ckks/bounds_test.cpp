// Runs random programs. No result may be wrong without a word: no error may exceed its bound, no
// estimate may claim more precision than the result has, and a program whose numbers may leave the
// range of their level is refused.
#include <algorithm>
#include <cstdlib>

#include "random_programs.h"

namespace jali::testing {
namespace {

/// The number of programs for each word, which JALI_PROGRAMS sets; `make check` runs 40,000.
int programs() {
  const char* text = std::getenv("JALI_PROGRAMS");
  return text == nullptr ? 1500 : std::max(1, std::atoi(text));
}

/// Larger results are mostly high powers of normal numbers, and a few of their slots have nearly
/// all of the error. Averages say little about them, so their precision is not compared; their
/// bounds are.
constexpr double kUsual = 256;

class BoundsTest : public ::testing::TestWithParam<Scheme> {};

TEST_P(BoundsTest, NoRandomProgramPassesItsBound) {
  World w(GetParam());
  RandomPrograms random(w, w.seed);
  int refused = 0, usual = 0, optimistic = 0;
  double least = 1e300;
  std::vector<double> caution;
  for (int i = 0; i < programs(); ++i) {
    const Outcome o = random.run();
    if (o.refused) {
      ++refused;
      continue;
    }
    ASSERT_TRUE(std::isfinite(o.bound)) << o.steps << "seed " << w.seed << ", program " << i;
    ASSERT_LE(o.largest_error, o.bound) << o.steps << "seed " << w.seed << ", program " << i;
    least = std::min(least, o.bound / o.largest_error);
    if (o.magnitude > kUsual) continue;
    ++usual;
    // The measured bits minus the claimed bits are negative if more is claimed than there is.
    caution.push_back(o.measured - o.precision);
    if (caution.back() < -3) {
      ++optimistic;
      std::printf("claims %.1f bits, has %.1f: %s\n", o.precision, o.measured, o.steps.c_str());
    }
  }
  std::ranges::sort(caution);
  const auto at = [&](double share) {
    return caution[static_cast<std::size_t>(share * static_cast<double>(caution.size() - 1))];
  };
  std::printf(
      "%s: %d programs, %d refused, least bound/error %.2f; measured - claimed bits: least %.2f, "
      "1%% %.2f, median %.2f, 99%% %.2f, most %.2f\n",
      GetParam().label.c_str(), programs(), refused, least, at(0), at(0.01), at(0.5), at(0.99),
      at(1));
  EXPECT_LT(2 * refused, programs()) << "most programs stay within their range";
  EXPECT_GT(20 * refused, programs())
      << "some programs must leave their range, or this tests nothing";
  // Two programs in 290,000 were seen to claim more than 3 bits too much, by 3.1 and 4.6 bits: high
  // powers of normal numbers, whose error lies in a few slots. Before the average-case estimate
  // treated sums and powers of equal numbers, it was one in 90, by up to 40 bits.
  EXPECT_LE(optimistic, 1 + usual / 10000) << "seed " << w.seed;
  EXPECT_GT(at(0), -8) << "seed " << w.seed;
}

INSTANTIATE_TEST_SUITE_P(Words, BoundsTest,
                         ::testing::Values(Scheme{"w52", Word::w52, 40, 5},
                                           Scheme{"w64_scale50", Word::w64, 50, 5},
                                           Scheme{"w32_rational40", Word::w32, 40, 5}),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
