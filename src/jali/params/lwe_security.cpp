#include "jali/params/lwe_security.h"

#include <algorithm>
#include <cmath>

namespace jali::tfhe {

namespace {

constexpr LweSecurityRow kRows[] = {
#include "jali/params/lwe_security_rows.inc"
};

/// Differences of log2_noise below this are those of rounding.
constexpr double kSame = 1e-6;

double noise_of(const LweSecurityRow& row) { return log2_noise(row.noise_bits, row.modulus_bits); }

/// lwe_security from the rows of one noise, in ascending order of n.
double interpolated(std::span<const LweSecurityRow> rows, std::size_t n) {
  double out = 0;
  for (std::size_t i = 0; i < rows.size() && rows[i].n <= n; ++i) {
    out = std::max(out, rows[i].bits());
    if (i + 1 == rows.size() || rows[i].n == n || rows[i + 1].n <= n) continue;
    const double share = static_cast<double>(n - rows[i].n) /
                         static_cast<double>(rows[i + 1].n - rows[i].n);
    out = std::max(out, rows[i].bits() + share * (rows[i + 1].bits() - rows[i].bits()) -
                            kInterpolation);
  }
  return out;
}

}  // namespace

double LweSecurityRow::bits() const {
  double out = std::min({usvp, bdd, dual_hybrid});
  for (const double guess : {guess_dual, guess_mitm}) {
    if (guess > 0) out = std::min(out, guess);
  }
  return out;
}

std::span<const LweSecurityRow> lwe_security_rows() { return kRows; }

double log2_noise(int noise_bits, int modulus_bits) {
  return std::log2(tuniform_variance(noise_bits)) / 2 - modulus_bits;
}

double lwe_security(int block, std::size_t n, double log2_noise) {
  const std::span<const LweSecurityRow> rows(kRows);
  double out = 0;
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t last = first;
    while (last < rows.size() && rows[last].block == rows[first].block &&
           std::fabs(noise_of(rows[last]) - noise_of(rows[first])) < kSame) {
      ++last;
    }
    if (rows[first].block == block && noise_of(rows[first]) <= log2_noise + kSame) {
      out = std::max(out, interpolated(rows.subspan(first, last - first), n));
    }
    first = last;
  }
  return out;
}

KeySecurity key_security(const Literal& literal) {
  const int block = literal.rotation == Rotation::block_binary ? literal.group : 1;
  const std::size_t large = literal.k.value * literal.N.value;
  return {lwe_security(block, literal.n.value, log2_noise(literal.lwe_noise_bits, 32)),
          lwe_security(1, large,
                       log2_noise(literal.glwe_noise_bits, backend::torus_bits(literal.torus)))};
}

}  // namespace jali::tfhe
