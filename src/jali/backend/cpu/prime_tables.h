// What the kernels need of each prime, built once for an engine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jali/arith/modulus.h"
#include "jali/backend/cpu/row_kernels.h"

namespace jali::backend::cpu {

struct PrimeTables {
  /// memory: table_bytes() of it, 64-byte aligned, which must outlive the object.
  PrimeTables(std::uint64_t q, std::size_t n, const RowKernels& kernels, std::byte* memory);
  PrimeTables(PrimeTables&&) = delete;  // table points into the object

  static std::size_t table_bytes(std::size_t n, const RowKernels& kernels);

  ShoupConstant constant(std::uint64_t w) const {
    return arith::shoup_constant(w, mod.value(), beta_bits);
  }
  /// Factors with which the inverse transform also multiplies by c.
  InttScale intt_scale(std::uint64_t c) const;

  arith::Modulus mod;
  int beta_bits;
  std::uint64_t root;  // psi
  PrimeRow row;
  NttTable ntt;
  InttScale unscaled;  // c = 1
  double reciprocal;   // 1.0 / double(q)

 private:
  std::uint64_t inverse_n_;
  std::uint64_t root_of_node_1_;
};

}  // namespace jali::backend::cpu
