// Faults that are rare on a real GPU: memory that runs out, launches that fail, a device that is
// lost.
#include <atomic>
#include <map>
#include <regex>
#include <string>
#include <thread>

#include "support.h"

namespace jali::testing {
namespace {

using ckks::Ciphertext;
using device::Call;
using device::Fault;

/// One kind of call fails from its k-th on, until mended.
class Plan final : public device::Faults {
 public:
  Fault before(Call call) override {
    const int mine = calls[static_cast<int>(call)]++;
    return armed && call == kind && mine >= first ? fault : Fault::none;
  }
  void arm(Call which, Fault what, int from) {
    for (auto& c : calls) c = 0;
    kind = which, fault = what, first = from;
    armed = true;
  }
  void mend() { armed = false; }
  std::atomic<int> calls[4] = {};

 private:
  std::atomic<bool> armed = false;
  Call kind = Call::launch;
  Fault fault = Fault::none;
  int first = 0;
};

class GpuFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    JALI_NEEDS_GPU();
    w = std::make_unique<World>(Scheme{"w52", Word::w52, 40});
    plan = std::make_shared<Plan>();
    ring = gpu_ring(*w->params, {.faults = plan});
    gpu = std::make_shared<const ckks::Evaluator>(w->params, ring, w->keys);
    a = w->encrypt(w->vector());
    b = gpu->bring(a);
    want = work(*w->evaluator, a);
  }
  static Ciphertext work(const ckks::Evaluator& e, const Ciphertext& x) {
    return e.rotate(e.multiply_relinearise_rescale(x, x), 1);
  }
  void expect_usable() {
    expect_same(want, gpu->send_back(work(*gpu, b)), "after the fault", 0, w->seed);
  }

  std::unique_ptr<World> w;
  std::shared_ptr<Plan> plan;
  std::shared_ptr<const ring::Ring> ring;
  std::shared_ptr<const ckks::Evaluator> gpu;
  Ciphertext a, b, want;
};

TEST_F(GpuFaults, MemoryThatRunsOutAnywhereLeavesNothingBehind) {
  work(*gpu, b);  // constants exist from here on
  const std::regex said(
      "^could not allocate [1-9][0-9.]* [a-zA-Z]+.*; [1-9][0-9.]* [a-zA-Z]+.* are free, so that a "
      "block of at most that would fit; [0-9][0-9.]* [a-zA-Z]+.* are in use by this engine: ");
  const std::size_t in_use = ring->pool()->bytes_in_use();
  int failed = 0;
  for (int k = 0;; ++k) {
    ring->pool()->trim();
    plan->arm(Call::allocate, Fault::out_of_memory, k);
    bool thrown = false;
    try {
      work(*gpu, b);
    } catch (const OutOfMemory& error) {
      thrown = true;
      const std::string text = error.what();
      EXPECT_TRUE(std::regex_search(text, said)) << text;
    }
    plan->mend();
    ASSERT_EQ(ring->pool()->bytes_in_use(), in_use) << "allocation " << k;
    expect_usable();
    if (!thrown) break;
    ++failed;
  }
  EXPECT_GT(failed, 3);
}

// Tables, the staging memory of copies, and programs lie outside the pool.
TEST_F(GpuFaults, AnEngineOrAProgramWithoutMemoryNamesWhatWouldFit) {
  const std::regex said(
      "^could not allocate ([1-9][0-9.]* [a-zA-Z]+.*|memory of a size that the driver does not "
      "name "
      "for making a program); [1-9][0-9.]* [a-zA-Z]+.* are free, so that a block of at most that "
      "would fit[;:] ");
  std::map<std::string, int> failed;
  const auto fails = [&](const auto& what) {
    try {
      what();
    } catch (const OutOfMemory& error) {
      const std::string text = error.what();
      EXPECT_TRUE(std::regex_search(text, said)) << text;
      for (const char* of : {"constants of the engine", "copies", "making a program", "in use"}) {
        failed[of] += text.find(of) != std::string::npos;
      }
      return true;
    }
    return false;
  };
  const auto faults = std::make_shared<Plan>();
  for (int k = 0;; k += 1 + k / 8) {
    faults->arm(Call::allocate, Fault::out_of_memory, k);
    if (!fails([&] {
          const ckks::Evaluator fresh(w->params, gpu_ring(*w->params, {.faults = faults}), w->keys);
          fresh.send_back(work(fresh, fresh.bring(a)));
        })) {
      break;
    }
  }
  Ciphertext out;
  for (int k = 0;; ++k) {
    plan->arm(Call::allocate, Fault::out_of_memory, k);
    const bool failing = fails([&] { ring->engine().capture([&] { out = work(*gpu, b); }); });
    plan->mend();
    expect_usable();
    if (!failing) break;
  }
  for (const auto& [of, times] : failed) EXPECT_GT(times, 0) << of;
  EXPECT_EQ(failed.size(), 4U);
}

TEST_F(GpuFaults, ALaunchThatFailsNamesItsKernelAndTheEngineGoesOn) {
  plan->arm(Call::launch, Fault::none, 0);
  work(*gpu, b);
  const int launches = plan->calls[static_cast<int>(Call::launch)];
  EXPECT_GT(launches, 5);
  for (int k = 0; k < launches; ++k) {
    plan->arm(Call::launch, Fault::launch_failed, k);
    try {
      work(*gpu, b);
      FAIL() << "launch " << k << " was to fail";
    } catch (const LaunchFailed& error) {
      EXPECT_EQ(std::string(error.what()).rfind("launching ", 0), 0U) << error.what();
    }
    plan->mend();
  }
  expect_usable();
}

TEST_F(GpuFaults, ALostDeviceIsTheSameErrorFromThenOn) {
  plan->arm(Call::launch, Fault::device_lost, 2);
  std::string first;
  try {
    work(*gpu, b);
    FAIL() << "the device was to be lost";
  } catch (const DeviceLost& error) {
    first = error.what();
  }
  plan->mend();
  const auto again = [&](auto&& call) {
    try {
      call();
      FAIL() << "a lost device was used";
    } catch (const DeviceLost& error) {
      EXPECT_EQ(first, error.what());
    }
  };
  again([&] { gpu->add(b, b); });
  again([&] { gpu->bring(a); });
  again([&] { gpu->send_back(b); });
  again([&] { ring->make(w->params->q_primes(), 64); });
  again([&] { ring->engine().capture([] {}); });
  // Other engines are asked for themselves.
  const ckks::Evaluator other(w->params, gpu_ring(*w->params, {}), w->keys);
  expect_same(want, other.send_back(work(other, other.bring(a))), "another engine", 0, w->seed);
}

TEST_F(GpuFaults, CopiesAndWaitsCanLoseTheDeviceToo) {
  for (const Call call : {Call::copy, Call::synchronize}) {
    const auto faults = std::make_shared<Plan>();
    const ckks::Evaluator one(w->params, gpu_ring(*w->params, {.faults = faults}), w->keys);
    const auto c = one.bring(a);
    faults->arm(call, Fault::device_lost, 0);
    EXPECT_THROW(one.send_back(one.rotate(c, 1)), DeviceLost);
    faults->mend();
    EXPECT_THROW(one.rotate(c, 1), DeviceLost);
  }
}

TEST_F(GpuFaults, AFailureWhileAProgramIsRecordedLeavesTheEngineUsable) {
  const auto& engine = ring->engine();
  Ciphertext out;
  const auto job = [&] { out = work(*gpu, b); };
  job();
  plan->arm(Call::launch, Fault::none, 0);
  job();
  const int launches = plan->calls[static_cast<int>(Call::launch)];
  for (const int k : {0, launches - 1, launches, launches + 3, 2 * launches - 1}) {
    plan->arm(Call::launch, Fault::launch_failed, k);
    EXPECT_THROW(engine.capture(job), LaunchFailed) << k;
    plan->mend();
    expect_usable();
  }
  const auto program = engine.capture(job);
  program->run();
  expect_same(want, gpu->send_back(out), "program", 0, w->seed);
}

TEST_F(GpuFaults, ACapOnMemoryIsKept) {
  constexpr std::size_t kCap = (std::size_t{8} << 20) + 12345;
  const auto small = gpu_ring(*w->params, {.memory_cap = kCap});
  std::vector<ring::Poly> held;
  std::string text;
  try {
    for (int i = 0; i < 1000; ++i) held.push_back(small->make(w->params->q_primes(), 4));
    FAIL() << "1000 blocks in 8 MiB";
  } catch (const OutOfMemory& error) {
    text = error.what();
  }
  // A block as large as the message says is free does fit, and no larger one.
  std::smatch sizes;
  ASSERT_TRUE(std::regex_search(
      text, sizes, std::regex("([0-9]+) bytes\\)?; .*?([0-9]+) bytes\\)? are free, so that")))
      << text;
  EXPECT_GE(std::stoull(sizes[1]), held[0].bytes()) << text;
  const std::size_t free = std::stoull(sizes[2]);
  EXPECT_LT(free, held[0].bytes()) << text;
  void* const fits = small->memory().allocate(free);
  EXPECT_NE(fits, nullptr) << text;
  EXPECT_EQ(small->memory().allocate(1), nullptr) << text;
  small->memory().free(fits, free);
  EXPECT_LE(small->pool()->bytes_in_use(), kCap);
  EXPECT_GT(small->pool()->bytes_in_use(), std::size_t{7} << 20);
  held.clear();
  EXPECT_NO_THROW(small->make(w->params->q_primes(), 4));
}

TEST_F(GpuFaults, MoreThanTheGpuHasIsOutOfMemory) {
  const std::size_t batch = (std::size_t{1} << 42) / (w->params->q_primes().size() * ring->n() * 8);
  EXPECT_THROW(ring->make(w->params->q_primes(), batch), OutOfMemory);
  expect_usable();
}

TEST_F(GpuFaults, DevicesThatAreNotThereAreNamed) {
  EXPECT_THROW(gpu_ring(*w->params, {.device = backend::cuda_device_count()}), NoDevice);
  EXPECT_THROW(gpu_ring(*w->params, {.device = -1}), NoDevice);
}

// Two evaluators on streams of their own, used in turns by two threads, freed blocks poisoned.
TEST_F(GpuFaults, TwoEvaluatorsInterleavedGiveTheSameBits) {
  std::vector<std::shared_ptr<const ckks::Evaluator>> evaluators;
  for (int i = 0; i < 2; ++i) {
    evaluators.push_back(std::make_shared<const ckks::Evaluator>(
        w->params, gpu_ring(*w->params, {.poison = true}), w->keys));
  }
  constexpr int kSteps = 60;
  std::vector<Ciphertext> in, expected;
  for (int i = 0; i < 2 * kSteps; ++i) in.push_back(w->encrypt(w->vector()));
  for (const auto& c : in) expected.push_back(work(*w->evaluator, c));
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int step = 0; step < kSteps; ++step) {
        const auto at = static_cast<std::size_t>(t * kSteps + step);
        // From one evaluator's memory to the other's on every other step.
        const auto& e = *evaluators[static_cast<std::size_t>(t + step) % 2];
        const auto& other = *evaluators[static_cast<std::size_t>(t + step + 1) % 2];
        Ciphertext x = e.bring(in[at]);
        if (step % 2 == 1) x = e.bring(other.bring(x));
        const Ciphertext got = e.send_back(work(e, x));
        for (std::size_t i = 0; i < 2; ++i) {
          failures += std::memcmp(got.parts[i].data(), expected[at].parts[i].data(),
                                  expected[at].parts[i].bytes()) != 0;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0) << w->seed;
  // The memory of one evaluator is not the other's: it has to be brought.
  const auto c = evaluators[0]->bring(a);
  EXPECT_THROW(evaluators[1]->add(c, c), InvalidArgument);
}

// From one GPU to another: by peer access if they have it, and through the host otherwise.
TEST_F(GpuFaults, CiphertextsMoveBetweenGpus) {
  if (backend::cuda_device_count() < 2) GTEST_SKIP() << "one GPU: copies between two not tested";
  const ckks::Evaluator there(w->params, gpu_ring(*w->params, {.device = 1}), w->keys);
  for (int i = 0; i < 20; ++i) {
    const auto moved = there.bring(gpu->rotate(b, 1));
    const auto back = gpu->bring(there.rotate(moved, 2));
    expect_same(w->evaluator->rotate(w->evaluator->rotate(a, 1), 2), gpu->send_back(back),
                "between GPUs", i, w->seed);
  }
}

}  // namespace
}  // namespace jali::testing
