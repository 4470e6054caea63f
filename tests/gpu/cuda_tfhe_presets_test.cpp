// Every preset on the GPU: every value through random tables with keys that the GPU made, the bits
// of the CPU's exact engine for the sets with the largest polynomials, and look-ups in parts if
// there is little memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "../backend/exact_products.h"
#include "../schemes/tfhe/preset_look_ups.h"
#include "../seeded.h"
#include "../tfhe_literals.h"
#include "brief.h"
#include "jali/base/error.h"
#include "jali/device/gpu.h"
#include "jali/params/tfhe_presets.h"

namespace jali::tfhe {
namespace {

using Values = std::vector<std::uint64_t>;

std::shared_ptr<const backend::TfheOps> engine_of(const ParamsPtr& params,
                                                  const std::shared_ptr<device::Device>& device) {
  return backend::make_cuda_tfhe(params->config(), device);
}

// --- every value of every preset -----------------------------------------------------------------

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const Preset& preset : presets()) out.emplace_back(preset.name);
  return out;
}

// A test for each preset, so that a run can be cut into parts.
class CudaTfhePreset : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (device::cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
};

TEST_P(CudaTfhePreset, LooksUpEveryValue) {
  JALI_SEEDED(rng);
  const auto device = device::gpu_device({});
  const ParamsPtr params = Params::create(preset(GetParam()));
  Client client(params, backend::make_cuda_tfhe_client(params->config(), device));
  const Evaluator evaluator(engine_of(params, device), client.evaluation_keys());
  constexpr std::size_t kLeast = 512;  // of the most values, 256, each twice
  test::expect_look_ups_of_every_value(client, evaluator, kLeast / params->value_modulus(), rng);
}

INSTANTIATE_TEST_SUITE_P(Presets, CudaTfhePreset, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

// --- the bits of the largest ---------------------------------------------------------------------

class CudaTfheLargest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (device::cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
};

// The sizes and gadgets of a preset with the transform "ntt" on both. So few steps that the CPU
// takes seconds: each does the same. The keys are random words.
TEST_P(CudaTfheLargest, HasTheBitsOfTheCpusExactEngine) {
  using namespace backend;
  using namespace backend::test;
  JALI_SEEDED(rng);
  TfheConfig config = Params::create(preset(GetParam()))->config();
  config.transform = "ntt";
  const bool brief = jali::testing::brief(std::size_t{1} << 16);
  config.n = LweDimension(brief ? 2 : 96);
  config.threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  SCOPED_TRACE(describe(config));
  constexpr std::size_t kInputs = 3;
  const TorusBlock key =
      detail::random_words(rng, config.torus, config.steps() * config.units(), config.ggsw_words());
  const TorusBlock accumulators =
      detail::random_words(rng, config.torus, kInputs, (config.k.value + 1) * config.N.value);
  const TorusBlock in = detail::random_words(rng, Torus::t32, kInputs, config.n.value + 1);
  const TorusBlock want = rotated(*make_cpu_tfhe(config), key, accumulators, in);
  const auto gpu = make_cuda_tfhe(config, device::gpu_device({}));
  expect_repeated(*gpu, key, accumulators, in, want, {1, 5, brief ? 7u : 134u});
}

INSTANTIATE_TEST_SUITE_P(Presets, CudaTfheLargest,
                         ::testing::Values("message_3_carry_3", "strix_iv", "message_4_carry_4"),
                         [](const auto& info) { return std::string(info.param); });

// --- in parts ------------------------------------------------------------------------------------

/// Counts launches of kernels.
class Launches final : public device::Faults {
 public:
  device::Fault before(device::Call call) override {
    if (call == device::Call::launch) ++count;
    return device::Fault::none;
  }
  std::atomic<int> count = 0;
};

struct Device {
  explicit Device(std::size_t memory_cap)
      : gpu(device::gpu_device({.memory_cap = memory_cap, .faults = launches})) {}
  std::shared_ptr<Launches> launches = std::make_shared<Launches>();
  std::shared_ptr<device::Device> gpu;
};

class CudaTfheParts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
};

// On one device everything fits at once. On the other, accumulators of all inputs do not: it takes
// several parts, and gives the same values, for one table, for a table for each input, and for
// several tables on one rotation.
TEST_F(CudaTfheParts, LookUpsGiveTheSameInLittleMemory) {
  JALI_SEEDED(rng);
  for (const Order order : {Order::switch_first, Order::bootstrap_first}) {
    SCOPED_TRACE(order == Order::switch_first ? "switch first" : "bootstrap first");
    const ParamsPtr params = test::insecure_params({.order = order, .n = 24, .k = 1, .N = 2048});
    Client client(params);
    const lwe::EvaluationKeys keys = client.evaluation_keys();
    constexpr std::size_t kCount = 6000;
    Values values(kCount);
    for (auto& v : values) v = rng() % 4;
    std::vector<std::uint32_t> which(kCount);
    for (auto& w : which) w = static_cast<std::uint32_t>(rng() % 2);
    const Ciphertext fresh = client.encrypt(values, 3);
    const Values f{3, 2, 1, 0}, g{0, 0, 1, 1};
    const LookUpTable tables[] = {LookUpTable(params, f), LookUpTable(params, g)};

    const auto launches = [&](std::size_t memory_cap) {
      const Device device(memory_cap);
      const Evaluator evaluator(engine_of(params, device.gpu), keys);
      const Ciphertext x = evaluator.bind(fresh);
      const BoundTable f_bound = evaluator.bind(tables[0]),
                       both_bound = evaluator.bind(LookUpTable::together(tables));
      const BoundTables of_each = evaluator.bind(tables);
      const auto shown = [&](const Ciphertext& y) {
        return client.decrypt(evaluator.host_copy(y));
      };
      if (memory_cap > 0) {
        EXPECT_LT(evaluator.rotations_that_fit(), kCount / 2);
      } else {
        EXPECT_GT(evaluator.rotations_that_fit(), kCount);
      }
      device.launches->count = 0;
      const Ciphertext y = evaluator.apply(x, f_bound);
      const int taken = device.launches->count;
      const Values one = shown(y), each = shown(evaluator.apply(x, of_each, which));
      const auto both = evaluator.apply_all(x, both_bound);
      const Values first = shown(both[0]), second = shown(both[1]);
      for (std::size_t i = 0; i < kCount; ++i) {
        EXPECT_EQ(one[i], f[values[i]]) << i;
        EXPECT_EQ(each[i], which[i] == 1 ? g[values[i]] : f[values[i]]) << i;
        EXPECT_EQ(first[i], f[values[i]]) << i;
        EXPECT_EQ(second[i], g[values[i]]) << i;
        if (HasFailure()) break;
      }
      return taken;
    };
    // A ciphertext has 16 KiB: operands and results that live at once have at most 400 MB. With the
    // accumulators and the digits of key switching, which have 140 KB a look-up, there would be no
    // room for all.
    const int at_once = launches(0), in_parts = launches(std::size_t{700} << 20);
    EXPECT_GT(in_parts, at_once);
  }
}

// Not even the result fits: that is an exception, and the device goes on.
TEST_F(CudaTfheParts, ResultsThatDoNotFitAreRefused) {
  const ParamsPtr params = test::insecure_params({.n = 24, .k = 1, .N = 2048});
  Client client(params);
  const Evaluator evaluator(
      engine_of(params, device::gpu_device({.memory_cap = std::size_t{300} << 20})),
      client.evaluation_keys());
  const Ciphertext x = evaluator.bind(client.encrypt(Values(12000, 3)));
  EXPECT_THROW(evaluator.refresh(x), OutOfMemory);
  const Ciphertext one = evaluator.bind(client.encrypt(Values{2}));
  EXPECT_EQ(client.decrypt(evaluator.host_copy(evaluator.refresh(one))), Values{2});
}

}  // namespace
}  // namespace jali::tfhe
