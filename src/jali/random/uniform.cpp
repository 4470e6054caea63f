#include <algorithm>
#include <bit>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/random/prng.h"
#include "jali/random/uniform_kernel.h"

namespace jali::random {

namespace {

// Raw: the type of the words that are taken from the stream. A chunk takes at most as many words as
// residues are still missing. So the stream is used up to the same word as if words were taken one
// by one.
template <class Raw, class Out>
void uniform(Prng& prng, std::uint64_t q, std::span<Out> out) {
  constexpr std::size_t kChunk = 4096 / sizeof(Raw);
  const Raw bound = static_cast<Raw>(q);
  const Raw mask = static_cast<Raw>(~Raw{0}) >> std::countl_zero(bound);
  static KeepBelowFn<Raw, Out>* const keep = keep_below_best<Raw, Out>();
  alignas(64) Raw raw[kChunk];
  std::size_t made = 0;
  while (made < out.size()) {
    const std::size_t count = std::min(kChunk, out.size() - made);
    prng.fill({reinterpret_cast<std::uint8_t*>(raw), count * sizeof(Raw)});
    declassify(raw, count * sizeof(Raw));  // the uniform half of keys and ciphertexts is public
    made += keep(raw, count, mask, bound, out.data() + made);
  }
}

void check(std::uint64_t q, unsigned bits) {
  require<InvalidArgument>(q > 0 && q >> bits == 0,
                           "the modulus of uniform residues must be above 0, and below 2^32 for "
                           "rows of 32 bits or 2^61 for rows of 64 bits");
}

}  // namespace

void sample_uniform(Prng& prng, std::uint64_t q, std::span<std::uint32_t> out) {
  check(q, 32);
  uniform<std::uint32_t>(prng, q, out);
}

void sample_uniform(Prng& prng, std::uint64_t q, std::span<std::uint64_t> out) {
  check(q, 61);
  if (std::bit_width(q) <= 32) {
    uniform<std::uint32_t>(prng, q, out);
  } else {
    uniform<std::uint64_t>(prng, q, out);
  }
}

}  // namespace jali::random
