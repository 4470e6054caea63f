// Negacyclic number-theoretic transforms over a vector class V (Cooley-Tukey down, Gentleman-Sande
// up, merged powers of psi, lazy reduction: D. Harvey, "Faster arithmetic for number-theoretic
// transforms", 2014).
//
// The butterfly tree: node 1 is the whole row, node i of length len has children 2i and 2i + 1 of
// length len / 2; its butterflies pair x[j] with x[j + len/2] under the twiddle psi^brv(i). A pass does
// kLogRadix levels in registers; passes go depth first, so that from kBlock words down everything
// stays in the L1 cache. The last log2(lanes) levels are done on lanes x lanes blocks, transposed in
// registers: lane l then holds row l of the block.
//
// Leaf table: for block b, level k < log2(lanes), s < 2^k: the `lanes` twiddles of the nodes
// ((n / lanes + b lanes + l) << k) + s, l = 0.., then their quotients.
//
// Ranges, L = V::kLazy: forward values in [0, 2Lq) between levels, inverse values in [0, Lq).
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cpu/inline.h"
#include "jali/backend/cpu/row_kernels.h"

namespace jali::backend::cpu {

template <class V>
struct Ntt {
  using T = typename V::T;
  using R = typename V::R;
  static constexpr std::size_t W = V::kLanes;
  static constexpr int kLogLanes = W == 1 ? 0 : W == 2 ? 1 : W == 4 ? 2 : W == 8 ? 3 : 4;
  static constexpr std::size_t kBlock = 16384 / sizeof(T);

  struct Mod {
    R q, lq;  // q, Lq
  };
  struct Scale {
    R sum, sum_quotient, difference, difference_quotient;
  };
  struct Row {  // one transform: tables and constants
    const T* twiddles;
    const T* leaves;
    std::size_t n;
    Mod mod;
    Scale scale;
  };

  JALI_INLINE static R reduce_once(R x, R m) { return V::reduce_once(x, m); }

  /// [0, 2Lq) -> [0, q) with full, [0, Lq) -> [0, q) without.
  template <bool full>
  JALI_INLINE static R canonical(R x, const Mod& m) {
    if constexpr (full) x = reduce_once(x, m.lq);
    if constexpr (V::kLazy == 4) x = reduce_once(x, V::add(m.q, m.q));
    return reduce_once(x, m.q);
  }

  /// x, y in [0, 2Lq) -> x + w y, x - w y in [0, 2Lq).
  JALI_INLINE static void forward(R& x, R& y, R w, R quotient, const Mod& m) {
    x = reduce_once(x, m.lq);
    const R t = V::mul_lazy(y, w, quotient, m.q);
    y = V::sub(V::add(x, m.lq), t);
    x = V::add(x, t);
  }
  /// x, y in [0, Lq) -> x + y, w (y - x) in [0, Lq); w the mirrored twiddle.
  JALI_INLINE static void inverse(R& x, R& y, R w, R quotient, const Mod& m) {
    const R t = V::add(V::sub(y, x), m.lq);
    x = reduce_once(V::add(x, y), m.lq);
    y = V::mul_lazy(t, w, quotient, m.q);
  }
  /// The same at the root with the factors of the scale, [0, Lq) -> [0, Lq).
  JALI_INLINE static void inverse_root(R& x, R& y, const Scale& s, const Mod& m) {
    const R t = V::add(V::sub(y, x), m.lq);
    x = V::mul_lazy(V::add(x, y), s.sum, s.sum_quotient, m.q);
    y = V::mul_lazy(t, s.difference, s.difference_quotient, m.q);
  }

  /// Levels of the next pass down when `levels` are left: kLogRadix, after one or two smaller ones.
  static constexpr int next_radix(int levels) {
    constexpr int r = V::kLogRadix;
    if (levels <= r) return levels;
    const int rest = levels % r;
    if (rest == 0) return r;
    return rest == 1 && r > 2 ? r - 1 : rest;
  }

  /// The twiddles of the nodes below one node, in registers or on the stack, level by level.
  template <int log_radix>
  struct Twiddles {
    R value[(1 << log_radix) - 1], quotient[(1 << log_radix) - 1];
    JALI_INLINE Twiddles(const T* twiddles, std::size_t i) {
#pragma GCC unroll 4
      for (int level = 0; level < log_radix; ++level) {
#pragma GCC unroll 8
        for (int k = 0; k < 1 << level; ++k) {
          const T* w = twiddles + 2 * ((i << level) + static_cast<std::size_t>(k));
          value[(1 << level) - 1 + k] = V::set1(w[0]);
          quotient[(1 << level) - 1 + k] = V::set1(w[1]);
        }
      }
    }
  };

  /// Levels level .. log_radix - 1 of the butterflies of one node on 2^log_radix registers.
  template <int log_radix, int level = 0>
  JALI_INLINE static void forward_levels(R* v, const Twiddles<log_radix>& w, const Mod& m) {
    constexpr int half = 1 << (log_radix - level - 1);
#pragma GCC unroll 8
    for (int k = 0; k < 1 << level; ++k) {
      const int node = (1 << level) - 1 + k;
#pragma GCC unroll 8
      for (int h = 0; h < half; ++h) {
        forward(v[2 * half * k + h], v[2 * half * k + half + h], w.value[node], w.quotient[node],
                m);
      }
    }
    if constexpr (level + 1 < log_radix) forward_levels<log_radix, level + 1>(v, w, m);
  }
  /// The same up, w the twiddles of the mirrored node; at the root with the scale.
  template <int log_radix, bool root, int level = log_radix - 1>
  JALI_INLINE static void inverse_levels(R* v, const Twiddles<log_radix>& w, const Row& row,
                                         const Mod& m) {
    constexpr int half = 1 << (log_radix - level - 1);
    constexpr int count = 1 << level;
#pragma GCC unroll 8
    for (int k = 0; k < count; ++k) {
      const int node = count - 1 + count - 1 - k;
#pragma GCC unroll 8
      for (int h = 0; h < half; ++h) {
        R& lo = v[2 * half * k + h];
        R& hi = v[2 * half * k + half + h];
        if constexpr (root && level == 0) {
          inverse_root(lo, hi, row.scale, m);
        } else {
          inverse(lo, hi, w.value[node], w.quotient[node], m);
        }
      }
    }
    if constexpr (level > 0) inverse_levels<log_radix, root, level - 1>(v, w, row, m);
  }

  template <int log_radix>
  static void forward_pass(T* dst, const T* src, std::size_t nodes, std::size_t len, std::size_t i0,
                           const Row& row, bool last) {
    constexpr std::size_t radix = std::size_t{1} << log_radix;
    const std::size_t stride = len >> log_radix;
    const Mod m = row.mod;
    for (std::size_t b = 0; b < nodes; ++b) {
      const Twiddles<log_radix> w(row.twiddles, i0 + b);
      T* d = dst + b * len;
      const T* s = src + b * len;
      for (std::size_t j = 0; j < stride; j += W) {
        R v[radix];
#pragma GCC unroll 16
        for (std::size_t k = 0; k < radix; ++k) v[k] = V::load(s + j + k * stride);
        forward_levels<log_radix>(v, w, m);
        if constexpr (W == 1) {
          if (last) {
            for (std::size_t k = 0; k < radix; ++k) v[k] = canonical<true>(v[k], m);
          }
        }
#pragma GCC unroll 16
        for (std::size_t k = 0; k < radix; ++k) V::store(d + j + k * stride, v[k]);
      }
    }
  }

  template <int log_radix, bool root>
  static void inverse_pass(T* x, std::size_t nodes, std::size_t len, std::size_t mirror0,
                           const Row& row) {
    constexpr std::size_t radix = std::size_t{1} << log_radix;
    const std::size_t stride = len >> log_radix;
    const Mod m = row.mod;
    for (std::size_t b = 0; b < nodes; ++b) {
      const Twiddles<log_radix> w(row.twiddles, mirror0 - b);
      T* d = x + b * len;
      for (std::size_t j = 0; j < stride; j += W) {
        R v[radix];
#pragma GCC unroll 16
        for (std::size_t k = 0; k < radix; ++k) v[k] = V::load(d + j + k * stride);
        inverse_levels<log_radix, root>(v, w, row, m);
#pragma GCC unroll 16
        for (std::size_t k = 0; k < radix; ++k) {
          V::store(d + j + k * stride, root ? canonical<false>(v[k], m) : v[k]);
        }
      }
    }
  }

  static void forward_pass(int log_radix, T* dst, const T* src, std::size_t nodes, std::size_t len,
                           std::size_t i0, const Row& row, bool last) {
    switch (log_radix) {
      case 1: return forward_pass<1>(dst, src, nodes, len, i0, row, last);
      case 2: return forward_pass<2>(dst, src, nodes, len, i0, row, last);
      case 3: return forward_pass<3>(dst, src, nodes, len, i0, row, last);
      default: return forward_pass<4>(dst, src, nodes, len, i0, row, last);
    }
  }
  template <bool root>
  static void inverse_pass(int log_radix, T* x, std::size_t nodes, std::size_t len,
                           std::size_t mirror0, const Row& row) {
    switch (log_radix) {
      case 1: return inverse_pass<1, root>(x, nodes, len, mirror0, row);
      case 2: return inverse_pass<2, root>(x, nodes, len, mirror0, row);
      case 3: return inverse_pass<3, root>(x, nodes, len, mirror0, row);
      default: return inverse_pass<4, root>(x, nodes, len, mirror0, row);
    }
  }

  /// Levels of a transposed block, w its part of the leaf table.
  template <int level = 0>
  JALI_INLINE static void forward_leaf(R* v, const T* w, const Mod& m) {
    constexpr std::size_t half = W >> (level + 1), count = std::size_t{1} << level;
#pragma GCC unroll 8
    for (std::size_t k = 0; k < count; ++k) {
      const T* node = w + 2 * W * (count - 1 + k);
      const R value = V::load(node), quotient = V::load(node + W);
#pragma GCC unroll 8
      for (std::size_t h = 0; h < half; ++h) {
        forward(v[2 * half * k + h], v[2 * half * k + half + h], value, quotient, m);
      }
    }
    if constexpr (level + 1 < kLogLanes) forward_leaf<level + 1>(v, w, m);
  }
  template <int level = kLogLanes - 1>
  JALI_INLINE static void inverse_leaf(R* v, const T* w, const Mod& m) {
    constexpr std::size_t half = W >> (level + 1), count = std::size_t{1} << level;
#pragma GCC unroll 8
    for (std::size_t k = 0; k < count; ++k) {
      const T* node = w + 2 * W * (count - 1 + count - 1 - k);
      const R value = V::load(node), quotient = V::load(node + W);
#pragma GCC unroll 8
      for (std::size_t h = 0; h < half; ++h) {
        inverse(v[2 * half * k + h], v[2 * half * k + half + h], value, quotient, m);
      }
    }
    if constexpr (level > 0) inverse_leaf<level - 1>(v, w, m);
  }

  /// The last levels of `blocks` blocks of lanes x lanes words; block is the index of the first.
  static void forward_leaves(T* x, std::size_t blocks, std::size_t block, const Row& row) {
    const Mod m = row.mod;
    const T* w = row.leaves + block * 2 * (W - 1) * W;
    for (std::size_t b = 0; b < blocks; ++b, x += W * W, w += 2 * (W - 1) * W) {
      R v[W];
#pragma GCC unroll 16
      for (std::size_t r = 0; r < W; ++r) v[r] = V::load(x + r * W);
      V::transpose(v);
      forward_leaf(v, w, m);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < W; ++r) v[r] = canonical<true>(v[r], m);
      V::transpose(v);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < W; ++r) V::store(x + r * W, v[r]);
    }
  }
  /// Rows enter in reverse order, so that lane l meets the mirrored twiddles in their stored order.
  static void inverse_leaves(T* dst, const T* src, std::size_t blocks, std::size_t block,
                             const Row& row) {
    const Mod m = row.mod;
    const std::size_t mirror = row.n / (W * W) - 1 - block;
    const T* w = row.leaves + mirror * 2 * (W - 1) * W;
    for (std::size_t b = 0; b < blocks; ++b) {
      R v[W];
#pragma GCC unroll 16
      for (std::size_t r = 0; r < W; ++r) v[r] = V::load(src + (W - 1 - r) * W);
      V::transpose(v);
      inverse_leaf(v, w, m);
      V::transpose(v);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < W; ++r) V::store(dst + (W - 1 - r) * W, v[r]);
      dst += W * W, src += W * W, w -= 2 * (W - 1) * W;
    }
  }

  static int log2(std::size_t x) { return 63 - __builtin_clzll(x); }

  static void forward_node(T* dst, const T* src, std::size_t len, std::size_t i, const Row& row) {
    if (len > kBlock) {
      const int r = next_radix(log2(len / kBlock));
      forward_pass(r, dst, src, 1, len, i, row, false);
      const std::size_t child = len >> r;
      for (std::size_t k = 0; k < std::size_t{1} << r; ++k) {
        forward_node(dst + k * child, dst + k * child, child, (i << r) + k, row);
      }
      return;
    }
    std::size_t nodes = 1, node_len = len, i0 = i;
    for (int levels = log2(len / W); levels > 0;) {
      const int r = next_radix(levels);
      levels -= r;
      forward_pass(r, dst, src, nodes, node_len, i0, row, W == 1 && levels == 0);
      src = dst;
      nodes <<= r, i0 <<= r, node_len >>= r;
    }
    if constexpr (W > 1) forward_leaves(dst, len / (W * W), (i0 - row.n / W) / W, row);
  }

  static void inverse_node(T* dst, const T* src, std::size_t len, std::size_t i, std::size_t mirror,
                           const Row& row) {
    if (len > kBlock) {
      const int r = next_radix(log2(len / kBlock));
      const std::size_t child = len >> r, count = std::size_t{1} << r;
      for (std::size_t k = 0; k < count; ++k) {
        inverse_node(dst + k * child, src + k * child, child, (i << r) + k,
                     (mirror << r) + count - 1 - k, row);
      }
      if (i == 1) {
        inverse_pass<true>(r, dst, 1, len, mirror, row);
      } else {
        inverse_pass<false>(r, dst, 1, len, mirror, row);
      }
      return;
    }
    // The radices of the forward passes, from the leaves up.
    int radices[20], passes = 0;
    for (int levels = log2(len / W); levels > 0; levels -= radices[passes++]) {
      radices[passes] = next_radix(levels);
    }
    std::size_t nodes = len / W, node_len = W, i0 = i * nodes, m0 = mirror * nodes + nodes - 1;
    if constexpr (W > 1) {
      inverse_leaves(dst, src, len / (W * W), (i0 - row.n / W) / W, row);
    } else if (dst != src) {
      for (std::size_t j = 0; j < len; ++j) dst[j] = src[j];
    }
    while (passes > 0) {
      const int r = radices[--passes];
      nodes >>= r, i0 >>= r, m0 >>= r, node_len <<= r;
      if (i0 == 1) {
        inverse_pass<true>(r, dst, nodes, node_len, m0, row);
      } else {
        inverse_pass<false>(r, dst, nodes, node_len, m0, row);
      }
    }
  }

  static Row make_row(const NttTable& table) {
    Row row{};
    row.twiddles = static_cast<const T*>(table.twiddles);
    row.leaves = static_cast<const T*>(table.leaves);
    row.n = table.n;
    row.mod = Mod{V::set1(table.prime->q), V::set1(V::kLazy * table.prime->q)};
    return row;
  }

  static void ntt(void* dst, const void* src, const NttTable& table) {
    forward_node(static_cast<T*>(dst), static_cast<const T*>(src), table.n, 1, make_row(table));
  }
  static void intt(void* dst, const void* src, const NttTable& table, const InttScale& scale) {
    Row row = make_row(table);
    row.scale = Scale{V::set1(scale.sum.value), V::set1(scale.sum.quotient),
                 V::set1(scale.difference.value), V::set1(scale.difference.quotient)};
    inverse_node(static_cast<T*>(dst), static_cast<const T*>(src), table.n, 1, 1, row);
  }
};

}  // namespace jali::backend::cpu
