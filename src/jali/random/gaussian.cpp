#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "jali/base/error.h"
#include "jali/random/gaussian_table.h"
#include "jali/random/prng.h"
#include "jali/random/secret_array.h"

namespace jali::random {

// Wide discrete Gaussians are sums of narrow ones, by the convolution of Micciancio and Walter,
// eprint 2017/259. Let x and y be discrete Gaussians over Z of deviations s and t = 8. If
//   z^2 / s^2 + 1 / t^2 <= 2 pi / eta_e(Z)^2,   eta_e(Z)^2 <= ln(2 (1 + 1/e)) / pi,
// the probability of every value of x + z y is that of a discrete Gaussian of deviation sqrt(s^2 +
// z^2 t^2), up to a factor in [(1-e)/(1+e), (1+e)/(1-e)]. For e = 2^-112 the right side is 0.252,
// so z <= 0.486 s is enough. Statistical distance of a sum of up to 32 terms: rounding the table
// costs each term at most 110 entries * 2^-128, and each addition costs 2^-111. Together this is
// below 32 * 2^-110 = 2^-105. Everything that depends on a secret is integer arithmetic without
// branches or look-ups.

namespace {

constexpr double kBaseStd = 8;
constexpr double kMaxRatio = 0.486;

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
  __extension__ using Bits = unsigned __int128;
  constexpr std::size_t kChunk = 256;
  constexpr std::size_t kLanes = 8;  // independent counts that stay in registers
  constexpr Wide kMax = std::numeric_limits<std::int64_t>::max();
  const Plan plan = make_plan(std);
  SecretArray<std::uint64_t, 2 * kChunk> raw;
  SecretArray<std::int64_t, kChunk> small;
  SecretArray<Wide, kChunk> sum;
  while (!out.empty()) {
    const std::size_t count = std::min(kChunk, out.size());
    for (std::size_t i = 0; i < count; ++i) sum[i] = 0;
    for (const std::int64_t factor : plan.factors) {
      raw.fill(prng, 2 * count);
      for (std::size_t i = 2 * count; i < 2 * kChunk; ++i) raw[i] = 0;
      for (std::size_t i = 0; i < count; i += kLanes) {
        // |x| is the number of tail probabilities above 127 random bits; bit 127 is the sign.
        std::uint64_t size[kLanes] = {};
        Bits bits[kLanes];
        for (std::size_t j = 0; j < kLanes; ++j) {
          const std::uint64_t* word = &raw[2 * (i + j)];
          bits[j] = Bits{word[1] << 1 >> 1} << 64 | word[0];
        }
        for (const auto& [high, low] : kGaussianTail) {
          const Bits tail = Bits{high} << 64 | low;
          for (std::size_t j = 0; j < kLanes; ++j) {
            size[j] += static_cast<std::uint64_t>((bits[j] - tail) >> 127);
          }
        }
        for (std::size_t j = 0; j < kLanes; ++j) {
          const std::uint64_t minus = std::uint64_t{0} - (raw[2 * (i + j) + 1] >> 63);
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

// The convolution above, with x = low, y = high and z = 2^50, which is a quarter of the deviation
// of low.
int sample_wide_gaussian(Prng& prng, double std, std::span<std::int64_t> low,
                         std::span<std::int64_t> high) {
  require<InvalidArgument>(std > 0 && std <= kMaxWideStd && low.size() == high.size(),
                           "the standard deviation of wide noise must lie in (0, 2^108]");
  if (std <= 0x1p56) {
    sample_gaussian(prng, std, low);
    std::fill(high.begin(), high.end(), 0);
    return 0;
  }
  constexpr int kShift = 50;
  constexpr double kLow = 0x1p52;
  sample_gaussian(prng, kLow, low);
  sample_gaussian(prng, std::ldexp(std, -kShift), high);
  return kShift;
}

}  // namespace jali::random
