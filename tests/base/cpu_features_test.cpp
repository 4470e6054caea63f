#include "jali/base/cpu_features.h"

#include <gtest/gtest.h>

namespace jali {
namespace {

#if defined(__x86_64__)

TEST(CpuFeatures, AreThoseThatTheCompilersRuntimeFinds) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("sse2")) GTEST_SKIP() << "this compiler's runtime finds no feature";
  const CpuFeatures& has = cpu_features();
  EXPECT_EQ(has.sse41, __builtin_cpu_supports("sse4.1") != 0);
  EXPECT_EQ(has.avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(has.fma, __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(has.avx512, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512vl"));
  EXPECT_EQ(has.ifma, has.avx512 && __builtin_cpu_supports("avx512ifma"));
}

#else

TEST(CpuFeatures, OtherMachinesHaveNone) {
  const CpuFeatures& has = cpu_features();
  EXPECT_FALSE(has.sse41 || has.sha || has.avx2 || has.fma || has.avx512 || has.ifma);
}

#endif

}  // namespace
}  // namespace jali
