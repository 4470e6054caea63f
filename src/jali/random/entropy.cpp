#include <sys/random.h>
#include <unistd.h>

#include "jali/base/error.h"
#include "jali/random/prng.h"

namespace jali::random {

Seed os_seed() {
  Seed seed;
  require<InternalError>(getentropy(seed.data(), seed.size()) == 0,
                         "the operating system gave no random bytes (getentropy failed)");
  return seed;
}

}  // namespace jali::random
