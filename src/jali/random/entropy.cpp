#include <sys/random.h>
#include <unistd.h>

#include "jali/base/error.h"
#include "jali/random/prng.h"

namespace jali::random {

void os_fill(std::span<std::uint8_t> out) {
  require<InternalError>(getentropy(out.data(), out.size()) == 0,
                         "the operating system gave no random bytes (getentropy failed)");
}

Seed os_seed() {
  Seed seed;
  os_fill(seed);
  return seed;
}

}  // namespace jali::random
