// Compact plaintexts on the GPU: the CPU's bits, from integers in the GPU's memory and from the
// host's, also in recorded programs.
#include "jali/circuits/ckks/linear_transform.h"
#include "support.h"

namespace jali::testing {
namespace {

using ckks::Storage;

class GpuCompact : public ::testing::TestWithParam<Scheme> {
 protected:
  void SetUp() override { JALI_NEEDS_GPU(); }
};

void expect_same_bits(const ring::Poly& got, const ring::Poly& wanted, const std::string& what) {
  ASSERT_EQ(got.bytes(), wanted.bytes()) << what;
  EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.bytes()), 0) << what;
}

TEST_P(GpuCompact, ExpandsToTheBitsOfTheCpu) {
  World w(GetParam(), {});
  const auto ring = ckks::make_ring(*w.params, "cuda");
  const ckks::Encoder gpu(w.params, ring);
  const double scale = w.params->scale(1);
  const std::size_t slots = w.params->slots();
  for (std::size_t period = 1; period <= slots; period *= 2) {
    auto z = w.vector(1, 2 * slots);
    for (std::size_t b = 0; b < 2; ++b) {
      for (std::size_t s = period; s < slots; ++s) z[b * slots + s] = z[b * slots + s - period];
    }
    for (int level = 0; level <= w.params->depth(); ++level) {
      const auto wanted = w.encoder().encode(z, 2, level, scale);
      for (const bool on_host : {false, true}) {
        const auto compact = gpu.compact(z, 2, scale, -1, on_host);
        EXPECT_EQ(compact.bytes(), 2 * 2 * period * 8);
        EXPECT_EQ(compact.integers.host_accessible(), on_host);
        expect_same_bits(ring->host_copy(gpu.expand(compact, level).poly), wanted.poly,
                         "period " + std::to_string(period) + ", level " + std::to_string(level) +
                             ", seed " + std::to_string(w.seed));
      }
    }
  }
}

// rotations: those that have keys. Others are composed.
void expect_transforms_of_the_cpu(const Scheme& scheme, std::initializer_list<int> rotations) {
  World w(scheme, rotations);
  const auto ring = ckks::make_ring(*w.params, "cuda");
  const ckks::Evaluator gpu(w.params, ring, w.keys);
  circuits::Diagonals diagonals;
  for (int d = 0; d < 16; ++d) diagonals[d] = w.vector(0.2);
  const circuits::BsgsOptions ways[] = {{.hoisting = circuits::Hoisting::single, .baby_step = 4},
                                        {.hoisting = circuits::Hoisting::twice, .baby_step = 4}};
  for (const auto& way : ways) {
    circuits::LinearTransform on_cpu(w.params, diagonals, {.bsgs = way});
    on_cpu.prepare(w.encoder());
    for (const std::size_t batch : {1, 2}) {
      const auto x = w.encrypt(w.vector(1, batch * w.params->slots()), -1, -1, batch);
      const auto wanted = on_cpu.apply(*w.evaluator, x);
      const auto here = gpu.bring(x);
      for (const Storage storage : {Storage::residues, Storage::integers, Storage::streamed}) {
        circuits::LinearTransform on_gpu(w.params, diagonals, {.bsgs = way});
        on_gpu.prepare(gpu.encoder(), storage);
        on_gpu.forget();
        expect_same(gpu.send_back(on_gpu.apply(gpu, here)), wanted, "transform",
                    static_cast<int>(storage), w.seed);
        if (storage == Storage::streamed) continue;  // copies from the host are not recorded
        ckks::Ciphertext out;
        const auto graph = ring->engine().capture([&] { out = on_gpu.apply(gpu, here); });
        graph->run();
        expect_same(gpu.send_back(out), wanted, "recorded", static_cast<int>(storage), w.seed);
      }
    }
  }
}

TEST_P(GpuCompact, TransformsHaveTheBitsOfTheCpu) {
  expect_transforms_of_the_cpu(GetParam(), {1, 2, 3, 4, 8, 12});
}

TEST_P(GpuCompact, TransformsOfComposedRotationsHaveTheBitsOfTheCpu) {
  expect_transforms_of_the_cpu(GetParam(), {1, 4, -2});
}

INSTANTIATE_TEST_SUITE_P(Setups, GpuCompact, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
