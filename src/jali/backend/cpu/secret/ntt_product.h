// Products of public polynomials with small secret ones, by number-theoretic transforms.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "jali/backend/engine.h"
#include "jali/device/buffer.h"

namespace jali::backend::cpu {

/// The ring of these products: Z_{2^64}[X] / (X^N + 1), N at least 1024, modulo two primes near
/// 2^50.
class NttRing {
 public:
  explicit NttRing(std::size_t n);
  static constexpr std::size_t kLeastSize = 1024;

 private:
  friend class NttProduct;
  std::size_t n_;
  std::array<std::uint64_t, 2> q_{};
  std::uint64_t inverse_ = 0;  // of q_0 modulo q_1
  std::uint64_t inverse_scaled_ = 0;  // floor(inverse 2^64 / q_1)
  std::unique_ptr<const Engine> engine_;
};

/// Multiplies by k secrets S_c, which are binary or differences of binary ones.
///
/// The integer product has coefficients below k N 2^64 <= 2^84 in absolute value. It is computed
/// modulo the two primes and put together from its residues; it is negative if it is above half of
/// their product. No branch and no address depends on a secret.
class NttProduct {
 public:
  /// S_c = plus_c - minus_c. plus: k N bits. minus: as many, or none. The ring must outlive this.
  NttProduct(const NttRing& ring, std::span<const std::uint8_t> plus,
             std::span<const std::uint8_t> minus = {});

  /// acc += sum_c a_c S_c. acc: N words, a: k N. May be called from several threads.
  void add(std::span<std::uint64_t> acc, std::span<const std::uint64_t> a) const;

 private:
  const NttRing& ring_;
  std::vector<device::Buffer> secrets_;  // in NTT form, in memory that is wiped
};

}  // namespace jali::backend::cpu
