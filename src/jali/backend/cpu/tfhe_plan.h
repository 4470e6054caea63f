// The folded negacyclic Fourier transform of polynomials of N real coefficients: what its kernels
// need, made once for an engine.
//
// With n = N/2 complex points, z_c = p_c + i p_(c+n) is a polynomial modulo X^n - i, since X^n = i
// at the roots zeta^(4s+1), zeta = exp(i pi / N), where p is evaluated. A pass of radix R splits a
// block modulo X^(R m) - c^R into R blocks modulo X^m - c omega_R^j: words c m apart are multiplied
// by the powers c^0 .. c^(R-1), then go through a transform of length R. So all points of a block
// share R - 1 twiddles, and the twist of the negacyclic product costs nothing. Child p of a block
// is that of j = the bits of p reversed, as a transform of length R by halves leaves it.
//
// The last pass (the leaf) has radix L = lanes of a vector. It works on groups of L blocks of L
// points, transposed in registers, so that lane t holds block t. Results stay transposed: group g,
// child p, lane t is number (g L + p) L + t of the Fourier form. That is never put in order, since
// products are by points and the inverse takes the same way back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "jali/backend/cpu/scratch.h"

namespace jali::backend::cpu {

/// Plain pointers: kernels call no function that the linker could take from another instruction
/// set.
struct FourierPlan {
  static constexpr std::size_t kMaxLanes = 8;

  struct Pass {
    int log_radix;
    std::size_t blocks;  // before the pass
    const double* twiddles;  // of each block, radix - 1 pairs (re, im)
  };

  std::size_t n = 0;  // N / 2
  std::size_t lanes = 0;
  std::size_t groups = 0;  // n / lanes^2
  const Pass* passes = nullptr;
  std::size_t pass_count = 0;
  const double* leaves = nullptr;  // of each group, lanes - 1 pairs of vectors
  const double* roots = nullptr;  // zeta^e, e < 2N, as pairs
  /// The number (g, p, t) of the Fourier form is the value at zeta^(exponents[g L + p] +
  /// lane_exponents[t]).
  const std::uint32_t* exponents = nullptr;
  std::uint32_t lane_exponents[kMaxLanes] = {};
};

/// A plan with the tables that it points to.
class FourierTables {
 public:
  /// lanes: of a vector; log_radix: of the largest pass.
  FourierTables(std::size_t N, int lanes, int log_radix);
  FourierTables(const FourierTables&) = delete;
  FourierTables& operator=(const FourierTables&) = delete;
  const FourierPlan& plan() const { return plan_; }

 private:
  FourierPlan plan_;
  std::vector<FourierPlan::Pass> passes_;
  std::vector<std::uint32_t> exponents_;
  AlignedBlock tables_;
};

}  // namespace jali::backend::cpu
