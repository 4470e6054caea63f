// A client with small parameters, for the tests of what its time tells about secrets.
#pragma once

#include <complex>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "jali/rlwe/secret/key_generator.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/ckks/encoder.h"
#include "jali/schemes/ckks/make_ring.h"
#include "jali/schemes/ckks/secret/decryptor.h"
#include "jali/schemes/ckks/secret/encryptor.h"

namespace jali::timing {

using Complex = std::complex<double>;

struct Scheme {
  std::string label;
  Word word;
  double scale_bits;
  int depth;
};

/// Every word, and every way in which a level can be made: of one prime, of several primes, and
/// rational. The top levels have more than 126 bits and level 0 has fewer.
inline std::vector<Scheme> schemes() {
  return {
      {"w52", Word::w52, 40, 3},
      {"w64", Word::w64, 50, 3},
      {"w32, one prime a level", Word::w32, 28, 5},
      {"w32, rational", Word::w32, 40, 4},
      {"w32, two primes a level", Word::w32, 54, 3},
  };
}

inline ckks::ParamsPtr make_params(const Scheme& scheme, int log_n) {
  ckks::Literal literal;
  literal.name = "insecure_timing";
  literal.security = 0;
  literal.depth = scheme.depth;
  literal.scale_bits = scheme.scale_bits;
  literal.log_n = log_n;
  literal.word = scheme.word;
  return ckks::Params::create(literal);
}

inline std::vector<Complex> uniform_vector(std::mt19937_64& random, std::size_t count) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<Complex> values(count);
  for (Complex& z : values) z = {uniform(random), uniform(random)};
  return values;
}

inline random::Seed fresh_seed(std::mt19937_64& random) {
  random::Seed seed;
  for (auto& byte : seed) byte = static_cast<std::uint8_t>(random());
  return seed;
}

}  // namespace jali::timing
