// Constants as residues, and residues back as numbers.
#include <cmath>

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
                           "a constant must be finite and below 2^1000 once scaled");
  // |value| = mantissa * 2^exponent exactly, after rounding to an integer.
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
  std::vector<double> out(count);

  // Q as words, little end first, and the number of words that hold it.
  std::vector<std::uint64_t> q_words{1};
  for (const PrimeIndex i : x.primes()) {
    std::uint64_t carry = 0;
    for (auto& w : q_words) {
      const u128 t = u128{w} * ring.prime(i) + carry;
      w = static_cast<std::uint64_t>(t);
      carry = static_cast<std::uint64_t>(t >> 64);
    }
    if (carry != 0) q_words.push_back(carry);
  }
  const std::size_t words = q_words.size();
  std::vector<std::uint64_t> integers(words * count);
  ring.ops().icrt(integers, words, x.view(), backend::IcrtMethod::garner);

  std::vector<std::uint64_t> value(words), difference(words);
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t w = 0; w < words; ++w) value[w] = integers[w * count + k];
    // Q - value, and whether value is in the upper half of [0, Q).
    std::uint64_t borrow = 0;
    bool upper = false, decided = false;
    std::vector<std::uint64_t>& v = value;
    for (std::size_t w = 0; w < words; ++w) {
      const u128 t = u128{q_words[w]} - v[w] - borrow;
      difference[w] = static_cast<std::uint64_t>(t);
      borrow = static_cast<std::uint64_t>(t >> 64) & 1;
    }
    for (std::size_t w = words; w-- > 0 && !decided;) {
      if (v[w] != difference[w]) {
        upper = v[w] > difference[w];
        decided = true;
      }
    }
    // Each word is below 2^64; two roundings in the Horner sum stay within 2^-52 of the value.
    double sum = 0;
    for (std::size_t w = words; w-- > 0;) {
      sum = sum * 0x1p64 + static_cast<double>(upper ? difference[w] : v[w]);
    }
    out[k] = (upper ? -sum : sum) / divisor;
  }
  return out;
}

}  // namespace jali::ring
