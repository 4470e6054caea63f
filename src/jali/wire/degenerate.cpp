#include "jali/wire/degenerate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "jali/wire/poly.h"

namespace jali::wire {

void check_not_constant(const Reader& reader, const ring::Poly& b) {
  const std::size_t word = word_bytes(b.word());
  for (std::size_t i = 0; i < b.primes().size(); ++i) {
    // All residues are equal if each equals the one before it.
    const auto* row = static_cast<const std::uint8_t*>(b.row(i, 0));
    reader.check(std::memcmp(row, row + word, (b.n() - 1) * word) != 0,
                 "one of its polynomials is constant, which hides nothing");
  }
}

// About half of N uniform coefficients are within q/4 of 0. By Hoeffding's inequality, more than
// N/2 + t of them are with probability at most exp(-2 t^2 / N). Three sums are tested for each of
// at most 256 primes, which is fewer than 2^10 tests.
void check_public_key(Reader& reader, const ring::Ring& ring, const rlwe::PublicKey& key) {
  check_not_constant(reader, key.b);
  charge_poly(reader, ring, 2, 1);
  const auto n = static_cast<double>(ring.n());
  const double most = n / 2 + std::sqrt(n * (128 + 10) * std::numbers::ln2 / 2);
  for (const PrimeIndex i : key.b.primes()) {
    const std::uint64_t q = ring.prime(i);
    ring::Poly b = ring.select(key.b, {&i, 1});
    ring::Poly a = rlwe::expand_uniform(ring, key.seed, 0, {&i, 1});
    ring.to_coeff(b);
    ring.to_coeff(a);
    std::array<std::size_t, 3> small{};
    for (std::size_t k = 0; k < ring.n(); ++k) {
      const std::uint64_t x = b.at(0, 0, k), y = a.at(0, 0, k);
      const std::array<std::uint64_t, 3> sums = {x, x + y < q ? x + y : x + y - q,
                                                 x >= y ? x - y : x + q - y};
      for (std::size_t j = 0; j < sums.size(); ++j) {
        small[j] += std::min(sums[j], q - sums[j]) <= q / 4;
      }
    }
    reader.check(
        static_cast<double>(*std::ranges::max_element(small)) <= most,
        "its b is small, or the sum or difference of a and something small: it hides nothing");
  }
}

}  // namespace jali::wire
