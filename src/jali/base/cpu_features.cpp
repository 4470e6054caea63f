#include "jali/base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace jali {

namespace {

#if defined(__x86_64__)

bool bit(unsigned x, int i) { return (x >> i & 1) != 0; }

/// Intel's manual, volume 2, CPUID, tables of leaves 1 and 7; and volume 1, 14.3 and 15.2: a
/// program may use the registers of AVX if XCR0 has bits 1 and 2, and those of AVX-512 if it also
/// has bits 5 to 7.
CpuFeatures detect() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  CpuFeatures has;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return has;
  has.sse41 = bit(c, 19);
  const bool fma = bit(c, 12), os_saves = bit(c, 27);
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return has;
  has.sha = bit(b, 29);
  if (!os_saves) return has;
  unsigned xcr0 = 0, high = 0;
  asm volatile("xgetbv" : "=a"(xcr0), "=d"(high) : "c"(0));
  const bool avx = (xcr0 & 0x6) == 0x6, avx512 = avx && (xcr0 & 0xe0) == 0xe0;
  has.avx2 = avx && bit(b, 5);
  has.fma = avx && fma;
  has.avx512 = avx512 && bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31);
  has.ifma = has.avx512 && bit(b, 21);
  return has;
}

#else

CpuFeatures detect() { return {}; }

#endif

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

}  // namespace jali
