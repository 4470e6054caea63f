#include "jali/params/ckks/bootstrap.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace jali::params {
namespace {

int depth_of_degree(int degree) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(std::max(degree, 1))));
}

}  // namespace

int BootstrapLiteral::mod_levels() const {
  return depth_of_degree(degree) + doublings +
         (inverse_sine > 1 ? depth_of_degree(inverse_sine) : 0);
}

int BootstrapLiteral::levels() const {
  return cts_levels + mod_levels() + (order == BootstrapOrder::raise_first ? stc_levels : 0);
}

double BootstrapLiteral::head_scale_bits(int k) const {
  return k == 0 ? head_bits / 2 : std::max(0, head_bits - 2 * (k - 1));
}

double BootstrapLiteral::bits() const {
  double head = 0;
  for (int k = 0; k < mod_levels(); ++k) head += head_level_bits(k);
  return cts_levels * cts_bits + mod_levels() * mod_bits + head +
         (order == BootstrapOrder::raise_first ? stc_levels * stc_bits : 0);
}

double log2_bootstrap_failure(int weight, double range, std::size_t count) {
  const double terms = weight + 1;
  if (2 * range >= terms) return -1e6;  // the sum cannot be that large
  // ln of the bound at t, convex in t: ln(sinh(t/2) / (t/2)) = t/2 + ln((1 - e^-t) / t).
  const auto exponent = [&](double t) {
    return -t * range + terms * (t / 2 + std::log(-std::expm1(-t) / t));
  };
  double low = 1e-6, high = 1e6;
  for (int i = 0; i < 200; ++i) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    (exponent(a) < exponent(b) ? high : low) = exponent(a) < exponent(b) ? b : a;
  }
  return exponent(low) / std::log(2.0) + 1 + std::log2(static_cast<double>(count));
}

}  // namespace jali::params
