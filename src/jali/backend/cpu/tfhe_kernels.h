// The kernels of TFHE that differ between instruction sets, written once over a small vector class
// (tfhe_vec.h) and compiled once for each. Accumulators have words of 64 bits on every torus: a
// word of 32 bits is the upper half of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "jali/backend/cpu/inline.h"
#include "jali/backend/cpu/tfhe_plan.h"
#include "jali/backend/torus.h"

namespace jali::backend::cpu {

/// A gadget (torus.h) as the kernels use it. With l = levels, g = base_log: u = ((x + addend) >>
/// shift) - offset is x rounded to a multiple of 2^(64 - l g), as a signed number of l g bits. Of
/// u, digit j is what remains of the rounding to 2^g (halves to even, as torus.h has it), from j =
/// l down to 2, and digit 1 is what is left. The range of u is such that digit 1 lies in (-2^(g-1),
/// 2^(g-1)].
struct DigitRule {
  explicit DigitRule(Gadget gadget);
  int base_log, levels;
  int shift;
  std::uint64_t half_unit;
  /// Only if l g <= 52, so that doubles hold u.
  std::uint64_t addend, offset;
  JALI_INLINE bool in_doubles() const { return base_log * levels <= 52; }
};

/// Lines of the next step's key, fetched into the L2 cache while this one is worked with: `bytes`
/// in each turn of the loops of a step, so that they come evenly. It may reach a little beyond the
/// key, which does no harm.
struct KeyAhead {
  const char* next = nullptr;
  std::size_t bytes = 0;
  JALI_INLINE void fetch() {
    for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(next + at, 0, 2);
    next += bytes;
  }
};

/// A step of a blind rotation of one ciphertext. P = (k + 1) l polynomials of digits.
struct RotationStep {
  const FourierPlan* plan;
  const DigitRule* rule;
  std::size_t rows;  // k + 1
  bool classic;
  std::size_t units;
  const std::uint32_t* exponents;  // of the units, in [0, 2N)
  const double* key;  // of the step, see key_place
  std::uint64_t* acc;  // rows polynomials, acc_stride words apart
  double* digits;  // P polynomials of N doubles
  double* sums;  // rows of them
  double* tiles;  // tile_doubles(P, rows, lanes)
  KeyAhead ahead;
};

/// Accumulators: after the N words of a polynomial stand the first ones again, negated, so that a
/// vector may begin at any coefficient.
constexpr std::size_t kAccPadding = 8;
JALI_INLINE std::size_t acc_stride(std::size_t N) { return N + kAccPadding; }
JALI_INLINE void pad(std::uint64_t* polynomial, std::size_t N) {
  for (std::size_t i = 0; i < kAccPadding; ++i) polynomial[N + i] = 0 - polynomial[i];
}

JALI_INLINE std::size_t tile_doubles(std::size_t digits, std::size_t rows, std::size_t lanes) {
  return (digits + rows) * 2 * lanes * lanes;
}

/// Where the pair of vectors (group g, unit u, output row o, digit c, child p) of a step's key
/// lies, in pairs. The order is that in which a step reads: groups; units; outputs by two, the last
/// alone if their number is odd; children by `quad`; digits; the outputs of the two; the children
/// of the quad.
struct KeyPlace {
  std::size_t units, rows, digits, lanes, quad;
  std::size_t operator()(std::size_t g, std::size_t u, std::size_t o, std::size_t c,
                         std::size_t p) const {
    const std::size_t first = o / 2 * 2, together = first + 1 < rows ? 2 : 1;
    const std::size_t unit = (g * units + u) * rows * digits * lanes;
    const std::size_t pair = first * digits * lanes;
    const std::size_t block = p / quad * digits * together * quad;
    return unit + pair + block + (c * together + (o - first)) * quad + p % quad;
  }
};

/// A part of a key switch: out[i][w] = sum_r digits[i][r] row_r[w] modulo 2^32, of one tile of
/// columns.
struct SwitchTile {
  const std::uint32_t* key;  // row after row of kSwitchColumns words
  std::size_t rows;
  const std::int32_t* digits;  // of ciphertext i at i digit_stride
  std::size_t digit_stride;
  std::uint32_t* out;  // of ciphertext i at i out_stride; the sums are added to it
  std::size_t out_stride;
  std::size_t count;  // ciphertexts
};
constexpr std::size_t kSwitchColumns = 64;

struct TfheKernels {
  const char* isa = nullptr;
  int lanes = 0, quad = 0, log_radix = 0;
  void (*step)(const RotationStep&) = nullptr;
  /// The Fourier form of a polynomial of signed words.
  void (*transform_words)(const FourierPlan&, double* out, const std::uint64_t* words) = nullptr;
  void (*switch_tile)(const SwitchTile&) = nullptr;
  /// Digits of `count` words, level after level of one word, exactly as torus.h has them.
  void (*digits)(std::int32_t* out, const std::uint64_t* words, std::size_t count,
                 const DigitRule&) = nullptr;
  /// out += weight in
  void (*add_multiple64)(std::uint64_t* out, const std::uint64_t* in, std::uint64_t weight,
                         std::size_t count) = nullptr;
  void (*add_multiple32)(std::uint32_t* out, const std::uint32_t* in, std::uint32_t weight,
                         std::size_t count) = nullptr;
};

TfheKernels portable_tfhe_kernels();
#ifdef JALI_CPU_X86
TfheKernels avx2_tfhe_kernels();  // needs AVX2 and FMA
TfheKernels avx512_tfhe_kernels();  // needs AVX-512 F, DQ, BW, VL
#endif

/// The kernels of a set; "" is the best there is. Throws Unsupported.
TfheKernels select_tfhe_kernels(const std::string& isa);

}  // namespace jali::backend::cpu
