// Turns constants into residues, and residues back into numbers.
#include <cmath>

#include "jali/backend/embedding.h"
#include "jali/base/error.h"
#include "jali/ring/poly.h"

namespace jali::ring {

namespace {

using u128 = unsigned __int128;

std::uint64_t negate_if(bool negative, std::uint64_t value, std::uint64_t q) {
  return negative && value != 0 ? q - value : value;
}

}  // namespace

std::vector<std::uint64_t> residues(const Ring& ring, std::span<const PrimeIndex> primes,
                                    std::int64_t value) {
  const bool negative = value < 0;
  const std::uint64_t magnitude =
      negative ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  std::vector<std::uint64_t> out;
  out.reserve(primes.size());
  for (const PrimeIndex i : primes) {
    out.push_back(negate_if(negative, magnitude % ring.prime(i), ring.prime(i)));
  }
  return out;
}

std::vector<std::uint64_t> residues(const Ring& ring, std::span<const PrimeIndex> primes,
                                    double value) {
  require<InvalidArgument>(std::isfinite(value) && std::fabs(value) < 0x1p1000,
                           "a constant times its scale must be finite and below 2^1000");
  // The rounded value is exactly mantissa * 2^exponent, up to its sign.
  const double rounded = std::nearbyint(value);
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(rounded), &exponent);
  auto mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
  exponent -= 53;
  if (exponent < 0) {
    mantissa >>= -exponent;  // exact: the value is an integer
    exponent = 0;
  }
  std::vector<std::uint64_t> out;
  out.reserve(primes.size());
  for (const PrimeIndex i : primes) {
    const std::uint64_t q = ring.prime(i);
    std::uint64_t r = mantissa % q;
    for (int e = 0; e < exponent; ++e) r = r >= q - r ? r - (q - r) : r + r;
    out.push_back(negate_if(rounded < 0, r, q));
  }
  return out;
}

std::vector<std::uint64_t> product_residues(const Ring& ring, std::span<const PrimeIndex> primes,
                                            std::span<const PrimeIndex> factors) {
  std::vector<std::uint64_t> out;
  out.reserve(primes.size());
  for (const PrimeIndex i : primes) {
    const std::uint64_t q = ring.prime(i);
    std::uint64_t product = 1;
    for (const PrimeIndex f : factors) {
      product = static_cast<std::uint64_t>(u128{product} * (ring.prime(f) % q) % q);
    }
    out.push_back(product);
  }
  return out;
}

std::vector<double> to_doubles(const Ring& ring, const Poly& x, double divisor) {
  require<InternalError>(x.form() == Form::coeff, "to_doubles: needs coefficient form");
  const std::size_t count = x.batch() * x.n();
  std::vector<std::uint64_t> primes;
  for (const PrimeIndex i : x.primes()) primes.push_back(ring.prime(i));
  const auto q_words = backend::product_words(primes);
  SecretVector<std::uint64_t> integers(q_words.size() * count);
  ring.ops().icrt(integers, q_words.size(), x.view(), backend::IcrtMethod::automatic);
  const auto out = backend::centred_doubles(integers, count, q_words, divisor);
  return {out.begin(), out.end()};
}

}  // namespace jali::ring
