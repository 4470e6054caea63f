#include "jali/approx/inverse.h"

#include "jali/base/error.h"
#include "support.h"

namespace jali::approx::testing {
namespace {

TEST(Inverse, RelativeErrorsAreProven) {
  for (const Interval on :
       {Interval{0.5, 4}, Interval{0.01, 1}, Interval{1, 1000}, Interval{1e-6, 1.5e-6}}) {
    for (const std::size_t degree : {0u, 1u, 3u, 7u, 15u, 31u, 100u, 300u}) {
      const Relative p = inverse(on, degree);
      const Real seen = largest_seen(on, [&](Real x) { return 1 - x * p.polynomial(x); });
      EXPECT_LE(seen, p.error);
      EXPECT_LE(p.error, Real{1.02} * seen + 1e-12L) << degree;
      EXPECT_NEAR(p.error, inverse_error(on, degree), 0.02 * p.error + 1e-12) << "the closed form";

      const Relative q = inverse_square_root(on, degree);
      const Real root =
          largest_seen(on, [&](Real x) { return 1 - std::sqrt(x) * q.polynomial(x); });
      EXPECT_LE(root, q.error);
      // 1 - x p^2 of an error -d is 2 d + d^2: near 1 little can be said.
      if (root < 0.1L) {
        EXPECT_LE(q.error, Real{1.2} * root + 1e-12L) << degree;
      }
    }
  }
}

TEST(Inverse, RefusesPoles) {
  for (const Interval on : {Interval{0, 1}, Interval{-1, 1}, Interval{-2, -1}, Interval{1, 1}}) {
    EXPECT_THROW(inverse(on, 7), InvalidArgument);
    EXPECT_THROW(inverse_error(on, 7), InvalidArgument);
    EXPECT_THROW(inverse_square_root(on, 7), InvalidArgument);
  }
}

}  // namespace
}  // namespace jali::approx::testing
