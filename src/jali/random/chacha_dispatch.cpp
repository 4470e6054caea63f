#include "jali/random/chacha.h"

namespace jali::random {

ChaChaFn* chacha20_best() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    return chacha20_avx512;
  }
  if (__builtin_cpu_supports("avx2")) return chacha20_avx2;
#endif
  return chacha20_portable;
}

}  // namespace jali::random
