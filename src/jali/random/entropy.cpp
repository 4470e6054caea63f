#include <sys/random.h>
#include <unistd.h>

#include <cstring>

#include "jali/base/error.h"
#include "jali/random/prng.h"

namespace jali::random {

Seed os_seed() {
  Seed seed;
  require<InternalError>(getentropy(seed.data(), seed.size()) == 0,
                         "the operating system gave no random bytes (getentropy failed)");
  return seed;
}

// The barrier keeps the compiler from dropping stores to memory that dies next.
void wipe(void* data, std::size_t bytes) noexcept {
  if (bytes > 0) std::memset(data, 0, bytes);
  asm volatile("" : : "r"(data) : "memory");
}

}  // namespace jali::random
