// Failures of look-ups on the GPU: of small sets of every kind, and of presets with their own keys.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "../schemes/tfhe/failures.h"
#include "../schemes/tfhe/world.h"
#include "../seeded.h"
#include "jali/device/gpu.h"
#include "jali/params/tfhe_presets.h"

namespace jali::tfhe {
namespace {

using test::Amplified;

class CudaTfheFailures : public testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
    device_ = device::gpu_device({});
  }
  void expect(const Amplified& x, const std::string& name) const {
    JALI_SEEDED(rng);
    SCOPED_TRACE(name);
    const std::shared_ptr<const backend::TfheOps> engine =
        backend::make_cuda_tfhe(x.params->config(), device_);
    test::failures_of(engine, x, rng)
        .expect_as_predicted(test::share_of_keys(x),
                             name + "_" + std::to_string(static_cast<int>(x.bits)));
  }
  std::shared_ptr<device::Device> device_;
};

TEST_F(CudaTfheFailures, OfSmallSetsAreAsManyAsPredicted) {
  int number = 0;
  for (const test::TfheShape& shape : test::every_shape()) {
    expect({test::noisy_params(shape), 6, 4096}, "small_" + std::to_string(number++));
  }
}

/// A preset, with how many look-ups failures are counted.
struct Counted {
  const char* name;
  std::vector<Amplified> of;  // without parameters and client
  friend void PrintTo(const Counted& x, std::ostream* out) { *out << x.name; }
};

/// At rates of 2^-5 and 2^-9. In large polynomials, whose look-ups take milliseconds, at 2^-5
/// alone, and at 2^-3 in the largest, so that 200 failures and more are seen in few look-ups.
std::vector<Counted> counted() {
  std::vector<Counted> out;
  for (const char* name :
       {"boolean", "boolean_block", "message_1_carry_1", "message_1_carry_1_block",
        "message_2_carry_2", "message_2_carry_2_block", "message_2_carry_2_multi_bit"}) {
    out.push_back({name, {{nullptr, 5, 8192, 2}, {nullptr, 9, 49152, 4}}});
  }
  out.push_back({"message_3_carry_3", {{nullptr, 5, 4096, 2}}});
  out.push_back({"message_4_carry_4", {{nullptr, 3, 1024, 2}}});
  return out;
}

// A test for each preset, so that a run can be cut into parts.
class CudaTfheFailuresOfPreset : public CudaTfheFailures,
                                 public testing::WithParamInterface<Counted> {};

TEST_P(CudaTfheFailuresOfPreset, AreAsManyAsPredicted) {
  const ParamsPtr params = Params::create(preset(GetParam().name));
  for (Amplified x : GetParam().of) {
    x.params = params;
    x.client = backend::make_cuda_tfhe_client(params->config(), device_);
    expect(x, GetParam().name);
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, CudaTfheFailuresOfPreset, testing::ValuesIn(counted()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace jali::tfhe
