// Random inputs. They follow from the name of the test, like all entropy of a test program
// (tests/seeds).
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <random>
#include <string>

namespace jali::test {

/// A seed for a generator of inputs, another one at each call.
inline std::uint64_t test_seed() {
  std::uint64_t seed = 0;
  EXPECT_EQ(getentropy(&seed, sizeof seed), 0);
  return seed;
}

}  // namespace jali::test

#define JALI_SEEDED(rng)                                      \
  const std::uint64_t rng##_seed = ::jali::test::test_seed(); \
  std::mt19937_64 rng(rng##_seed);                            \
  SCOPED_TRACE("seed " + std::to_string(rng##_seed))
