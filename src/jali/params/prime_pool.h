// The primes of one word and one N. Each is given out once. A copy of a pool gives out the primes
// that the original has left. A pool and its copies must be used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "jali/arith/word.h"

namespace jali::params {

class PrimePool {
 public:
  PrimePool(Word word, int log_n);

  Word word() const { return word_; }
  /// log2 of the smallest size worth asking for. It is 2N times 2^6, so that there are several
  /// primes.
  double min_bits() const { return min_bits_; }
  /// The same if only one or two primes are needed: 2N times 2^4.
  double scarce_bits() const { return min_bits_ - 2; }
  /// log2 of the bound of the word.
  double max_bits() const { return max_bits_; }

  /// log2 of the count-th largest prime of the word, or of its smallest if it has fewer.
  double bits_of_nth_largest(int count) const;

  /// Takes the free prime nearest to `target`, within the word and not below scarce_bits.
  std::optional<std::uint64_t> take_near(double target);
  void take(std::uint64_t prime) { taken_.insert(prime); }
  /// Takes the largest free prime at most `target`.
  std::optional<std::uint64_t> take_below(double target);

 private:
  bool prime(std::uint64_t candidate);
  Word word_;
  std::uint64_t m_, low_, high_;  // primes = 1 mod m in [low, high)
  double min_bits_, max_bits_;
  std::set<std::uint64_t> taken_;
  /// Which numbers were found to be prime or not. Copies share it.
  std::shared_ptr<std::unordered_map<std::uint64_t, bool>> known_;
};

}  // namespace jali::params
