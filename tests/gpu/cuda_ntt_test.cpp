// Every variant of the transform against the CPU engine, bit for bit. Skipped with a message if
// there is no GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "../seeded.h"
#include "brief.h"
#include "jali/arith/primes.h"
#include "jali/backend/engines.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/device/buffer.h"

namespace jali::testing {
namespace {

using backend::View;

struct Case {
  Word word;
  int log_n;
  std::size_t batch;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    for (int log_n = 10; log_n <= 17; ++log_n) {
      for (const std::size_t batch : {1, 3, 64}) all.push_back({word, log_n, batch});
    }
  }
  return all;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return std::string(word_name(info.param.word)) + "_n" + std::to_string(info.param.log_n) + "_b" +
         std::to_string(info.param.batch);
}

class GpuNtt : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t kPrimes = 6;

  void SetUp() override {
    if (backend::cuda_device_count() == 0) {
      GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
    }
    const Case c = GetParam();
    config = {c.word, std::size_t{1} << c.log_n, {}, 4, ""};
    // The largest primes of the word, and two small ones.
    const std::uint64_t step = std::uint64_t{2} << c.log_n;
    std::uint64_t q = (std::uint64_t{1} << word_prime_bits(c.word)) - step + 1;
    for (; config.primes.size() < kPrimes - 2; q -= step) {
      if (arith::is_prime(q)) config.primes.push_back(q);
    }
    for (q = (std::uint64_t{1} << (c.log_n + 9)) + 1; config.primes.size() < kPrimes; q += step) {
      if (arith::is_prime(q)) config.primes.push_back(q);
    }
    cpu = backend::make_cpu_engine(config);
    seed = jali::test::test_seed();
    random.seed(seed);
  }
  std::size_t bytes(std::size_t rows) const { return rows * config.n * word_bytes(config.word); }
  /// Canonical residues of rows (limb, batch), some of them 0 or q - 1.
  std::vector<std::byte> fresh(const std::vector<PrimeIndex>& limbs, std::size_t batch) {
    std::vector<std::byte> data(bytes(limbs.size() * batch));
    std::size_t at = 0;
    for (const PrimeIndex limb : limbs) {
      const std::uint64_t q = config.primes[limb];
      for (std::size_t k = 0; k < batch * config.n; ++k, at += word_bytes(config.word)) {
        const auto draw = random();
        const std::uint64_t x = draw % 64 == 0 ? q - 1 : draw % 64 == 1 ? 0 : draw % q;
        std::memcpy(data.data() + at, &x, word_bytes(config.word));
      }
    }
    return data;
  }
  static bool never_chosen(const std::string& name) { return name == "dense" || name == "tensor"; }
  /// f(engine) for every variant that the engine may choose, or that it never chooses
  /// (backend/cuda/variants/).
  template <class F>
  void each_variant(bool others, F&& f) {
    for (const auto& family : backend::cuda_variants()) {
      if (family.family != "ntt") continue;
      for (const auto& name : family.names) {
        if (never_chosen(name) != others || (others && brief(config.n) && config.n > (1u << 16))) {
          continue;
        }
        SCOPED_TRACE("variant " + name + ", seed " + std::to_string(seed));
        backend::Config c = config;
        c.variants["ntt"] = name;
        const auto gpu = backend::make_cuda_engine(c);
        f(*gpu, *device::Pool::create(false, gpu->memory()));
        if (HasFatalFailure()) return;
      }
    }
  }

  void is_the_cpu_transform(bool others);
  void leaves_rows_out(bool others);

  backend::Config config;
  std::unique_ptr<backend::Engine> cpu;
  unsigned seed = 0;
  std::mt19937_64 random;
};

TEST_P(GpuNtt, EveryVariantIsTheCpuTransform) { is_the_cpu_transform(false); }
TEST_P(GpuNtt, OtherVariantsAreTheCpuTransform) { is_the_cpu_transform(true); }
void GpuNtt::is_the_cpu_transform(bool others) {
  const std::size_t batch = GetParam().batch;
  // Fewer limbs if rows are many and long.
  std::vector<PrimeIndex> limbs{0, 2, 3, 5};
  if (batch == 64 && config.n > 8192) limbs = {1};
  if (batch == 3 && config.n > 32768) limbs = {0, 4};
  const auto x = fresh(limbs, batch);
  auto values = x, coefficients = x;
  cpu->ring().ntt({values.data(), limbs, batch});
  cpu->ring().intt({coefficients.data(), limbs, batch});
  each_variant(others, [&](backend::Engine& gpu, device::Pool& pool) {
    const std::size_t margin = 4096;  // no word around the block may change
    auto block = pool.allocate(x.size() + 2 * margin);
    const std::vector<std::byte> poison(block.bytes(), std::byte{0x5a});
    auto* data = static_cast<std::byte*>(block.data()) + margin;
    std::vector<std::byte> got(block.bytes());
    for (const bool inverse : {false, true}) {
      gpu.memory()->copy_in(block.data(), poison.data(), poison.size());
      gpu.memory()->copy_in(data, x.data(), x.size());
      inverse ? gpu.ring().intt({data, limbs, batch}) : gpu.ring().ntt({data, limbs, batch});
      gpu.memory()->copy_out(got.data(), block.data(), got.size());
      auto want = poison;
      const auto& result = inverse ? coefficients : values;
      std::copy(result.begin(), result.end(), want.begin() + margin);
      ASSERT_TRUE(got == want) << (inverse ? "intt" : "ntt") << " differs";
    }
  });
}

// mod_up transforms all rows of a block except those of a digit's own limbs.
TEST_P(GpuNtt, EveryVariantLeavesRowsOut) { leaves_rows_out(false); }
TEST_P(GpuNtt, OtherVariantsLeaveRowsOut) { leaves_rows_out(true); }
void GpuNtt::leaves_rows_out(bool others) {
  if (GetParam().batch == 64) GTEST_SKIP() << "covered by smaller batches";
  const std::size_t batch = GetParam().batch;
  const std::vector<PrimeIndex> limbs{0, 2, 3}, to{0, 1, 2, 3, 5};
  const std::vector<std::uint32_t> digits{1, 2};
  const auto x = fresh(limbs, batch);
  std::vector<std::byte> want(bytes(digits.size() * to.size() * batch));
  cpu->rlwe().mod_up({want.data(), to, batch}, {x.data(), limbs, batch}, digits);
  each_variant(others, [&](backend::Engine& gpu, device::Pool& pool) {
    auto in = pool.allocate(x.size()), out = pool.allocate(want.size());
    std::vector<std::byte> got(want.size(), std::byte{0x33});
    gpu.memory()->copy_in(in.data(), x.data(), x.size());
    gpu.memory()->copy_in(out.data(), got.data(), got.size());
    gpu.rlwe().mod_up({out.data(), to, batch}, {in.data(), limbs, batch}, digits);
    gpu.memory()->copy_out(got.data(), out.data(), got.size());
    ASSERT_TRUE(got == want) << "mod_up differs";
  });
}

INSTANTIATE_TEST_SUITE_P(All, GpuNtt, ::testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace jali::testing
