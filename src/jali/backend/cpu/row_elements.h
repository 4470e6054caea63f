// Kernels of residues that meet only those of their own place: sums, products, sums of products.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/backend/cpu/row_base.h"

namespace jali::backend::cpu {

template <class V>
struct ElementRows : RowBase<V> {
  using typename RowBase<V>::T;
  using typename RowBase<V>::R;
  using typename RowBase<V>::Acc;
  using typename RowBase<V>::Prime;
  using RowBase<V>::W;
  using RowBase<V>::kMaxProducts;
  using RowBase<V>::acc_reduce;
  using RowBase<V>::canonical;
  using RowBase<V>::reduce_once;
  using RowBase<V>::row;

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

  static void from_int64(void* out, const std::int64_t* c, std::size_t n, const PrimeRow& prime) {
    const Prime p(prime);
    for (std::size_t k = 0; k < n; k += W) {
      R sign;
      const Acc magnitude = V::load_int64(c + k, sign);
      const R r = acc_reduce(magnitude, p);
      V::store(row(out) + k, V::select(r, V::add_if_negative(V::sub(V::set1(0), r), p.q), sign));
    }
  }
};

}  // namespace jali::backend::cpu
