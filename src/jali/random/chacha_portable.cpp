#include "jali/random/chacha_kernel.h"

void jali::random::chacha20_portable(std::uint32_t* state, std::size_t groups, std::uint8_t* out) {
  chacha20<4>(state, groups, out);
}
