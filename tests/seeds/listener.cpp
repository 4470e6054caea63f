// Gives every test of GoogleTest a seed that follows from its name. JALI_TEST_SEED=N gives all
// tests the seed N, which repeats a failure; JALI_FRESH_SEEDS=1 draws a fresh one for each test,
// and those that fail add a line for tests/kept_seeds.txt to the file that JALI_FINDINGS names.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "entropy.h"

namespace {

std::uint64_t seed_of(const testing::TestInfo& test) {
  if (const char* given = std::getenv("JALI_TEST_SEED")) return std::strtoull(given, nullptr, 0);
  std::uint64_t seed = 0xcbf29ce484222325;  // FNV-1a of the name
  if (std::getenv("JALI_FRESH_SEEDS") != nullptr) {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
  }
  for (const char c : std::string(test.test_suite_name()) + "." + test.name()) {
    seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return seed;
}

class Seeds : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    seed_ = seed_of(test);
    jali_test_seed_entropy(seed_);
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    std::printf("%s.%s failed with JALI_TEST_SEED=%" PRIu64 ", which repeats it\n",
                test.test_suite_name(), test.name(), seed_);
    const char* findings = std::getenv("JALI_FINDINGS");
    const char* program = std::getenv("JALI_TEST_PROGRAM");  // ctest says it
    if (findings == nullptr || program == nullptr || std::getenv("JALI_FRESH_SEEDS") == nullptr)
      return;
    if (std::FILE* out = std::fopen(findings, "a")) {
      std::fprintf(out, "%s %s.%s %" PRIu64 "\n", program, test.test_suite_name(), test.name(),
                   seed_);
      std::fclose(out);
    }
  }
  std::uint64_t seed_ = 0;
};

// GoogleTest owns its listeners. main is GoogleTest's own, so this is the place before it.
[[maybe_unused]] const bool installed = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Seeds);
  return true;
}();

}  // namespace
