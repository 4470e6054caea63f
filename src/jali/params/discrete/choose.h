// Chooses the ring, the word, the modulus and the primes for a literal.
#pragma once

#include <cstdint>
#include <vector>

#include "jali/base/checkpoint.h"
#include "jali/params/discrete/params.h"

namespace jali::discrete {

/// What parameters are made of.
struct Choice {
  rlwe::ParamsSpec spec;  // without the hash
  std::uint64_t modulus = 0;  // T; 0 stands for 2^64
  std::vector<std::uint64_t> modulus_primes;  // of which it is the product; none for coefficients
  std::vector<std::uint64_t> product_primes;  // of BFV's product
};

/// Makes parameters of a choice.
struct ParamsBuilder {
  static ParamsPtr build(const Literal& literal, const Choice& choice);
};

/// Chooses the smallest ring that the security table allows and the word that serves it best,
/// unless the literal asks for others. Throws InvalidArgument or InsecureParams, which say what
/// would fit.
ParamsPtr choose(const Literal& literal, const Checkpoint& checkpoint = {});

/// See Params::create_written.
ParamsPtr choose_written(const Literal& literal);

/// The budgets (NoiseModel::budget) of the circuit that parameters are chosen for, whatever its
/// numbers are: of an encryption under the public key, and after each of depth() products, one
/// after the other, of a sum of two with itself; without products, after sums of 2, 4, 8 and 16
/// encryptions. It is shorter if the levels end before the circuit.
std::vector<double> circuit_budgets(const Params& params);

}  // namespace jali::discrete
