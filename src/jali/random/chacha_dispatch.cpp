#include "jali/base/cpu_features.h"
#include "jali/random/chacha.h"

namespace jali::random {

ChaChaFn* chacha20_best() {
#if defined(__x86_64__)
  if (cpu_features().avx512) return chacha20_avx512;
  if (cpu_features().avx2) return chacha20_avx2;
#endif
  return chacha20_portable;
}

}  // namespace jali::random
