// The discretised torus and what lies on it, as the operations of TFHE take and write it.
//
// A torus element is a word of w = 32 or 64 bits, which stands for the real number word / 2^w
// modulo 1. Sums and products with integers are those of the words, modulo 2^w.
//
// LWE. A ciphertext of dimension n is a row of n + 1 words: the mask a_0 .. a_{n-1}, then the body
// b. Its phase is b - sum_i a_i s_i. A batch is a block of such rows, one after the other. GLWE. A
// ciphertext of dimension k over polynomials of N coefficients is k + 1 rows of N words: the mask
// A_0 .. A_{k-1}, then the body B. Its phase is B - sum_i A_i S_i in Z_{2^w}[X] / (X^N + 1). A
// batch is a block of such ciphertexts. GGSW. Of a message m with a gadget of l levels and base
// 2^g: (k + 1) l GLWE ciphertexts. Row (c, j), c = 0 .. k and j = 1 .. l, is at (c l + j - 1). Its
// phase is -m S_c 2^(w - j g) if c < k, and m 2^(w - j g) if c = k.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace jali::backend {

/// A size that cannot be taken for another one.
template <class Tag>
struct Size {
  std::size_t value = 0;
  Size() = default;
  constexpr explicit Size(std::size_t of) : value(of) {}
  friend auto operator<=>(const Size&, const Size&) = default;
};
using LweDimension = Size<struct LweDimensionTag>;  // n: mask words of an LWE ciphertext
using GlweDimension = Size<struct GlweDimensionTag>;  // k: mask polynomials of a GLWE ciphertext
using PolynomialSize = Size<struct PolynomialSizeTag>;  // N: coefficients, a power of two

/// The bits of a torus element.
enum class Torus : std::uint8_t { t32 = 32, t64 = 64 };
constexpr int torus_bits(Torus torus) { return static_cast<int>(torus); }
constexpr std::size_t torus_bytes(Torus torus) { return static_cast<std::size_t>(torus) / 8; }

/// Calls f with a zero of the torus's word.
template <class F>
void with_word(Torus torus, const F& f) {
  if (torus == Torus::t32) {
    f(std::uint32_t{0});
  } else {
    f(std::uint64_t{0});
  }
}

/// A word x is approximated by sum_j d_j 2^(w - j base_log), j = 1 .. levels, with the closest such
/// sum, and digits d_j in [-2^(base_log-1), 2^(base_log-1)].
///
/// Which digits: x is rounded to a multiple of 2^(w - levels base_log), half a unit up. Of that
/// multiple, from j = levels down to 1, d_j is the remainder modulo 2^base_log. It is taken
/// negative, with a carry into digit j - 1, if it is above 2^(base_log-1), or equal to it and the
/// next bit above is set; the bit above digit 1 counts as 0. The carry out of digit 1 is lost,
/// because it is a multiple of 2^w.
struct Gadget {
  int base_log = 0;
  int levels = 0;
  friend bool operator==(const Gadget&, const Gadget&) = default;
};

/// How many secret bits a step of the blind rotation takes, and the shape of the secret that this
/// asks for. Over the units u of a step, with their exponents e_u, a step is
///   classic                  acc += GGSW x ((X^e - 1) acc): the difference is decomposed
///   multi_bit, block_binary  acc += sum_u (X^(e_u) - 1) (GGSW_u x acc): the accumulator is
///   decomposed, once
/// The two forms differ in their noise, so that an engine computes each kind in its form. In the
/// second, the factors may be taken into the GGSW ciphertexts, and the sum before the product:
/// modulo 2^w the bits are the same.
enum class Rotation : std::uint8_t {
  classic = 0,  // one bit a step: one unit, GGSW(s_i), e = a_i
  /// `group` bits a step: 2^group - 1 units, one for each set S of bits that is not empty, in
  /// ascending order of the number whose bit j says whether bit j of the group is in S. GGSW_S
  /// holds 1 if exactly the bits of S are set in the secret, else 0; e_S = sum of a_i over S.
  multi_bit = 1,
  /// `group` bits a step, of which at most one is set in the secret: `group` units, GGSW(s_i), e_i
  /// = a_i.
  block_binary = 2
};

/// A block of LWE ciphertexts.
struct ConstLweView {
  const void* data = nullptr;
  Torus torus = Torus::t64;
  LweDimension dimension;
  std::size_t count = 0;
};
struct LweView {
  void* data = nullptr;
  Torus torus = Torus::t64;
  LweDimension dimension;
  std::size_t count = 0;
  operator ConstLweView() const { return {data, torus, dimension, count}; }
};

/// A block of GLWE ciphertexts, of the dimension, polynomial size and torus of the configuration.
struct ConstGlweView {
  const void* data = nullptr;
  std::size_t count = 0;
};
struct GlweView {
  void* data = nullptr;
  std::size_t count = 0;
  operator ConstGlweView() const { return {data, count}; }
};

}  // namespace jali::backend
