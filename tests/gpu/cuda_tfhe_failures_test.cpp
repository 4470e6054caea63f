// Failures of look-ups on the GPU: of small sets of every kind, and of presets with their own keys.
#include <gtest/gtest.h>

#include <string>

#include "../seeded.h"
#include "../tfhe/failures.h"
#include "../tfhe/world.h"
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

TEST_F(CudaTfheFailures, OfPresetsAreAsManyAsPredicted) {
  for (const char* name : {"boolean", "boolean_block", "message_1_carry_1", "message_2_carry_2",
                           "message_2_carry_2_block"}) {
    const ParamsPtr params = Params::create(preset(name));
    const std::shared_ptr<const backend::TfheClientOps> client =
        backend::make_cuda_tfhe_client(params->config(), device_);
    expect({params, 5, 8192, 2, client}, name);
    expect({params, 9, 49152, 4, client}, name);
  }
}

}  // namespace
}  // namespace jali::tfhe
