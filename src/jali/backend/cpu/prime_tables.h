// What the kernels need of each prime, built once for an Ops instance.
#pragma once

#include <cstdint>
#include <vector>

#include "jali/arith/modulus.h"
#include "jali/backend/cpu/row_kernels.h"
#include "jali/backend/cpu/scratch.h"

namespace jali::backend::cpu {

struct PrimeTables {
  PrimeTables(std::uint64_t q, std::size_t n, const RowKernels& kernels);
  PrimeTables(PrimeTables&&) = delete;  // table points into the object

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
  AlignedBlock twiddles_;
  AlignedBlock leaves_;
  std::uint64_t inverse_n_;
  std::uint64_t root_of_node_1_;
};

}  // namespace jali::backend::cpu
