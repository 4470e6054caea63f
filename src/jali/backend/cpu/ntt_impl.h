// Negacyclic number-theoretic transforms over a vector class V (Cooley-Tukey down, Gentleman-Sande
// up, merged powers of psi, lazy reduction: D. Harvey, "Faster arithmetic for number-theoretic
// transforms", 2014).
//
// The butterfly tree: node 1 is the whole row, node i of length len has children 2i and 2i + 1 of
// length len / 2; its butterflies pair x[j] with x[j + len/2] under the twiddle psi^brv(i). A pass
// does kLogRadix levels in registers; passes go depth first, so that from kBlock words down
// everything stays in the L1 cache. The last log2(lanes) levels are done on lanes x lanes blocks,
// transposed in registers: lane l then holds row l of the block.
//
// Leaf tables: with L = log2 n, lanes = 2^w and t_b = psi^(1 + 2 brv(b)), node l of block b has at
// level k < w and s < 2^k the twiddle t_b^(2^(w-1-k)) omega, omega = psi^(2^(L-k-w) brv(l) +
// 2^(L-k) brv(s)). The powers of t_b are taken out by X = t_b Z: word j of each row of the block is
// multiplied by t_b^j before, and omega is the same for all blocks. So memory holds a vector of
// powers a block (and its quotients) in place of lanes - 1.
//
// Packed rows: the limbs of a digit as the first pass of a transform of radix r asks for them. For
// each `lanes` columns in turn, for each limb, `lanes` words of each of the r places n / r apart: a
// sum over the limbs walks through memory in order, where rows would compete for the same sets of
// the caches.
//
// Butterflies and ranges, L = V::kLazy, products with a twiddle in [0, Lq):
//   forward, x, y in [0, 2Lq): x reduced to [0, Lq), then x + w y and x - w y + Lq in [0, 2Lq);
//   inverse, x, y in [0, Lq):  x + y reduced to [0, Lq), w (y - x + Lq) in [0, Lq), w mirrored.
// The omegas of the inverse are tables of their own, in mirrored order too: -1 / omega.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cpu/inline.h"
#include "jali/backend/cpu/row_kernels.h"

namespace jali::backend::cpu {

/// Rows that the caller will need next, fetched into the L2 cache line by line while the
/// butterflies keep the multipliers busy. A chunk of each stream, in step.
struct Prefetch {
  static constexpr std::size_t kMaxStreams = 16;
  const char* stream[kMaxStreams];
  std::size_t streams = 0;
  std::size_t bytes = 0;  // of a chunk
  std::size_t offset = 0;
  JALI_INLINE void step() {
    if (offset >= bytes) return;
    for (std::size_t i = 0; i < streams; ++i) {
      __builtin_prefetch(stream[i] + offset, 0, 2);
      __builtin_prefetch(stream[i] + offset + 64, 0, 2);
    }
    offset += 128;
  }
};

template <class V>
struct Ntt {
  using T = typename V::T;
  using R = typename V::R;
  static constexpr std::size_t W = V::kLanes;
  static constexpr std::ptrdiff_t kW = V::kLanes;
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
    const T* omegas;  // of the direction
    const T* twists;
    std::size_t n;
    Mod mod;
    Scale scale;
    Prefetch* prefetch;  // may be null
  };

  /// Where the first pass takes its input from: memory, or values made on the way, in [0, 2Lq).
  /// Fills v with the vectors at `at`, `at` + stride, ..
  struct FromMemory {
    const T* src;
    template <int count>
    JALI_INLINE void fill(R (&v)[count], std::size_t at, std::size_t stride) const {
#pragma GCC unroll 16
      for (int k = 0; k < count; ++k) v[k] = V::load(src + at + k * stride);
    }
  };

  /// Where the last pass of the inverse puts its results.
  struct ToMemory {
    T* dst;
    template <int count>
    JALI_INLINE void put(const R (&v)[count], std::size_t at, std::size_t stride) const {
#pragma GCC unroll 16
      for (int k = 0; k < count; ++k) V::store(dst + at + k * stride, v[k]);
    }
  };
  /// One limb of a digit's packed rows.
  struct ToPacked {
    T* dst;  // of the limb in the first columns
    std::size_t limbs;  // of the digit
    template <int count>
    JALI_INLINE void put(const R (&v)[count], std::size_t at, std::size_t) const {
      T* to = dst + at * limbs * count;
#pragma GCC unroll 16
      for (int k = 0; k < count; ++k) V::store(to + k * kW, v[k]);
    }
  };

  JALI_INLINE static R reduce_once(R x, R m) { return V::reduce_once(x, m); }

  /// [0, 2Lq) -> [0, q) with full, [0, Lq) -> [0, q) without.
  template <bool full>
  JALI_INLINE static R canonical(R x, const Mod& m) {
    if constexpr (full) x = reduce_once(x, m.lq);
    if constexpr (V::kLazy == 4) x = reduce_once(x, V::add(m.q, m.q));
    return reduce_once(x, m.q);
  }

  /// Levels of the next pass down when `levels` are left: kLogRadix as long as at least 2 remain.
  static constexpr int next_radix(int levels) {
    constexpr int r = V::kLogRadix;
    if (levels <= r) return levels;
    return levels == r + 1 && r > 2 ? r - 1 : r;
  }

  /// The twiddles of the nodes below one node, in registers or on the stack, level by level.
  template <int log_radix>
  struct Twiddles {
    static constexpr int kNodes = (1 << log_radix) - 1;
    R value[kNodes], quotient[kNodes];
    JALI_INLINE Twiddles(const T* twiddles, std::size_t i) {
#pragma GCC unroll 8
      for (int node = 0; node < kNodes; ++node) {
        const int level = 31 - __builtin_clz(static_cast<unsigned>(node + 1));
        const T* w =
            twiddles + 2 * ((i << level) + static_cast<std::size_t>(node + 1 - (1 << level)));
        value[node] = V::set1(w[0]);
        quotient[node] = V::set1(w[1]);
      }
    }
  };
  /// All groups belong to one node.
  template <int log_radix>
  struct SharedTwiddles {
    Twiddles<log_radix> w;
    JALI_INLINE R value(int, int node) const { return w.value[node]; }
    JALI_INLINE R quotient(int, int node) const { return w.quotient[node]; }
  };
  /// Each group has a node of its own; there are one or two.
  template <int log_radix>
  struct OwnTwiddles {
    Twiddles<log_radix> first, last;
    JALI_INLINE OwnTwiddles(const T* twiddles, std::size_t i, std::size_t j)
        : first(twiddles, i), last(twiddles, j) {}
    JALI_INLINE R value(int g, int node) const {
      return g == 0 ? first.value[node] : last.value[node];
    }
    JALI_INLINE R quotient(int g, int node) const {
      return g == 0 ? first.quotient[node] : last.quotient[node];
    }
  };
  /// The twiddles of transposed blocks, as vectors.
  struct LeafTwiddles {
    const T* w;
    JALI_INLINE R value(int, int node) const { return V::load(w + 2 * node * kW); }
    JALI_INLINE R quotient(int, int node) const { return V::load(w + (2 * node + 1) * kW); }
  };

  // Butterflies are done level by level on G independent groups at once, and a level step by step,
  // not butterfly by butterfly: the chain through a butterfly is longer than the work on it, and
  // the schedulers of the machine are too short to look past many waiting instructions.

  /// Levels level .. log_radix - 1 of the nodes of G groups of 2^log_radix registers. w(g, node)
  /// gives value and quotient of the twiddle of group g. reduced: the inputs are in [0, Lq).
  template <int G, int log_radix, bool reduced, class Lookup, int level = 0>
  JALI_INLINE static void forward_levels(R (*v)[1 << log_radix], const Lookup& w, const Mod& m) {
    constexpr int half = 1 << (log_radix - level - 1);
    constexpr int all = 1 << (log_radix - 1);
    R t[G][all];
#pragma GCC unroll 8
    for (int i = 0; i < all; ++i) {
      const int k = i / half, at = 2 * half * k + i % half, node = (1 << level) - 1 + k;
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) t[g][i] = V::mul_high(v[g][at + half], w.quotient(g, node));
    }
#pragma GCC unroll 8
    for (int i = 0; i < all; ++i) {
      const int k = i / half, at = 2 * half * k + i % half, node = (1 << level) - 1 + k;
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) {
        if constexpr (!reduced) v[g][at] = reduce_once(v[g][at], m.lq);
        t[g][i] = V::mul_low(v[g][at + half], w.value(g, node), t[g][i], m.q);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < all; ++i) {
      const int k = i / half, at = 2 * half * k + i % half;
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) {
        v[g][at + half] = V::sub(V::add(v[g][at], m.lq), t[g][i]);
        v[g][at] = V::add(v[g][at], t[g][i]);
      }
    }
    if constexpr (level + 1 < log_radix) {
      forward_levels<G, log_radix, false, Lookup, level + 1>(v, w, m);
    }
  }

  /// The same up, w the twiddles of the mirrored nodes; at the root with the scale. reduced: the
  /// inputs are in [0, q).
  template <int G, int log_radix, bool root, bool reduced, class Lookup, int level = log_radix - 1>
  JALI_INLINE static void inverse_levels(R (*v)[1 << log_radix], const Lookup& w, const Row& row,
                                         const Mod& m) {
    constexpr int half = 1 << (log_radix - level - 1);
    constexpr int all = 1 << (log_radix - 1);
    constexpr int count = 1 << level;
    R t[G][all];
#pragma GCC unroll 8
    for (int i = 0; i < all; ++i) {
      const int k = i / half, at = 2 * half * k + i % half, node = 2 * (count - 1) - k;
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) {
        const R difference = V::add(V::sub(v[g][at + half], v[g][at]), m.lq);
        v[g][at] = V::add(v[g][at], v[g][at + half]);
        v[g][at + half] = difference;
        if constexpr (root && level == 0) {
          t[g][i] = V::mul_high(difference, row.scale.difference_quotient);
        } else {
          t[g][i] = V::mul_high(difference, w.quotient(g, node));
        }
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < all; ++i) {
      const int k = i / half, at = 2 * half * k + i % half, node = 2 * (count - 1) - k;
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) {
        if constexpr (root && level == 0) {
          v[g][at] = V::mul_lazy(v[g][at], row.scale.sum, row.scale.sum_quotient, m.q);
          v[g][at + half] = V::mul_low(v[g][at + half], row.scale.difference, t[g][i], m.q);
        } else {
          if constexpr (!reduced) v[g][at] = reduce_once(v[g][at], m.lq);
          v[g][at + half] = V::mul_low(v[g][at + half], w.value(g, node), t[g][i], m.q);
        }
      }
    }
    if constexpr (level > 0) {
      inverse_levels<G, log_radix, root, false, Lookup, level - 1>(v, w, row, m);
    }
  }

  /// Calls body(first offset, offset between groups, twiddles) for all groups of a pass over
  /// `nodes` nodes of length len: groups lie side by side in a node if it is wide enough, else
  /// in neighbouring nodes. tree(b) is the node index of the twiddles of node b.
  template <int log_radix, class Tree, class Body>
  JALI_INLINE static void for_groups(std::size_t nodes, std::size_t len, const T* twiddles,
                                     const Tree& tree, const Body& body) {
    constexpr int G = V::kGroups;
    const std::size_t stride = len >> log_radix;
    if (G == 1 || stride >= G * W) {
      for (std::size_t b = 0; b < nodes; ++b) {
        const SharedTwiddles<log_radix> w{{twiddles, tree(b)}};
        for (std::size_t j = 0; j < stride; j += G * W) body(b * len + j, W, w);
      }
    } else {
      for (std::size_t b = 0; b < nodes; b += G) {
        const OwnTwiddles<log_radix> w(twiddles, tree(b), tree(b + G - 1));
        for (std::size_t j = 0; j < stride; j += W) body(b * len + j, len, w);
      }
    }
  }

  template <int log_radix, class Source>
  static void forward_pass(T* dst, const Source& src, std::size_t nodes, std::size_t len,
                           std::size_t i0, const Row& row, bool last) {
    constexpr int G = V::kGroups, radix = 1 << log_radix;
    const std::size_t stride = len >> log_radix;
    const Mod m = row.mod;
    for_groups<log_radix>(
        nodes, len, row.twiddles, [i0](std::size_t b) { return i0 + b; },
        [&](std::size_t at, std::size_t step, const auto& w) __attribute__((always_inline)) {
          if (row.prefetch != nullptr) row.prefetch->step();
          R v[G][radix];
#pragma GCC unroll 2
          for (int g = 0; g < G; ++g) src.fill(v[g], at + g * step, stride);
          forward_levels<G, log_radix, false>(v, w, m);
          if constexpr (W == 1) {
            if (last) {
              for (int k = 0; k < radix; ++k) v[0][k] = canonical<true>(v[0][k], m);
            }
          }
#pragma GCC unroll 16
          for (int k = 0; k < radix; ++k) {
#pragma GCC unroll 2
            for (int g = 0; g < G; ++g) V::store(dst + at + g * step + k * stride, v[g][k]);
          }
        });
  }

  template <int log_radix, bool root, class Sink>
  static void inverse_pass(const T* x, const Sink& sink, std::size_t nodes, std::size_t len,
                           std::size_t mirror0, const Row& row) {
    constexpr int G = V::kGroups, radix = 1 << log_radix;
    const std::size_t stride = len >> log_radix;
    const Mod m = row.mod;
    for_groups<log_radix>(
        nodes, len, row.twiddles, [mirror0](std::size_t b) { return mirror0 - b; },
        [&](std::size_t at, std::size_t step, const auto& w) __attribute__((always_inline)) {
          R v[G][radix];
#pragma GCC unroll 16
          for (int k = 0; k < radix; ++k) {
#pragma GCC unroll 2
            for (int g = 0; g < G; ++g) v[g][k] = V::load(x + at + g * step + k * stride);
          }
          inverse_levels<G, log_radix, root, false>(v, w, row, m);
          if constexpr (root) {
#pragma GCC unroll 2
            for (int g = 0; g < G; ++g) {
#pragma GCC unroll 16
              for (int k = 0; k < radix; ++k) v[g][k] = canonical<false>(v[g][k], m);
            }
          }
#pragma GCC unroll 2
          for (int g = 0; g < G; ++g) sink.put(v[g], at + g * step, stride);
        });
  }

  template <class Source>
  static void forward_pass(int log_radix, T* dst, const Source& src, std::size_t nodes,
                           std::size_t len, std::size_t i0, const Row& row, bool last) {
    switch (log_radix) {
      case 1: return forward_pass<1>(dst, src, nodes, len, i0, row, last);
      case 2: return forward_pass<2>(dst, src, nodes, len, i0, row, last);
      default: return forward_pass<3>(dst, src, nodes, len, i0, row, last);
    }
  }
  template <bool root, class Sink>
  static void inverse_pass(int log_radix, const T* x, const Sink& sink, std::size_t nodes,
                           std::size_t len, std::size_t mirror0, const Row& row) {
    switch (log_radix) {
      case 1: return inverse_pass<1, root>(x, sink, nodes, len, mirror0, row);
      case 2: return inverse_pass<2, root>(x, sink, nodes, len, mirror0, row);
      default: return inverse_pass<3, root>(x, sink, nodes, len, mirror0, row);
    }
  }

  /// Words of the twist of a block.
  static constexpr std::size_t kTwist = 2 * W;

  /// The last levels of `blocks` blocks of lanes x lanes words; block is the index of the first.
  static void forward_leaves(T* x, std::size_t blocks, std::size_t block, const Row& row) {
    const Mod m = row.mod;
    constexpr int G = V::kLeafGroups;
    const LeafTwiddles w{row.omegas};
    const T* twist = row.twists + block * kTwist;
    for (std::size_t b = 0; b < blocks; b += G, x += G * W * W, twist += G * kTwist) {
      R v[G][W];
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) {
        const R power = V::load(twist + g * kTwist), quotient = V::load(twist + g * kTwist + W);
#pragma GCC unroll 16
        for (std::size_t r = 0; r < W; ++r) {
          v[g][r] = V::mul_lazy(V::load(x + (g * W + r) * W), power, quotient, m.q);
        }
        V::transpose(v[g]);
      }
      forward_levels<G, kLogLanes, true>(v, w, m);
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) {
#pragma GCC unroll 16
        for (std::size_t r = 0; r < W; ++r) v[g][r] = canonical<true>(v[g][r], m);
        V::transpose(v[g]);
#pragma GCC unroll 16
        for (std::size_t r = 0; r < W; ++r) V::store(x + (g * W + r) * W, v[g][r]);
      }
    }
  }
  static void inverse_leaves(T* dst, const T* src, std::size_t blocks, std::size_t block,
                             const Row& row) {
    const Mod m = row.mod;
    constexpr int G = V::kLeafGroups;
    const LeafTwiddles w{row.omegas};
    const T* twist = row.twists + block * kTwist;
    for (std::size_t b = 0; b < blocks; b += G, twist += G * kTwist) {
      R v[G][W];
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) {
#pragma GCC unroll 16
        for (std::size_t r = 0; r < W; ++r) v[g][r] = V::load(src + (g * W + r) * W);
        V::transpose(v[g]);
      }
      inverse_levels<G, kLogLanes, false, true>(v, w, row, m);  // from [0, q)
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) {
        const R power = V::load(twist + g * kTwist), quotient = V::load(twist + g * kTwist + W);
        V::transpose(v[g]);
#pragma GCC unroll 16
        for (std::size_t r = 0; r < W; ++r) {
          V::store(dst + (g * W + r) * W, V::mul_lazy(v[g][r], power, quotient, m.q));
        }
      }
      dst += G * W * W, src += G * W * W;
    }
  }

  static int log2(std::size_t x) { return 63 - __builtin_clzll(x); }

  template <class Source>
  static void forward_node(T* dst, const Source& src, std::size_t len, std::size_t i,
                           const Row& row) {
    const int r = first_radix(len);
    forward_pass(r, dst, src, 1, len, i, row, W == 1 && log2(len) == r);
    forward_rest(dst, len, i, r, row);
  }
  /// What follows the first pass, of radix 2^r, of the node i.
  static void forward_rest(T* dst, std::size_t len, std::size_t i, int r, const Row& row) {
    if (len > kBlock) {
      const std::size_t child = len >> r;
      for (std::size_t k = 0; k < std::size_t{1} << r; ++k) {
        T* x = dst + k * child;
        forward_node(x, FromMemory{x}, child, (i << r) + k, row);
      }
      return;
    }
    std::size_t nodes = 1;
    for (int levels = log2(len / W); (levels -= r) > 0;) {
      nodes <<= r, i <<= r, len >>= r;
      r = next_radix(levels);
      forward_pass(r, dst, FromMemory{dst}, nodes, len, i, row, W == 1 && levels == r);
    }
    if constexpr (W > 1) {
      // Now nodes of length `len` have come down to `lanes` words.
      nodes <<= r, i <<= r;
      forward_leaves(dst, nodes / W, (i - row.n / W) / W, row);
    }
  }

  /// log2 of the radix of the first pass down a node, the last one up.
  static int first_radix(std::size_t len) {
    return next_radix(log2(len > kBlock ? len / kBlock : len / W));
  }

  // A transform in two steps, for callers that go on with each chunk while it is in the cache:
  // begin() for all columns of the first pass, then finish() for each of the chunks.

  static std::size_t chunks(std::size_t n) {
    return n > kBlock ? std::size_t{1} << first_radix(n) : 1;
  }
  static std::size_t columns(std::size_t n) { return n >> first_radix(n); }

  template <int log_radix, class Source>
  JALI_INLINE static void begin(T* dst, const Source& src, std::size_t from, std::size_t to,
                                const NttTable& table) {
    constexpr int G = V::kGroups, radix = 1 << log_radix;
    const std::size_t stride = table.n >> log_radix;
    const SharedTwiddles<log_radix> w{{static_cast<const T*>(table.twiddles), 1}};
    const Mod m = make_mod(table);
    for (std::size_t at = from; at < to; at += G * W) {
      R v[G][radix];
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) src.fill(v[g], at + g * W, stride);
      forward_levels<G, log_radix, false>(v, w, m);
#pragma GCC unroll 16
      for (int k = 0; k < radix; ++k) {
#pragma GCC unroll 2
        for (int g = 0; g < G; ++g) V::store(dst + at + g * W + k * stride, v[g][k]);
      }
    }
  }
  /// The columns [from, to) of the first pass.
  template <class Source>
  static void begin(T* dst, const Source& src, std::size_t from, std::size_t to,
                    const NttTable& table) {
    switch (first_radix(table.n)) {
      case 1: return begin<1>(dst, src, from, to, table);
      case 2: return begin<2>(dst, src, from, to, table);
      default: return begin<3>(dst, src, from, to, table);
    }
  }
  static void finish(T* dst, std::size_t chunk, const Row& row) {
    if (row.n <= kBlock) return forward_rest(dst, row.n, 1, first_radix(row.n), row);
    const std::size_t len = row.n / chunks(row.n);
    T* x = dst + chunk * len;
    forward_node(x, FromMemory{x}, len, chunks(row.n) + chunk, row);
  }

  /// dst holds what is between passes. The last pass of the root writes to the sink.
  template <class Sink>
  static void inverse_node(T* dst, const T* src, const Sink& sink, std::size_t len, std::size_t i,
                           std::size_t mirror, const Row& row) {
    if (len > kBlock) {
      const int r = first_radix(len);
      const std::size_t child = len >> r, count = std::size_t{1} << r;
      for (std::size_t k = 0; k < count; ++k) {
        inverse_node(dst + k * child, src + k * child, sink, child, (i << r) + k,
                     (mirror << r) + count - 1 - k, row);
      }
      if (i == 1) {
        inverse_pass<true>(r, dst, sink, 1, len, mirror, row);
      } else {
        inverse_pass<false>(r, dst, ToMemory{dst}, 1, len, mirror, row);
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
        inverse_pass<true>(r, dst, sink, nodes, node_len, m0, row);
      } else {
        inverse_pass<false>(r, dst, ToMemory{dst}, nodes, node_len, m0, row);
      }
    }
  }

  JALI_INLINE static Mod make_mod(const NttTable& table) {
    return {V::set1(table.prime->q), V::set1(V::kLazy * table.prime->q)};
  }
  static Row make_row(const NttTable& table) {
    Row row{};
    row.twiddles = static_cast<const T*>(table.twiddles);
    row.omegas = static_cast<const T*>(table.leaves.omegas);
    row.twists = static_cast<const T*>(table.leaves.twists);
    row.n = table.n;
    row.mod = make_mod(table);
    return row;
  }

  static void ntt(void* dst, const void* src, const NttTable& table) {
    forward_node(static_cast<T*>(dst), FromMemory{static_cast<const T*>(src)}, table.n, 1,
                 make_row(table));
  }
  static Row inverse_row(const NttTable& table, const InttScale& scale) {
    Row row = make_row(table);
    row.omegas = static_cast<const T*>(table.inverse_leaves.omegas);
    row.twists = static_cast<const T*>(table.inverse_leaves.twists);
    row.scale = Scale{V::set1(scale.sum.value), V::set1(scale.sum.quotient),
                      V::set1(scale.difference.value), V::set1(scale.difference.quotient)};
    return row;
  }
  static void intt(void* dst, const void* src, const NttTable& table, const InttScale& scale) {
    T* out = static_cast<T*>(dst);
    inverse_node(out, static_cast<const T*>(src), ToMemory{out}, table.n, 1, 1,
                 inverse_row(table, scale));
  }
  static void intt_packed(void* packed, std::size_t limb, std::size_t limbs, void* temporary,
                          const void* src, const NttTable& table, const InttScale& scale) {
    const std::size_t first = limb * W << first_radix(table.n);
    inverse_node(static_cast<T*>(temporary), static_cast<const T*>(src),
                 ToPacked{static_cast<T*>(packed) + first, limbs}, table.n, 1, 1,
                 inverse_row(table, scale));
  }
};

}  // namespace jali::backend::cpu
