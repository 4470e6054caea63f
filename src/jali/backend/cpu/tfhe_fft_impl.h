// The folded negacyclic transform (tfhe_plan.h) over a vector class V. Complex numbers lie as pairs
// of vectors (re, im).
//
// A forward pass multiplies by the twiddles, then goes through a transform of length R by halves
// (decimation in frequency); the inverse takes the same steps back with conjugate roots. Neither
// divides by n: keys hold 1/n.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numbers>

#include "jali/backend/cpu/inline.h"
#include "jali/backend/cpu/tfhe_kernels.h"
#include "jali/backend/cpu/tfhe_plan.h"
#include "jali/backend/cpu/tfhe_vec.h"

namespace jali::backend::cpu {
namespace {

template <class V>
struct Complex {
  using D = typename V::D;
  D re, im;

  JALI_INLINE friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  JALI_INLINE friend Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  JALI_INLINE friend Complex operator*(Complex a, Complex w) {
    return {V::fms(a.re, w.re, a.im * w.im), V::fma(a.re, w.im, a.im * w.re)};
  }
  /// i z, and z / i.
  JALI_INLINE Complex times_i() const { return {-im, re}; }
};

/// a conj(w)
template <class V>
JALI_INLINE Complex<V> times_conjugate(Complex<V> a, Complex<V> w) {
  return {V::fma(a.re, w.re, a.im * w.im), V::fms(a.im, w.re, a.re * w.im)};
}

template <class V>
struct Fourier {
  using D = typename V::D;
  using U = typename V::U;
  using C = Complex<V>;
  static constexpr std::size_t L = V::kLanes;

  JALI_INLINE static C load(const double* p) {
    return {V::held(V::load(p)), V::held(V::load(p + L))};
  }
  JALI_INLINE static void store(double* p, C x) {
    V::store(p, x.re);
    V::store(p + L, x.im);
  }
  JALI_INLINE static C broadcast(const double* pair) {
    return {V::held(V::set1(pair[0])), V::held(V::set1(pair[1]))};
  }

  // --- transforms of length R in registers, results in bit-reversed order ------------------------

  JALI_INLINE static void dft4(C& x0, C& x1, C& x2, C& x3) {
    const C s0 = x0 + x2, d0 = x0 - x2, s1 = x1 + x3, d1 = x1 - x3;
    x0 = s0 + s1;
    x1 = s0 - s1;
    x2 = {d0.re - d1.im, d0.im + d1.re};
    x3 = {d0.re + d1.im, d0.im - d1.re};
  }
  JALI_INLINE static void inverse_dft4(C& x0, C& x1, C& x2, C& x3) {
    const C s0 = x0 + x1, s1 = x0 - x1, d0 = x2 + x3, d1 = x2 - x3;  // d1 = i (its difference)
    x0 = s0 + d0;
    x2 = s0 - d0;
    x1 = {s1.re + d1.im, s1.im - d1.re};
    x3 = {s1.re - d1.im, s1.im + d1.re};
  }
  /// The odd half of a transform of length 8: b_j omega^j, then a transform of length 4. omega = (1
  /// + i) r, r = sqrt(1/2); the factor r comes in with the last sums.
  JALI_INLINE static void odd_dft8(C& b0, C& b1, C& b2, C& b3) {
    const D r = V::set1(std::numbers::sqrt2 / 2);
    const C s0 = {b0.re - b2.im, b0.im + b2.re}, d0 = {b0.re + b2.im, b0.im - b2.re};
    const C u1 = {b1.re - b1.im, b1.im + b1.re}, u3 = {-b3.re - b3.im, b3.re - b3.im};
    const C s1 = u1 + u3, d1 = u1 - u3;
    b0 = {V::fma(r, s1.re, s0.re), V::fma(r, s1.im, s0.im)};
    b1 = {V::fnma(r, s1.re, s0.re), V::fnma(r, s1.im, s0.im)};
    b2 = {V::fnma(r, d1.im, d0.re), V::fma(r, d1.re, d0.im)};
    b3 = {V::fma(r, d1.im, d0.re), V::fnma(r, d1.re, d0.im)};
  }
  JALI_INLINE static void dft8(C* x) {
    C b[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      b[j] = x[j] - x[j + 4];
      x[j] = x[j] + x[j + 4];
    }
    dft4(x[0], x[1], x[2], x[3]);
    odd_dft8(b[0], b[1], b[2], b[3]);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) x[4 + j] = b[j];
  }
  JALI_INLINE static void inverse_dft8(C* x) {
    const D r = V::set1(std::numbers::sqrt2 / 2);
    inverse_dft4(x[0], x[1], x[2], x[3]);
    C b[4] = {x[4], x[5], x[6], x[7]};
    inverse_dft4(b[0], b[1], b[2], b[3]);
    // b_j is still to be multiplied by conj(omega)^j.
    const C u1 = {b[1].re + b[1].im, b[1].im - b[1].re};
    const C u3 = {b[3].im - b[3].re, -b[3].im - b[3].re};
    const C a0 = x[0], a1 = x[1], a2 = x[2], a3 = x[3];
    x[0] = a0 + b[0], x[4] = a0 - b[0];
    x[1] = {V::fma(r, u1.re, a1.re), V::fma(r, u1.im, a1.im)};
    x[5] = {V::fnma(r, u1.re, a1.re), V::fnma(r, u1.im, a1.im)};
    x[2] = {a2.re + b[2].im, a2.im - b[2].re}, x[6] = {a2.re - b[2].im, a2.im + b[2].re};
    x[3] = {V::fma(r, u3.re, a3.re), V::fma(r, u3.im, a3.im)};
    x[7] = {V::fnma(r, u3.re, a3.re), V::fnma(r, u3.im, a3.im)};
  }

  template <int R>
  JALI_INLINE static void dft(C* x) {
    if constexpr (R == 2) {
      const C d = x[0] - x[1];
      x[0] = x[0] + x[1];
      x[1] = d;
    } else if constexpr (R == 4) {
      dft4(x[0], x[1], x[2], x[3]);
    } else {
      dft8(x);
    }
  }
  template <int R>
  JALI_INLINE static void inverse_dft(C* x) {
    if constexpr (R == 2) {
      dft<2>(x);
    } else if constexpr (R == 4) {
      inverse_dft4(x[0], x[1], x[2], x[3]);
    } else {
      inverse_dft8(x);
    }
  }

  // --- passes ------------------------------------------------------------------------------------

  template <int R>
  JALI_INLINE static void twist(C* x, const double* twiddles) {
#pragma GCC unroll 8
    for (int j = 1; j < R; ++j) x[j] = x[j] * broadcast(twiddles + 2 * (j - 1));
  }
  template <int R>
  JALI_INLINE static void untwist(C* x, const double* twiddles) {
#pragma GCC unroll 8
    for (int j = 1; j < R; ++j) {
      x[j] = times_conjugate<V>(x[j], broadcast(twiddles + 2 * (j - 1)));
    }
  }

  /// One block of R m points.
  template <int R>
  JALI_INLINE static void forward_block(double* data, const double* twiddles, std::size_t m,
                                        KeyAhead& ahead) {
    for (std::size_t i = 0; i < m; i += L) {
      double* const at = data + 2 * i;
      C x[R];
#pragma GCC unroll 8
      for (int j = 0; j < R; ++j) x[j] = load(at + 2 * m * j);
      twist<R>(x, twiddles);
      dft<R>(x);
#pragma GCC unroll 8
      for (int j = 0; j < R; ++j) store(at + 2 * m * j, x[j]);
      ahead.fetch();
    }
  }
  template <int R>
  JALI_INLINE static void inverse_block(double* data, const double* twiddles, std::size_t m,
                                        KeyAhead& ahead) {
    for (std::size_t i = 0; i < m; i += L) {
      double* const at = data + 2 * i;
      C x[R];
#pragma GCC unroll 8
      for (int j = 0; j < R; ++j) x[j] = load(at + 2 * m * j);
      inverse_dft<R>(x);
      untwist<R>(x, twiddles);
#pragma GCC unroll 8
      for (int j = 0; j < R; ++j) store(at + 2 * m * j, x[j]);
      ahead.fetch();
    }
  }

  /// Blocks [first, first + count) of a pass.
  template <int R, bool inverse>
  static void blocks(double* data, const FourierPlan::Pass& pass, std::size_t n, std::size_t first,
                     std::size_t count, KeyAhead& ahead) {
    const std::size_t size = n / pass.blocks;
    for (std::size_t b = first; b < first + count; ++b) {
      if constexpr (inverse) {
        inverse_block<R>(data + 2 * b * size, pass.twiddles + b * (2 * R - 2), size / R, ahead);
      } else {
        forward_block<R>(data + 2 * b * size, pass.twiddles + b * (2 * R - 2), size / R, ahead);
      }
    }
  }
  template <bool inverse>
  static void run_pass(double* data, const FourierPlan::Pass& pass, std::size_t n,
                       std::size_t first, std::size_t count, KeyAhead& ahead) {
    if (pass.log_radix == 1) {
      blocks<2, inverse>(data, pass, n, first, count, ahead);
    } else if (pass.log_radix == 2) {
      blocks<4, inverse>(data, pass, n, first, count, ahead);
    } else if (pass.log_radix == 3) {
      if constexpr (V::kLogRadix >= 3) blocks<8, inverse>(data, pass, n, first, count, ahead);
    }
  }
  /// The passes between the first one and the leaf, one child of the first pass after the other, so
  /// that large rings work on pieces that fit the caches.
  static void forward_rest(double* data, const FourierPlan& plan, KeyAhead& ahead) {
    const std::size_t children = std::size_t{1} << plan.passes[0].log_radix;
    for (std::size_t child = 0; child < children; ++child) {
      for (std::size_t p = 1; p < plan.pass_count; ++p) {
        const std::size_t count = plan.passes[p].blocks / children;
        run_pass<false>(data, plan.passes[p], plan.n, child * count, count, ahead);
      }
    }
  }
  static void inverse_rest(double* data, const FourierPlan& plan, KeyAhead& ahead) {
    const std::size_t children = std::size_t{1} << plan.passes[0].log_radix;
    for (std::size_t child = 0; child < children; ++child) {
      for (std::size_t p = plan.pass_count - 1; p >= 1; --p) {
        const std::size_t count = plan.passes[p].blocks / children;
        run_pass<true>(data, plan.passes[p], plan.n, child * count, count, ahead);
      }
    }
  }

  JALI_INLINE static void transpose(C* x) {
    D part[L];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < L; ++i) part[i] = x[i].re;
    V::transpose(part);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < L; ++i) x[i].re = part[i], part[i] = x[i].im;
    V::transpose(part);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < L; ++i) x[i].im = part[i];
  }
  /// The leaf of a group: L^2 points at `from`, to L pairs of vectors.
  JALI_INLINE static void forward_leaf(double* to, const double* from, const double* twiddles) {
    C x[L];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < L; ++i) x[i] = load(from + 2 * L * i);
    transpose(x);
#pragma GCC unroll 8
    for (std::size_t i = 1; i < L; ++i) x[i] = x[i] * load(twiddles + 2 * L * (i - 1));
    dft<L>(x);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < L; ++i) store(to + 2 * L * i, x[i]);
  }
  JALI_INLINE static void inverse_leaf(double* to, const double* from, const double* twiddles) {
    C x[L];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < L; ++i) x[i] = load(from + 2 * L * i);
    inverse_dft<L>(x);
#pragma GCC unroll 8
    for (std::size_t i = 1; i < L; ++i) {
      x[i] = times_conjugate<V>(x[i], load(twiddles + 2 * L * (i - 1)));
    }
    transpose(x);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < L; ++i) store(to + 2 * L * i, x[i]);
  }
  static const double* leaf_twiddles(const FourierPlan& plan, std::size_t group) {
    return plan.leaves + group * (L - 1) * 2 * L;
  }

  /// The whole forward transform of signed words, for keys.
  static void transform_words(const FourierPlan& plan, double* out, const std::uint64_t* words) {
    for (std::size_t i = 0; i < plan.n; i += L) {
      store(out + 2 * i,
            {V::from_word(V::load(words + i)), V::from_word(V::load(words + plan.n + i))});
    }
    KeyAhead none;
    run_pass<false>(out, plan.passes[0], plan.n, 0, 1, none);
    forward_rest(out, plan, none);
    for (std::size_t g = 0; g < plan.groups; ++g) {
      double* const at = out + 2 * L * L * g;
      forward_leaf(at, at, leaf_twiddles(plan, g));
    }
  }
};

}  // namespace
}  // namespace jali::backend::cpu
