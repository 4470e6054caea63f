// Errors on dense grids, against which bounds are held.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "../seeded.h"
#include "jali/approx/series.h"

namespace jali::approx::testing {

/// The largest |f| at evenly spaced points and at both ends.
template <class F>
Real largest_seen(const Interval& on, const F& f, std::size_t points = 20'000) {
  Real worst = 0;
  for (std::size_t i = 0; i <= points; ++i) {
    const Real x = i == points ? on.high
                               : on.low + (static_cast<Real>(on.high) - on.low) *
                                              static_cast<Real>(i) / static_cast<Real>(points);
    worst = std::max(worst, std::fabs(static_cast<Real>(f(x))));
  }
  return worst;
}

}  // namespace jali::approx::testing
