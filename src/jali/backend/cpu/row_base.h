// Residues in vectors of a class V. Ranges, L = V::kLazy: products come out in [0, Lq).
#pragma once

#include <cstddef>

#include "jali/backend/cpu/inline.h"
#include "jali/backend/cpu/row_kernels.h"

namespace jali::backend::cpu {

template <class V>
struct RowBase {
  using T = typename V::T;
  using R = typename V::R;
  using F = typename V::F;
  using Acc = typename V::Acc;
  static constexpr std::size_t W = V::kLanes;
  static constexpr std::size_t kMaxProducts = 15;  // that an Acc takes before it must be folded

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
};

}  // namespace jali::backend::cpu
