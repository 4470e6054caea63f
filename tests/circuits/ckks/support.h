// The circuits on plain numbers, and helpers that compare.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "../../schemes/ckks/fixture.h"
#include "jali/circuits/common/rotation_plan.h"
#include "jali/schemes/ckks/bounds.h"
#include "jali/schemes/ckks/secret/release.h"

namespace jali::circuits::testing {

using jali::testing::Complex;
using jali::testing::Scheme;
using jali::testing::World;

inline ckks::ParamsPtr make_params(const Scheme& s) {
  return ckks::Params::create(jali::testing::insecure_literal(s));
}

/// A scheme for every word; one of them has rational levels.
inline std::vector<Scheme> words(int depth = 2, int log_n = 10) {
  return {{"w64", Word::w64, 45, depth, log_n},
          {"w52", Word::w52, 40, depth, log_n},
          {"w32", Word::w32, 28, depth, log_n},
          {"w32_rational", Word::w32, 40, depth, log_n}};
}

/// Slot s of the result is slot s + steps of x, cyclically.
template <class T>
std::vector<T> rotate(const std::vector<T>& x, long long steps) {
  const auto n = static_cast<long long>(x.size());
  std::vector<T> out(x.size());
  for (long long s = 0; s < n; ++s)
    out[static_cast<std::size_t>(s)] = x[static_cast<std::size_t>(((s + steps) % n + n) % n)];
  return out;
}

/// By the expected variance, |slot error| exceeds this with probability below 2^-40. The bound
/// includes a factor of two for what the average-case estimate neglects, and the floating-point
/// error of the oracle.
inline double bound(const World& world, const ckks::Ciphertext& c) {
  const double n = static_cast<double>(world.params->n());
  return 2 * params::slot_tail(world.params->log_n(), 40) * std::sqrt(n * c.estimate.variance) /
             c.scale +
         1e-11;
}

inline void expect_near(World& world, const ckks::Ciphertext& c,
                        const std::vector<Complex>& expected, const std::string& what) {
  const double error = jali::testing::max_error(world.decrypt(c), expected);
  EXPECT_LE(error, bound(world, c)) << what << ", seed " << world.seed;
  EXPECT_LE(error, ckks::worst_case_error(c)) << what << ", seed " << world.seed;
  // A large bound would not test anything.
  EXPECT_LT(bound(world, c), 0.05) << what;
}

}  // namespace jali::circuits::testing
