// A step of a blind rotation over a vector class V: digits of the accumulator, their transforms,
// products with the key, and the way back.
//
// Range. With digits of at most 2^(g-1) and key words of at most 2^63, a coefficient of the product
// is at most P N 2^(g-1) 2^63. Keys hold the factor 2^-64 / n, so that results are numbers on the
// torus of at most P N 2^(g-2) <= 2^51, of which the integer part is dropped.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cpu/inline.h"
#include "jali/backend/cpu/tfhe_fft_impl.h"
#include "jali/backend/cpu/tfhe_kernels.h"

namespace jali::backend::cpu {
namespace {

template <class V>
struct RotationRows {
  using D = typename V::D;
  using U = typename V::U;
  using C = Complex<V>;
  using F = Fourier<V>;
  static constexpr std::size_t L = V::kLanes;
  static constexpr std::size_t kQuad = L == 8 ? 4 : 2;
  static constexpr std::size_t kPair = 2 * L;  // doubles of a complex vector

  /// X^e p, read by `count` rows of `size` words, powers of two, from a padded polynomial. Of row
  /// r, the words from `turn` on come from one place, those before it from another: `late` says
  /// which.
  template <std::size_t count>
  struct Rotated {
    const std::uint64_t* p;
    std::size_t size, quotient, turn;
    Rotated(const std::uint64_t* polynomial, std::size_t e, std::size_t row_size)
        : p(polynomial), size(row_size), quotient(e / row_size), turn(e % row_size) {}
    /// The source of word i of row r is at the result + i.
    const std::uint64_t* row(std::size_t r, bool late, typename V::Sign& sign) const {
      const std::size_t from = r - quotient - (late ? 0 : 1);  // modulo 2 count: X^N = -1
      sign = V::sign((from & count) != 0);
      return p + (from & (count - 1)) * size - turn + (late ? 0 : size);
    }
  };

  /// The digits of one level, made as the first pass of their transform reads them.
  template <int R, bool difference>
  static void first_pass(const RotationStep& s, double* out, const std::uint64_t* p, std::size_t e,
                         KeyAhead& ahead) {
    const std::size_t n = s.plan->n, m = n / R;
    const double* const twiddles = s.plan->passes[0].twiddles;
    const Rotated<2 * R> rotated(p, e, m);
    const int shift = s.rule->shift;
    const U magic = V::set1(std::uint64_t{0x4330000000000000}), addend = V::set1(s.rule->addend);
    const D offset = V::set1(0x1p52 + static_cast<double>(s.rule->offset));
    for (const bool late : {false, true}) {
      const std::uint64_t* source[2 * R];
      typename V::Sign sign[2 * R];
      for (std::size_t r = 0; r < 2 * R; ++r) source[r] = rotated.row(r, late, sign[r]);
      const std::size_t middle = (rotated.turn + L - 1) / L * L;
      for (std::size_t i = late ? middle : 0; i < (late ? m : middle); i += L) {
        const auto digit = [&](std::size_t r) __attribute__((always_inline)) {
          U x;
          if constexpr (difference) {
            x = V::difference(V::load(source[r] + i), sign[r], V::load(p + r * m + i), addend);
          } else {
            x = V::load(p + r * m + i) + addend;
          }
          return V::as_double((x >> shift) | magic) - offset;
        };
        C x[R];
#pragma GCC unroll 8
        for (std::size_t j = 0; j < R; ++j) x[j] = {digit(j), digit(R + j)};
        F::template twist<R>(x, twiddles);
        F::template dft<R>(x);
#pragma GCC unroll 8
        for (std::size_t j = 0; j < R; ++j) F::store(out + 2 * (j * m + i), x[j]);
        ahead.fetch();
      }
    }
  }

  /// Words of (X^e - 1) p, or of p.
  template <bool difference, class Body>
  JALI_INLINE static void for_words(const std::uint64_t* p, std::size_t e, std::size_t n,
                                    const Body& body) {
    const Rotated<2> rotated(p, e, n);
    for (const bool late : {false, true}) {
      typename V::Sign sign[2];
      const std::uint64_t* const source[2] = {rotated.row(0, late, sign[0]),
                                              rotated.row(1, late, sign[1])};
      const std::size_t middle = (rotated.turn + L - 1) / L * L;
      for (std::size_t i = late ? middle : 0; i < (late ? n : middle); i += L) {
        U x[2];
#pragma GCC unroll 2
        for (int part = 0; part < 2; ++part) {
          x[part] = V::load(p + part * n + i);
          if constexpr (difference) {
            x[part] = V::difference(V::load(source[part] + i), sign[part], x[part], U{});
          }
        }
        body(i, x);
      }
    }
  }

  /// All digits of a polynomial, level after level, if doubles hold them together.
  template <bool difference>
  static void digits(const RotationStep& s, double* out, const std::uint64_t* p, std::size_t e) {
    const std::size_t n = s.plan->n, stride = 2 * n;
    const DigitRule& rule = *s.rule;
    const int levels = rule.levels, shift = rule.shift;
    const U magic = V::set1(std::uint64_t{0x4330000000000000}), addend = V::set1(rule.addend);
    const D offset = V::set1(0x1p52 + static_cast<double>(rule.offset));
    const D base = V::set1(static_cast<double>(std::uint64_t{1} << rule.base_log));
    const D inverse = V::set1(1 / static_cast<double>(std::uint64_t{1} << rule.base_log));
    const D even = V::set1(0x1.8p52);
    for_words<difference>(
        p, e, n, [&](std::size_t i, const U(&x)[2]) __attribute__((always_inline)) {
          D u[2];
#pragma GCC unroll 2
          for (int part = 0; part < 2; ++part) {
            u[part] = V::as_double(((x[part] + addend) >> shift) | magic) - offset;
          }
          for (int j = levels - 1; j > 0; --j) {
            double* const at = out + static_cast<std::size_t>(j) * stride + 2 * i;
#pragma GCC unroll 2
            for (int part = 0; part < 2; ++part) {
              const D quotient = V::fma(u[part], inverse, even) - even;
              V::store(at + static_cast<std::size_t>(part) * L, V::fnma(quotient, base, u[part]));
              u[part] = quotient;
            }
          }
          F::store(out + 2 * i, {u[0], u[1]});
        });
  }
  /// The same for gadgets whose levels together have more than 52 bits.
  template <bool difference>
  static void long_digits(const RotationStep& s, double* out, const std::uint64_t* p,
                          std::size_t e) {
    const std::size_t n = s.plan->n, stride = 2 * n;
    const DigitRule& rule = *s.rule;
    const int levels = rule.levels, g = rule.base_log;
    const std::uint64_t half = std::uint64_t{1} << (g - 1);
    const U mask = V::set1(2 * half - 1), below = V::set1(half - 1),
            one = V::set1(std::uint64_t{1});
    const U center = V::set1(std::uint64_t{1} << 32);
    const D uncenter = V::set1(0x1p32);
    for_words<difference>(p, e, n, [&](std::size_t i, const U(&x)[2]) {
      for (int part = 0; part < 2; ++part) {
        U u = (x[part] + V::set1(rule.half_unit)) >> rule.shift;
        // The rounding may carry out of l g bits if that is less than 64; digit 1 takes only g of
        // them.
        for (int j = levels - 1; j >= 0; --j) {
          const U r = u & mask;
          u = u >> g;
          const U above = j > 0 ? u & one : V::set1(std::uint64_t{0});
          const U carry = (r + below + above) >> g;
          const D d = V::from_small(r - (carry << g) + center) - uncenter;
          V::store(out + static_cast<std::size_t>(j) * stride + 2 * i +
                       static_cast<std::size_t>(part) * L,
                   d);
          u = u + carry;
        }
      }
    });
  }

  /// The upper passes of the transforms of all digits.
  template <bool difference>
  static void digit_transforms(const RotationStep& s, KeyAhead& ahead) {
    const std::size_t n = s.plan->n, stride = acc_stride(2 * n);
    const auto levels = static_cast<std::size_t>(s.rule->levels);
    const std::size_t e = difference ? s.exponents[0] : 0;
    const FourierPlan::Pass& first = s.plan->passes[0];
    for (std::size_t row = 0; row < s.rows; ++row) {
      const std::uint64_t* const p = s.acc + row * stride;
      double* const out = s.digits + row * levels * 2 * n;
      if (levels == 1) {
        if (first.log_radix == 2) {
          first_pass<4, difference>(s, out, p, e, ahead);
        } else if constexpr (V::kLogRadix >= 3) {
          first_pass<8, difference>(s, out, p, e, ahead);
        }
        F::forward_rest(out, *s.plan, ahead);
        continue;
      }
      if (s.rule->in_doubles()) {
        digits<difference>(s, out, p, e);
      } else {
        long_digits<difference>(s, out, p, e);
      }
      for (std::size_t j = 0; j < levels; ++j) {
        F::template run_pass<false>(out + j * 2 * n, first, n, 0, 1, ahead);
        F::forward_rest(out + j * 2 * n, *s.plan, ahead);
      }
    }
  }

  /// y[o][p] = sum_c digit[c][p] key[c][o][p], or a factor of it added, for O outputs that stand
  /// one after the other, in the order of KeyPlace. factor: of each child.
  template <int O, bool with_factors>
  JALI_INLINE static const double* products(double* y, const double* tile, const double* key,
                                            std::size_t count, const C* factor, bool first,
                                            KeyAhead& ahead) {
#pragma GCC unroll 2
    for (std::size_t p = 0; p < L; p += kQuad) {
      C sum[O][kQuad];
#pragma GCC unroll 2
      for (int o = 0; o < O; ++o) {
#pragma GCC unroll 4
        for (std::size_t q = 0; q < kQuad; ++q) sum[o][q] = {D{}, D{}};
      }
      for (std::size_t c = 0; c < count; ++c) {
        const double* const digit = tile + (c * L + p) * kPair;
#pragma GCC unroll 4
        for (std::size_t q = 0; q < kQuad; ++q) {
          const C d = F::load(digit + q * kPair);
#pragma GCC unroll 2
          for (int o = 0; o < O; ++o) {
            const C k = F::load(key + (static_cast<std::size_t>(o) * kQuad + q) * kPair);
            C& t = sum[o][q];
            t.re = V::fnma(d.im, k.im, V::fma(d.re, k.re, t.re));
            t.im = V::fma(d.im, k.re, V::fma(d.re, k.im, t.im));
          }
        }
        key += O * kQuad * kPair;
        if (p == 0) ahead.fetch();
      }
#pragma GCC unroll 2
      for (int o = 0; o < O; ++o) {
#pragma GCC unroll 4
        for (std::size_t q = 0; q < kQuad; ++q) {
          double* const at = y + (static_cast<std::size_t>(o) * L + p + q) * kPair;
          C t = sum[o][q];
          if constexpr (with_factors) {
            t = t * factor[p + q];
            if (!first) t = t + F::load(at);
          }
          F::store(at, t);
        }
      }
    }
    return key;
  }

  template <bool with_factors>
  JALI_INLINE static const double* all_products(const RotationStep& s, double* y, const double* key,
                                                std::size_t count, const C* factor, bool first,
                                                KeyAhead& ahead) {
    std::size_t row = 0;
    for (; row + 1 < s.rows; row += 2) {
      key =
          products<2, with_factors>(y + row * L * kPair, s.tiles, key, count, factor, first, ahead);
    }
    if (row < s.rows) {
      key =
          products<1, with_factors>(y + row * L * kPair, s.tiles, key, count, factor, first, ahead);
    }
    return key;
  }

  /// zeta^(e lane_exponents[t]), t < L
  static C lane_roots(const FourierPlan& plan, std::uint32_t e) {
    const std::uint32_t mask = static_cast<std::uint32_t>(4 * plan.n) - 1;
    C out;
    for (std::size_t t = 0; t < L; ++t) {
      const double* const root = plan.roots + 2 * ((e * plan.lane_exponents[t]) & mask);
      out.re[t] = root[0], out.im[t] = root[1];
    }
    return out;
  }

  /// The lowest passes down, the products, and the lowest pass up, group by group.
  static void middle(const RotationStep& s, KeyAhead& ahead) {
    const FourierPlan& plan = *s.plan;
    const std::size_t n = plan.n;
    const std::size_t count = s.rows * static_cast<std::size_t>(s.rule->levels);
    double* const y = s.tiles + count * L * kPair;
    const double* key = s.key;
    const std::size_t unit = s.rows * count * L * kPair;
    const std::uint32_t mask = static_cast<std::uint32_t>(4 * n) - 1;
    constexpr std::size_t kMaxUnits = 16;
    C lanes[kMaxUnits];
    if (!s.classic) {
      for (std::size_t u = 0; u < s.units; ++u) lanes[u] = lane_roots(plan, s.exponents[u]);
    }
    for (std::size_t g = 0; g < plan.groups; ++g) {
      const double* const twiddles = F::leaf_twiddles(plan, g);
      for (std::size_t c = 0; c < count; ++c) {
        F::forward_leaf(s.tiles + c * L * kPair, s.digits + c * 2 * n + g * L * kPair, twiddles);
        ahead.fetch();
      }
      if (s.classic) {
        key = all_products<false>(s, y, key, count, nullptr, true, ahead);
      } else {
        bool first = true;
        for (std::size_t u = 0; u < s.units; ++u, key += unit) {
          const std::uint32_t e = s.exponents[u];
          if (e == 0) continue;
          C factor[L];
          for (std::size_t p = 0; p < L; ++p) {
            factor[p] =
                lanes[u] * F::broadcast(plan.roots + 2 * ((e * plan.exponents[g * L + p]) & mask));
            factor[p].re = factor[p].re - V::set1(1.0);
          }
          all_products<true>(s, y, key, count, factor, first, ahead);
          first = false;
        }
      }
      for (std::size_t row = 0; row < s.rows; ++row) {
        F::inverse_leaf(s.sums + row * 2 * n + g * L * kPair, y + row * L * kPair, twiddles);
        ahead.fetch();
      }
    }
  }

  /// The last pass up, and acc += the results.
  template <int R>
  static void last_pass(const RotationStep& s, std::uint64_t* p, const double* sums,
                        KeyAhead& ahead) {
    const std::size_t n = s.plan->n, m = n / R;
    const double* const twiddles = s.plan->passes[0].twiddles;
    for (std::size_t i = 0; i < m; i += L) {
      C x[R];
#pragma GCC unroll 8
      for (std::size_t j = 0; j < R; ++j) x[j] = F::load(sums + 2 * (j * m + i));
      F::template inverse_dft<R>(x);
      F::template untwist<R>(x, twiddles);
#pragma GCC unroll 8
      for (std::size_t j = 0; j < R; ++j) {
        std::uint64_t* const re = p + j * m + i;
        std::uint64_t* const im = re + n;
        V::store(re, V::load(re) + V::torus_word(x[j].re));
        V::store(im, V::load(im) + V::torus_word(x[j].im));
      }
      ahead.fetch();
    }
    pad(p, 2 * n);
  }

  static void step(const RotationStep& s) {
    bool moves = false;
    for (std::size_t u = 0; u < s.units; ++u) moves = moves || s.exponents[u] != 0;
    if (!moves) return;
    const std::size_t n = s.plan->n, stride = acc_stride(2 * n);
    KeyAhead ahead = s.ahead;
    if (s.classic) {
      digit_transforms<true>(s, ahead);
    } else {
      digit_transforms<false>(s, ahead);
    }
    middle(s, ahead);
    for (std::size_t row = 0; row < s.rows; ++row) {
      double* const sums = s.sums + row * 2 * n;
      F::inverse_rest(sums, *s.plan, ahead);
      if (s.plan->passes[0].log_radix == 2) {
        last_pass<4>(s, s.acc + row * stride, sums, ahead);
      } else if constexpr (V::kLogRadix >= 3) {
        last_pass<8>(s, s.acc + row * stride, sums, ahead);
      }
    }
  }
};

}  // namespace
}  // namespace jali::backend::cpu
