// Stacking, recording and batching of blocks. No scheme is involved.
#include "jali/ring/blocks.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "jali/backend/engines.h"
#include "jali/base/error.h"
#include "jali/ring/batching.h"
#include "jali/ring/recording.h"
#include "support.h"

namespace jali::ring::test {
namespace {

using backend::test::below;
using backend::test::PrimeList;
using backend::test::primes_for;

constexpr std::size_t kN = 1024;

class Blocks : public testing::TestWithParam<Word> {
 protected:
  static backend::Config config() { return {GetParam(), kN, primes_for(GetParam(), kN, 4), 1, ""}; }

  /// A block of fresh residues in host memory.
  Poly block(std::size_t batch) {
    Poly x = host_->make(primes_, batch);
    for (std::size_t i = 0; i < x.limbs(); ++i) {
      for (std::size_t b = 0; b < batch; ++b) {
        for (std::size_t k = 0; k < kN; ++k) {
          const std::uint64_t v = below(rng_, host_->prime(primes_[i]));
          if (x.word() == Word::w32) {
            static_cast<std::uint32_t*>(x.row(i, b))[k] = static_cast<std::uint32_t>(v);
          } else {
            static_cast<std::uint64_t*>(x.row(i, b))[k] = v;
          }
        }
      }
    }
    return x;
  }
  static bool equal(const Ring& ring, const Poly& a, const Poly& b) {
    const Poly x = ring.host_copy(a), y = ring.host_copy(b);
    return std::ranges::equal(x.primes(), y.primes()) && x.batch() == y.batch() &&
           std::memcmp(x.data(), y.data(), x.bytes()) == 0;
  }

  const std::uint64_t seed_ = backend::test::test_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "JALI_TEST_SEED=" + std::to_string(seed_)};
  std::mt19937_64 rng_{seed_};
  const PrimeList primes_ = {0, 2, 3};
  std::shared_ptr<const Ring> host_ = std::make_shared<Ring>(backend::make_cpu_engine(config()));
  /// The host may not access its memory, as is the case for a GPU.
  std::shared_ptr<const Ring> apart_ = std::make_shared<Ring>(backend::make_apart_engine(config()));
};
INSTANTIATE_TEST_SUITE_P(Words, Blocks, testing::Values(Word::w32, Word::w52, Word::w64),
                         [](const auto& info) { return std::string(word_name(info.param)); });

TEST_P(Blocks, StackAndSplitAreInverses) {
  for (const auto& ring : {host_, apart_}) {
    for (const std::vector<std::size_t>& batches :
         {std::vector<std::size_t>{1, 1, 1}, {2, 1, 3}, {1}, {4}}) {
      for (const bool here : {false, true}) {  // blocks in the ring's memory, or in the host's
        std::vector<Poly> blocks;
        std::vector<const Poly*> pointers;
        for (const std::size_t batch : batches) {
          Poly x = block(batch);
          blocks.push_back(here ? ring->import(x) : std::move(x));
        }
        for (const Poly& x : blocks) pointers.push_back(&x);
        const Poly all = stack(*ring, pointers);
        ASSERT_EQ(all.batch(), std::accumulate(batches.begin(), batches.end(), std::size_t{0}));
        const Poly seen = ring->host_copy(all);
        std::size_t b = 0;
        for (const Poly& x : blocks) {
          const Poly want = ring->host_copy(x);
          for (std::size_t i = 0; i < want.limbs(); ++i) {
            ASSERT_EQ(std::memcmp(seen.row(i, b), want.row(i), want.batch() * want.row_bytes()), 0);
          }
          b += want.batch();
        }
        const auto parts = split(*ring, all, batches);
        ASSERT_EQ(parts.size(), blocks.size());
        for (std::size_t i = 0; i < parts.size(); ++i) {
          EXPECT_TRUE(equal(*ring, parts[i], blocks[i]));
        }
        const std::size_t wrong[] = {all.batch(), 1};
        EXPECT_THROW(split(*ring, all, wrong), InvalidArgument);
      }
    }
  }
  EXPECT_THROW(stack(*host_, {}), InvalidArgument);
}

TEST_P(Blocks, ARecordingDoesItsWorkOnNewInputs) {
  for (const auto& ring : {host_, apart_}) {
    Poly a = ring->make(primes_), b = ring->make(primes_), sum = ring->make(primes_);
    Recording* self = nullptr;
    Recording recording(ring, "this recording", [&] {
      if (self != nullptr) self->run({}, [] {});
      ring->ops().add(sum.view(), a.view(), b.view());
    });
    for (int run = 0; run < 3; ++run) {
      const Poly x = block(1), y = block(1);
      const Recording::Input inputs[] = {{&a, &x}, {&b, &y}};
      Poly got;
      recording.run(inputs, [&] { got = ring->copy(sum); });
      Poly want = host_->make(primes_);
      host_->ops().add(want.view(), x.view(), y.view());
      EXPECT_TRUE(equal(*ring, got, want));
    }
    self = &recording;
    EXPECT_THROW(recording.run({}, [] {}), InvalidArgument);
  }
}

TEST_P(Blocks, BatchesCoverAllItemsOnceInOrder) {
  Batching batching(host_, "this batching", 4, 0);
  EXPECT_EQ(batching.batch(), 0U);
  std::vector<std::size_t> done, batches;
  batching.run(40, [&](std::size_t first, std::size_t count) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // so that larger batches gain
    batches.push_back(count);
    for (std::size_t i = first; i < first + count; ++i) done.push_back(i);
  });
  std::vector<std::size_t> all(40);
  std::iota(all.begin(), all.end(), std::size_t{0});
  EXPECT_EQ(done, all);
  EXPECT_EQ(batches.front(), 1U);
  EXPECT_LE(*std::ranges::max_element(batches), 4U);
  EXPECT_GE(batching.batch(), 1U);
  EXPECT_FALSE(batching.curve().empty());
}

TEST_P(Blocks, ABatchThatDoesNotFitIsHalved) {
  Batching batching(host_, "this batching", 0, 0);
  std::vector<std::size_t> done;
  std::size_t refused = 0;
  batching.run(30, [&](std::size_t first, std::size_t count) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (count > 2) {
      ++refused;
      throw OutOfMemory("more than two");
    }
    for (std::size_t i = first; i < first + count; ++i) done.push_back(i);
  });
  EXPECT_EQ(done.size(), 30U);
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_GE(refused, 1U);
  EXPECT_LE(batching.batch(), 2U);
  EXPECT_THROW(batching.run(1, [&](std::size_t, std::size_t) { throw OutOfMemory("not one"); }),
               OutOfMemory);
  EXPECT_THROW(batching.run(1, [&](std::size_t, std::size_t) { batching.run(1, {}); }),
               InvalidArgument);
}

}  // namespace
}  // namespace jali::ring::test
