#include "jali/wire/seed.h"

#include <cstdint>
#include <vector>

#include "jali/base/error.h"
#include "jali/random/prng.h"
#include "jali/rlwe/keys.h"

namespace jali::wire {

void check_seed(const rlwe::Ciphertext& x, const rlwe::Params& params) {
  const ring::Poly& a = x.parts[1];
  const PrimeIndex prime = a.primes()[0];
  random::Prng prng(*x.seed, prime);  // row (0, 0) of rlwe::expand_uniform
  std::vector<std::uint64_t> row(params.n());
  random::sample_uniform(prng, params.primes()[prime], row);
  std::uint64_t differ = 0;
  for (std::size_t k = 0; k < row.size(); ++k) differ |= row[k] ^ a.at(0, 0, k);
  require<InternalError>(differ == 0,
                         "a ciphertext carries a seed that is not its own: please report");
}

void expand_seed(rlwe::Ciphertext& x, const rlwe::Params& params, const ring::Ring& ring) {
  if (!x.seed || x.parts.size() != 1) return;
  x.parts.push_back(
      rlwe::expand_uniform(ring, *x.seed, 0, params.level(x.level).primes, x.batch()));
}

}  // namespace jali::wire
