#include <gtest/gtest.h>

#include <cmath>

#include "../tfhe_compare.h"
#include "jali/base/cpu_features.h"
#include "jali/base/error.h"

namespace jali::backend::test {
namespace {

std::vector<std::string> isas() {
  std::vector<std::string> out = {"portable"};
  if (cpu_features().avx2 && cpu_features().fma) out.emplace_back("avx2");
  if (cpu_features().avx512) out.emplace_back("avx512");
  return out;
}

/// The most that the transform's error may be in the phase of one step: half a bit more than 2^-53 of the sums of a
/// product, in the body and in the mask, whose error the secret's k N / 2 ones add up; twice that for (X^e - 1), and once
/// more for each unit.
double product_error(const TfheConfig& config) {
  const double rows = static_cast<double>(config.k.value) + 1;
  const double N = static_cast<double>(config.N.value);
  const double terms = rows * config.rotation_gadget.levels * N;
  const double sums = std::ldexp(std::sqrt(terms), config.rotation_gadget.base_log - 2);
  const double ones = 1 + static_cast<double>(config.k.value) * N / 2;
  return 0x1p-53 * sums * std::sqrt(2 * ones * 4 * static_cast<double>(config.units()));
}

class CpuTfhe : public testing::Test {
 protected:
  const u64 seed_ = jali::test::test_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "JALI_TEST_SEED=" + std::to_string(seed_)};
  std::mt19937_64 rng_{seed_};

  TfheMeasured hold(TfheConfig config, const std::string& isa, const std::string& transform) {
    config.isa = isa;
    config.transform = transform;
    config.threads = 1 + static_cast<int>(rng_() % 3);
    const auto engine = make_cpu_tfhe(config);
    EXPECT_EQ(engine->name(), "cpu/" + isa);
    const auto ref = make_ref_tfhe(config);
    const bool exact = transform == "ntt";
    return compare(*engine, *ref, {.exact = exact, .product_error = product_error(config)}, rng_);
  }
};

TEST_F(CpuTfhe, FourierAgreesWithTheOracle) {
  for (const std::string& isa : isas()) {
    for (const TfheConfig& config : small_configs(rng_)) hold(config, isa, "fft");
  }
}

TEST_F(CpuTfhe, ExactTransformGivesTheOraclesBits) {
  for (const std::string& isa : isas()) {
    for (const TfheConfig& config : small_configs(rng_)) hold(config, isa, "ntt");
  }
}

}  // namespace
}  // namespace jali::backend::test
