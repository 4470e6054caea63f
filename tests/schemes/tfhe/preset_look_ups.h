// Values of a preset through a random table, on any engine, with the noise of the results from
// both sides of the formulas.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "jali/params/tfhe_noise.h"
#include "jali/schemes/tfhe/evaluator.h"
#include "jali/schemes/tfhe/secret/client.h"

namespace jali::test {

/// Between which shares of the variance the mean square of `count` normal errors lies, with a
/// probability above 1 - 1e-10: the quantiles of chi-squared by Wilson and Hilferty's cube, at 6.5
/// standard deviations. The lower one is below the true quantile from 16 errors on.
inline std::pair<double, double> variance_range(std::size_t count) {
  const double of = 2 / (9.0 * static_cast<double>(count));
  const auto quantile = [&](double z) {
    return std::pow(std::max(0.0, 1 - of + z * std::sqrt(of)), 3);
  };
  return {quantile(-6.5), quantile(6.5)};
}

/// Looks up the values x, below value_modulus(), in a random table, with as much noise in the
/// operands as the parameters allow for, of independent parts: the values, and clear multiples of
/// encrypted zeros. Holds every result to the table, and the results' noise to the formulas.
inline void expect_look_ups(tfhe::Client& client, const tfhe::Evaluator& evaluator,
                            const std::vector<std::uint64_t>& x, std::mt19937_64& rng) {
  const tfhe::Params& params = *evaluator.params();
  const std::uint64_t p = params.value_modulus();
  const std::size_t count = x.size();
  std::vector<std::uint64_t> f(p), expected;
  for (auto& value : f) value = rng() % p;
  f[1] = p - 1 - f[0];  // a table of zeros alone stays without noise
  for (const std::uint64_t value : x) expected.push_back(f[value]);
  const auto weight = static_cast<std::int64_t>(std::sqrt(params.max_norm2() - 1));
  const tfhe::Ciphertext values = evaluator.bind(client.encrypt(x, p - 1)),
                         zeros =
                             evaluator.bind(client.encrypt(std::vector<std::uint64_t>(count), 0));
  tfhe::Linear noisy;
  for (std::uint32_t i = 0; i < count; ++i) {
    noisy.add(i, 1);
    noisy.add(static_cast<std::uint32_t>(count) + i, weight);
    noisy.end_row();
  }
  const tfhe::Ciphertext* const inputs[] = {&values, &zeros};
  const tfhe::Ciphertext y = evaluator.host_copy(
      evaluator.apply(evaluator.linear(inputs, noisy), tfhe::LookUpTable(evaluator.params(), f)));
  EXPECT_EQ(client.decrypt(y), expected);

  double squares = 0;
  for (const double error : client.errors(y)) squares += error * error;
  const double step = static_cast<double>(params.step()) *
                      std::ldexp(1.0, -backend::torus_bits(params.ciphertext_torus()));
  const double measured = squares / static_cast<double>(count) * step * step;
  const tfhe::NoiseModel model(params.literal());
  const tfhe::RotationNoise rotation = model.blind_rotation();
  const double switched = params.order() == tfhe::Order::bootstrap_first ? model.key_switch() : 0;
  // The transform's error is a bound in the formula, and not in the lower end here.
  const auto [least, most] = variance_range(count);
  EXPECT_GT(measured, least * (rotation.key + rotation.rounding + switched));
  EXPECT_LT(measured, most * model.bootstrapped(params.order()));
}

/// `times` random permutations of all values.
inline void expect_look_ups_of_every_value(tfhe::Client& client, const tfhe::Evaluator& evaluator,
                                           std::size_t times, std::mt19937_64& rng) {
  const std::uint64_t p = evaluator.params()->value_modulus();
  std::vector<std::uint64_t> x(times * p);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % p;
  std::ranges::shuffle(x, rng);
  expect_look_ups(client, evaluator, x, rng);
}

/// `count` values, drawn.
inline void expect_look_ups_of_some_values(tfhe::Client& client, const tfhe::Evaluator& evaluator,
                                           std::size_t count, std::mt19937_64& rng) {
  std::vector<std::uint64_t> x(count);
  for (auto& value : x) value = rng() % evaluator.params()->value_modulus();
  expect_look_ups(client, evaluator, x, rng);
}

}  // namespace jali::test
