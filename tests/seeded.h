// Random inputs that are fresh on every run, and a failure that prints how to repeat them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace jali::test {

/// Fresh on every run; JALI_TEST_SEED repeats one.
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
