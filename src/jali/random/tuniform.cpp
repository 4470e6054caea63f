#include <algorithm>

#include "jali/base/error.h"
#include "jali/random/prng.h"
#include "jali/random/secret_array.h"

namespace jali::random {

namespace {

// Let u be uniform in [0, 2^(bits+2)). Then floor((u + 1) / 2) is in [0, 2^(bits+1)]. Both ends
// come from one u, and every other value from two.
template <class Word>
void sample(Prng& prng, int bits, std::span<std::int64_t> out) {
  constexpr std::size_t kChunk = 512;
  constexpr int kWordBits = 8 * static_cast<int>(sizeof(Word));
  const Word mask = static_cast<Word>(~Word{0} >> (kWordBits - 2 - bits));
  const auto centre = std::int64_t{1} << bits;
  SecretArray<Word, kChunk> raw;
  while (!out.empty()) {
    const std::size_t count = std::min(kChunk, out.size());
    raw.fill(prng, count);
    for (std::size_t i = 0; i < count; ++i) {
      const Word u = raw[i] & mask;
      out[i] = static_cast<std::int64_t>((u >> 1) + (u & 1)) - centre;
    }
    out = out.subspan(count);
  }
}

}  // namespace

void sample_tuniform(Prng& prng, int bits, std::span<std::int64_t> out) {
  require<InvalidArgument>(bits >= 0 && bits <= 62, "TUniform takes 0 to 62 bits");
  if (bits <= 30) {
    sample<std::uint32_t>(prng, bits, out);
  } else {
    sample<std::uint64_t>(prng, bits, out);
  }
}

}  // namespace jali::random
