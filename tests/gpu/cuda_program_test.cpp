// Programs on the GPU: a graph gives the bits of the CPU in every run, whatever else runs at the
// same time.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "jali/schemes/ckks/batcher.h"
#include "jali/schemes/ckks/program.h"
#include "support.h"

namespace jali::testing {
namespace {

using ckks::Ciphertext;

class GpuProgram : public ::testing::TestWithParam<Scheme> {
 protected:
  void SetUp() override { JALI_NEEDS_GPU(); }
};

// A little of everything: products, rotations, sums, constants, a rescale to the next level.
std::vector<Ciphertext> circuit(const ckks::Evaluator& e, const ckks::Plaintext& plain,
                                std::span<const Ciphertext> in) {
  std::vector<Ciphertext> out;
  Ciphertext product = e.multiply_relinearise_rescale(in[0], in[1]);
  const auto hoisted = e.hoist(in[0]);
  Ciphertext sum = e.add(e.rotate_hoisted(hoisted, 1), e.rotate_hoisted(hoisted, -3));
  sum = e.add_scalar(e.multiply_plain(sum, plain), {0.25, -0.5});
  e.add_inplace(product, e.conjugate(product));
  out.push_back(std::move(product));
  out.push_back(e.rescale(sum));
  return out;
}

TEST_P(GpuProgram, EveryRunGivesTheBitsOfTheCpu) {
  World w(GetParam());
  for (const bool poison : {false, true}) {
    const auto ring = gpu_ring(*w.params, {.poison = poison});
    const auto gpu = std::make_shared<const ckks::Evaluator>(w.params, ring, w.keys);
    const auto z = w.vector();
    const int top = w.params->depth();
    const double scale = w.params->scale(top);
    const auto on_cpu = w.encoder().encode(z, 1, top, scale);
    const auto on_gpu =
        std::make_shared<const ckks::Plaintext>(gpu->encoder().encode(z, 1, top, scale));
    const auto a = w.encrypt(w.vector()), b = w.encrypt(w.vector());
    const Ciphertext* examples[] = {&a, &b};
    std::vector<Ciphertext> kept;
    std::vector<Ciphertext> expected;
    {
      ckks::Program program(
          gpu, [&](std::span<const Ciphertext> in) { return circuit(*gpu, *on_gpu, in); },
          examples);
      EXPECT_GT(program.bytes(), 0U);
      for (int run = 0; run < 4; ++run) {
        std::vector<Ciphertext> in;
        in.push_back(w.encrypt(w.vector()));
        in.push_back(w.encrypt(w.vector()));
        const auto want = circuit(*w.evaluator, on_cpu, in);
        // From the host, and from the device.
        const auto c = gpu->bring(in[0]);
        const Ciphertext* inputs[] = {run % 2 == 0 ? &c : &in[0], &in[1]};
        auto got = program.run(inputs);
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          expect_same(want[i], gpu->send_back(got[i]), "program", run, w.seed);
          kept.push_back(std::move(got[i]));
          expected.push_back(w.evaluator->copy(want[i]));
        }
        // What others do in between is not disturbed.
        expect_same(w.evaluator->rotate(in[0], 1), gpu->send_back(gpu->rotate(c, 1)), "beside", run,
                    w.seed);
      }
    }
    // Results outlive the program.
    for (std::size_t i = 0; i < kept.size(); ++i) {
      expect_same(expected[i], gpu->send_back(kept[i]), "kept", static_cast<int>(i), w.seed);
    }
  }
}

TEST_P(GpuProgram, GivesItsMemoryBack) {
  World w(GetParam());
  const auto ring = gpu_ring(*w.params, {});
  const auto gpu = std::make_shared<const ckks::Evaluator>(w.params, ring, w.keys);
  const auto a = w.encrypt(w.vector());
  const Ciphertext* examples[] = {&a};
  const std::size_t before = ring->pool()->bytes_in_use();
  for (int i = 0; i < 3; ++i) {
    ckks::Program program(
        gpu,
        [&](std::span<const Ciphertext> in) {
          std::vector<Ciphertext> out;
          out.push_back(gpu->rotate(in[0], 1));
          return out;
        },
        examples);
    program.run(examples);
  }
  EXPECT_EQ(ring->pool()->bytes_in_use(), before);
}

TEST_P(GpuProgram, RefusesWhatNeedsTheHost) {
  World w(GetParam());
  const auto gpu =
      std::make_shared<const ckks::Evaluator>(w.params, gpu_ring(*w.params, {}), w.keys);
  const auto a = w.encrypt(w.vector());
  const Ciphertext* examples[] = {&a};
  const auto z = w.vector();
  const auto program = [&](auto&& f) {
    ckks::Program(
        gpu,
        [&](std::span<const Ciphertext> in) {
          std::vector<Ciphertext> out;
          out.push_back(f(in[0]));
          return out;
        },
        examples);
  };
  EXPECT_THROW(program([&](const Ciphertext& x) {
                 const auto p = gpu->encoder().encode(z, 1, x.level, x.scale);
                 return gpu->multiply_plain(x, p);
               }),
               InvalidArgument);
  EXPECT_THROW(program([&](const Ciphertext& x) { return gpu->bring(gpu->send_back(x)); }),
               InvalidArgument);
  EXPECT_THROW(program([&](const Ciphertext& x) {
                 program([&](const Ciphertext& y) { return gpu->negate(y); });
                 return gpu->negate(x);
               }),
               InvalidArgument);
  // The engine still works.
  const auto b = gpu->bring(a);
  expect_same(w.evaluator->rotate(a, 1), gpu->send_back(gpu->rotate(b, 1)), "after", 0, w.seed);
  program([&](const Ciphertext& x) { return gpu->rotate(x, 2); });
}

TEST_P(GpuProgram, ThreadsRecordAndRunBesideEachOther) {
  World w(GetParam());
  const auto ring = gpu_ring(*w.params, {.poison = true});
  const auto gpu = std::make_shared<const ckks::Evaluator>(w.params, ring, w.keys);
  constexpr int kThreads = 4, kRuns = 12;
  std::vector<Ciphertext> in, want;
  for (int i = 0; i < kThreads * kRuns; ++i) in.push_back(w.encrypt(w.vector()));
  for (const auto& c : in) {
    want.push_back(w.evaluator->rotate(w.evaluator->multiply_relinearise_rescale(c, c), 1));
  }
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto f = [&](const Ciphertext& x) {
        return gpu->rotate(gpu->multiply_relinearise_rescale(x, x), 1);
      };
      std::unique_ptr<ckks::Program> program;
      for (int run = 0; run < kRuns; ++run) {
        const Ciphertext& input = in[static_cast<std::size_t>(t * kRuns + run)];
        const Ciphertext* inputs[] = {&input};
        Ciphertext got;
        if (t % 2 == 0) {
          if (run % 4 == 0) {
            program = std::make_unique<ckks::Program>(
                gpu,
                [&](std::span<const Ciphertext> x) {
                  std::vector<Ciphertext> out;
                  out.push_back(f(x[0]));
                  return out;
                },
                inputs);
          }
          got = std::move(program->run(inputs)[0]);
        } else {
          got = f(gpu->bring(input));
        }
        got = gpu->send_back(got);
        const Ciphertext& expected = want[static_cast<std::size_t>(t * kRuns + run)];
        for (std::size_t i = 0; i < 2; ++i) {
          failures += std::memcmp(got.parts[i].data(), expected.parts[i].data(),
                                  expected.parts[i].bytes()) != 0;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0) << w.seed;
}

TEST_P(GpuProgram, BatchesGiveWhatOneByOneGives) {
  World w(GetParam());
  const auto gpu =
      std::make_shared<const ckks::Evaluator>(w.params, gpu_ring(*w.params, {}), w.keys);
  std::vector<Ciphertext> in;
  std::vector<const Ciphertext*> pointers;
  for (int i = 0; i < 300; ++i) in.push_back(w.encrypt(w.vector()));
  ckks::Batcher batcher(gpu, [&](const Ciphertext& x) {
    return gpu->multiply_relinearise_rescale(x, gpu->rotate(x, 1));
  });
  std::vector<Ciphertext> want, here;
  for (const auto& c : in) {
    const auto& e = *w.evaluator;
    want.push_back(e.multiply_relinearise_rescale(c, e.rotate(c, 1)));
    here.push_back(gpu->bring(c));
  }
  for (const auto* inputs : {&in, &here}) {  // from the host, and from the device
    pointers.clear();
    for (const auto& c : *inputs) pointers.push_back(&c);
    const auto got = batcher.run(pointers);
    ASSERT_EQ(got.size(), in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      expect_same(want[i], gpu->send_back(got[i]), "batcher", static_cast<int>(i), w.seed);
    }
  }
  EXPECT_GT(batcher.curve().size(), 1U);  // larger batches were tried
}

// Each doubling of the batch halves the time a ciphertext, also beside other work on the GPU: the
// cap alone ends the growth.
TEST(GpuPrograms, ABatchIsChosenFromTheMemoryOfTheEngine) {
  JALI_NEEDS_GPU();
  World w(all_setups().front());
  std::vector<Ciphertext> in;
  std::vector<const Ciphertext*> pointers;
  for (int i = 0; i < 50; ++i) in.push_back(w.encrypt(w.vector()));
  for (const auto& c : in) pointers.push_back(&c);
  const std::size_t one = 2 * in[0].parts[0].bytes();
  std::size_t own = 0;  // what the evaluator keeps
  const auto largest = [&](std::size_t cap) {
    const auto gpu = std::make_shared<const ckks::Evaluator>(
        w.params, gpu_ring(*w.params, {.memory_cap = cap}), w.keys);
    std::size_t most = 0;
    ckks::Batcher batcher(
        gpu,
        [&](const Ciphertext& x) {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          most = std::max(most, x.batch());
          return gpu->negate(x);
        },
        /*max_batch=*/16);
    auto got = batcher.run(pointers);
    EXPECT_LE(gpu->ring()->pool()->peak_bytes(), cap == 0 ? SIZE_MAX : cap);
    for (std::size_t i = 0; i < in.size(); ++i) {
      expect_same(w.evaluator->negate(in[i]), gpu->send_back(got[i]), "batcher",
                  static_cast<int>(i), w.seed);
    }
    got.clear();
    own = gpu->ring()->pool()->bytes_in_use();
    return most;
  };
  EXPECT_EQ(largest(0), 16U);
  // The results take 50 of them, a batch of b takes 2 b at its peak, and 60% more have to be free.
  const std::size_t capped = largest(own + 80 * one);
  EXPECT_GT(capped, 1U);
  EXPECT_LT(capped, 16U);
}

TEST(GpuPrograms, FillMuchMemory) {
  JALI_NEEDS_GPU();
  World w(all_setups().front());
  const auto ring = gpu_ring(*w.params, {});
  device::Memory& memory = ring->memory();
  constexpr std::size_t kBytes = (std::size_t{300} << 20) + 12345;
  void* data = memory.allocate(kBytes);
  const auto program = ring->engine().capture([&] { memory.fill(data, 0xa5, kBytes); });
  memory.fill(data, 0, kBytes);
  program->run();
  std::vector<std::uint8_t> host(kBytes);
  memory.copy_out(host.data(), data, kBytes);
  memory.free(data, kBytes);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(host, 0xa5)), kBytes);
}

TEST(GpuPrograms, TimesItsSteps) {
  JALI_NEEDS_GPU();
  World w(all_setups().front());
  const auto ring = gpu_ring(*w.params, {});
  const ckks::Evaluator gpu(w.params, ring, w.keys);
  const Ciphertext a = gpu.bring(w.encrypt(w.vector()));
  Ciphertext out;
  const auto program = ring->engine().capture([&] { out = gpu.rotate(a, 1); });
  const auto steps = program->steps();
  EXPECT_GE(steps.size(), 4U);  // inverse, product, inverse, division at least
  for (const auto& step : steps) {
    EXPECT_FALSE(step.name.empty());
    EXPECT_GT(step.seconds, 0) << step.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, GpuProgram, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
