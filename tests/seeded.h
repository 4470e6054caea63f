// Random inputs that are fresh on every run. A failure prints the seed that repeats them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace jali::test {

/// A seed that is fresh on every run, unless JALI_TEST_SEED names one to repeat.
inline std::uint64_t test_seed() {
  if (const char* given = std::getenv("JALI_TEST_SEED")) return std::strtoull(given, nullptr, 0);
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace jali::test

#define JALI_SEEDED(rng)                                      \
  const std::uint64_t rng##_seed = ::jali::test::test_seed(); \
  std::mt19937_64 rng(rng##_seed);                            \
  SCOPED_TRACE("JALI_TEST_SEED=" + std::to_string(rng##_seed))
