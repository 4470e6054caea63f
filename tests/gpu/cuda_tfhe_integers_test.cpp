// Integers on a GPU: recorded circuits play back what they computed at first, on new operands; a
// GPU with little memory; and every operation at every preset.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "../integers/every_operation.h"
#include "../seeded.h"
#include "../tfhe_literals.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/device/gpu.h"
#include "jali/integers/arithmetic.h"
#include "jali/integers/tfhe_machine.h"
#include "jali/schemes/tfhe/secret/client.h"

namespace jali::integers::test {
namespace {

using Words = std::vector<std::uint64_t>;
constexpr IntegerType u64{64, false};

class CudaTfheIntegers : public testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
  void open(std::size_t memory_cap = 0) {
    const auto params = jali::test::insecure_params({.n = 24, .N = 1024});
    client_ = std::make_unique<tfhe::Client>(params);
    device_ = device::gpu_device({.memory_cap = memory_cap});
    const std::shared_ptr<const backend::TfheOps> engine =
        backend::make_cuda_tfhe(params->config(), device_);
    machine_ = std::make_shared<const TfheMachine>(
        std::make_shared<const tfhe::Evaluator>(engine, client_->evaluation_keys()));
    arithmetic_ = std::make_unique<Arithmetic>(machine_);
  }
  Integers encrypt(const Words& values) {
    Words digits;
    for (const std::uint64_t value : values) {
      for (int i = 0; i < 32; ++i) digits.push_back(value >> 2 * i & 3);
    }
    return {u64, values.size(),
            TfheMachine::rows_of(machine_->evaluator().bind(client_->encrypt(digits)))};
  }
  Words decrypt(const Integers& x) {
    const auto ciphertext = machine_->ciphertext(x.rows(), largest_digits(u64, 2));
    const auto digits = client_->decrypt(machine_->evaluator().host_copy(ciphertext));
    Words out(x.count());
    for (std::size_t i = 0; i < digits.size(); ++i) out[i / 32] |= digits[i] << 2 * (i % 32);
    return out;
  }
  /// Sums and products of fresh numbers.
  void check(std::mt19937_64& rng, std::size_t count) {
    Words u(count), v(count), sum(count), product(count);
    for (std::size_t i = 0; i < count; ++i) {
      u[i] = rng();
      v[i] = i % 3 == 2 ? ~u[i] + i % 2 : rng();
      sum[i] = u[i] + v[i];
      product[i] = u[i] * v[i];
    }
    const Integers x = encrypt(u), y = encrypt(v);
    EXPECT_EQ(decrypt(arithmetic_->add(x, y)), sum);
    EXPECT_EQ(decrypt(arithmetic_->multiply(x, y)), product);
  }

  std::unique_ptr<tfhe::Client> client_;
  std::shared_ptr<device::Device> device_;
  std::shared_ptr<const TfheMachine> machine_;
  std::unique_ptr<Arithmetic> arithmetic_;
};

TEST_F(CudaTfheIntegers, RecordedCircuitsComputeTheSame) {
  JALI_SEEDED(rng);
  open();
  // A circuit is recorded when it is asked for a second time: the sum and the product of one
  // number, then those of five.
  for (int run = 0; run < 4; ++run) {
    check(rng, 1);
    EXPECT_EQ(machine_->recorded(), run == 0 ? 0u : run == 1 ? 2u : 4u);
    check(rng, 5);
  }
  EXPECT_EQ(machine_->recorded(), 4u);
}

TEST_F(CudaTfheIntegers, LargeVectorsAreTakenInParts) {
  JALI_SEEDED(rng);
  open(std::size_t{1}
       << 30);  // products of 300 integers at once would take 300 * 1,300 * 8 KiB = 3 GiB
  check(rng, 300);
}

// With encrypted and clear operands, run at once and as one graph.
void expect_all(const tfhe::ParamsPtr& params, const std::shared_ptr<device::Device>& device,
                std::initializer_list<int> widths, bool (*wanted)(const std::string&) = nullptr) {
  JALI_SEEDED(rng);
  tfhe::Client client(params, backend::make_cuda_tfhe_client(params->config(), device));
  const std::shared_ptr<const backend::TfheOps> engine =
      backend::make_cuda_tfhe(params->config(), device);
  IntegerWorld w(std::make_shared<const tfhe::Evaluator>(engine, client.evaluation_keys()), client);
  for (const int bits : widths) {
    for (const bool is_signed : {false, true}) {
      for (const bool recorded : {false, true}) {
        expect_every_operation(w, {bits, is_signed}, recorded, rng, wanted);
      }
    }
  }
}
void expect_all(int bits) {
  expect_all(jali::test::insecure_params({.n = 24, .N = 1024}), device::gpu_device({}), {bits});
}

TEST_F(CudaTfheIntegers, EveryOperationOnBytesRunsAndIsRecorded) { expect_all(8); }
TEST_F(CudaTfheIntegers, EveryOperationOnWideIntegersRunsAndIsRecorded) { expect_all(64); }

// With keys of their own. A test for each preset and width, so that a run can be cut into parts.
class CudaTfheIntegersAtPreset : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (device::cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
  void expect(std::initializer_list<int> widths, bool (*wanted)(const std::string&) = nullptr) {
    expect_all(tfhe::Params::create(tfhe::preset(GetParam())), device::gpu_device({}), widths,
               wanted);
  }
  /// A few operations if a look-up takes milliseconds, and fewer still in the largest rings: all
  /// would take more than five minutes.
  void expect_bytes() {
    const std::size_t n = tfhe::preset(GetParam()).N.value;
    expect({8}, n > 16384 ? is_one_of_the_fewest : n > 2048 ? is_one_of_a_few : nullptr);
  }
};
using CudaTfheIntegersAtPresetLong = CudaTfheIntegersAtPreset;

TEST_P(CudaTfheIntegersAtPreset, OperationsOnBytes) { expect_bytes(); }
TEST_P(CudaTfheIntegersAtPresetLong, EveryOperationOnBytes) { expect({8}); }
TEST_P(CudaTfheIntegersAtPresetLong, EveryOperationOn16Bits) { expect({16}); }
TEST_P(CudaTfheIntegersAtPresetLong, EveryOperationOn32Bits) { expect({32}); }
TEST_P(CudaTfheIntegersAtPresetLong, EveryOperationOn64Bits) { expect({64}); }

INSTANTIATE_TEST_SUITE_P(Presets, CudaTfheIntegersAtPreset, testing::ValuesIn(integer_presets()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Presets, CudaTfheIntegersAtPresetLong,
                         testing::ValuesIn(integer_presets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace jali::integers::test
