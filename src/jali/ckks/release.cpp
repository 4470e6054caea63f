#include "jali/ckks/release.h"

#include <cmath>

#include "jali/base/error.h"

namespace jali::ckks {

double flooding_std(const ReleasePolicy& policy, std::size_t slots) {
  require<InvalidArgument>(std::isfinite(policy.error_bound) && policy.error_bound > 0,
                           "release needs error_bound > 0: the worst error of the circuit's slots");
  require<InvalidArgument>(policy.releases >= 1 && std::isfinite(policy.releases),
                           "releases must be at least 1: how many decryptions will be shared");
  require<InvalidArgument>(policy.statistical_bits >= 20 && policy.statistical_bits <= 128,
                           "statistical_bits must be between 20 and 128");
  const double std = policy.error_bound *
                     std::sqrt(12 * policy.releases * static_cast<double>(slots)) *
                     std::exp2(policy.statistical_bits / 2.0);
  // flood divides numbers by 2^-40 of it.
  require<InvalidArgument>(std > 0x1p-800 && std < 0x1p800,
                           "error_bound and releases ask for noise that no double holds");
  return std;
}

void flood(std::vector<std::complex<double>>& slots, const ReleasePolicy& policy,
           std::optional<random::Seed> seed) {
  const double std = flooding_std(policy, slots.size());
  // Integer noise at a fixed grid of 2^-40 standard deviations: the grid also hides the low bits of
  // the floating-point values, which carry the error.
  const double grid = std * 0x1p-40;
  std::vector<std::int64_t> noise(2 * slots.size());
  random::Seed fresh = seed ? *seed : random::os_seed();
  random::Prng prng(fresh, 0);
  random::wipe(fresh.data(), fresh.size());
  random::sample_gaussian(prng, 0x1p40, noise);
  for (std::size_t j = 0; j < slots.size(); ++j) {
    const double re = std::nearbyint(slots[j].real() / grid) + static_cast<double>(noise[2 * j]);
    const double im =
        std::nearbyint(slots[j].imag() / grid) + static_cast<double>(noise[2 * j + 1]);
    slots[j] = {re * grid, im * grid};
  }
  random::wipe(noise.data(), noise.size() * sizeof(std::int64_t));
}

double worst_case_error(const Ciphertext& ciphertext) {
  return params::NoiseModel(*ciphertext.params)
      .worst_case_slot_error(ciphertext.estimate, ciphertext.scale, 128);
}

}  // namespace jali::ckks
