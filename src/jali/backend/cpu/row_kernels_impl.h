// The row kernels over a vector class V. Ranges, L = V::kLazy: products come out in [0, Lq).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "jali/backend/cpu/inline.h"
#include "jali/backend/cpu/ntt_impl.h"
#include "jali/backend/cpu/row_kernels.h"

namespace jali::backend::cpu {

template <class V>
struct Rows {
  using T = typename V::T;
  using R = typename V::R;
  using F = typename V::F;
  using Acc = typename V::Acc;
  static constexpr std::size_t W = V::kLanes;
  static constexpr std::size_t kMaxProducts = 15;  // that an Acc takes before it must be folded
  static constexpr std::size_t kAhead = 512 / sizeof(T);  // distance of prefetching in many streams

  /// Constants of a prime in registers.
  struct Prime {
    R q, lq, one, beta, beta_quotient;
    JALI_INLINE explicit Prime(const PrimeRow& p)
        : q(V::set1(p.q)),
          lq(V::set1(V::kLazy * p.q)),
          one(V::set1(p.one.quotient)),
          beta(V::set1(p.beta.value)),
          beta_quotient(V::set1(p.beta.quotient)) {}
  };

  JALI_INLINE static R reduce_once(R x, R m) { return V::reduce_once(x, m); }
  /// [0, Lq) -> [0, q).
  JALI_INLINE static R canonical(R x, const Prime& p) {
    if constexpr (V::kLazy == 4) x = reduce_once(x, V::add(p.q, p.q));
    return reduce_once(x, p.q);
  }
  /// hi beta + lo -> hi [beta]_q + lo in [0, 2Lq).
  JALI_INLINE static R acc_reduce_lazy(const Acc& acc, const Prime& p) {
    R hi, lo;
    V::acc_split(acc, hi, lo);
    return V::add(V::mul_lazy(hi, p.beta, p.beta_quotient, p.q), V::mod_lazy(lo, p.one, p.q));
  }
  JALI_INLINE static R acc_reduce(const Acc& acc, const Prime& p) {
    return canonical(reduce_once(acc_reduce_lazy(acc, p), p.lq), p);
  }
  JALI_INLINE static const T* row(const void* p) { return static_cast<const T*>(p); }
  JALI_INLINE static T* row(void* p) { return static_cast<T*>(p); }

  static void add(void* out, const void* a, const void* b, std::size_t n, const PrimeRow& prime) {
    const R q = V::set1(prime.q);
    for (std::size_t k = 0; k < n; k += W) {
      const R s = V::add(V::load(row(a) + k), V::load(row(b) + k));
      V::store(row(out) + k, reduce_once(s, q));
    }
  }
  static void sub(void* out, const void* a, const void* b, std::size_t n, const PrimeRow& prime) {
    const R q = V::set1(prime.q);
    for (std::size_t k = 0; k < n; k += W) {
      const R d = V::sub(V::load(row(a) + k), V::load(row(b) + k));
      V::store(row(out) + k, V::add_if_negative(d, q));
    }
  }
  static void neg(void* out, const void* a, std::size_t n, const PrimeRow& prime) {
    const R q = V::set1(prime.q);
    for (std::size_t k = 0; k < n; k += W) {
      V::store(row(out) + k, reduce_once(V::sub(q, V::load(row(a) + k)), q));
    }
  }
  static void mul_scalar(void* out, const void* a, ShoupConstant s, std::size_t n,
                         const PrimeRow& prime) {
    const Prime p(prime);
    const R w = V::set1(s.value), quotient = V::set1(s.quotient);
    for (std::size_t k = 0; k < n; k += W) {
      const R r = V::mul_lazy(V::load(row(a) + k), w, quotient, p.q);
      V::store(row(out) + k, canonical(r, p));
    }
  }
  static void mul_scalar_add(void* acc, const void* a, ShoupConstant s, std::size_t n,
                             const PrimeRow& prime) {
    const Prime p(prime);
    const R w = V::set1(s.value), quotient = V::set1(s.quotient);
    for (std::size_t k = 0; k < n; k += W) {
      const R r = canonical(V::mul_lazy(V::load(row(a) + k), w, quotient, p.q), p);
      V::store(row(acc) + k, reduce_once(V::add(r, V::load(row(acc) + k)), p.q));
    }
  }
  static void add_scalar(void* out, const void* a, std::uint64_t s, std::size_t n,
                         const PrimeRow& prime) {
    const R q = V::set1(prime.q), c = V::set1(s);
    for (std::size_t k = 0; k < n; k += W) {
      V::store(row(out) + k, reduce_once(V::add(V::load(row(a) + k), c), q));
    }
  }

  static void dot(void* out, const void* const* a, const void* const* b, std::size_t count,
                  const void* init, std::size_t n, const PrimeRow& prime) {
    const Prime p(prime);
    for (std::size_t k = 0; k < n; k += W) {
      Acc acc = V::acc_set(init != nullptr ? V::load(row(init) + k) : V::set1(0));
      for (std::size_t i = 0, left = kMaxProducts; i < count; ++i, --left) {
        if (left == 0) {
          acc = V::acc_set(acc_reduce(acc, p));
          left = kMaxProducts;
        }
        V::acc_mul(acc, V::load(row(a[i]) + k), V::load(row(b[i]) + k));
      }
      V::store(row(out) + k, acc_reduce(acc, p));
    }
  }

  static void tensor(void* d0, void* d1, void* d2, const void* a0, const void* a1, const void* b0,
                     const void* b1, std::size_t n, const PrimeRow& prime) {
    const Prime p(prime);
    for (std::size_t k = 0; k < n; k += W) {
      const R x0 = V::load(row(a0) + k), x1 = V::load(row(a1) + k);
      const R y0 = V::load(row(b0) + k), y1 = V::load(row(b1) + k);
      Acc r0 = V::acc_set(V::set1(0)), r1 = r0, r2 = r0;
      V::acc_mul(r0, x0, y0);
      V::acc_mul(r1, x0, y1);
      V::acc_mul(r1, x1, y0);
      V::acc_mul(r2, x1, y1);
      V::store(row(d0) + k, acc_reduce(r0, p));
      V::store(row(d1) + k, acc_reduce(r1, p));
      V::store(row(d2) + k, acc_reduce(r2, p));
    }
  }

  static void combine(void* d0, void* d1, void* d2, const RowTerms& terms, std::size_t n,
                      const PrimeRow& prime) {
    const Prime p(prime);
    for (std::size_t k = 0; k < n; k += W) {
      Acc r0 = V::acc_set(V::set1(terms.constant)), r1 = V::acc_set(V::set1(0)), r2 = r1;
      std::size_t left = kMaxProducts;
      const auto take = [&](std::size_t products) {
        if (left < products) {
          r0 = V::acc_set(acc_reduce(r0, p));
          r1 = V::acc_set(acc_reduce(r1, p));
          r2 = V::acc_set(acc_reduce(r2, p));
          left = kMaxProducts;
        }
        left -= products;
      };
      for (std::size_t i = 0; i < terms.product_count; ++i) {
        const RowTerms::Product& t = terms.products[i];
        const R x0 = V::load(row(t.a0) + k), x1 = V::load(row(t.a1) + k);
        const R y0 = V::load(row(t.b0) + k), y1 = V::load(row(t.b1) + k);
        take(2);
        V::acc_mul(r0, x0, y0);
        V::acc_mul(r1, x0, y1);
        V::acc_mul(r1, x1, y0);
        V::acc_mul(r2, x1, y1);
      }
      for (std::size_t i = 0; i < terms.multiple_count; ++i) {
        const RowTerms::Multiple& t = terms.multiples[i];
        const R s = V::set1(t.s);
        take(1);
        V::acc_mul_broadcast(r0, V::load(row(t.x0) + k), s);
        V::acc_mul_broadcast(r1, V::load(row(t.x1) + k), s);
      }
      V::store(row(d0) + k, acc_reduce(r0, p));
      V::store(row(d1) + k, acc_reduce(r1, p));
      if (terms.product_count != 0) V::store(row(d2) + k, acc_reduce(r2, p));
    }
  }

  static void round_sum(std::uint16_t* v, const void* y, const double* inverse, std::size_t count,
                        std::size_t n) {
    const std::size_t stride = Ntt<V>::columns(n), radix = n / stride;
    for (std::size_t at = 0; at < stride; at += W) {
      const T* from = row(y) + at * count * radix;
      for (std::size_t k = 0; k < radix; ++k) {
        F s = V::f_set1(0.5);
        for (std::size_t i = 0; i < count; ++i) {
          s = V::f_fma(V::load(from + (i * radix + k) * W), V::f_set1(inverse[i]), s);
        }
        V::store_floor(v + at + k * stride, s);
      }
    }
  }

  /// The values of a lift as the first pass of its transform asks for them, in [0, 2Lq).
  struct FromLift {
    LiftSource source;
    Prime p;
    template <int count>
    JALI_INLINE void fill(R (&v)[count], std::size_t at, std::size_t stride) const {
      Acc acc[count];
      const R last = V::set1(source.factors[source.count]);
#pragma GCC unroll 16
      for (int k = 0; k < count; ++k) {
        acc[k] = V::acc_set(V::set1(0));
        V::acc_mul_broadcast(acc[k], V::load_small(source.v + at + k * stride), last);
      }
      const T* y = row(source.y) + at * source.count * count;
      const std::size_t ahead = 2 * W * source.count * count;
      for (std::size_t i = 0, left = kMaxProducts - 1; i < source.count; ++i, --left) {
        if (left == 0) {
          for (int k = 0; k < count; ++k) acc[k] = V::acc_set(acc_reduce(acc[k], p));
          left = kMaxProducts;
        }
        const R factor = V::set1(source.factors[i]);
#pragma GCC unroll 16
        for (int k = 0; k < count; ++k, y += W) {
          __builtin_prefetch(y + ahead);
          V::acc_mul_broadcast(acc[k], V::load(y), factor);
        }
      }
#pragma GCC unroll 16
      for (int k = 0; k < count; ++k) v[k] = acc_reduce_lazy(acc[k], p);
    }
  };

  /// Columns of all rows in turn: the y are read from afar once.
  static void begin_lifts(void* const* out, const LiftSource* sources,
                          const NttTable* const* tables, std::size_t count) {
    constexpr std::size_t kColumns = 256 / sizeof(T);
    if (count == 0) return;
    const std::size_t columns = Ntt<V>::columns(tables[0]->n);
    for (std::size_t at = 0; at < columns; at += kColumns) {
      for (std::size_t i = 0; i < count; ++i) {
        Ntt<V>::begin(row(out[i]), FromLift{sources[i], Prime(*tables[i]->prime)}, at,
                      at + kColumns, *tables[i]);
      }
    }
  }
  static void finish_lift(void* out, const NttTable& table) {
    const auto transform = Ntt<V>::make_row(table);
    for (std::size_t c = 0; c < Ntt<V>::chunks(table.n); ++c) {
      Ntt<V>::finish(row(out), c, transform);
    }
  }

  static void lift_combine(void* out, void* begun, const void* x, ShoupConstant s,
                           const void* addend, const NttTable& table) {
    const Prime p(*table.prime);
    const R w = V::set1(s.value), quotient = V::set1(s.quotient);
    const auto transform = Ntt<V>::make_row(table);
    const std::size_t chunks = Ntt<V>::chunks(table.n), len = table.n / chunks;
    for (std::size_t c = 0; c < chunks; ++c) {
      Ntt<V>::finish(row(begun), c, transform);
      for (std::size_t k = c * len; k < (c + 1) * len; k += W) {
        R r = V::load(row(begun) + k);
        if (x != nullptr) {
          const R t = canonical(V::mul_lazy(V::load(row(x) + k), w, quotient, p.q), p);
          r = reduce_once(V::add(r, t), p.q);
        }
        if (addend != nullptr) r = reduce_once(V::add(r, V::load(row(addend) + k)), p.q);
        V::store(row(out) + k, r);
      }
    }
  }

  /// sigma_g in NTT form. Index k = W u + l holds the value at psi^(2 brv(k) + 1), and brv(k) = brv(u) +
  /// brv_W(l) N / W. The exponent g (2 brv(k) + 1) mod 2N is therefore g (2 brv(u) + 1) +
  /// (2N / W) g brv_W(l): all lanes of a vector come from one vector of the source, its place
  /// given by the low part of g (2 brv(u) + 1) and its permutation by c, the high part.
  struct Automorphism {
    std::uint64_t g;
    std::uint64_t mask;  // 2N - 1
    int shift;  // log2(2N / W)
    const std::uint32_t* rev;
    T lanes[W][W];  // by c: the source lane of each lane

    JALI_INLINE Automorphism(std::uint64_t g_in, const std::uint32_t* rev_in, std::size_t n)
        : g(g_in & (2 * n - 1)), mask(2 * n - 1), rev(rev_in) {
      shift = Ntt<V>::log2(2 * n / W);
      for (std::size_t c = 0; c < W; ++c) {
        for (std::size_t l = 0; l < W; ++l) {
          lanes[c][l] = static_cast<T>(reverse_lane((c + g * reverse_lane(l)) % W));
        }
      }
    }
    JALI_INLINE static std::size_t reverse_lane(std::size_t l) {
      std::size_t r = 0;
      for (int i = 0; i < Ntt<V>::kLogLanes; ++i)
        r |= ((l >> i) & 1) << (Ntt<V>::kLogLanes - 1 - i);
      return r;
    }
    struct Place {
      std::size_t offset;  // of the source vector
      std::size_t c;
    };
    JALI_INLINE Place place(std::size_t u) const {
      const std::uint64_t e = (g * (2 * std::uint64_t{rev[u]} + 1)) & mask;
      const std::uint64_t low = e & ((std::uint64_t{1} << shift) - 1);
      return {W * rev[low >> 1], static_cast<std::size_t>(e >> shift)};
    }
    JALI_INLINE R load(const T* in, Place at) const {
      return V::permute(V::load(in + at.offset), V::load(lanes[at.c]));
    }
  };

  static void automorphism(void* out, const void* in, std::uint64_t g, const std::uint32_t* rev,
                           std::size_t n) {
    const Automorphism sigma(g, rev, n);
    for (std::size_t u = 0; u < n / W; ++u) {
      V::store(row(out) + W * u, sigma.load(row(in), sigma.place(u)));
    }
  }

  template <class Load>
  JALI_INLINE static void key_dot_at(std::size_t k, void* out0, void* out1, const void* const* ext,
                                     const void* const* key0, const void* const* key1,
                                     std::size_t count, bool accumulate, const Prime& p,
                                     const Load& load) {
    Acc r0 = V::acc_set(accumulate ? V::load(row(out0) + k) : V::set1(0));
    Acc r1 = V::acc_set(accumulate ? V::load(row(out1) + k) : V::set1(0));
    for (std::size_t i = 0, left = kMaxProducts; i < count; ++i, --left) {
      if (left == 0) {
        r0 = V::acc_set(acc_reduce(r0, p));
        r1 = V::acc_set(acc_reduce(r1, p));
        left = kMaxProducts;
      }
      const R x = load(row(ext[i]));
      V::acc_mul(r0, x, V::load(row(key0[i]) + k));
      V::acc_mul(r1, x, V::load(row(key1[i]) + k));
    }
    V::store(row(out0) + k, acc_reduce(r0, p));
    V::store(row(out1) + k, acc_reduce(r1, p));
  }

  // A few vectors of every row in turn: whole cache lines one after the other, sums in registers. The
  // x are read once from memory, in more streams than the hardware foresees.
  static void dot_pairs(void* out0, void* out1, const void* const* x, const void* const* y0,
                        const void* const* y1, std::size_t count, bool accumulate, std::size_t n,
                        const Prime& p) {
    constexpr std::size_t kVectors = W * sizeof(T) == 64 ? 4 : 1;
    constexpr std::size_t kAhead = 8;
    for (std::size_t k = 0; k < n; k += kVectors * W) {
      Acc r0[kVectors], r1[kVectors];
      for (std::size_t u = 0; u < kVectors; ++u) {
        const std::size_t at = k + u * W;
        r0[u] = V::acc_set(accumulate ? V::load(row(out0) + at) : V::set1(0));
        r1[u] = V::acc_set(accumulate ? V::load(row(out1) + at) : V::set1(0));
      }
      for (std::size_t i = 0, left = kMaxProducts; i < count; ++i, --left) {
        if (left == 0) {
          for (std::size_t u = 0; u < kVectors; ++u) {
            r0[u] = V::acc_set(acc_reduce(r0[u], p));
            r1[u] = V::acc_set(acc_reduce(r1[u], p));
          }
          left = kMaxProducts;
        }
        const T* xi = row(x[i]) + k;
        const T* y0i = row(y0[i]) + k;
        const T* y1i = row(y1[i]) + k;
        for (std::size_t u = 0; u < kVectors; ++u) {
          __builtin_prefetch(xi + (kAhead * kVectors + u) * W);
          const R v = V::load(xi + u * W);
          V::acc_mul(r0[u], v, V::load(y0i + u * W));
          V::acc_mul(r1[u], v, V::load(y1i + u * W));
        }
      }
      for (std::size_t u = 0; u < kVectors; ++u) {
        V::store(row(out0) + k + u * W, acc_reduce(r0[u], p));
        V::store(row(out1) + k + u * W, acc_reduce(r1[u], p));
      }
    }
  }

  static void key_dot(void* out0, void* out1, const void* const* ext, const void* const* key0,
                      const void* const* key1, std::size_t count, bool accumulate, std::uint64_t g,
                      const std::uint32_t* rev, std::size_t n, const PrimeRow& prime) {
    const Prime p(prime);
    if (g == 1) {
      dot_pairs(out0, out1, ext, key0, key1, count, accumulate, n, p);
      return;
    }
    const Automorphism sigma(g, rev, n);
    for (std::size_t u = 0; u < n / W; ++u) {
      const auto at = sigma.place(u);
      key_dot_at(W * u, out0, out1, ext, key0, key1, count, accumulate, p,
                 [&](const T* x) { return sigma.load(x, at); });
    }
  }

  static void make_turn(void* turn, std::uint64_t g, const std::uint32_t* rev, std::size_t n) {
    new (turn) Automorphism(g, rev, n);
  }

  /// Words [at, at + piece) of a rotation to out0, out1. The keys of `next`, from next_at on, are on their
  /// way meanwhile: their rows are read once, in more streams than the hardware foresees.
  JALI_INLINE static void rotate_piece(T* out0, T* out1, const RowRotation& r, std::size_t digits,
                                       std::uint64_t factor, std::size_t at, std::size_t piece,
                                       const RowRotation* next, std::size_t next_at,
                                       const Prime& p) {
    const R s = V::set1(factor);
    if (r.ext == nullptr) {
      for (std::size_t k = 0; k < piece; k += W) {
        Acc r0 = V::acc_set(V::set1(0)), r1 = r0;
        if (r.c0 != nullptr) V::acc_mul_broadcast(r0, V::load(row(r.c0) + at + k), s);
        if (r.c1 != nullptr) V::acc_mul_broadcast(r1, V::load(row(r.c1) + at + k), s);
        V::store(out0 + k, acc_reduce(r0, p));
        V::store(out1 + k, acc_reduce(r1, p));
      }
      return;
    }
    const auto& sigma = *static_cast<const Automorphism*>(r.turn);
    const bool ahead = next != nullptr && next->ext != nullptr;
    for (std::size_t k = 0; k < piece; k += W) {
      if (ahead) {
        for (std::size_t j = 0; j < digits; ++j) {
          __builtin_prefetch(row(next->key0[j]) + next_at + k, 0, 2);
          __builtin_prefetch(row(next->key1[j]) + next_at + k, 0, 2);
        }
      }
      const auto from = sigma.place((at + k) / W);
      Acc r0 = V::acc_set(V::set1(0)), r1 = r0;
      if (r.c0 != nullptr) V::acc_mul_broadcast(r0, sigma.load(row(r.c0), from), s);
      for (std::size_t j = 0, left = kMaxProducts - 1; j < digits; ++j, --left) {
        if (left == 0) {
          r0 = V::acc_set(acc_reduce(r0, p));
          r1 = V::acc_set(acc_reduce(r1, p));
          left = kMaxProducts;
        }
        const R x = sigma.load(row(r.ext[j]), from);
        V::acc_mul(r0, x, V::load(row(r.key0[j]) + at + k));
        V::acc_mul(r1, x, V::load(row(r.key1[j]) + at + k));
      }
      V::store(out0 + k, acc_reduce(r0, p));
      V::store(out1 + k, acc_reduce(r1, p));
    }
  }

  static void rotated_sums(const RowRotation* rotations, std::size_t count, std::size_t digits,
                           std::uint64_t factor, const RowSum* sums, std::size_t sum_count,
                           void* temporary, std::size_t piece, std::size_t n,
                           const PrimeRow& prime) {
    constexpr std::size_t kChunk = 60;  // terms whose addresses are at hand
    const void *x[kChunk], *y0[kChunk], *y1[kChunk];
    const Prime p(prime);
    const auto operand = [&](std::size_t k, std::size_t c) {
      return row(temporary) + (2 * k + c) * piece;
    };
    for (std::size_t at = 0; at < n; at += piece) {
      for (std::size_t k = 0; k < count; ++k) {
        const bool last = k + 1 == count;
        const std::size_t next_at = last ? at + piece : at;
        const RowRotation* next = next_at < n ? &rotations[last ? 0 : k + 1] : nullptr;
        rotate_piece(operand(k, 0), operand(k, 1), rotations[k], digits, factor, at, piece, next,
                     next_at, p);
      }
      for (std::size_t g = 0; g < sum_count; ++g) {
        const RowSum& sum = sums[g];
        for (std::size_t done = 0; done < sum.count; done += kChunk) {
          const std::size_t terms = std::min(kChunk, sum.count - done);
          for (std::size_t i = 0; i < terms; ++i) {
            x[i] = row(sum.weights[done + i]) + at;
            y0[i] = operand(sum.operands[done + i], 0);
            y1[i] = operand(sum.operands[done + i], 1);
          }
          dot_pairs(row(sum.out0) + at, row(sum.out1) + at, x, y0, y1, terms,
                    sum.accumulate || done > 0, piece, p);
        }
      }
    }
  }

  /// At most two products a sum.
  JALI_INLINE static void begin_join(Acc& r0, Acc& r1, const RowJoin& join, R factor, R x_factor,
                                     std::size_t k, const Prime& p) {
    R x0 = V::load(row(join.a0) + k), x1 = V::load(row(join.a1) + k);
    if (join.b0 != nullptr) {
      const R y0 = V::load(row(join.b0) + k), y1 = V::load(row(join.b1) + k);
      Acc t0 = V::acc_set(V::set1(0)), t1 = t0;
      V::acc_mul(t0, x0, y0);
      V::acc_mul(t1, x0, y1);
      V::acc_mul(t1, x1, y0);
      x0 = acc_reduce(t0, p);
      x1 = acc_reduce(t1, p);
    }
    V::acc_mul_broadcast(r0, x0, factor);
    V::acc_mul_broadcast(r1, x1, factor);
    if (join.x0 == nullptr) return;
    V::acc_mul_broadcast(r0, V::load(row(join.x0) + k), x_factor);
    V::acc_mul_broadcast(r1, V::load(row(join.x1) + k), x_factor);
  }

  static void lift_key_dot(void* out0, void* out1, void* const* begun, const void* const* own,
                           const void* const* key0, const void* const* key1, std::size_t count,
                           const RowJoin& join, bool accumulate, const NttTable& table) {
    const Prime p(*table.prime);
    const R factor = V::set1(join.factor), x_factor = V::set1(join.x_factor);
    const R constant = V::set1(join.constant);
    auto transform = Ntt<V>::make_row(table);
    const std::size_t n = table.n, chunks = Ntt<V>::chunks(n), len = n / chunks;
    for (std::size_t c = 0; c < chunks; ++c) {
      Prefetch prefetch;
      for (std::size_t i = 0; i < count && prefetch.streams < Prefetch::kMaxStreams; ++i) {
        prefetch.stream[prefetch.streams++] = reinterpret_cast<const char*>(row(key0[i]) + c * len);
        prefetch.stream[prefetch.streams++] = reinterpret_cast<const char*>(row(key1[i]) + c * len);
      }
      prefetch.bytes = len * sizeof(T);
      transform.prefetch = &prefetch;
      for (std::size_t i = 0; i < count; ++i) {
        if (own[i] == nullptr) Ntt<V>::finish(row(begun[i]), c, transform);
      }
      for (std::size_t k = c * len; k < (c + 1) * len; k += W) {
        Acc r0 = V::acc_set(accumulate ? V::load(row(out0) + k) : constant);
        Acc r1 = V::acc_set(accumulate ? V::load(row(out1) + k) : V::set1(0));
        if (join.a0 != nullptr && !accumulate) begin_join(r0, r1, join, factor, x_factor, k, p);
        for (std::size_t i = 0, left = kMaxProducts - 2; i < count; ++i, --left) {
          if (left == 0) {
            r0 = V::acc_set(acc_reduce(r0, p));
            r1 = V::acc_set(acc_reduce(r1, p));
            left = kMaxProducts;
          }
          const T* ext = own[i] != nullptr ? row(own[i]) : row(begun[i]);
          const R x = V::load(ext + k);
          V::acc_mul(r0, x, V::load(row(key0[i]) + k));
          V::acc_mul(r1, x, V::load(row(key1[i]) + k));
        }
        V::store(row(out0) + k, acc_reduce(r0, p));
        V::store(row(out1) + k, acc_reduce(r1, p));
      }
    }
  }

  /// Enough independent butterflies to hide the latency of one, few enough for the registers there are.
  static constexpr std::size_t kButterflyPairs = sizeof(R) == 64 ? 12 : 6;
  /// x, y in [0, 2Lq): x reduced to [0, Lq), then x + w y and x - w y + Lq, as in the transform.
  static void butterflies(void* values, std::size_t rounds, const PrimeRow& prime) {
    const Prime p(prime);
    R x[kButterflyPairs], y[kButterflyPairs];
#pragma GCC unroll 12
    for (std::size_t k = 0; k < kButterflyPairs; ++k) {
      x[k] = V::load(row(values) + 2 * k * W);
      y[k] = V::load(row(values) + (2 * k + 1) * W);
    }
    for (std::size_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
      for (std::size_t k = 0; k < kButterflyPairs; ++k) {
        x[k] = reduce_once(x[k], p.lq);
        const R t = V::mul_lazy(y[k], p.beta, p.beta_quotient, p.q);
        y[k] = V::sub(V::add(x[k], p.lq), t);
        x[k] = V::add(x[k], t);
      }
    }
#pragma GCC unroll 12
    for (std::size_t k = 0; k < kButterflyPairs; ++k) {
      V::store(row(values) + 2 * k * W, x[k]);
      V::store(row(values) + (2 * k + 1) * W, y[k]);
    }
  }

  static void from_int64(void* out, const std::int64_t* c, std::size_t n, const PrimeRow& prime) {
    const Prime p(prime);
    for (std::size_t k = 0; k < n; k += W) {
      R sign;
      const Acc magnitude = V::load_int64(c + k, sign);
      const R r = acc_reduce(magnitude, p);
      V::store(row(out) + k, V::select(r, V::add_if_negative(V::sub(V::set1(0), r), p.q), sign));
    }
  }

  static constexpr RowKernels table() {
    RowKernels k;
    k.isa = V::kIsa;
    k.lanes = W;
    k.beta_bits = V::kBetaBits;
    k.word_bytes = sizeof(T);
    k.ntt = Ntt<V>::ntt;
    k.intt = Ntt<V>::intt;
    k.add = add;
    k.sub = sub;
    k.neg = neg;
    k.mul_scalar = mul_scalar;
    k.mul_scalar_add = mul_scalar_add;
    k.add_scalar = add_scalar;
    k.dot = dot;
    k.tensor = tensor;
    k.combine = combine;
    k.round_sum = round_sum;
    k.intt_packed = Ntt<V>::intt_packed;
    k.begin_lifts = begin_lifts;
    k.finish_lift = finish_lift;
    k.lift_combine = lift_combine;
    k.lift_key_dot = lift_key_dot;
    k.key_dot = key_dot;
    k.automorphism = automorphism;
    k.make_turn = make_turn;
    k.turn_bytes = (sizeof(Automorphism) + 63) / 64 * 64;
    k.rotated_sums = rotated_sums;
    k.butterflies = butterflies;
    k.butterfly_pairs = kButterflyPairs;
    k.from_int64 = from_int64;
    return k;
  }
};

}  // namespace jali::backend::cpu
