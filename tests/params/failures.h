// Failures that are counted, beside how many the noise formulas predict.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace jali::test {

/// Of `count` look-ups or phases, `failed` left their box. predicted: that number by the formulas.
/// least: by the formulas without the terms that are upper bounds.
struct Failures {
  double failed = 0, count = 0, predicted = 0, least = predicted;

  void add(const Failures& other) {
    failed += other.failed;
    count += other.count;
    predicted += other.predicted;
    least += other.least;
  }
  /// share: the standard deviation of the predicted number over the keys that were drawn, as a
  /// share of it. At least 200 failures must be predicted, so that few of them by chance tell
  /// nothing, and their number must lie within 6.5 standard deviations of the predictions: a right
  /// formula is refused with a probability below 1e-10. Reports carry the interval of 99 % for the
  /// rate of failures.
  void expect_as_predicted(double share, const std::string& name = "") const {
    EXPECT_GE(least, 200) << name << ": count more of them";
    const auto deviation = [&](double x) { return std::sqrt(x + std::pow(share * x, 2)); };
    EXPECT_LE(failed, predicted + 6.5 * deviation(predicted)) << name;
    EXPECT_GE(failed, least - 6.5 * deviation(least)) << name;
    constexpr double z = 2.576;  // Wilson's interval of 99 %
    const double rate = failed / count, scale = 1 + z * z / count;
    const double centre = (rate + z * z / (2 * count)) / scale;
    const double reach =
        z / scale * std::sqrt(rate * (1 - rate) / count + z * z / (4 * count * count));
    const auto number = [](double x) { return std::to_string(x); };
    testing::Test::RecordProperty(
        "failures_" + name, number(failed) + " of " + number(count) + ", rate " + number(rate) +
                                " in [" + number(centre - reach) + ", " + number(centre + reach) +
                                "], predicted from " + number(least / count) + " to " +
                                number(predicted / count));
  }
};

}  // namespace jali::test
