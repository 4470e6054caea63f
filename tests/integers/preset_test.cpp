// Integers at the presets, with keys of their own, on the CPU engine. tests/gpu runs every
// operation at every preset.
#include <gtest/gtest.h>

#include "../seeded.h"
#include "every_operation.h"

namespace jali::integers::test {
namespace {

constexpr int kThreads = 2;

class IntegerPresets : public testing::TestWithParam<std::string> {
 protected:
  void expect(std::initializer_list<IntegerType> types, bool (*wanted)(const std::string&)) {
    JALI_SEEDED(rng);
    const auto params = tfhe::Params::create(tfhe::preset(GetParam()));
    tfhe::Client client(params, kThreads);
    const std::shared_ptr<const backend::TfheOps> engine =
        backend::make_cpu_tfhe(params->config(kThreads));
    IntegerWorld w(std::make_shared<const tfhe::Evaluator>(engine, client.evaluation_keys()),
                   client);
    for (const IntegerType type : types) {
      EXPECT_GE(expect_every_operation(w, type, false, rng, wanted), 17u);
    }
  }
};

TEST_P(IntegerPresets, AFewOperationsOnBytes) {
  expect({{8, GetParam().size() % 2 == 0}}, is_one_of_a_few);
}

using IntegerPresetsLong = IntegerPresets;

TEST_P(IntegerPresetsLong, EveryOperationOnBytes) {
  expect({{8, GetParam().size() % 2 == 1}}, nullptr);  // the other sign
}
TEST_P(IntegerPresetsLong, AFewOperationsOnWiderIntegers) {
  expect({{16, true}}, is_one_of_a_few);
  // Sixty-four bits take minutes, and are the same circuits at every preset.
  if (GetParam() == "message_2_carry_2_block") expect({{64, true}}, is_one_of_a_few);
}

/// Those whose keys a CPU makes in seconds.
std::vector<std::string> small_presets() {
  std::vector<std::string> out = integer_presets();
  std::erase_if(out, [](const std::string& name) { return tfhe::preset(name).N.value > 2048; });
  return out;
}

TEST(IntegerPresetNames, AreThoseWhoseCarryHoldsASecondDigit) {
  const std::vector<std::string> want{"message_1_carry_1",           "message_1_carry_1_block",
                                      "message_2_carry_2",           "message_2_carry_2_block",
                                      "message_3_carry_3",           "message_4_carry_4",
                                      "message_2_carry_2_multi_bit", "strix_iv"};
  EXPECT_EQ(integer_presets(), want);
}

INSTANTIATE_TEST_SUITE_P(Cpu, IntegerPresets, testing::ValuesIn(small_presets()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Cpu, IntegerPresetsLong, testing::ValuesIn(small_presets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace jali::integers::test
