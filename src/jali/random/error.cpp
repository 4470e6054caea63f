#include <algorithm>

#include "jali/random/prng.h"
#include "jali/random/secret_array.h"

namespace jali::random {

// Each 64-bit word gives one error: the number of ones among bits 0 to 20 minus the number among
// bits 32 to 52. The ones are counted by shifts and adds, because the popcount of a library may
// look up a table.
void sample_error(Prng& prng, std::span<std::int64_t> out) {
  constexpr std::size_t kChunk = 512;
  constexpr std::uint64_t kBits = 0x001fffff001fffff;
  SecretArray<std::uint64_t, kChunk> raw;
  while (!out.empty()) {
    const std::size_t count = std::min(kChunk, out.size());
    raw.fill(prng, count);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t x = raw[i] & kBits;
      x -= x >> 1 & 0x5555555555555555;
      x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
      x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
      x += x >> 8;
      x += x >> 16;
      out[i] = static_cast<std::int64_t>(x & 63) - static_cast<std::int64_t>(x >> 32 & 63);
    }
    out = out.subspan(count);
  }
}

}  // namespace jali::random
