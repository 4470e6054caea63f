// Programs and batches on the CPU give the same results as the function itself.
#include "jali/schemes/ckks/program.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "fixture.h"
#include "jali/schemes/ckks/batcher.h"

namespace jali::testing {
namespace {

using ckks::Ciphertext;

class CkksProgram : public ::testing::TestWithParam<Scheme> {};

bool same_bits(const Ciphertext& a, const Ciphertext& b) {
  if (a.parts.size() != b.parts.size() || a.level != b.level || a.scale != b.scale) return false;
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    if (a.parts[i].bytes() != b.parts[i].bytes() ||
        std::memcmp(a.parts[i].data(), b.parts[i].data(), a.parts[i].bytes()) != 0) {
      return false;
    }
  }
  return true;
}

TEST_P(CkksProgram, GivesWhatTheFunctionGives) {
  World w(GetParam());
  const auto& e = *w.evaluator;
  const auto f = [&e](std::span<const Ciphertext> in) {
    std::vector<Ciphertext> out;
    out.push_back(e.multiply_relinearise_rescale(in[0], in[1]));
    out.push_back(e.rotate(in[0], 1));
    return out;
  };
  const Ciphertext a = w.encrypt(w.vector()), b = w.encrypt(w.vector());
  const Ciphertext* examples[] = {&a, &b};
  ckks::Program program(w.evaluator, f, examples);
  EXPECT_EQ(program.arity(), 2U);
  for (int run = 0; run < 3; ++run) {
    std::vector<Ciphertext> in;
    in.push_back(w.encrypt(w.vector()));
    in.push_back(w.encrypt(w.vector()));
    const auto want = f(in);
    const Ciphertext* inputs[] = {&in[0], &in[1]};
    const auto got = program.run(inputs);
    ASSERT_EQ(got.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(got[i], want[i])) << w.seed;
  }
}

TEST_P(CkksProgram, ItsFunctionCannotRunIt) {
  World w(GetParam());
  const Ciphertext x = w.encrypt(w.vector());
  const Ciphertext* inputs[] = {&x};
  std::unique_ptr<ckks::Program> program;
  const auto f = [&](std::span<const Ciphertext> in) {
    std::vector<Ciphertext> out;
    if (program != nullptr) return program->run(inputs);
    out.push_back(w.evaluator->copy(in[0]));
    return out;
  };
  program = std::make_unique<ckks::Program>(w.evaluator, f, inputs);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(program->run(inputs), InvalidArgument);

  std::unique_ptr<ckks::Batcher> batcher;
  batcher = std::make_unique<ckks::Batcher>(
      w.evaluator, [&](const Ciphertext&) { return std::move(batcher->run(inputs)[0]); });
  for (int i = 0; i < 2; ++i) EXPECT_THROW(batcher->run(inputs), InvalidArgument);
  EXPECT_EQ(batcher->batch(), 0U);
}

// A checkpoint ends the making of keys, of an evaluator, and the run of a program before the k-th
// polynomial, for every k.
TEST_P(CkksProgram, WorkThatACheckpointEndedIsDoneRightLater) {
  struct Ended {};
  World w(GetParam());
  int left = -1;  // polynomials until the work is ended; if negative, it is not ended
  const auto ring = ckks::make_ring(*w.params, "cpu", 2, backend::Variants{}, [&] {
    if (left >= 0 && left-- == 0) throw Ended();
  });
  // Repeats the work, ended later each time, and returns the result of the first run that is not
  // ended.
  const auto until_done = [&](const auto& work) {
    for (int k = 0;; ++k) {
      left = k;
      try {
        auto done = work();
        EXPECT_GT(k, 2);
        left = -1;
        return done;
      } catch (const Ended&) {
      }
    }
  };
  const int rotations[] = {1};
  rlwe::KeyGenerator generator(w.params, ring);
  const auto keys = std::make_shared<const rlwe::EvaluationKeys>(
      until_done([&] { return generator.evaluation_keys(*w.sk, rotations); }));
  const auto evaluator =
      until_done([&] { return std::make_shared<const ckks::Evaluator>(w.params, ring, keys); });
  const auto v = w.vector();
  const Ciphertext x = w.encrypt(v);
  const Ciphertext* inputs[] = {&x};
  ckks::Program program(
      evaluator,
      [&](std::span<const Ciphertext> in) {
        std::vector<Ciphertext> out;
        out.push_back(evaluator->multiply_relinearise_rescale(evaluator->rotate(in[0], 1), in[0]));
        return out;
      },
      inputs);
  const auto out = until_done([&] { return program.run(inputs); });
  auto expected = v;
  for (std::size_t i = 0; i < v.size(); ++i) expected[i] = v[i] * v[(i + 1) % v.size()];
  w.expect(out[0], expected);
}

TEST_P(CkksProgram, RefusesInputsOfAnotherShape) {
  World w(GetParam());
  const auto& e = *w.evaluator;
  const auto a = w.encrypt(w.vector());
  const Ciphertext* examples[] = {&a};
  ckks::Program program(
      w.evaluator,
      [&e](std::span<const Ciphertext> in) {
        std::vector<Ciphertext> out;
        out.push_back(e.add(in[0], in[0]));
        return out;
      },
      examples);
  const auto refused = [&](const Ciphertext& x) {
    const Ciphertext* inputs[] = {&x};
    EXPECT_THROW(program.run(inputs), InvalidArgument);
  };
  refused(w.encrypt(w.vector(), w.params->depth() - 1));
  refused(w.encrypt(w.vector(1, 2 * w.params->slots()), -1, -1, 2));
  refused(w.encrypt(w.vector(1, 2), -1, 1));
  refused(e.multiply(a, a));
  auto scaled = e.copy(a);
  scaled.scale *= 1.5;
  refused(scaled);
  auto noisy = e.copy(a);
  noisy.estimate.variance *= 4;
  refused(noisy);
  auto packed = e.copy(a);
  packed.packing.length = 3;
  refused(packed);
  EXPECT_THROW(program.run({}), InvalidArgument);
  const Ciphertext* inputs[] = {&a};
  EXPECT_EQ(program.run(inputs).size(), 1U);
}

TEST_P(CkksProgram, StacksAndSplits) {
  World w(GetParam());
  std::vector<Ciphertext> in;
  in.push_back(w.encrypt(w.vector()));
  in.push_back(w.encrypt(w.vector(1, 3 * w.params->slots()), -1, -1, 3));
  in.push_back(w.encrypt(w.vector()));
  std::vector<const Ciphertext*> pointers;
  for (const auto& c : in) pointers.push_back(&c);
  const auto all = ckks::stack(*w.evaluator, pointers);
  EXPECT_EQ(all.batch(), 5U);
  const std::size_t batches[] = {1, 3, 1};
  const auto back = ckks::split(*w.evaluator, all, batches);
  ASSERT_EQ(back.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(back[i], in[i])) << i;
  const std::size_t wrong[] = {1, 3};
  EXPECT_THROW(ckks::split(*w.evaluator, all, wrong), InvalidArgument);
  const auto low = w.encrypt(w.vector(), 0);
  pointers.push_back(&low);
  EXPECT_THROW(ckks::stack(*w.evaluator, pointers), InvalidArgument);
}

TEST_P(CkksProgram, ABatcherGivesWhatOneByOneGives) {
  World w(GetParam());
  const auto& e = *w.evaluator;
  const auto f = [&e](const Ciphertext& x) { return e.rotate(e.add(x, x), 1); };
  std::vector<Ciphertext> in, want;
  std::vector<const Ciphertext*> pointers;
  for (int i = 0; i < 21; ++i) in.push_back(w.encrypt(w.vector()));
  for (const auto& c : in) {
    pointers.push_back(&c);
    want.push_back(f(c));
  }
  for (const std::size_t limit : {0, 1, 5}) {
    std::size_t largest = 0;
    ckks::Batcher batcher(
        w.evaluator,
        [&](const Ciphertext& x) {
          largest = std::max(largest, x.batch());
          return f(x);
        },
        limit);
    EXPECT_EQ(batcher.batch(), 0U);
    for (int round = 0; round < 2; ++round) {
      const auto got = batcher.run(pointers);
      ASSERT_EQ(got.size(), in.size());
      for (std::size_t i = 0; i < in.size(); ++i) EXPECT_TRUE(same_bits(got[i], want[i])) << i;
    }
    EXPECT_GE(batcher.batch(), 1U);
    EXPECT_LE(largest, limit == 0 ? in.size() : limit);
    for (const auto& point : batcher.curve()) {
      EXPECT_GT(point.seconds, 0);
      EXPECT_GT(point.bytes, 0U);
    }
    EXPECT_TRUE(batcher.run({}).empty());
  }
}

TEST_P(CkksProgram, ABatchThatDoesNotFitIsHalved) {
  World w(GetParam());
  const auto& e = *w.evaluator;
  std::vector<Ciphertext> in;
  std::vector<const Ciphertext*> pointers;
  for (int i = 0; i < 16; ++i) in.push_back(w.encrypt(w.vector()));
  for (const auto& c : in) pointers.push_back(&c);
  for (const bool memory : {true, false}) {
    std::size_t refused = 0, told = 0;
    ckks::Batcher batcher(
        w.evaluator,
        [&](const Ciphertext& x) {
          // A call takes as long for two as for one, so a batch of two is a gain and four are
          // tried.
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          if (x.batch() > 2) {
            ++refused;
            if (memory) throw OutOfMemory("more than two");
            throw Unsupported("more than two");
          }
          return e.negate(x);
        },
        0, 0,
        [&](std::size_t size, std::size_t largest) {
          ++told;
          EXPECT_GT(size, 2U);
          EXPECT_EQ(largest, size / 2);
        });
    const auto got = batcher.run(pointers);
    ASSERT_EQ(got.size(), in.size());
    for (std::size_t i = 0; i < in.size(); ++i) EXPECT_TRUE(same_bits(got[i], e.negate(in[i])));
    EXPECT_GE(refused, 1U);
    EXPECT_LE(refused, 2U);
    EXPECT_EQ(told, refused);
    EXPECT_LE(batcher.batch(), 2U);
  }
  ckks::Batcher never(w.evaluator,
                      [&](const Ciphertext&) -> Ciphertext { throw OutOfMemory("not even one"); });
  EXPECT_THROW(never.run(pointers), OutOfMemory);
  std::size_t wrong = 0;  // calls that fail with an error that a smaller batch would not cure
  ckks::Batcher failing(w.evaluator, [&](const Ciphertext& x) {
    if (x.batch() == 1) return e.negate(x);
    ++wrong;
    throw InvalidArgument("more than one");
  });
  EXPECT_THROW(failing.run(pointers), InvalidArgument);
  EXPECT_EQ(wrong, 1U);
}

// Each doubling of the batch halves the time of a ciphertext, so only memory limits the batch.
TEST(CkksBatcher, TheBatchIsChosenFromMemoryToo) {
  World w(all_setups().front());
  std::vector<Ciphertext> in;
  std::vector<const Ciphertext*> pointers;
  for (int i = 0; i < 32; ++i) in.push_back(w.encrypt(w.vector()));
  for (const auto& c : in) pointers.push_back(&c);
  const auto largest = [&](std::size_t memory, std::size_t* one = nullptr) {
    ckks::Batcher batcher(
        w.evaluator,
        [&](const Ciphertext& x) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          return w.evaluator->negate(x);
        },
        /*max_batch=*/8, memory);
    batcher.run(pointers);
    const auto curve = batcher.curve();
    if (one != nullptr) *one = curve.front().bytes;
    for (const auto& point : curve) EXPECT_TRUE(memory == 0 || point.bytes <= memory);
    return curve.back().batch;
  };
  std::size_t one = 0;
  EXPECT_EQ(largest(0, &one), 8U);
  ASSERT_GT(one, 0U);
  EXPECT_EQ(largest(16 * one), 8U);
  const std::size_t some = largest(4 * one);
  EXPECT_GT(some, 1U);
  EXPECT_LT(some, 8U);
  EXPECT_EQ(largest(2 * one), 1U);
}

INSTANTIATE_TEST_SUITE_P(Setups, CkksProgram, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
