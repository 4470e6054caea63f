// What the tests of tests/gpu share.
#pragma once

#include <cstring>

#include "fixture.h"
#include "jali/backend/engines.h"

namespace jali::testing {

/// The ring of some parameters on the GPU, set up as asked.
inline std::shared_ptr<const ring::Ring> gpu_ring(const ckks::Params& params,
                                                  const backend::GpuOptions& options) {
  const backend::Config config{
      params.word(), params.n(), {params.primes().begin(), params.primes().end()}, 1, ""};
  return std::make_shared<const ring::Ring>(backend::make_cuda_engine(config, options));
}

/// Both in host memory.
inline void expect_same(const ckks::Ciphertext& a, const ckks::Ciphertext& b, const char* what,
                        int step, unsigned seed) {
  ASSERT_EQ(a.parts.size(), b.parts.size());
  ASSERT_EQ(a.level, b.level);
  ASSERT_EQ(a.scale, b.scale);
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    ASSERT_EQ(a.parts[i].bytes(), b.parts[i].bytes());
    ASSERT_EQ(0, std::memcmp(a.parts[i].data(), b.parts[i].data(), a.parts[i].bytes()))
        << what << ", step " << step << ", part " << i << ", seed " << seed;
  }
}

#define JALI_NEEDS_GPU()                                                            \
  if (backend::cuda_device_count() == 0) {                                          \
    GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested"; \
  }

}  // namespace jali::testing
