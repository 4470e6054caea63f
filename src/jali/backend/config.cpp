#include "jali/backend/config.h"

#include <bit>
#include <set>
#include <string>

#include "jali/arith/primes.h"
#include "jali/base/error.h"

namespace jali::backend {

void check_threads(int threads) {
  constexpr int kMost = 1024;
  require<InvalidArgument>(threads >= 1 && threads <= kMost, [&] {
    return "threads must be from 1 to " + std::to_string(kMost) + ", not " +
           std::to_string(threads);
  });
}

Config validated(Config config) {
  require<InvalidArgument>(
      std::has_single_bit(config.n) && config.n >= 1024 && config.n <= (std::size_t{1} << 17), [&] {
        return "the ring degree must be a power of two from 2^10 to 2^17, not " +
               std::to_string(config.n);
      });
  check_threads(config.threads);
  require<InvalidArgument>(config.primes.size() < 65536, "there can be at most 65535 primes");
  const int bits = word_prime_bits(config.word);
  std::set<std::uint64_t> seen;
  for (const std::uint64_t q : config.primes) {
    require<InvalidArgument>(q >> bits == 0, [&] {
      return "the prime " + std::to_string(q) + " is too large: word " +
             std::string(word_name(config.word)) + " takes primes below 2^" + std::to_string(bits);
    });
    require<InvalidArgument>(q % (2 * config.n) == 1 && q > 1, [&] {
      return "the prime " + std::to_string(q) +
             " is not 1 modulo 2N = " + std::to_string(2 * config.n) +
             ": choose primes for this ring degree";
    });
    require<InvalidArgument>(arith::is_prime(q),
                             [&] { return std::to_string(q) + " is not a prime"; });
    require<InvalidArgument>(seen.insert(q).second,
                             [&] { return "the prime " + std::to_string(q) + " is given twice"; });
  }
  return config;
}

}  // namespace jali::backend
