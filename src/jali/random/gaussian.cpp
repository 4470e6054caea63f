#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "jali/base/error.h"
#include "jali/random/gaussian_table.h"
#include "jali/random/prng.h"
#include "jali/random/secret_array.h"

namespace jali::random {

// Sums of small discrete Gaussians (the convolution of Micciancio and Walter, eprint 2017/259). For
// x of deviation s and y of deviation t = 8, both discrete Gaussians over Z, x + z y is one of
// deviation sqrt(s^2 + z^2 t^2) up to a factor in [(1-e)/(1+e), (1+e)/(1-e)] a point, if
//   z^2 / s^2 + 1 / t^2 <= 2 pi / eta_e(Z)^2,   eta_e(Z)^2 <= ln(2 (1 + 1/e)) / pi;
// for e = 2^-64 the right side is 0.438, so that z <= 0.649 s is enough. Distance of a sum of up to
// 26 terms: each term's table costs at most 76 entries * 2^-64 (rounding) and each sum 2^-63, in
// all below 26 * 78 * 2^-64 < 2^-52.
// Everything that depends on a secret is integer arithmetic without branches or look-ups.

namespace {

constexpr double kBaseStd = 8;
constexpr double kMaxRatio = 0.649;

struct Plan {
  std::vector<std::int64_t> factors;  // of the terms; the first is 1
  double std = 0;                     // of the sum
};

Plan make_plan(double std) {
  require<InvalidArgument>(std > 0 && std <= 0x1p60,
                           "the standard deviation of flooding noise must lie in (0, 2^60]");
  Plan plan{{1}, kBaseStd};
  while (plan.std < std) {
    const double missing = std::sqrt((std - plan.std) * (std + plan.std)) / kBaseStd;
    const double factor = std::min(std::ceil(missing), std::floor(kMaxRatio * plan.std));
    plan.factors.push_back(static_cast<std::int64_t>(factor));
    plan.std = std::sqrt(plan.std * plan.std + factor * factor * kBaseStd * kBaseStd);
    if (factor >= missing) break;  // rounding may leave plan.std a hair below std
  }
  plan.std = std::max(plan.std, std);
  return plan;
}

}  // namespace

double gaussian_std(double std) { return make_plan(std).std; }

void sample_gaussian(Prng& prng, double std, std::span<std::int64_t> out) {
  __extension__ using Wide = __int128;
  constexpr std::size_t kChunk = 256;
  constexpr std::size_t kLanes = 16;  // independent counts that stay in registers
  constexpr Wide kMax = std::numeric_limits<std::int64_t>::max();
  const Plan plan = make_plan(std);
  SecretArray<std::uint64_t, kChunk> raw;
  SecretArray<std::int64_t, kChunk> small;
  SecretArray<Wide, kChunk> sum;
  while (!out.empty()) {
    const std::size_t count = std::min(kChunk, out.size());
    for (std::size_t i = 0; i < count; ++i) sum[i] = 0;
    for (const std::int64_t factor : plan.factors) {
      raw.fill(prng, count);
      for (std::size_t i = count; i < kChunk; ++i) raw[i] = 0;
      for (std::size_t i = 0; i < count; i += kLanes) {
        // |x| is the number of tail probabilities above 63 random bits; bit 63 is the sign.
        std::uint64_t size[kLanes] = {}, bits[kLanes];
        for (std::size_t j = 0; j < kLanes; ++j) bits[j] = raw[i + j] << 1 >> 1;
        for (const std::uint64_t tail : kGaussianTail) {
          for (std::size_t j = 0; j < kLanes; ++j) size[j] += (bits[j] - tail) >> 63;
        }
        for (std::size_t j = 0; j < kLanes; ++j) {
          const std::uint64_t minus = std::uint64_t{0} - (raw[i + j] >> 63);
          small[i + j] = static_cast<std::int64_t>((size[j] ^ minus) - minus);
        }
      }
      for (std::size_t i = 0; i < count; ++i) sum[i] += Wide{factor} * small[i];
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Wide below = sum[i] + kMax, above = kMax - sum[i];  // negative: out of range
      const Wide x = sum[i] - (below & below >> 127) + (above & above >> 127);
      out[i] = static_cast<std::int64_t>(x);
    }
    out = out.subspan(count);
  }
}

}  // namespace jali::random
