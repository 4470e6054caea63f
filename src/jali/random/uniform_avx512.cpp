#include <immintrin.h>

#include "jali/random/uniform_kernel.h"

namespace jali::random {

namespace {

// Stores whole vectors, also what follows the residues that are kept. That still lies inside out,
// because at most as many residues are kept as words were read.
void store(std::uint32_t* out, __m512i x) { _mm512_storeu_si512(out, x); }
void store(std::uint64_t* out, __m512i x) {
  _mm512_storeu_si512(out, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(x)));
  _mm512_storeu_si512(out + 8, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(x, 1)));
}

template <class Out>
std::size_t keep_words(const std::uint32_t* x, std::size_t count, std::uint32_t mask,
                       std::uint32_t bound, Out* out) {
  const __m512i m = _mm512_set1_epi32(static_cast<int>(mask));
  const __m512i b = _mm512_set1_epi32(static_cast<int>(bound));
  std::size_t i = 0, kept = 0;
  for (; i + 16 <= count; i += 16) {
    const __m512i words = _mm512_and_si512(_mm512_loadu_si512(x + i), m);
    const __mmask16 below = _mm512_cmplt_epu32_mask(words, b);
    store(out + kept, _mm512_maskz_compress_epi32(below, words));
    kept += static_cast<std::size_t>(__builtin_popcount(below));
  }
  return kept + keep_below_portable(x + i, count - i, mask, bound, out + kept);
}

}  // namespace

std::size_t keep_below_avx512(const std::uint32_t* x, std::size_t count, std::uint32_t mask,
                              std::uint32_t bound, std::uint32_t* out) {
  return keep_words(x, count, mask, bound, out);
}
std::size_t keep_below_avx512(const std::uint32_t* x, std::size_t count, std::uint32_t mask,
                              std::uint32_t bound, std::uint64_t* out) {
  return keep_words(x, count, mask, bound, out);
}
std::size_t keep_below_avx512(const std::uint64_t* x, std::size_t count, std::uint64_t mask,
                              std::uint64_t bound, std::uint64_t* out) {
  const __m512i m = _mm512_set1_epi64(static_cast<long long>(mask));
  const __m512i b = _mm512_set1_epi64(static_cast<long long>(bound));
  std::size_t i = 0, kept = 0;
  for (; i + 8 <= count; i += 8) {
    const __m512i words = _mm512_and_si512(_mm512_loadu_si512(x + i), m);
    const __mmask8 below = _mm512_cmplt_epu64_mask(words, b);
    _mm512_storeu_si512(out + kept, _mm512_maskz_compress_epi64(below, words));
    kept += static_cast<std::size_t>(__builtin_popcount(below));
  }
  return kept + keep_below_portable(x + i, count - i, mask, bound, out + kept);
}

}  // namespace jali::random
