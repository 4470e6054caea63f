#include "jali/params/real.h"

#include <cmath>

namespace jali::params {
namespace {

constexpr double kLn2 = 0.693147180559945309417232121458;

}  // namespace

double portable_log2(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // in [1/2, 1); exact
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  // ln m = 2 artanh z = 2 (z + z^3/3 + z^5/5 + ...), |z| < 0.1716
  const double z = (m - 1) / (m + 1);
  const double z2 = z * z;
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * z2 + 1.0 / k;
  return exponent + 2 * z * sum / kLn2;
}

double portable_exp2(double x) {
  const double whole = std::floor(x + 0.5);
  const double y = (x - whole) * kLn2;  // |y| < 0.35
  double sum = 1;
  for (int k = 18; k >= 1; --k) sum = 1 + y / k * sum;
  return std::ldexp(sum, static_cast<int>(whole));
}

}  // namespace jali::params
