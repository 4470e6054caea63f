// The parameter sets of the Strix paper (Table IV), which fixes n, k, N and the levels of the
// rotation.
#include <algorithm>
#include <cmath>

#include "jali/base/error.h"
#include "jali/params/lwe_security.h"
#include "jali/params/tfhe_noise.h"
#include "search.h"

namespace jali::tfhe {

namespace {

struct Set {
  const char* name;
  std::size_t n, N;
  int levels;
  Torus torus;
  int message_bits, carry_bits;
};

// The paper says nothing of noise, bases and messages. Sets I to III are for gates, set IV for 3
// bits and 3 of carry. Words are of 32 bits where the paper's are and precision allows it. The
// large key has the least noise that gives it 128 bits. The small key has the least noise that
// gives it 128 bits, or, if gates would then fail too often, the most noise at which they fail with
// probability at most 2^-40.
constexpr Set kSets[] = {
    {"strix_i", 500, 1024, 2, Torus::t32, 1, 0},
    {"strix_ii", 630, 1024, 3, Torus::t32, 1, 0},
    {"strix_iii", 592, 2048, 3, Torus::t64, 1, 0},
    {"strix_iv", 991, 16384, 2, Torus::t64, 3, 3},
};
constexpr double kFailure = -40;
constexpr int kMostNoise = 24;

/// The gadgets of least failure, given everything else. log2_p_fail is set.
Literal best_gadgets(Literal literal) {
  const int bits = backend::torus_bits(literal.torus);
  Literal best = literal;
  best.log2_p_fail = 0;
  // The GPU's kernels for one size of polynomials take gadgets of up to 28 bits in all.
  for (int base = 2; base * literal.rotation_gadget.levels <= std::min(bits - 1, 28); ++base) {
    literal.rotation_gadget.base_log = base;
    for (int switch_base = 1; switch_base <= 7; ++switch_base) {
      for (int levels = 1; levels <= 12 && levels * switch_base <= 24; ++levels) {
        literal.switch_gadget = {switch_base, levels};
        literal.log2_p_fail = log2_p_fail(literal);
        // More levels cost more, so they have to win a tenth of a bit.
        if (literal.log2_p_fail < best.log2_p_fail - 0.1) best = literal;
      }
    }
  }
  return best;
}

}  // namespace

Found search_strix(const std::string& name, const CostModel& model) {
  for (const Set& set : kSets) {
    if (name != set.name) continue;
    Literal literal;
    literal.torus = set.torus;
    literal.n = LweDimension(set.n);
    literal.k = GlweDimension(1);
    literal.N = PolynomialSize(set.N);
    literal.rotation_gadget.levels = set.levels;
    literal.message_bits = set.message_bits;
    literal.carry_bits = set.carry_bits;
    literal.max_norm2 = set.carry_bits == 0 ? 2 : std::pow(std::exp2(set.message_bits) + 1, 2);
    const int bits = backend::torus_bits(set.torus);
    while (lwe_security(1, set.N, log2_noise(literal.glwe_noise_bits, bits)) < 128) {
      ++literal.glwe_noise_bits;
    }
    while (literal.lwe_noise_bits < kMostNoise &&
           lwe_security(1, set.n, log2_noise(literal.lwe_noise_bits, 32)) < 128) {
      ++literal.lwe_noise_bits;
    }
    Literal best = best_gadgets(literal);
    while (best.log2_p_fail > kFailure) {
      --literal.lwe_noise_bits;
      best = best_gadgets(literal);
    }
    const double security = key_security(best).bits();
    best.security = static_cast<int>(security);
    best.name = (security < 128 ? "insecure_" : "") + name;
    return {best, cost(model, best)};
  }
  throw InvalidArgument("no set " + name + ": use strix_i to strix_iv");
}

}  // namespace jali::tfhe
