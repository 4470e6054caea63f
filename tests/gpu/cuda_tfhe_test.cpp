// The CUDA engine of TFHE against the oracle: exact operations bit for bit, bootstraps by value and
// noise.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "../backend/exact_products.h"
#include "jali/base/error.h"
#include "jali/device/gpu.h"

namespace jali::backend::test {
namespace {

class CudaTfhe : public testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
    device_ = device::gpu_device({});
  }
  std::shared_ptr<device::Device> device_;
};

// The rounding of a step in the phase: about 2^-51 of a product of digits below B/2 with words, of
// (k + 1) l N terms.
double transform_error(const TfheConfig& c) {
  const double N = static_cast<double>(c.N.value), k1 = static_cast<double>(c.k.value + 1);
  const double terms = k1 * c.rotation_gadget.levels * N, secret = std::sqrt(1 + (k1 - 1) * N / 2);
  return std::ldexp(std::sqrt(terms) * secret / 12, c.rotation_gadget.base_log - 51);
}

// What one step may differ by. The transform's rounding. Digits that lie at -B/2 instead of B/2: a
// share of 2^-g of all, or one, which changes what noise they meet. Accumulators of 32 bits. All of
// it is multiplied by the secret in the phase. Words of 64 bits are rounded to 32 before digits are
// cut. What is half a digit in 32 bits is rounded up and down in turn, so that a share of 2^(levels
// g - 33) of the digits is the other neighbour, which is 2^(-levels g) by itself. Words of 32 bits
// have such ties in the oracle, too, which rounds them up: that is 2^-33 on average, and with the k
// N / 2 bits of the secret that are 1, whose signs the negacyclic product turns one after the
// other, the phase has a mean from -k N / 2 to k N / 2 times 2^-33.
double product_error(const TfheConfig& c) {
  const double B = std::ldexp(1.0, c.rotation_gadget.base_log);
  const double N = static_cast<double>(c.N.value), k1 = static_cast<double>(c.k.value + 1);
  const double terms = k1 * c.rotation_gadget.levels * N, secret = std::sqrt(1 + (k1 - 1) * N / 2);
  const double transform = transform_error(c);
  const double ties = small_noise(c.torus).rotation * B * std::sqrt(1 + terms / B);
  const double narrow = std::ldexp(secret / std::sqrt(12.0), -31);
  const int bits = c.rotation_gadget.levels * c.rotation_gadget.base_log;
  const bool rounded = bits <= 28;
  const double mean = c.torus == Torus::t32 ? std::ldexp(secret * secret / std::sqrt(3.0), -33) : 0;
  const double others = std::ldexp(secret * secret, bits - 33);  // such digits that meet a 1
  const double neighbour =
      rounded ? std::hypot(mean, std::ldexp(std::sqrt(std::max(1.0, others)), -bits)) : 0;
  const double units = static_cast<double>(c.units());
  return 2 * (units * (transform + ties + narrow) + neighbour);
}

// What the first step of a rotation may differ by, whose accumulator is a table. A table has long
// runs of equal words, so that nearly all of its energy, and of the transform's rounding, lies in
// the lowest frequencies. There a secret of bits is 2 sqrt(N) / pi times as large as on average.
// Measured in 12 rotations on a CPU and a GPU, with N of 2^14 and 2^16: up to sqrt(N) / 6 times the
// transform's error.
double table_error(const TfheConfig& c) {
  return transform_error(c) * std::sqrt(static_cast<double>(c.N.value)) / 4;
}

/// The oracle. In polynomials so large that it would take hours, the CPU's exact engine, which has
/// its bits.
std::unique_ptr<TfheOps> oracle(TfheConfig config, bool large) {
  config.transform = "ntt";
  return large ? make_cpu_tfhe(config) : make_ref_tfhe(config);
}

// Few ciphertexts and many of them take different kernels; the largest polynomials have one kernel.
void expect_agrees(const TfheConfig& config, const std::shared_ptr<device::Device>& device,
                   std::mt19937_64& rng) {
  const auto cuda = make_cuda_tfhe(config, device);
  const bool large = config.N.value > 16384;
  const auto ref = oracle(config, large);
  for (const std::size_t copies :
       large ? std::vector<std::size_t>{5} : std::vector<std::size_t>{1, 50}) {
    SCOPED_TRACE(std::to_string(copies) + " copies");
    const TfheMeasured measured =
        compare(*cuda, *ref, {.product_error = product_error(config), .copies = copies}, rng);
    EXPECT_LT(measured.rotation_rms,
              1.25 * measured.oracle_rms + 4 * product_error(config) + table_error(config));
  }
}

TEST_F(CudaTfhe, AgreesWithTheOracleOnSmallSets) {
  JALI_SEEDED(rng);
  for (const TfheConfig& config : small_configs(rng)) expect_agrees(config, device_, rng);
}

// Sizes that have kernels of their own in double precision, with few steps, so that the oracle can
// follow.
std::vector<TfheConfig> common_sizes() {
  struct Size {
    std::size_t k, N;
    int levels, base_log;
    Rotation rotation;
    int group;
  };
  const Size sizes[] = {
      {1, 2048, 1, 18, Rotation::classic, 1},      {1, 2048, 3, 7, Rotation::classic, 1},
      {1, 2048, 1, 18, Rotation::block_binary, 3}, {1, 2048, 1, 18, Rotation::block_binary, 2},
      {1, 2048, 1, 18, Rotation::multi_bit, 2},    {1, 2048, 1, 18, Rotation::multi_bit, 3},
      {1, 2048, 1, 18, Rotation::multi_bit, 4},    {1, 1024, 2, 9, Rotation::classic, 1},
      {1, 1024, 1, 18, Rotation::block_binary, 3}, {1, 1024, 2, 9, Rotation::multi_bit, 2},
      {2, 1024, 1, 18, Rotation::classic, 1},      {3, 512, 2, 9, Rotation::classic, 1},
      {4, 512, 1, 18, Rotation::classic, 1},       {4, 512, 1, 18, Rotation::block_binary, 3},
      {1, 2048, 2, 9, Rotation::classic, 1},       {1, 1024, 3, 7, Rotation::classic, 1},
      {1, 2048, 4, 7, Rotation::classic, 1},       {2, 1024, 2, 9, Rotation::classic, 1},
      {4, 512, 3, 7, Rotation::classic, 1},        {1, 2048, 2, 9, Rotation::block_binary, 3},
      {1, 1024, 1, 18, Rotation::classic, 1},      {1, 4096, 1, 18, Rotation::classic, 1},
      {1, 8192, 2, 14, Rotation::classic, 1},      {1, 8192, 2, 15, Rotation::classic, 1},
      {1, 16384, 2, 14, Rotation::classic, 1},     {1, 16384, 2, 15, Rotation::classic, 1},
      {1, 32768, 2, 14, Rotation::classic, 1},     {1, 65536, 3, 11, Rotation::classic, 1}};
  std::vector<TfheConfig> configs;
  for (const Size& size : sizes) {
    TfheConfig config;
    config.k = GlweDimension(size.k);
    config.N = PolynomialSize(size.N);
    config.rotation = size.rotation;
    config.group = size.group;
    config.n = LweDimension(static_cast<std::size_t>(size.group) * (size.N > 2048 ? 2 : 4));
    config.rotation_gadget = {size.base_log, size.levels};
    config.switch_gadget = {4, 4};
    config.mean_bit = size.rotation == Rotation::block_binary ? 1.0 / (size.group + 1) : 0.5;
    configs.push_back(config);
  }
  return configs;
}

// A test for each size, so that a run can be cut into parts: the oracle takes minutes for all of
// them.
class CudaTfheSize : public CudaTfhe, public testing::WithParamInterface<std::size_t> {};

TEST_P(CudaTfheSize, AgreesWithTheOracle) {
  JALI_SEEDED(rng);
  const TfheConfig config = common_sizes()[GetParam()];
  SCOPED_TRACE(describe(config));
  expect_agrees(config, device_, rng);
}

INSTANTIATE_TEST_SUITE_P(Common, CudaTfheSize,
                         testing::Range<std::size_t>(0, common_sizes().size()));

TEST_F(CudaTfhe, SaysWhichTransformItTakes) {
  JALI_SEEDED(rng);
  TfheConfig config = small_config(rng, Torus::t64, Rotation::classic, 1, GlweDimension(1), 1,
                                   PolynomialSize(1024));
  for (const char* transform : {"fft", "ntt"}) {
    config.transform = transform;
    EXPECT_EQ(make_cuda_tfhe(config, device_)->config().transform, transform);
  }
  config.transform = "";
  const std::string chosen = make_cuda_tfhe(config, device_)->config().transform;
  EXPECT_TRUE(chosen == "fft" || chosen == "ntt") << chosen;
  if (device::cuda_device_name().find("H100") != std::string::npos ||
      device::cuda_device_name().find("H200") != std::string::npos) {
    EXPECT_EQ(chosen, "fft");
  }
}

// Batches that fill a block in part, whole, and in several rounds; every result of a repeated input
// is the same. Kernels for few ciphertexts round otherwise than those for many.
TEST_F(CudaTfhe, EveryBatchGivesWhatOneGives) {
  JALI_SEEDED(rng);
  TfheConfig config = small_config(rng, Torus::t64, Rotation::classic, 1, GlweDimension(1), 1,
                                   PolynomialSize(2048));
  const TfheSecret secret = random_secret(config, rng);
  const TfheKeys keys = standard_keys(rng, config, secret, small_noise(config.torus));
  const auto cuda = make_cuda_tfhe(config, device_);
  const TfheRunner runner(*cuda, keys);
  const std::vector<Functions> one{random_functions(rng, 4, 0)};
  const Tables table = clear_tables(config, 4, 0, one);
  constexpr std::size_t kInputs = 7;
  std::vector<u64> messages(kInputs);
  for (u64& m : messages) m = encoded(Torus::t32, rng() % 4, 4);
  const TorusBlock in = encrypt_lwe(rng, Torus::t32, secret.small, messages, 0);
  TorusBlock few, many_results;
  for (const std::size_t count : {33, 500, 1, 2, 7, 131, 133, 529, 1100}) {
    const TorusBlock out = runner.bootstrap(repeated(in, count), table);
    TorusBlock& want = count <= 33 ? few : many_results;
    if (want.count() == 0) want = out;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < out.row(); ++j) {
        ASSERT_EQ(out.at(i, j), want.at(i % kInputs, j)) << count << " inputs, " << i << ", " << j;
      }
    }
  }
}

TfheConfig config_of_200_steps(Rotation rotation, std::mt19937_64& rng) {
  TfheConfig config =
      small_config(rng, Torus::t64, rotation, 2, GlweDimension(1), 1, PolynomialSize(2048));
  config.n = LweDimension(400);
  config.rotation_gadget = {20, 1};
  return config;
}

// The keys of 200 steps are summed in several parts if there are many ciphertexts, in one part if
// there is one.
TEST_F(CudaTfhe, EveryBatchOfSummedKeysGivesWhatOneGives) {
  JALI_SEEDED(rng);
  for (const Rotation rotation : {Rotation::multi_bit, Rotation::block_binary}) {
    SCOPED_TRACE(rotation == Rotation::multi_bit ? "multi-bit" : "block-binary");
    const TfheConfig config = config_of_200_steps(rotation, rng);
    const TfheSecret secret = random_secret(config, rng);
    const TfheKeys keys = standard_keys(rng, config, secret, small_noise(config.torus));
    const auto cuda = make_cuda_tfhe(config, device_);
    const TfheRunner runner(*cuda, keys);
    const std::vector<Functions> one{random_functions(rng, 4, 0)};
    const Tables table = clear_tables(config, 4, 0, one);
    constexpr std::size_t kInputs = 7;
    std::vector<u64> messages(kInputs), words(kInputs);
    for (std::size_t i = 0; i < kInputs; ++i)
      words[i] = encoded(Torus::t32, messages[i] = rng() % 4, 4);
    const TorusBlock in = encrypt_lwe(rng, Torus::t32, secret.small, words, 0);
    TorusBlock few, many_results;
    const std::size_t width = cuda->width();
    for (const std::size_t count : std::vector<std::size_t>{7, 1, width, 500, 529, 1100}) {
      const TorusBlock out = runner.bootstrap(repeated(in, count), table);
      TorusBlock& want = count <= width ? few : many_results;
      if (want.count() == 0) {  // the first of its kernel: what it gives is right
        const std::vector<u64> phases = lwe_phases(out, secret.large);
        for (std::size_t i = 0; i < out.count(); ++i) {
          EXPECT_EQ(decoded(config.torus, phases[i], 4),
                    table_value(one[0], 0, messages[i % kInputs], 4))
              << i;
        }
        want = out;
      }
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < out.row(); ++j) {
          ASSERT_EQ(out.at(i, j), want.at(i % kInputs, j))
              << count << " inputs, " << i << ", " << j;
        }
      }
    }
  }
}

/// The first calls for memory fail once it is armed.
class ShortMemory final : public device::Faults {
 public:
  device::Fault before(device::Call call) override {
    if (call != device::Call::allocate || failing == 0) return device::Fault::none;
    --failing;
    return device::Fault::out_of_memory;
  }
  std::atomic<int> failing = 0;
};

// If memory is short, fewer steps are summed at once, and no bit changes.
TEST_F(CudaTfhe, SummedKeysGiveTheSameInLittleMemory) {
  JALI_SEEDED(rng);
  const auto faults = std::make_shared<ShortMemory>();
  const auto device = device::gpu_device({.faults = faults});
  for (const Rotation rotation : {Rotation::multi_bit, Rotation::block_binary}) {
    SCOPED_TRACE(rotation == Rotation::multi_bit ? "multi-bit" : "block-binary");
    const TfheConfig config = config_of_200_steps(rotation, rng);
    const TfheSecret secret = random_secret(config, rng);
    const TfheKeys keys = standard_keys(rng, config, secret, small_noise(config.torus));
    const auto cuda = make_cuda_tfhe(config, device);
    const std::vector<Functions> one{random_functions(rng, 4, 0)};
    const Tables table = clear_tables(config, 4, 0, one);
    const auto block = [&](const TorusBlock& host) {
      device::Buffer buffer = device->pool()->allocate(host.bytes());
      device->memory()->copy_in(buffer.data(), host.data(), host.bytes());
      return buffer;
    };
    device::Buffer key = device->pool()->allocate(cuda->rotation_key_bytes());
    cuda->prepare_rotation_key(key.data(), keys.rotation.data(), 0, config.steps());
    const device::Buffer data = block(table.data);
    // Few, by clusters, and many: with the least batch that may take the kernel for many if that
    // one takes summed keys.
    for (const std::size_t count : {std::size_t{3}, 4 * cuda->width()}) {
      SCOPED_TRACE(count);
      std::vector<u64> messages(count), words(count);
      for (std::size_t i = 0; i < count; ++i) {
        words[i] = encoded(Torus::t32, messages[i] = rng() % 4, 4);
      }
      const device::Buffer in = block(encrypt_lwe(rng, Torus::t32, secret.small, words, 0));
      TorusBlock out(config.torus, count, config.large().value + 1), want = out;
      device::Buffer result = device->pool()->allocate(out.bytes());
      const auto bootstrap = [&](TorusBlock& to) {
        cuda->bootstrap({result.data(), config.torus, config.large(), count},
                        {in.data(), Torus::t32, config.n, count}, {data.data(), 1, false, {}, 0},
                        key.data());
        device->memory()->copy_out(to.data(), result.data(), to.bytes());
      };
      bootstrap(want);
      const std::vector<u64> phases = lwe_phases(want, secret.large);
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(decoded(config.torus, phases[i], 4), table_value(one[0], 0, messages[i], 4)) << i;
      }
      int used = 0, refused = 0;  // failed calls after which it went on, and after which it did not
      for (int failing = 1; failing <= 40 && refused == 0; ++failing) {
        device->pool()->trim();
        faults->failing = failing;
        try {
          bootstrap(out);
          used = failing - faults->failing;
          for (std::size_t i = 0; i < out.size(); ++i) {
            ASSERT_EQ(out.at(i / out.row(), i % out.row()), want.at(i / out.row(), i % out.row()))
                << failing << " failed calls";
          }
        } catch (const OutOfMemory&) {
          ++refused;
        }
        faults->failing = 0;
      }
      const bool summed = rotation == Rotation::multi_bit || count == 3;  // not by every kernel
      EXPECT_GE(used, summed ? 4 : 0);
      bootstrap(out);
      EXPECT_TRUE(same(out, want));
    }
  }
}

// A graph of a switch, a bootstrap and a combination plays back what was recorded, on new inputs.
void expect_records(const TfheConfig& config, const std::shared_ptr<device::Device>& device,
                    std::mt19937_64& rng) {
  const TfheSecret secret = random_secret(config, rng);
  const TfheKeys keys = standard_keys(rng, config, secret, small_noise(config.torus));
  const auto cuda = make_cuda_tfhe(config, device);
  const TfheRunner runner(*cuda, keys);
  const auto ref = make_ref_tfhe(config);
  const std::vector<Functions> two{random_functions(rng, 4, 0), random_functions(rng, 4, 0)};
  Tables tables = clear_tables(config, 4, 0, two);
  constexpr std::size_t kCount = 9;
  for (std::size_t i = 0; i < kCount; ++i) tables.of_input.push_back(static_cast<u32>(rng() % 2));
  const auto block = [&](const TorusBlock& host) {
    device::Buffer buffer = device->pool()->allocate(host.bytes());
    device->memory()->copy_in(buffer.data(), host.data(), host.bytes());
    return buffer;
  };
  device::Buffer rotation = device->pool()->allocate(cuda->rotation_key_bytes());
  device::Buffer switching = device->pool()->allocate(cuda->switch_key_bytes());
  cuda->prepare_rotation_key(rotation.data(), keys.rotation.data(), 0, config.steps());
  cuda->prepare_switch_key(switching.data(), keys.switching.data());
  const auto fresh = [&](std::vector<u64>& messages) {
    std::vector<u64> words;
    messages.clear();
    for (std::size_t i = 0; i < kCount; ++i) {
      messages.push_back(rng() % 4);
      words.push_back(encoded(config.torus, messages.back(), 4));
    }
    return encrypt_lwe(rng, config.torus, secret.large, words, 0);
  };
  std::vector<u64> messages;
  TorusBlock host = fresh(messages);
  const device::Buffer data = block(tables.data);
  device::Buffer in = block(host), out = block(host);
  std::vector<u32> begin, column;
  std::vector<std::int64_t> weight;
  for (u32 i = 0; i <= kCount; ++i) begin.push_back(i);
  for (u32 i = 0; i < kCount; ++i) column.push_back(kCount - 1 - i), weight.push_back(1);
  const LweView view{out.data(), config.torus, config.large(), kCount};
  const auto graph = device->record([&] {
    device::Buffer middle = device->pool()->allocate(host.bytes());
    const LweView between{middle.data(), config.torus, config.large(), kCount};
    cuda->switch_bootstrap(between, {in.data(), config.torus, config.large(), kCount},
                           {data.data(), 2, false, tables.of_input, 0}, switching.data(),
                           rotation.data());
    cuda->combine(view, between, {begin, column, weight, {}});
  });
  for (int run = 0; run < 3; ++run) {
    host = fresh(messages);
    device->memory()->copy_in(in.data(), host.data(), host.bytes());
    graph->run();
    TorusBlock result(config.torus, kCount, host.row());
    device->memory()->copy_out(result.data(), out.data(), result.bytes());
    const std::vector<u64> phases = lwe_phases(result, secret.large);
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::size_t from = kCount - 1 - i;
      EXPECT_EQ(decoded(config.torus, phases[i], 4),
                table_value(two[tables.of_input[from]], 0, messages[from], 4));
    }
  }
}

TEST_F(CudaTfhe, GraphsRecordIt) {
  JALI_SEEDED(rng);
  TfheConfig config =
      small_config(rng, Torus::t64, Rotation::classic, 1, GlweDimension(1), 2, PolynomialSize(512));
  for (const char* transform : {"fft", "ntt"}) {
    config.transform = transform;
    expect_records(config, device_, rng);
  }
}

// Whose keys are summed beside the rotation, on a path of the graph of its own.
TEST_F(CudaTfhe, GraphsRecordSummedKeys) {
  JALI_SEEDED(rng);
  for (const std::size_t N : {1024, 2048}) {
    expect_records(small_config(rng, Torus::t64, Rotation::multi_bit, 2, GlweDimension(1), 1,
                                PolynomialSize(N)),
                   device_, rng);
    expect_records(small_config(rng, Torus::t64, Rotation::block_binary, 3, GlweDimension(1), 1,
                                PolynomialSize(N)),
                   device_, rng);
  }
}

// --- the transform "ntt", which is exact ---------------------------------------------------------

class CudaTfheExact : public CudaTfhe {
 protected:
  std::unique_ptr<TfheOps> engine(TfheConfig config) const {
    config.transform = "ntt";
    return make_cuda_tfhe(config, device_);
  }
};

TEST_F(CudaTfheExact, GivesTheOraclesBitsOnSmallSets) {
  JALI_SEEDED(rng);
  for (const TfheConfig& config : small_configs(rng)) {
    compare(*engine(config), *make_ref_tfhe(config), {.exact = true, .copies = 3}, rng);
  }
}

TEST_F(CudaTfheExact, GivesTheOraclesBitsOnCommonSizes) {
  JALI_SEEDED(rng);
  for (const TfheConfig& config : common_sizes()) {
    if (config.N.value > 2048) continue;  // the oracle would take minutes
    compare(*engine(config), *make_ref_tfhe(config), {.exact = true, .p = 2, .more = 0}, rng);
  }
}

// Arrays in shared memory, in the device's, and in both.
TEST_F(CudaTfheExact, GivesTheOraclesBitsAtEverySize) {
  JALI_SEEDED(rng);
  for (std::size_t N = 1 << 8; N <= 1 << 16; N *= 2) {
    for (const Torus torus : {Torus::t32, Torus::t64}) {
      for (const int levels : {1, 4}) {
        const TfheConfig config = one_step(torus, 1, N, {8, levels});
        SCOPED_TRACE(describe(config));
        const TorusBlock key = detail::random_words(rng, torus, 1, config.ggsw_words());
        TorusBlock accumulators(torus, 2, 2 * N);
        for (std::size_t i = 0; i < accumulators.size(); ++i) {  // sparse, since the oracle is slow
          accumulators.set(i, rng() % N < 16 ? rng() : 0);
        }
        const TorusBlock in = detail::random_words(rng, Torus::t32, 2, 2);
        EXPECT_TRUE(same(rotated(*engine(config), key, accumulators, in),
                         rotated(*make_ref_tfhe(config), key, accumulators, in)));
      }
    }
  }
}

TEST_F(CudaTfheExact, GivesTheOraclesBitsWithEveryKindOfGadget) {
  JALI_SEEDED(rng);
  for (const Gadget gadget : {Gadget{1, 1}, Gadget{31, 1}, Gadget{1, 5}, Gadget{31, 2},
                              Gadget{27, 2}, Gadget{13, 4}, Gadget{16, 4}, Gadget{1, 64}}) {
    for (const Torus torus : {Torus::t32, Torus::t64}) {
      if (gadget.base_log * gadget.levels > torus_bits(torus)) continue;
      for (const std::size_t k : {1, 3, 16}) {
        if (k > 1 && gadget.levels > 5) continue;
        const TfheConfig config = one_step(torus, k, 256, gadget);
        SCOPED_TRACE(describe(config));
        const TorusBlock key = detail::random_words(rng, torus, 1, config.ggsw_words());
        TorusBlock accumulators = detail::random_words(rng, torus, 2, (k + 1) * 256);
        for (std::size_t i = 0; i < accumulators.size(); i += 3) {
          accumulators.set(i, detail::edge_word(rng, torus_bits(torus)));
        }
        const TorusBlock in = detail::random_words(rng, Torus::t32, 2, 2);
        EXPECT_TRUE(same(rotated(*engine(config), key, accumulators, in),
                         rotated(*make_ref_tfhe(config), key, accumulators, in)));
      }
    }
  }
}

TEST_F(CudaTfheExact, HoldsTheLargestProducts) {
  for (const LargestProduct& one : largest_products()) hold_largest(*engine(one.config));
}

// The whole of message_2_carry_2 and of a set of 32 bits, and rotations by several bits: the bits
// of the CPU's exact engine, in batches that do not fill the blocks evenly.
TEST_F(CudaTfheExact, GivesTheCpusBitsInEveryBatch) {
  JALI_SEEDED(rng);
  TfheConfig large = one_step(Torus::t64, 1, 2048, {23, 1});
  large.n = LweDimension(835);
  TfheConfig narrow = one_step(Torus::t32, 2, 512, {8, 3});
  narrow.n = LweDimension(64);
  TfheConfig blocks = one_step(Torus::t64, 1, 1024, {15, 2}, Rotation::block_binary, 3);
  blocks.n = LweDimension(60);
  TfheConfig several = one_step(Torus::t64, 1, 1024, {15, 2}, Rotation::multi_bit, 4);
  several.n = LweDimension(40);
  constexpr std::size_t kInputs = 7;
  for (TfheConfig config : {large, narrow, blocks, several}) {
    SCOPED_TRACE(describe(config));
    const TorusBlock key = detail::random_words(rng, config.torus, config.steps() * config.units(),
                                                config.ggsw_words());
    const TorusBlock accumulators =
        detail::random_words(rng, config.torus, kInputs, (config.k.value + 1) * config.N.value);
    const TorusBlock in = detail::random_words(rng, Torus::t32, kInputs, config.n.value + 1);
    const auto gpu = engine(config);
    config.transform = "ntt";
    const TorusBlock want = rotated(*make_cpu_tfhe(config), key, accumulators, in);
    expect_repeated(*gpu, key, accumulators, in, want, {1, 7, 131, 265, 529});
  }
}

// The error of one step: the FFT's is there, within what product_error allows; that of integers is
// none.
TEST_F(CudaTfheExact, HasNoErrorWhereTheFourierTransformHasOne) {
  JALI_SEEDED(rng);
  for (TfheConfig config :
       {one_step(Torus::t64, 1, 2048, {23, 1}), one_step(Torus::t64, 1, 1024, {9, 2}),
        one_step(Torus::t64, 1, 4096, {14, 2})}) {
    SCOPED_TRACE(describe(config));
    const TfheSecret secret = random_secret(config, rng);
    const TfheKeys keys = standard_keys(rng, config, secret, small_noise(config.torus));
    const auto ref = make_ref_tfhe(config);
    const auto rms = [&](const char* transform) {
      config.transform = transform;
      const auto gpu = make_cuda_tfhe(config, device_);
      return detail::rms(detail::one_step_errors(TfheRunner(*gpu, keys), TfheRunner(*ref, keys),
                                                 secret, false, rng));
    };
    const double fft = rms("fft");
    RecordProperty("fft_log2_N" + std::to_string(config.N.value), std::to_string(std::log2(fft)));
    EXPECT_GT(fft, 0);
    EXPECT_LE(fft, product_error(config));
    EXPECT_EQ(rms("ntt"), 0);
  }
}

}  // namespace
}  // namespace jali::backend::test
