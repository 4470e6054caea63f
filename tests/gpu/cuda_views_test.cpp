// Batches of thousands: as many rows as launches take give the CPU's bits; more rows are refused
// before any work.
#include <atomic>
#include <functional>
#include <utility>

#include "gpu_ops.h"
#include "jali/base/error.h"
#include "jali/device/faults.h"

namespace jali::testing {
namespace {

constexpr std::size_t kMost = 65535;  // rows

class GpuRows : public GpuOps {
 protected:
  std::size_t prime_count() const override { return 3; }
  std::array<std::uint8_t, 32> key{7};
};

TEST_P(GpuRows, AsManyAsLaunchesTakeHaveTheCpusBits) {
  auto a = fresh({0}, kMost), b = fresh({0}, kMost);
  cpu->ring().ntt(a.cpu()), gpu->ring().ntt(a.gpu());
  same(a, "ntt");
  cpu->ring().mul(b.cpu(), b.cpu(), a.cpu()), gpu->ring().mul(b.gpu(), b.gpu(), a.gpu());
  same(b, "mul");
  cpu->ring().automorphism_ntt(b.cpu(), a.cpu(), 5),
      gpu->ring().automorphism_ntt(b.gpu(), a.gpu(), 5);
  same(b, "automorphism_ntt");
  cpu->ring().intt(b.cpu()), gpu->ring().intt(b.gpu());
  same(b, "intt");
  cpu->ring().sample_uniform(a.cpu(), key, 3), gpu->ring().sample_uniform(a.gpu(), key, 3);
  same(a, "sample_uniform");
  cpu->ring().sample_small(b.cpu(), backend::Small::ternary, key, 1);
  gpu->ring().sample_small(b.gpu(), backend::Small::ternary, key, 1);
  same(b, "sample_small");
}

TEST_P(GpuRows, IntegersAndSlotsHaveThem) {
  auto x = poison({0}, kMost), y = poison({0}, kMost);
  const backend::Embedding embedding(n / 2);
  std::vector<backend::Complex> values(kMost);
  for (auto& z : values) z = {static_cast<double>(random() % 1000), -1.5};
  cpu->embedding().embed(x.cpu(), embedding, values, 2, 1024.0);
  gpu->embedding().embed(x.gpu(), embedding, values, 2, 1024.0);
  same(x, "embed");
  std::vector<std::uint64_t> integers(kMost * n);
  gpu->ring().icrt(integers, 1, x.gpu(), backend::IcrtMethod::product_sum);
  cpu->ring().crt(y.cpu(), integers, 1, backend::CrtMethod::mul);
  ASSERT_TRUE(y.host == x.host) << "icrt differs, seed " << seed;
  gpu->ring().crt(y.gpu(), integers, 1, backend::CrtMethod::mul);
  same(y, "crt");
}

// Launches of both halves, or of all terms, have more rows than an accumulator.
TEST_P(GpuRows, HalvesAndTermsAreTakenApart) {
  const std::vector<std::uint32_t> digits{1}, ids{0};
  const Primes level{0}, ext{0, 2};
  auto k = poison(ext, 1, 2);
  for (std::size_t half = 0; half < 2; ++half) {
    const auto part = fresh(ext, 1);
    std::copy(part.host.begin(), part.host.end(),
              k.host.begin() + static_cast<std::ptrdiff_t>(half * part.host.size()));
  }
  gpu->memory()->copy_in(k.device.data(), k.host.data(), k.host.size());
  const backend::KeyView on_cpu{k.host.data(), 1, ext}, on_gpu{k.device.data(), 1, ext};
  {
    const std::size_t b = kMost / 2;
    auto c0 = fresh(level, b), c1 = fresh(level, b), out0 = poison(level, b),
         out1 = poison(level, b), acc0 = poison(ext, b), acc1 = poison(ext, b);
    cpu->rlwe().rotate(out0.cpu(), out1.cpu(), acc0.cpu(), acc1.cpu(), c0.cpu(), c1.cpu(), 5,
                       digits, on_cpu, ids);
    gpu->rlwe().rotate(out0.gpu(), out1.gpu(), acc0.gpu(), acc1.gpu(), c0.gpu(), c1.gpu(), 5,
                       digits, on_gpu, ids);
    same(out0, "rotate 0"), same(out1, "rotate 1");
  }
  {
    const std::size_t b = kMost / 2 + 1;
    auto x0 = fresh(ext, b), x1 = fresh(ext, b), addend = fresh(level, b), out0 = poison(level, b),
         out1 = poison(level, b);
    const ConstView ca = addend.cpu(), ga = addend.gpu();
    cpu->rlwe().scale_down_pair(out0.cpu(), out1.cpu(), x0.cpu(), x1.cpu(), nullptr, &ca);
    gpu->rlwe().scale_down_pair(out0.gpu(), out1.gpu(), x0.gpu(), x1.gpu(), nullptr, &ga);
    same(out0, "scale_down_pair 0"), same(out1, "scale_down_pair 1");
  }
  const std::size_t b = 8192, terms = 8;
  ASSERT_GT(b * terms, kMost);
  auto x0 = fresh(ext, b), x1 = fresh(ext, b), acc0 = poison(ext, b), acc1 = poison(ext, b);
  std::vector<backend::Turned> for_cpu, for_gpu;
  for (std::size_t t = 0; t < terms; ++t) {
    auto &first = t % 2 == 0 ? x0 : x1, &second = t % 2 == 0 ? x1 : x0;
    for_cpu.push_back({first.cpu(), second.cpu(), 2 * t + 3, on_cpu});
    for_gpu.push_back({first.gpu(), second.gpu(), 2 * t + 3, on_gpu});
  }
  cpu->rlwe().outer_sum(acc0.cpu(), acc1.cpu(), for_cpu, digits, ids, false);
  gpu->rlwe().outer_sum(acc0.gpu(), acc1.gpu(), for_gpu, digits, ids, false);
  same(acc0, "outer_sum 0"), same(acc1, "outer_sum 1");
}

INSTANTIATE_TEST_SUITE_P(Words, GpuRows, ::testing::Values(Case{Word::w32, 10, 1}), case_name);

/// Counts what an engine asks of the driver.
class Count final : public device::Faults {
 public:
  device::Fault before(device::Call) override {
    ++calls;
    return device::Fault::none;
  }
  std::atomic<int> calls = 0;
};

class GpuTooManyRows : public GpuOps {
 protected:
  void SetUp() override {
    GpuOps::SetUp();
    if (IsSkipped()) return;
    asked = std::make_shared<Count>();
    gpu = backend::make_cuda_engine(cpu->config(), {.faults = asked});
    pool = device::Pool::create(false, gpu->memory());
  }
  /// Says how many rows there are, how many there may be and how large parts of the batch are to
  /// be.
  void refused(const char* what, const std::function<void()>& work, std::size_t batch,
               std::size_t limbs) {
    const int before = asked->calls;
    try {
      work();
      ADD_FAILURE() << what << " took " << batch * limbs << " rows";
    } catch (const Unsupported& error) {
      const std::string text = error.what();
      for (const std::size_t number : {batch, limbs * batch, kMost, kMost / limbs}) {
        EXPECT_NE(text.find(std::to_string(number)), std::string::npos) << what << ": " << text;
      }
      EXPECT_NE(text.find("split the batch"), std::string::npos) << text;
    }
    EXPECT_EQ(asked->calls, before) << what << " began";
  }
  std::shared_ptr<Count> asked;
};

TEST_P(GpuTooManyRows, AreRefusedByEveryOperationBeforeAnyWork) {
  using backend::Engine;
  const Primes one = range(0, 1), two = range(0, 2);
  const std::vector<std::uint32_t> digits{1}, ids{0};
  const std::vector<std::uint64_t> s{1};
  const std::array<std::uint8_t, 32> key{};
  const backend::Embedding embedding(n / 2);
  for (const auto& [limbs, b] : {std::pair<std::size_t, std::size_t>{1, kMost + 1},
                                 {2, (kMost + 1) / 2},
                                 {1, (std::size_t{1} << 32) + 1}}) {
    const Primes& primes = limbs == 1 ? one : two;
    const View v{nullptr, primes, b};
    const backend::KeyView k{nullptr, 1, primes};
    const backend::Combination::Product product{v, v, v, v}, products[] = {product, product};
    const backend::ScaledAddend addend{v, v, s};
    const ConstView a[] = {v};
    const std::uint32_t operand[] = {0};
    const backend::WeightedSum sum{v, v, operand, a};
    const backend::Rotated rotated{v, v, v, 5, k};
    const backend::Turned turned{v, v, 5, k};
    std::vector<std::uint64_t> integers(1);
    std::vector<backend::Complex> slots(1);
    const auto refuses = [&, limbs = limbs, b = b](const char* what, const auto& work) {
      refused(what, [&] { work(std::as_const(*gpu)); }, b, limbs);
    };
    refuses("ntt", [&](const Engine& o) { o.ring().ntt(v); });
    refuses("intt", [&](const Engine& o) { o.ring().intt(v); });
    refuses("add", [&](const Engine& o) { o.ring().add(v, v, v); });
    refuses("sub", [&](const Engine& o) { o.ring().sub(v, v, v); });
    refuses("neg", [&](const Engine& o) { o.ring().neg(v, v); });
    refuses("mul", [&](const Engine& o) { o.ring().mul(v, v, v); });
    refuses("mul_scalar", [&](const Engine& o) { o.ring().mul_scalar(v, v, s); });
    refuses("mul_scalar_add", [&](const Engine& o) { o.ring().mul_scalar_add(v, v, s); });
    refuses("add_scalar", [&](const Engine& o) { o.ring().add_scalar(v, v, s); });
    refuses("inner_product", [&](const Engine& o) { o.ring().inner_product(v, a, a); });
    refuses("weighted_sums", [&](const Engine& o) { o.rlwe().weighted_sums(a, a, {&sum, 1}); });
    refuses("rotated_sums",
            [&](const Engine& o) { o.rlwe().rotated_sums({&rotated, 1}, ids, s, {&sum, 1}); });
    refuses("tensor", [&](const Engine& o) { o.rlwe().tensor(v, v, v, v, v, v, v); });
    refuses("combine", [&](const Engine& o) { o.rlwe().combine(v, v, v, {products}); });
    refuses("automorphism_ntt", [&](const Engine& o) { o.ring().automorphism_ntt(v, v, 5); });
    refuses("mod_up", [&](const Engine& o) { o.rlwe().mod_up(v, v, digits); });
    refuses("key_product",
            [&](const Engine& o) { o.rlwe().key_product(v, v, v, k, ids, 1, false); });
    refuses("key_switch", [&](const Engine& o) { o.rlwe().key_switch(v, v, v, digits, k, ids); });
    refuses("key_switch_add",
            [&](const Engine& o) { o.rlwe().key_switch_add(v, v, v, digits, k, ids, addend); });
    refuses("combine_key_switch of one product", [&](const Engine& o) {
      o.rlwe().combine_key_switch(v, v, {{&product, 1}}, s, digits, k, ids);
    });
    refuses("combine_key_switch", [&](const Engine& o) {
      o.rlwe().combine_key_switch(v, v, {products}, s, digits, k, ids);
    });
    refuses("scale_down", [&](const Engine& o) { o.rlwe().scale_down(v, v, nullptr); });
    refuses("scale_down_pair",
            [&](const Engine& o) { o.rlwe().scale_down_pair(v, v, v, v, nullptr, nullptr); });
    refuses("rotate",
            [&](const Engine& o) { o.rlwe().rotate(v, v, v, v, v, v, 5, digits, k, ids); });
    refuses("outer_sum",
            [&](const Engine& o) { o.rlwe().outer_sum(v, v, {&turned, 1}, digits, ids, false); });
    refuses("sample_uniform", [&](const Engine& o) { o.ring().sample_uniform(v, key, 0); });
    refuses("sample_small",
            [&](const Engine& o) { o.ring().sample_small(v, backend::Small::error, key, 0); });
    refuses("sample_sparse", [&](const Engine& o) { o.ring().sample_sparse(v, 8, key, 0); });
    refuses("from_int64", [&](const Engine& o) { o.ring().from_int64(v, {}); });
    refuses("from_double", [&](const Engine& o) { o.ring().from_double(v, {}); });
    refuses("crt", [&](const Engine& o) { o.ring().crt(v, integers, 1, backend::CrtMethod::mul); });
    refuses("icrt",
            [&](const Engine& o) { o.ring().icrt(integers, 1, v, backend::IcrtMethod::garner); });
    refuses("embed", [&](const Engine& o) { o.embedding().embed(v, embedding, slots, 0, 1.0); });
    refuses("unembed",
            [&](const Engine& o) { o.embedding().unembed(slots, embedding, v, 0, 1.0); });
  }
  // The engine still works.
  auto x = fresh(two), y = poison(two);
  cpu->ring().mul(y.cpu(), x.cpu(), x.cpu()), gpu->ring().mul(y.gpu(), x.gpu(), x.gpu());
  same(y, "mul");
}

INSTANTIATE_TEST_SUITE_P(Words, GpuTooManyRows,
                         ::testing::Values(Case{Word::w32, 10, 3}, Case{Word::w52, 10, 3},
                                           Case{Word::w64, 10, 3}),
                         case_name);

// Few enough rows, but more numbers than 32 bits count.
TEST(GpuSampling, TooManySmallNumbersAreRefused) {
  if (backend::cuda_device_count() == 0) {
    GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
  }
  const auto asked = std::make_shared<Count>();
  const auto gpu = backend::make_cuda_engine(
      {Word::w32, std::size_t{1} << 17, make_primes(Word::w32, 17, 3), 1, ""}, {.faults = asked});
  const Primes one{0};
  const int before = asked->calls;
  for (const auto kind : {backend::Small::ternary, backend::Small::error}) {
    EXPECT_THROW(
        gpu->ring().sample_small({nullptr, one, 1u << 15}, kind, std::array<std::uint8_t, 32>{}, 0),
        Unsupported);
  }
  EXPECT_EQ(asked->calls, before);
}

}  // namespace
}  // namespace jali::testing
