// Failures of look-ups on the CPU engine, of every kind of rotation, in both orders, with words of
// both sizes.
#include "failures.h"

#include <gtest/gtest.h>

#include <string>

#include "../../seeded.h"
#include "jali/params/tfhe_presets.h"
#include "world.h"

namespace jali::tfhe {
namespace {

using test::Amplified;
using test::TfheShape;

void expect(const TfheShape& shape, double bits, std::size_t count) {
  JALI_SEEDED(rng);
  SCOPED_TRACE(test::name_of(shape));
  const Amplified x{test::noisy_params(shape), bits, count};
  const std::shared_ptr<const backend::TfheOps> engine = backend::make_cpu_tfhe(x.params->config());
  test::failures_of(engine, x, rng)
      .expect_as_predicted(test::share_of_keys(x), std::to_string(static_cast<int>(bits)));
}

class TfheFailures : public testing::TestWithParam<TfheShape> {};

TEST_P(TfheFailures, AreAsManyAsPredicted) { expect(GetParam(), 4, 1024); }

class TfheFailuresOfShapesLong : public testing::TestWithParam<TfheShape> {};

TEST_P(TfheFailuresOfShapesLong, AreAsManyAsPredicted) {
  expect(GetParam(), 6, 4096);
  expect(GetParam(), 8, 16384);
}

// Presets as they are, with keys of their own, of every kind of rotation. tests/gpu counts those of
// the larger ones.
class TfheFailuresOfPresetsLong : public testing::TestWithParam<const char*> {};

TEST_P(TfheFailuresOfPresetsLong, AreAsManyAsPredicted) {
  JALI_SEEDED(rng);
  const Amplified x{Params::create(preset(GetParam())), 4, 4096, 1};
  test::failures_of(backend::make_cpu_tfhe(x.params->config(2)), x, rng)
      .expect_as_predicted(test::share_of_keys(x), x.params->literal().name);
}

INSTANTIATE_TEST_SUITE_P(Presets, TfheFailuresOfPresetsLong,
                         testing::Values("message_1_carry_1", "message_1_carry_1_block",
                                         "message_2_carry_2_multi_bit"),
                         [](const auto& info) { return std::string(info.param); });

std::string short_name(const testing::TestParamInfo<TfheShape>& info) {
  std::string name = test::name_of(info.param);
  std::erase_if(name, [](char c) { return c == ','; });
  std::ranges::replace(name, ' ', '_');
  return name;
}

/// One of each kind of rotation.
std::vector<TfheShape> few_shapes() {
  const std::vector<TfheShape> all = test::every_shape();
  return {all[3], all[7], all[11]};
}

INSTANTIATE_TEST_SUITE_P(Shapes, TfheFailures, testing::ValuesIn(few_shapes()), short_name);
INSTANTIATE_TEST_SUITE_P(Shapes, TfheFailuresOfShapesLong, testing::ValuesIn(test::every_shape()),
                         short_name);

}  // namespace
}  // namespace jali::tfhe
