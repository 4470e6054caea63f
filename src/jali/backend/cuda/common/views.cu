#include <algorithm>
#include <string>

#include "jali/backend/cuda/common/views.cuh"
#include "jali/base/error.h"

namespace jali::backend::cuda {

void check_rows(ConstView x) {
  const std::size_t limbs = std::max<std::size_t>(x.primes.size(), 1), most = kMaxRows / limbs;
  require<Unsupported>(x.batch <= most, [&] {
    return "the GPU engine takes up to " + std::to_string(kMaxRows) +
           " rows of residues at once, and a batch of " + std::to_string(x.batch) + " with " +
           std::to_string(limbs) + (limbs == 1 ? " limb has " : " limbs has ") +
           std::to_string(limbs * x.batch) + ": split the batch, into parts of up to " +
           std::to_string(most);
  });
}

std::uint16_t find(std::span<const PrimeIndex> primes, PrimeIndex p) {
  const auto at = std::find(primes.begin(), primes.end(), p);
  return at == primes.end() ? kSkip : static_cast<std::uint16_t>(at - primes.begin());
}

Limbs limbs_of(std::span<const PrimeIndex> primes) {
  require<Unsupported>(primes.size() <= kMaxLimbs,
                       "the GPU engine holds polynomials of up to 256 limbs");
  Limbs out{};
  std::copy(primes.begin(), primes.end(), out.prime);
  return out;
}

Limbs positions(std::span<const PrimeIndex> primes, std::span<const PrimeIndex> in) {
  require<Unsupported>(primes.size() <= kMaxLimbs && in.size() <= kMaxLimbs,
                       "the GPU engine holds polynomials of up to 256 limbs");
  Limbs out{};
  for (std::size_t i = 0; i < primes.size(); ++i) out.prime[i] = find(in, primes[i]);
  return out;
}

Source source(ConstView x) {
  Source s;
  s.a[0] = x.data;
  s.batch = static_cast<unsigned>(x.batch);
  s.at = positions(x.primes, x.primes);
  return s;
}

}  // namespace jali::backend::cuda
