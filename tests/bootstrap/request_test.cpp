// Parameters that are requested for a precision reach it and do not exceed it by much.
#include <algorithm>

#include "jali/circuits/ckks/modular_reduction.h"
#include "jali/params/ckks/bootstrap_request.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

TEST(BootstrapRequest, ReachesThePrecisionAskedFor) {
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    for (const int log_n : {10, 12}) {
      for (const double precision : {12.0, 20.0, 20.5, 28.0}) {
        auto request = small_request(order, {}, precision, log_n);
        // One of them uses 32-bit words, for which the sizes differ.
        if (precision == 20.5) request.word = Word::w32;
        const auto params = params::create_with_bootstrap(request);
        EXPECT_EQ(params->depth() - params->bootstrap()->input_level(), 2);
        World world(params, {});
        const auto v = world.vector(params->slots());
        const auto y =
            world.bootstrapper->apply(world.encrypt(v, params->bootstrap()->input_level()));
        const double measured = World::precision(world.decrypt(y), v);
        const double predicted = world.evaluator->noise().precision_bits(y.estimate, y.scale);
        SCOPED_TRACE(std::to_string(precision) + " bits at log_n " + std::to_string(log_n) +
                     (order == BootstrapOrder::raise_first ? " raise_first" : " slots_first"));
        // In a small ring the noise under one key differs from the average over keys. Of 12,000
        // keys at N = 2^10 the least precise was 0.15 bits below, and the standard deviation was
        // 0.06 bits.
        EXPECT_GE(measured, precision - (log_n < 12 ? 0.3 : 0.1)) << world.seed;
        EXPECT_LE(measured, precision + 1.5) << world.seed;
        EXPECT_GT(measured, predicted - 1.5) << world.seed;
        EXPECT_LT(measured, predicted + 2) << world.seed;  // a claim for real normal numbers
      }
    }
  }
}

// The cosine is the cheapest of those whose error is at least a bit and a half below what the
// precision allows.
TEST(BootstrapRequest, TakesNoDearerCosineThanThePrecisionNeeds) {
  constexpr std::pair<int, int> kCosines[] = {{24, 3}, {26, 3}, {28, 3}, {30, 3}, {50, 2}, {52, 2}};
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    for (double precision = 8; precision <= 30; precision += 2) {
      params::BootstrapRequest request;
      request.precision_bits = precision;
      request.order = order;
      const auto b = *params::bootstrap_literal(request, 16).bootstrap;
      const double sum = order == BootstrapOrder::raise_first ? 8 : 0.5;
      const double most = std::exp2(-(precision + b.ratio_bits + sum + 1.5));
      const auto error = [&](int degree, int doublings) {
        return circuits::ModularReduction({b.range, degree, doublings, b.inverse_sine, b.weight})
            .interpolation_error_rms(b.weight);
      };
      SCOPED_TRACE(std::to_string(precision) + " bits, degree " + std::to_string(b.degree));
      EXPECT_LT(error(b.degree, b.doublings), 1.05 * most);
      const auto* taken = std::ranges::find(kCosines, std::pair(b.degree, b.doublings));
      ASSERT_NE(taken, std::ranges::end(kCosines));
      if (taken != std::ranges::begin(kCosines)) {
        const auto [degree, doublings] = *std::prev(taken);
        EXPECT_GT(error(degree, doublings), 0.9 * most);
      }
    }
  }
}

// Requests for few bits would need scales and primes below the smallest that exist, so that q_0 is
// far larger than necessary. Large scales need more than one prime at level 0. The precision is
// reached in both cases.
TEST(BootstrapRequest, ReachesFewBitsAndOddScales) {
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    for (const Word word : {Word::w32, Word::w52, Word::w64}) {
      for (const auto& [precision, scale] : {std::pair{5.0, 0.0}, {8.0, 0.0}, {20.0, 55.0}}) {
        auto request = small_request(order, word, precision, 11);
        request.scale_bits = scale;
        SCOPED_TRACE(std::to_string(precision) + " bits, scale " + std::to_string(scale) + " " +
                     std::string(word_name(word)) +
                     (order == BootstrapOrder::raise_first ? " raise_first" : " slots_first"));
        World world(params::create_with_bootstrap(request), {});
        const auto v = world.vector(world.params->slots());
        const int level = world.params->bootstrap()->input_level();
        const auto y = world.bootstrapper->apply(world.encrypt(v, level));
        EXPECT_GT(World::precision(world.decrypt(y), v), precision - 0.3) << world.seed;
      }
    }
  }
}

// Two applications reach 40 bits at N = 2^16 within the security table, which also bounds the
// sparse secret's modulus.
TEST(BootstrapRequest, FindsSecureParametersForTwoApplications) {
  params::BootstrapRequest request;
  request.order = params::BootstrapOrder::raise_first;
  request.precision_bits = 40;
  request.iterations = 2;
  request.levels_after = 4;
  const auto params = params::create_with_bootstrap(request);
  EXPECT_LE(params->log_n(), 16);
  EXPECT_GE(params->security(), 128);
  EXPECT_EQ(params->depth(), 5);
}

TEST(BootstrapRequest, RefusesWhatItCannotDo) {
  params::BootstrapRequest request;
  request.order = params::BootstrapOrder::raise_first;
  request.precision_bits = 40;
  EXPECT_THROW(params::create_with_bootstrap(request), InvalidArgument);
  request.iterations = 0;
  EXPECT_THROW(params::create_with_bootstrap(request), InvalidArgument);
  // Slots are doubles, so no number of applications gives 51 bits.
  request.precision_bits = 51;
  request.iterations = 4;
  EXPECT_THROW(params::create_with_bootstrap(request), InvalidArgument);
  // A scale that cannot hold the precision is refused before anything is made.
  request = {};
  request.log_n = 16;
  request.scale_bits = 30;
  EXPECT_THROW(params::create_with_bootstrap(request), InvalidArgument);
  request.scale_bits = 34.5;
  EXPECT_NO_THROW(params::create_with_bootstrap(request));
  request = {};
  request.levels_after = 0;
  EXPECT_THROW(params::create_with_bootstrap(request), InvalidArgument);
  request = {};
  request.security = 0;
  EXPECT_THROW(params::create_with_bootstrap(request), Error);
  request = {};
  request.levels_after = 100;
  request.log_n = 15;
  EXPECT_THROW(params::create_with_bootstrap(request), InsecureParams);
}

}  // namespace
}  // namespace jali::bootstrap::testing
