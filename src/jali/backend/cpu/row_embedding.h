// The butterflies of the canonical embedding (backend/embedding.h), real and imaginary parts apart.
// Compiled once per instruction set, hence the anonymous namespace; bits are the same, as no
// operation is contracted.
#pragma once

#include <cstddef>
#include <type_traits>

#include "jali/backend/cpu/inline.h"
#include "jali/backend/cpu/row_kernels.h"

namespace jali::backend::cpu {
namespace {

/// Over vectors of `bytes` bytes, and one by one if halves are shorter.
template <std::size_t bytes>
struct EmbeddingRows {
  using Vector [[gnu::vector_size(bytes)]] = double;

  /// Parts of one vector of numbers.
  template <class V>
  struct Parts {
    V* re;
    V* im;
    Parts(double* r, double* i, std::size_t at)
        : re(reinterpret_cast<V*>(r + at)), im(reinterpret_cast<V*>(i + at)) {}
  };

  /// lo + w hi, lo - w hi.
  template <class V>
  JALI_INLINE static void forward_node(Parts<V> lo, Parts<V> hi, double w_re, double w_im,
                                       std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) {
      const V re = hi.re[k] * w_re - hi.im[k] * w_im, im = hi.re[k] * w_im + hi.im[k] * w_re;
      const V u = lo.re[k], v = lo.im[k];
      lo.re[k] = u + re, lo.im[k] = v + im;
      hi.re[k] = u - re, hi.im[k] = v - im;
    }
  }
  /// lo + hi, (lo - hi) w.
  template <class V>
  JALI_INLINE static void backward_node(Parts<V> lo, Parts<V> hi, double w_re, double w_im,
                                        std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) {
      const V re = lo.re[k] - hi.re[k], im = lo.im[k] - hi.im[k];
      lo.re[k] = lo.re[k] + hi.re[k], lo.im[k] = lo.im[k] + hi.im[k];
      hi.re[k] = re * w_re - im * w_im, hi.im[k] = re * w_im + im * w_re;
    }
  }

  /// count: vectors of a half, a number or a constant.
  template <class V, bool forwards, class Count>
  static void level(double* re, double* im, const double* twiddle, std::size_t nodes, Count count) {
    const std::size_t half = count * sizeof(V) / sizeof(double);
    for (std::size_t i = 0; i < nodes; ++i) {
      const Parts<V> lo(re, im, 2 * i * half), hi(re, im, (2 * i + 1) * half);
      const double w_re = twiddle[2 * (nodes + i)], w_im = twiddle[2 * (nodes + i) + 1];
      if constexpr (forwards) {
        forward_node<V>(lo, hi, w_re, w_im, count);
      } else {
        backward_node<V>(lo, hi, w_re, -w_im, count);
      }
    }
  }
  template <bool forwards>
  static void level(double* re, double* im, const double* twiddle, std::size_t nodes,
                    std::size_t half) {
    constexpr std::size_t kLanes = bytes / sizeof(double);
    if (half >= kLanes) {
      level<Vector, forwards>(re, im, twiddle, nodes, half / kLanes);
    } else if (half == 4) {
      level<double, forwards>(re, im, twiddle, nodes, std::integral_constant<std::size_t, 4>());
    } else if (half == 2) {
      level<double, forwards>(re, im, twiddle, nodes, std::integral_constant<std::size_t, 2>());
    } else {
      level<double, forwards>(re, im, twiddle, nodes, std::integral_constant<std::size_t, 1>());
    }
  }

  static void forward(double* re, double* im, const double* twiddle, std::size_t slots) {
    for (std::size_t m = 1; m < slots; m *= 2) level<true>(re, im, twiddle, m, slots / 2 / m);
  }
  static void backward(double* re, double* im, const double* twiddle, std::size_t slots) {
    for (std::size_t m = slots / 2; m >= 1; m /= 2) {
      level<false>(re, im, twiddle, m, slots / 2 / m);
    }
  }

  /// The kernels with these among them.
  static RowKernels in(RowKernels kernels) {
    kernels.embedding_forward = forward;
    kernels.embedding_backward = backward;
    return kernels;
  }
};

}  // namespace
}  // namespace jali::backend::cpu
