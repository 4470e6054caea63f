#include "jali/params/discrete/params.h"

#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/params/canonical.h"
#include "jali/params/discrete/choose.h"
#include "jali/params/real.h"

namespace jali::discrete {

namespace {

/// SHA-256 of everything that computation depends on. The name is not part of it.
rlwe::ParamsHash hash_of(const Literal& literal, const Choice& choice) {
  params::Canonical bytes;
  bytes.put(std::uint64_t{0x6469736372657465});  // "discrete"
  bytes.put(std::uint64_t{1});  // version of this list
  const rlwe::ParamsSpec& spec = choice.spec;
  bytes.put(static_cast<std::uint64_t>(spec.log_n));
  bytes.put(static_cast<std::uint64_t>(spec.word));
  bytes.put(rlwe::kErrorVariance);
  bytes.put(choice.modulus);
  bytes.put(static_cast<std::uint64_t>(literal.multiplication));
  bytes.put(static_cast<std::uint64_t>(literal.packing));
  bytes.put(spec.q);
  bytes.put(spec.p);
  bytes.put(choice.modulus_primes);
  bytes.put(choice.product_primes);
  bytes.put(spec.digit_begin);
  bytes.put(static_cast<std::uint64_t>(spec.levels.size()));
  for (const auto& level : spec.levels) bytes.put(level);
  return bytes.digest();
}

/// The first primes of B whose product exceeds 4 N T Q.
std::size_t basis_of_products(std::span<const std::uint64_t> primes, double bits) {
  double sum = 0;
  std::size_t count = 0;
  while (count < primes.size() && sum <= bits) {
    sum += params::portable_log2(static_cast<double>(primes[count++]));
  }
  return count;
}

}  // namespace

Params::Params(const rlwe::ParamsSpec& spec, const Literal& literal, std::uint64_t modulus,
               std::size_t modulus_primes)
    : rlwe::Params(spec), literal_(literal), modulus_(modulus), modulus_primes_(modulus_primes) {
  for (int l = 0; l <= top(); ++l) {
    LevelFactor& out = factors_.emplace_back();
    out.q = modulus_.reduce(1);
    for (const PrimeIndex i : level(l).primes) {
      out.q = modulus_.mul(out.q, modulus_.reduce(primes()[i]));
    }
    if (multiplication() == Multiplication::bfv) {
      const double bits =
          params::portable_log2(modulus_.as_double()) + level(l).log_q + log_n() + 2;
      out.product_primes =
          basis_of_products(ring_primes().subspan(primes().size() + modulus_primes_), bits + 1e-6);
    }
  }
  factors_.back().factor = modulus_.neg(factors_.back().q);
  for (int l = top() - 1; l >= 0; --l) {
    LevelFactor& here = factors_[static_cast<std::size_t>(l)];
    const std::uint64_t above = factors_[static_cast<std::size_t>(l) + 1].factor;
    here.factor =
        multiplication() == Multiplication::bfv
            ? modulus_.neg(here.q)
            : modulus_.mul(modulus_.mul(above, above), modulus_.inverse(quotient(l + 1, l)));
  }
}

std::uint64_t Params::quotient(int from, int to) const {
  return modulus_.mul(q_mod_t(from), modulus_.inverse(q_mod_t(to)));
}

std::span<const PrimeIndex> Params::product_primes(int level) const {
  return aux_primes().subspan(modulus_primes_).first(at(level).product_primes);
}

std::shared_ptr<const Params> ParamsBuilder::build(const Literal& asked, const Choice& choice) {
  Literal literal = asked;
  rlwe::ParamsSpec spec = choice.spec;
  literal.log_n = spec.log_n;
  literal.word = spec.word;
  literal.dnum = static_cast<int>(spec.digit_begin.size()) - 1;
  if (choice.modulus_primes.size() <= 1) {
    literal.modulus = choice.modulus;
    literal.integers = 0;
  }
  spec.aux = choice.modulus_primes;
  spec.aux.insert(spec.aux.end(), choice.product_primes.begin(), choice.product_primes.end());
  spec.hash = hash_of(literal, choice);
  return std::shared_ptr<const Params>(
      new Params(spec, literal, choice.modulus, choice.modulus_primes.size()));
}

std::shared_ptr<const Params> Params::create(const Literal& literal, const Checkpoint& checkpoint) {
  return choose(literal, checkpoint);
}

std::shared_ptr<const Params> Params::create_written(const Literal& literal) {
  return choose_written(literal);
}

}  // namespace jali::discrete
