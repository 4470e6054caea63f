// Chooses the sizes of levels by the standard deviations of docs/math/bootstrapping.md. Each error
// is about a bit below the precision asked for, and tests check that their sum keeps to it.
#include "jali/params/ckks/bootstrap_request.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "jali/base/error.h"
#include "jali/params/ckks/noise.h"
#include "jali/params/name.h"
#include "jali/params/real.h"
#include "jali/params/security.h"

namespace jali::params {
namespace {

// Constants without a formula were measured. tests/bootstrap/request_test.cpp checks that the
// precision they give is close to the one asked for, from below and from above.

/// -log2 of the error of the reduction that comes from scales being doubles.
constexpr double kScalePrecision = 46.5;

/// Cosines for reductions of eight levels with K = 16, the cheapest first. bits is -log2 of the
/// root mean square, over I, of the cosine's error (ModularReduction::interpolation_error_rms(32)).
/// The coefficients, which have 53 bits, limit it.
struct Cosine {
  int degree, doublings;
  double bits;
};
constexpr Cosine kCosines[] = {{24, 3, 26.4}, {26, 3, 30.6}, {28, 3, 35},
                               {30, 3, 39.5}, {50, 2, 46},   {52, 2, 50}};

/// The most bits of q_0 and P' together: see max_log_sparse_modulus.
constexpr double kMaxSparseBits = 126;

/// The bits of two primes of a 32-bit word. These are below 2^30 and not all of the same size.
constexpr double kTwoPrimes = 59.4;

/// The most bits of precision that can be asked for. Doubles have 53.
constexpr int kMostPrecision = 50;
/// The least precision of one of several applications, in bits.
constexpr double kLeastOfSeveral = 10;

/// The least bits of a level of bootstrapping, and of a scale, even if the precision needs fewer.
constexpr double kLeastLevelBits = 20, kLeastScaleBits = 15;

/// Rounds up to a tenth of a bit, so that literals are readable numbers.
double tenths(double bits) { return std::ceil(bits * 10 - 1e-6) / 10; }
double level_tenths(double bits) { return std::max(tenths(bits), kLeastLevelBits); }

/// The precision of each of several applications. Every one after the first adds its own bits less
/// three, and less what rounding down to a whole number loses. If few bits are asked for, each
/// application needs more than its share.
double application_bits(const BootstrapRequest& request) {
  return std::max((request.precision_bits + 4 * (request.iterations - 1)) / request.iterations,
                  std::min(request.precision_bits, kLeastOfSeveral));
}

}  // namespace

ckks::Literal bootstrap_literal(const BootstrapRequest& request, int log_n) {
  double p = application_bits(request);
  const double n = static_cast<double>(std::size_t{1} << log_n);
  const bool raise_first = request.order == BootstrapOrder::raise_first;
  // log2 of the rounding of a rescale in the real part of a slot, and of the rounding of a
  // plaintext.
  const double rounding = portable_log2(n * (1 + 2 * n / 3) / 24) / 2;
  const double encoding = portable_log2(n / 12) / 2;
  // With raise_first, the errors of all coefficients add up in a slot. With slots_first, those of
  // two coefficients do.
  const double sum = raise_first ? log_n / 2.0 : 0.5;

  ckks::Literal l;
  l.name = request.name;
  l.security = request.security;
  l.word = request.word;
  l.log_n = log_n;
  const double needed_scale = tenths(request.precision_bits + rounding + 1);
  require<InvalidArgument>(request.scale_bits == 0 || request.scale_bits >= needed_scale, [&] {
    return "a scale of " + number(request.scale_bits) + " bits holds no " +
           number(request.precision_bits) + " bits of precision at log_n " + std::to_string(log_n) +
           ": ask for scale_bits of " + number(needed_scale) + " or more, or leave them out";
  });
  l.scale_bits = request.scale_bits > 0
                     ? request.scale_bits
                     : std::max(tenths(request.precision_bits + rounding + 1.5), kLeastScaleBits);
  // Bootstrapper enlarges a term by at most 2^(scale_bits - 21), so one application has to give the
  // rest.
  if (request.precision_bits > p) {
    if (request.scale_bits == 0) {
      l.scale_bits = std::max(l.scale_bits, tenths(request.precision_bits - p + 24));
    }
    p = std::clamp(request.precision_bits - (l.scale_bits - 24), p, request.precision_bits);
  }
  BootstrapLiteral& b = l.bootstrap.emplace();
  b.order = request.order;
  b.weight = 32;
  b.range = 16;
  b.cts_levels = request.cts_levels > 0 ? request.cts_levels : log_n >= 14 ? 4 : 3;
  b.stc_levels = request.stc_levels > 0 ? request.stc_levels : 3;
  // The sum of several results takes a level.
  l.depth = request.levels_after + b.input_level() + (request.iterations > 1 ? 1 : 0);
  // With r = ratio_bits, the sine needs (2 pi)^2 / 6 2^(-2 r) <= 2^-p. With an arcsin behind it,
  // which takes two levels more, it needs 3/40 (2 pi)^4 2^(-4 r) <= 2^-p, so a smaller ratio is
  // enough. The arcsin is used if the 53 bits of the scales would show (ModularReduction: 2^-47
  // 2^r), or if q_0 is so large that P' would have too little room.
  b.ratio_bits = tenths((p + 2.8) / 2);
  const bool large = l.scale_bits + b.ratio_bits > kMaxSparseBits / 2;
  if (p + b.ratio_bits + sum > kScalePrecision - (raise_first ? 3 : 2.5) || large) {
    b.inverse_sine = 3;
    b.ratio_bits = tenths((p + 6.9) / 4);
  }
  // The cheapest cosine whose error does not matter.
  const double needed = p + b.ratio_bits + sum + 1.5;
  const auto* last = std::ranges::prev(std::ranges::end(kCosines));
  const auto* enough = std::ranges::find_if(std::ranges::begin(kCosines), last,
                                            [&](const Cosine& c) { return c.bits >= needed; });
  b.degree = enough->degree;
  b.doublings = enough->doublings;
  l.integer_bits = b.ratio_bits;
  const double q0 = l.scale_bits + l.integer_bits;
  // sin(2 pi x) is about 2 pi 2^-r m, and log2(2 pi) = 2.65. Roundings inside the reduction grow by
  // a factor of 2^gain, averaged over I (PolynomialPlan::rounding_gain, doublings). The gain is 9.6
  // without a head, 4.9 with a head of six bits and 6.5 with a head of four. With a head of six
  // bits the roundings of T_2, T_4 and T_8 weigh as little as the rest. So levels need fewer bits,
  // which for 32-bit words are two whole primes. With a head of four bits they weigh a little more,
  // but the largest level, that of T_4, may be two primes as well. Then each level has all primes
  // of the level below, and no power has to be divided before it is added.
  const bool small_word = request.word == Word::w32;
  const auto level_bits = [&](double gain) {
    return level_tenths(p + rounding + gain + b.ratio_bits - 2.65 + sum + 1);
  };
  // Without a head, the rounding of T_2 outweighs two parts that this average leaves out: the
  // roundings of powers that are divided to come to other levels, and large I, which are rare. With
  // raise_first they do not show with a head either, because a slot is a sum over all coefficients.
  // With slots_first a large I has a slot of its own, and they cost 1.1 bits after three doublings
  // and 0.8 bits after two.
  const double gain = raise_first ? 4.9 : b.doublings == 3 ? 6 : 5.7;
  b.head_bits = small_word ? 6 : 0;
  b.mod_bits = level_bits(small_word ? gain : 9.6);
  if (const double bits = level_bits(6.5);
      small_word && b.mod_bits + 8 > kTwoPrimes && bits + 6 <= kTwoPrimes) {
    b.head_bits = 4;
    b.mod_bits = bits;
  }
  // The entries of each matrix are off by 2^-bits of their size; it has sqrt(2) 2^5 diagonals at
  // 2^-5. If a matrix is a product of more than four stages of butterflies, it makes the message
  // smaller by the factor by which it has more diagonals.
  const int stages = (log_n - 1 + b.cts_levels - 1) / b.cts_levels;
  b.cts_bits = level_tenths(p + encoding + 8 + (stages > 4 ? stages - 3 : 0) + b.ratio_bits + sum -
                            (b.mod_bits + b.head_bits / 2.0 - q0) / b.cts_levels);
  const double after = b.mod_bits + 2.65 - b.ratio_bits;
  // If the scale is far above that which the reduction leaves, the diagonals of these levels have
  // to make up for it.
  const double matrices = p + encoding + 3.5;
  b.stc_bits = level_tenths(
      std::max(matrices + (after - l.scale_bits) / b.stc_levels, std::min(matrices, 28.0)));
  return l;
}

namespace {

/// Creates the parameters of a literal. If there are few primes, q_0 is larger than was asked for.
/// Coefficients to slots starts at the scale q_0, so its levels are given as many bits more. (For
/// 32-bit words boot_levels does that.)
ckks::ParamsPtr created(ckks::Literal literal, double precision_bits,
                        const Checkpoint& checkpoint) {
  BootstrapLiteral& b = *literal.bootstrap;
  const double wanted = b.cts_bits;
  ckks::ParamsPtr params = ckks::Params::create(literal, checkpoint);
  // Levels of more bits may take other primes and thereby change q_0, so this is repeated.
  double given = 1;
  for (int tries = 0; tries < 4 && params->word() != Word::w32; ++tries) {
    const double surplus = params->level(0).log_q - literal.scale_bits - literal.integer_bits;
    if (surplus <= given) break;
    given = surplus;
    b.cts_bits = std::min(tenths(wanted + surplus / b.cts_levels), 120.0);
    params = ckks::Params::create(literal, checkpoint);
  }
  // P' consists of primes that other levels have, and may have two bits less than q_0. With
  // raise_first the noise of its key adds up in slots. If that costs precision, a level of slots to
  // coefficients gets a prime for P', three bits above q_0.
  const auto entered = [](const ckks::Params& of) {
    const double scale = of.level(0).log_q - of.bootstrap()->ratio_bits;
    const NoiseModel noise(of);
    return noise.precision_bits({noise.encapsulation().variance, 1}, std::exp2(scale));
  };
  if (b.order == BootstrapOrder::raise_first && params->word() != Word::w32 &&
      entered(*params) < precision_bits + 1) {
    b.stc_bits = std::max(b.stc_bits, tenths(params->level(0).log_q + 3));
    const auto other = [&]() -> ckks::ParamsPtr {
      try {
        return ckks::Params::create(literal, checkpoint);
      } catch (const Error&) {
        return nullptr;  // there is no room or no prime; the estimate then shows the lower
                         // precision
      }
    }();
    if (other && entered(*other) > entered(*params)) return other;
  }
  return params;
}

}  // namespace

ckks::ParamsPtr create_with_bootstrap(const BootstrapRequest& request,
                                      const Checkpoint& checkpoint) {
  require<InvalidArgument>(request.iterations >= 1 && request.iterations <= 4,
                           "iterations must be 1 to 4");
  const int most_bits = std::min(30 * request.iterations + 2, kMostPrecision);
  require<InvalidArgument>(request.precision_bits >= 5 && request.precision_bits <= most_bits, [&] {
    return "precision_bits must be 5 to " + std::to_string(most_bits) +
           " with iterations=" + std::to_string(request.iterations) +
           (most_bits < kMostPrecision ? ": for more, take more iterations"
                                       : ": numbers and scales are doubles");
  });
  require<InvalidArgument>(request.levels_after >= 1 && request.levels_after <= 150,
                           "levels_after must be 1 to 150");
  require<InvalidArgument>(
      request.scale_bits == 0 || (request.scale_bits >= 15 && request.scale_bits <= 120),
      "scale_bits must be 15 to 120");
  const double precision = application_bits(request);
  if (request.log_n != 0) {
    return created(bootstrap_literal(request, request.log_n), precision, checkpoint);
  }
  require<InvalidArgument>(request.security != 0,
                           "security 0 leaves nothing to choose log_n by: give log_n");
  for (int log_n = 15; log_n < kMaxLogN; ++log_n) {
    try {
      return created(bootstrap_literal(request, log_n), precision, checkpoint);
    } catch (const InsecureParams&) {
      continue;  // a larger ring holds more
    }
  }
  return created(bootstrap_literal(request, kMaxLogN), precision, checkpoint);
}

}  // namespace jali::params
