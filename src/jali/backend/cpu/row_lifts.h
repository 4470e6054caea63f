// Kernels of lifts: a digit of some primes, transformed modulo another, and what it goes into.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cpu/ntt_impl.h"
#include "jali/backend/cpu/row_base.h"

namespace jali::backend::cpu {

template <class V>
struct LiftRows : RowBase<V> {
  using typename RowBase<V>::T;
  using typename RowBase<V>::R;
  using typename RowBase<V>::F;
  using typename RowBase<V>::Acc;
  using typename RowBase<V>::Prime;
  using RowBase<V>::W;
  using RowBase<V>::kMaxProducts;
  using RowBase<V>::acc_reduce;
  using RowBase<V>::acc_reduce_lazy;
  using RowBase<V>::canonical;
  using RowBase<V>::reduce_once;
  using RowBase<V>::row;

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

  /// Goes through the columns of all rows in turn, so that the y are read from memory once.
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

  /// Adds the addend: at most two products to each sum.
  JALI_INLINE static void add_scaled(Acc& r0, Acc& r1, const RowAddend& addend, R s, R x_scalar,
                                     std::size_t k, const Prime& p) {
    R x0 = V::load(row(addend.a0) + k), x1 = V::load(row(addend.a1) + k);
    if (addend.b0 != nullptr) {
      const R y0 = V::load(row(addend.b0) + k), y1 = V::load(row(addend.b1) + k);
      Acc t0 = V::acc_set(V::set1(0)), t1 = t0;
      V::acc_mul(t0, x0, y0);
      V::acc_mul(t1, x0, y1);
      V::acc_mul(t1, x1, y0);
      x0 = acc_reduce(t0, p);
      x1 = acc_reduce(t1, p);
    }
    V::acc_mul_broadcast(r0, x0, s);
    V::acc_mul_broadcast(r1, x1, s);
    if (addend.x0 == nullptr) return;
    V::acc_mul_broadcast(r0, V::load(row(addend.x0) + k), x_scalar);
    V::acc_mul_broadcast(r1, V::load(row(addend.x1) + k), x_scalar);
  }

  static void lift_key_dot(void* out0, void* out1, void* const* begun, const void* const* own,
                           const void* const* key0, const void* const* key1, std::size_t count,
                           const RowAddend& addend, bool accumulate, const NttTable& table) {
    const Prime p(*table.prime);
    const R s = V::set1(addend.s), x_scalar = V::set1(addend.x_scalar);
    const R constant = V::set1(addend.constant);
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
        if (addend.a0 != nullptr && !accumulate) add_scaled(r0, r1, addend, s, x_scalar, k, p);
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
};

}  // namespace jali::backend::cpu
