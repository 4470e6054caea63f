#include "jali/random/chacha_kernel.h"

void jali::random::chacha20_avx2(std::uint32_t* state, std::size_t groups, std::uint8_t* out) {
  chacha20<8>(state, groups, out);
}
