// The security of LWE keys with binary secrets: those of TFHE, small and large.
//
// The lattice-estimator was run over the keys of lwe_security_rows.inc (tools/estimator/lwe.py). A
// question about another key is answered from below: by interpolation between keys that are not
// stronger.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "jali/params/tfhe_params.h"

namespace jali::tfhe {

/// One key that the estimator was asked about, and log2 of the cost of each attack.
struct LweSecurityRow {
  int block;  // 1: uniform bits; l > 1: blocks of l bits of which at most one is set
  std::size_t n;
  int modulus_bits;  // the modulus is 2^modulus_bits
  int noise_bits;  // the errors are TUniform(noise_bits)
  double usvp, bdd, dual_hybrid;
  /// Of block keys, by attacks that know the blocks: the dual attack that enumerates them, and the
  /// primal hybrid attack that meets in the middle over them (docs/block-binary.md). 0: not run.
  double guess_dual, guess_mitm;
  /// The cheapest of the attacks.
  double bits() const;
};

/// The commit of the lattice-estimator that made the rows.
inline constexpr std::string_view kEstimatorCommit = "27a581bb8e9d49f5e9e2db315bd48ac769d5f5f5";

/// In ascending order of block, then of the noise relative to the modulus, then of n.
std::span<const LweSecurityRow> lwe_security_rows();

/// A lower bound on log2 of the cost of breaking a key, or 0 if nothing is known. `log2_noise` is
/// log2 of the standard deviation of the errors over the modulus. More noise, and for n above what
/// the estimator was asked about a larger n, count as no stronger than a key that it was asked
/// about. Between two n that were, the cost is interpolated, and less by kInterpolation bits.
double lwe_security(int block, std::size_t n, double log2_noise);
inline constexpr double kInterpolation = 0.3;

/// log2 of the standard deviation of TUniform(noise_bits) over 2^modulus_bits.
double log2_noise(int noise_bits, int modulus_bits);

/// The bits of the small key, of the large key, and of the weaker one.
struct KeySecurity {
  double small, large;
  double bits() const { return small < large ? small : large; }
};
KeySecurity key_security(const Literal& literal);

}  // namespace jali::tfhe
