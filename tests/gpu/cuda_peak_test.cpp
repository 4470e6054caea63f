// The rates by which benchmarks divide an operation's work for its least time.
#include <gtest/gtest.h>

#include "jali/backend/engines.h"

namespace jali::testing {
namespace {

TEST(CudaPeak, RatesAreThoseOfAGpu) {
  if (backend::cuda_device_count() == 0) GTEST_SKIP() << "no NVIDIA GPU on this machine";
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    const backend::CudaPeak peak = backend::cuda_peak(word);
    EXPECT_GT(peak.butterflies, 1e8) << word_name(word);  // more than any core of a CPU does in w64
    EXPECT_GT(peak.bytes, 1e9) << word_name(word);
  }
}

}  // namespace
}  // namespace jali::testing
