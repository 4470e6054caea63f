// Products of public polynomials with small secret ones, in host memory, for keys and for
// encryption.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "jali/backend/torus.h"

namespace jali::backend {

/// The ring Z_{2^64}[X] / (X^N + 1) of these products.
class SmallRing {
 public:
  /// N: a power of two of at least 64.
  explicit SmallRing(PolynomialSize N);
  ~SmallRing();
  SmallRing(const SmallRing&) = delete;
  SmallRing& operator=(const SmallRing&) = delete;
  PolynomialSize N() const { return N_; }

 private:
  friend class SmallFactors;
  struct Transforms;
  PolynomialSize N_;
  std::unique_ptr<const Transforms> transforms_;  // null if N is too small for them
};

/// Secret polynomials S_c as factors: binary ones, or differences of binary ones. No branch and no
/// address depends on them, and their memory is wiped.
class SmallFactors {
 public:
  /// S_c = plus_c - minus_c. plus: k N bytes, 0 or 1, of c = 0 .. k - 1 one after the other, k at
  /// most 16. minus: as many, or none. The ring must outlive this.
  SmallFactors(const SmallRing& ring, std::span<const std::uint8_t> plus,
               std::span<const std::uint8_t> minus = {});
  ~SmallFactors();
  SmallFactors(const SmallFactors&) = delete;
  SmallFactors& operator=(const SmallFactors&) = delete;

  /// acc += sum_c a_c S_c, modulo 2^64 and so modulo any torus. acc: N words, a: k N. May be called
  /// from several threads.
  void add_products(std::span<std::uint64_t> acc, std::span<const std::uint64_t> a) const;

 private:
  struct Forms;
  std::size_t N_;
  std::unique_ptr<const Forms> forms_;
};

}  // namespace jali::backend
