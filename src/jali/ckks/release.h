// Release of decryptions. The raw decryption of an approximate scheme carries the error, and with it
// the key (Li and Micciancio 2021): it is for the key holder alone. What is shared goes through
// release, which drowns the error of the declared circuit's worst case in fresh noise.
#pragma once

#include <complex>
#include <optional>
#include <vector>

#include "jali/ckks/types.h"
#include "jali/params/noise.h"
#include "jali/random/prng.h"

namespace jali::ckks {

/// What the owner declares before releasing.
struct ReleasePolicy {
  /// Bound on |error| of a slot that holds for every input of the circuit (its worst case, not its
  /// average: Guo et al. 2024), in message units.
  double error_bound = 0;
  /// How many decryptions under this key will be released in all, and the bits of statistical
  /// security over all of them.
  double releases = 1;
  int statistical_bits = 40;
};

/// Standard deviation of the flooding noise of a vector of `slots` values, in message units, real and
/// imaginary part each: error_bound sqrt(12 releases slots) 2^(statistical_bits / 2). The errors of a
/// vector have Euclidean norm at most error_bound sqrt(slots), so that the Kullback-Leibler divergence
/// over all releases stays below 2^-statistical_bits (Li, Micciancio, Schultz and Sorrell 2022).
double flooding_std(const ReleasePolicy& policy, std::size_t slots);

/// Adds flooding noise to decoded slots, in place. seed: from the operating system when empty.
/// Throws InvalidArgument on a bound that is not positive and finite.
void flood(std::vector<std::complex<double>>& slots, const ReleasePolicy& policy,
           std::optional<random::Seed> seed = std::nullopt);

/// The bound of a ciphertext's own estimate at failure probability 2^-128: right for a circuit whose
/// inputs stay within the declared magnitudes.
double worst_case_error(const Ciphertext& ciphertext);

}  // namespace jali::ckks
