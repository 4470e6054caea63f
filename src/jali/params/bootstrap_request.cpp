// Sizes by the standard deviations of docs/math/bootstrapping.md, each error a bit or so below the
// precision asked for; tests hold the sum to it.
#include "jali/params/bootstrap_request.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "jali/base/error.h"
#include "jali/params/noise.h"
#include "jali/params/real.h"
#include "jali/params/security.h"

namespace jali::params {
namespace {

// Constants without a formula were measured; tests/bootstrap/request_test.cpp holds the precision that they give to
// the one asked for, from below and from above.

/// -log2 of what double-precision scales leave of the reduction.
constexpr double kScalePrecision = 46.5;

/// Reductions of eight levels for K = 16, the cheapest first, and -log2 of the root mean square over I of what their
/// cosine is off by (ModularReduction::interpolation_error_rms(32)), up to what 53 bits of the coefficients leave.
struct Cosine {
  int degree, doublings;
  double bits;
};
constexpr Cosine kCosines[] = {{24, 3, 26.4}, {26, 3, 30.6}, {28, 3, 35},
                               {30, 3, 39.5}, {50, 2, 46},   {52, 2, 50}};

/// Of q_0 and P' together: see max_log_sparse_modulus.
constexpr double kMaxSparseBits = 126;

/// Two primes of a 32-bit word, which are below 2^30 and not all of one size.
constexpr double kTwoPrimes = 59.4;

/// What doubles leave, of 53 bits.
constexpr int kMostPrecision = 50;
/// Of one of several applications.
constexpr double kLeastOfSeveral = 10;

/// Of every level of bootstrapping, and of a scale; more than few bits of precision need.
constexpr double kLeastLevelBits = 20, kLeastScaleBits = 15;

/// 3 -> "3", 37.5 -> "37.5".
std::string number(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.6g", x);
  return buffer;
}

/// Up to a tenth of a bit, so that literals are readable numbers.
double tenths(double bits) { return std::ceil(bits * 10 - 1e-6) / 10; }
double level_tenths(double bits) { return std::max(tenths(bits), kLeastLevelBits); }

/// Of each of several applications: every one after the first adds its own bits less three, and less what is cut off to
/// a whole number; too little of few bits.
double application_bits(const BootstrapRequest& request) {
  return std::max((request.precision_bits + 4 * (request.iterations - 1)) / request.iterations,
                  std::min(request.precision_bits, kLeastOfSeveral));
}

}  // namespace

ckks::Literal bootstrap_literal(const BootstrapRequest& request, int log_n) {
  double p = application_bits(request);
  const double n = static_cast<double>(std::size_t{1} << log_n);
  const bool raise_first = request.order == BootstrapOrder::raise_first;
  // A rescale's rounding in the real part of a slot; that of a plaintext.
  const double rounding = portable_log2(n * (1 + 2 * n / 3) / 24) / 2;
  const double encoding = portable_log2(n / 12) / 2;
  // Errors of the coefficients add up in a slot; with slots_first the reduction acts on the slots.
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
  // Bootstrapper: a term is enlarged by 2^(scale_bits - 21) at most, and one application gives the rest.
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
  // (2 pi)^2 / 6 2^(-2 r) <= 2^-p or, with arcsin, 3/40 (2 pi)^4 2^(-4 r) <= 2^-p: two levels more, and
  // a smaller ratio wherever 53 bits of the scales would show (ModularReduction: 2^-47 2^r).
  b.ratio_bits = tenths((p + 2.8) / 2);
  // Likewise where q_0 is large enough for the sparse secret to be short of room.
  const bool large = l.scale_bits + b.ratio_bits > kMaxSparseBits / 2;
  if (p + b.ratio_bits + sum > kScalePrecision - (raise_first ? 3 : 2.5) || large) {
    b.inverse_sine = 3;
    b.ratio_bits = tenths((p + 6.9) / 4);
  }
  // The cheapest cosine that is inaudible.
  const double needed = p + b.ratio_bits + sum + 1.5;
  const auto* last = std::ranges::prev(std::ranges::end(kCosines));
  const auto* enough = std::ranges::find_if(std::ranges::begin(kCosines), last,
                                            [&](const Cosine& c) { return c.bits >= needed; });
  b.degree = enough->degree;
  b.doublings = enough->doublings;
  l.integer_bits = b.ratio_bits;
  const double q0 = l.scale_bits + l.integer_bits;
  // sin(2 pi x) = 2 pi 2^-r m, log2(2 pi) = 2.65. Roundings inside the reduction grow by 2^gain, averaged over I
  // (PolynomialPlan::rounding_gain, doublings): 9.6 without a head, 4.9 with one of six bits, 6.5 with four.
  // With a head of six bits T_2, T_4 and T_8 weigh as little as the rest: levels of fewer bits, which for
  // 32-bit words are two whole primes. With four they weigh a little more, but the largest level, of T_4, may be two
  // primes as well: then the levels lie inside each other, and nothing is divided to be added.
  const bool small_word = request.word == Word::w32;
  const auto level_bits = [&](double gain) {
    return level_tenths(p + rounding + gain + b.ratio_bits - 2.65 + sum + 1);
  };
  // With a head T_2 no longer outweighs two parts that this average leaves out: roundings of powers that are divided
  // to come to other levels, and large I, rare but each in a slot of its own. Raised first a slot is a sum of all
  // coefficients and they do not show; with slots_first they are 1.1 bits after three doublings, 0.8 after two.
  const double gain = raise_first ? 4.9 : b.doublings == 3 ? 6 : 5.7;
  b.head_bits = small_word ? 6 : 0;
  b.mod_bits = level_bits(small_word ? gain : 9.6);
  if (const double bits = level_bits(6.5);
      small_word && b.mod_bits + 8 > kTwoPrimes && bits + 6 <= kTwoPrimes) {
    b.head_bits = 4;
    b.mod_bits = bits;
  }
  // Each of the matrices is off by 2^-bits of its entries' size, sqrt(2) 2^5 diagonals at 2^-5. A product of more than
  // four stages of butterflies has as many more diagonals as it makes the message smaller.
  const int stages = (log_n - 1 + b.cts_levels - 1) / b.cts_levels;
  b.cts_bits = level_tenths(p + encoding + 8 + (stages > 4 ? stages - 3 : 0) + b.ratio_bits + sum -
                            (b.mod_bits + b.head_bits / 2.0 - q0) / b.cts_levels);
  const double after = b.mod_bits + 2.65 - b.ratio_bits;
  // A scale far above what the reduction leaves is made by these levels' diagonals alone.
  const double matrices = p + encoding + 3.5;
  b.stc_bits = level_tenths(
      std::max(matrices + (after - l.scale_bits) / b.stc_levels, std::min(matrices, 28.0)));
  return l;
}

namespace {

/// Where primes of whole words are few, q_0 is larger than was asked for. Coefficients to slots starts at this scale and
/// takes as many bits more (of 32-bit words boot_levels does so).
ckks::ParamsPtr created(ckks::Literal literal, double precision_bits,
                        const Checkpoint& checkpoint) {
  BootstrapLiteral& b = *literal.bootstrap;
  const double wanted = b.cts_bits;
  ckks::ParamsPtr params = ckks::Params::create(literal, checkpoint);
  // More bits may be made of other primes, and q_0 with them.
  double given = 1;
  for (int tries = 0; tries < 4 && params->word() != Word::w32; ++tries) {
    const double surplus = params->level(0).log_q - literal.scale_bits - literal.integer_bits;
    if (surplus <= given) break;
    given = surplus;
    b.cts_bits = std::min(tenths(wanted + surplus / b.cts_levels), 120.0);
    params = ckks::Params::create(literal, checkpoint);
  }
  // P' is of primes that are there, and may be two bits below q_0. Raised first, its key's noise meets in slots: where
  // that shows, a level of slots to coefficients has the prime for it, three bits above q_0.
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
        return nullptr;  // no room for it, or no prime: the estimate says what is left
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
