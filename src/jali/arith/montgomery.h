// Montgomery's reduction (Math. Comp. 44, 1985): x / beta mod q without a division, beta = 2^32 or
// 2^64, q odd. Unsigned and signed; the signed form (as in Seiler's NTTs) saves the correction of
// negative differences.
#pragma once

#include <cstdint>
#include <type_traits>

#include "jali/arith/wide.h"

namespace jali::arith {

/// T: std::uint32_t or std::uint64_t. q odd, q < beta / 4.
template <class T>
class Montgomery {
 public:
  static_assert(std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t>);
  using Wide = std::conditional_t<sizeof(T) == 4, std::uint64_t, uint128>;
  using Signed = std::make_signed_t<T>;
  using SignedWide = std::conditional_t<sizeof(T) == 4, std::int64_t, int128>;
  static constexpr int beta_bits = 8 * sizeof(T);

  constexpr explicit Montgomery(T q) : q_(q) {
    // Newton: if q u = 1 mod 2^j then u (2 - q u) is the inverse mod 2^(2j); q q = 1 mod 8.
    T u = q;
    for (int bits = 3; bits < beta_bits; bits *= 2) u *= 2 - q * u;
    inverse_ = u;
    const Wide beta = (static_cast<Wide>(1) << beta_bits) % q;
    beta2_ = static_cast<T>(beta * beta % q);
  }

  /// x / beta mod q in [0, 2q), for x < beta q: (x - m q) / beta + q with m = x / q mod beta.
  constexpr T reduce_lazy(Wide x) const {
    const T m = static_cast<T>(x) * inverse_;
    const T mq_high = static_cast<T>((static_cast<Wide>(m) * q_) >> beta_bits);
    return static_cast<T>(x >> beta_bits) - mq_high + q_;
  }

  /// x / beta mod q in [0, q), for x < beta q.
  constexpr T reduce(Wide x) const {
    const T r = reduce_lazy(x);
    return r >= q_ ? r - q_ : r;
  }

  /// x / beta mod q in (-q, q), for |x| < beta q / 2: m is taken in [-beta/2, beta/2).
  constexpr Signed reduce_signed(SignedWide x) const {
    const auto m = static_cast<Signed>(static_cast<T>(x) * inverse_);
    const auto mq_high = static_cast<Signed>(
        (static_cast<SignedWide>(m) * static_cast<SignedWide>(q_)) >> beta_bits);
    return static_cast<Signed>(static_cast<Signed>(x >> beta_bits) - mq_high);
  }

  /// x beta mod q, for x < q.
  constexpr T to_form(T x) const { return reduce(static_cast<Wide>(x) * beta2_); }
  /// Back from x beta to x.
  constexpr T from_form(T x) const { return reduce(x); }
  /// a b / beta mod q in [0, q), for a b < beta q: the product inside the form.
  constexpr T mul(T a, T b) const { return reduce(static_cast<Wide>(a) * b); }

 private:
  T q_;
  T inverse_ = 0;  // q^-1 mod beta
  T beta2_ = 0;    // beta^2 mod q
};

}  // namespace jali::arith
