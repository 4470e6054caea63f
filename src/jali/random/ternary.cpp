#include <algorithm>
#include <bit>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/base/secret_vector.h"
#include "jali/random/prng.h"
#include "jali/random/secret_array.h"

namespace jali::random {

// A coefficient is a byte below 255 = 3 * 85, taken modulo 3. Bytes of 255 are passed over. Their
// positions say nothing about the values that are kept.
void sample_ternary(Prng& prng, std::span<std::int64_t> out) {
  constexpr std::size_t kChunk = 2048;
  SecretArray<std::uint8_t, kChunk> raw;
  std::size_t made = 0;
  while (made < out.size()) {
    const std::size_t count = std::min(kChunk, out.size() - made);
    raw.fill(prng, count);
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned x = raw[i];
      const unsigned third = x * 171 >> 9;  // floor(x / 3) for x < 256
      out[made] = static_cast<std::int64_t>(x - 3 * third) - 1;
      made += x != 255;
      declassify(made);
    }
  }
}

namespace {

// Batcher's bitonic sorting network. The sequence of comparisons depends only on the size, which is
// a power of two.
void sort_obliviously(std::span<std::uint64_t> words) {
  const std::size_t n = words.size();
  for (std::size_t run = 2; run <= n; run *= 2) {
    for (std::size_t step = run / 2; step > 0; step /= 2) {
      for (std::size_t base = 0; base < n; base += 2 * step) {
        const std::uint64_t descending = (base & run) != 0 ? ~std::uint64_t{0} : 0;
        for (std::size_t i = base; i < base + step; ++i) {
          const std::uint64_t a = words[i], b = words[i + step];
          const std::uint64_t out_of_order = (std::uint64_t{0} - (b < a)) ^ descending;
          const std::uint64_t flip = (a ^ b) & out_of_order;
          words[i] = a ^ flip;
          words[i + step] = b ^ flip;
        }
      }
    }
  }
}

}  // namespace

// Sorts by random 62-bit keys. If all keys differ, that is a uniform permutation. If two are equal,
// all are drawn again; whether that happens is independent of the permutation. The two low bits
// carry the value: 0, 1 for 1, and 2 for -1.
void sample_sparse_ternary(Prng& prng, std::size_t weight, std::span<std::int64_t> out) {
  const std::size_t n = out.size();
  require<InvalidArgument>(weight <= n, "a sparse ternary vector has weight at most its length");
  if (n == 0) return;
  SecretVector<std::uint64_t> words(std::bit_ceil(n));
  bool distinct = false;
  while (!distinct) {
    prng.fill({reinterpret_cast<std::uint8_t*>(words.data()), n * sizeof(std::uint64_t)});
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t value = i < weight ? 1 + (words[i] & 1) : 0;
      words[i] = (words[i] & ~std::uint64_t{3}) | value;
    }
    std::fill(words.begin() + static_cast<std::ptrdiff_t>(n), words.end(), ~std::uint64_t{0});
    sort_obliviously(words);
    std::uint64_t equal = 0;
    for (std::size_t i = 1; i < n; ++i) equal |= (words[i - 1] >> 2) == (words[i] >> 2);
    distinct = equal == 0;
    declassify(distinct);
  }
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = static_cast<std::int64_t>(words[i] & 1) - static_cast<std::int64_t>(words[i] >> 1 & 1);
  }
}

}  // namespace jali::random
