#include <algorithm>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/random/prng.h"
#include "jali/random/secret_array.h"

namespace jali::random {

void sample_bits(Prng& prng, std::span<std::uint8_t> out) {
  constexpr std::size_t kChunk = 256;
  SecretArray<std::uint8_t, kChunk> raw;
  while (!out.empty()) {
    const std::size_t count = std::min(8 * kChunk, out.size());
    raw.fill(prng, (count + 7) / 8);
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = static_cast<std::uint8_t>(raw[i / 8] >> (i % 8) & 1);
    }
    out = out.subspan(count);
  }
}

// A block is a byte below the largest multiple of group + 1, taken modulo group + 1: if it is j <
// group, bit j is set. Other bytes are passed over. Their positions say nothing about those that
// are kept.
void sample_one_hot(Prng& prng, std::size_t group, std::span<std::uint8_t> out) {
  require<InvalidArgument>(group >= 1 && group <= 64 && out.size() % group == 0,
                           "blocks have 1 to 64 bits, and there is a whole number of them");
  const auto choices = static_cast<std::uint32_t>(group + 1);
  const std::uint32_t limit = 256 / choices * choices;
  const std::uint32_t inverse = (65536 + choices - 1) / choices;
  constexpr std::size_t kChunk = 256;
  SecretArray<std::uint8_t, kChunk> raw;
  std::size_t made = 0;
  while (made < out.size()) {
    raw.fill(prng, kChunk);
    for (std::size_t i = 0; i < kChunk && made < out.size(); ++i) {
      const std::uint32_t x = raw[i];
      const std::uint32_t chosen = x - (x * inverse >> 16) * choices;  // x mod (group + 1)
      for (std::size_t j = 0; j < group; ++j) {
        out[made + j] = static_cast<std::uint8_t>(chosen == j);
      }
      const bool kept = x < limit;
      declassify(kept);
      made += kept ? group : 0;
    }
  }
}

}  // namespace jali::random
