// The bound on the error of bootstrapped slots, from both sides: no error is above it, and it is
// small enough for a check of numbers below 1.
#include "jali/bootstrap/error_bound.h"

#include <algorithm>
#include <numbers>

#include "jali/params/ckks/bootstrap_request.h"
#include "jali/schemes/ckks/bounds.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

using jali::testing::max_error;

constexpr auto kRaise = BootstrapOrder::raise_first;
constexpr auto kSlots = BootstrapOrder::slots_first;

struct Config {
  std::string label;
  BootstrapOrder order;
  Word word;
  double precision;
  int log_slots;
  bool real = false, minimum = false;
  int iterations = 1;
  int weight = 32;
  int target = -1;
};

void PrintTo(const Config& c, std::ostream* out) { *out << c.label; }

ckks::ParamsPtr made(const Config& c) {
  auto request = small_request(c.order, c.word, c.precision);
  request.iterations = c.iterations;
  auto params = params::create_with_bootstrap(request);
  if (c.weight == 32) return params;
  auto literal = params->literal();
  literal.bootstrap->weight = c.weight;
  return ckks::Params::create(literal);
}

class ErrorBound : public ::testing::TestWithParam<Config> {};

/// Numbers of which some are as large as was declared.
std::vector<Complex> numbers(World& w, std::size_t count, double peak, bool real) {
  auto v = w.vector(count, real);
  for (std::size_t j = 0; j < count; ++j) v[j] *= j % 3 ? peak / std::sqrt(2.0) : 0.1 * peak;
  v[0] = peak;
  return v;
}

TEST_P(ErrorBound, HoldsAndIsOfUse) {
  const Config& c = GetParam();
  BootstrapperOptions options{c.log_slots, c.real, c.minimum};
  options.target_level = c.target;
  World w(made(c), options);
  const int low = w.bootstrapper->plan().input_level();
  SCOPED_TRACE("seed " + std::to_string(w.seed));
  const auto expect = [&](const ckks::Ciphertext& y, const std::vector<Complex>& v, double peak) {
    const double bound = ckks::worst_case_error(y), error = max_error(w.decrypt(y), v);
    EXPECT_LE(error, bound);
    EXPECT_EQ(y.estimate.peak, peak);
    // Averages for numbers of this peak and 256 deviations, twice that for rare and for many
    // integers, and as much again for pairs.
    params::Estimate average = y.estimate;
    average.message_shared = average.variance_shared = 1;
    const double bits = w.evaluator->noise().precision_bits(average, y.scale);
    EXPECT_LT(bound, std::exp2(11.5 - bits) + 0x1p-4);
    EXPECT_LT(bound, std::max(peak, 1.0) / 4) << "a check says something";
    if (c.precision >= 20) {
      EXPECT_LT(bound, 0x1p-6 * std::max(peak, 1.0));
    }
    if (bound <= peak) {
      EXPECT_EQ(ckks::allowed_error(y), bound);
    }
    EXPECT_LE(ckks::allowed_error(y), bound);
    EXPECT_GT(ckks::worst_case_noise(y), bound) << "release hides the worst case";
  };
  const std::size_t slots = std::size_t{1} << w.log_slots;
  for (const auto& [peak, batch] :
       {std::pair{1.0, std::size_t{1}}, {0.01, std::size_t{3}}, {4.0, std::size_t{1}}}) {
    SCOPED_TRACE("peak " + std::to_string(peak) + ", batch " + std::to_string(batch));
    auto v = numbers(w, batch * slots, peak, c.real);
    const params::Declared declared{peak / 2, peak};
    const auto x = w.encryptor->encrypt(
        w.evaluator->encoder().encode(v, batch, low, w.params->scale(low), w.log_slots), declared);
    expect(w.bootstrapper->apply(x, -1, {}, c.iterations), v, peak);
    if (batch > 1 || c.real) continue;
    auto a = numbers(w, slots, peak, true), b = numbers(w, slots, peak, true);
    const auto encrypted = [&](const std::vector<Complex>& z) {
      return w.encryptor->encrypt(
          w.evaluator->encoder().encode(z, 1, low, w.params->scale(low), w.log_slots), declared);
    };
    const auto [y, z] = w.bootstrapper->apply_pair(encrypted(a), encrypted(b), -1, c.iterations);
    expect(y, a, peak);
    expect(z, b, peak);
  }
}

std::vector<Config> configs() {
  return {
      {"slots_w52_22", kSlots, Word::w52, 22, 9},
      {"slots_w32_22_real", kSlots, Word::w32, 22, 9, true},
      {"slots_w64_14_few", kSlots, Word::w64, 14, 3},
      {"slots_w52_28_minimum", kSlots, Word::w52, 28, 9, false, true},
      {"raise_w52_22", kRaise, Word::w52, 22, 9},
      {"raise_w32_20_few", kRaise, Word::w32, 20, 2},
      {"raise_w64_14_real", kRaise, Word::w64, 14, 9, true},
      {"raise_w52_22_minimum", kRaise, Word::w52, 22, 5, false, true},
      {"slots_w52_35_twice", kSlots, Word::w52, 35, 9, false, false, 2},
      {"raise_w52_35_twice", kRaise, Word::w52, 35, 9, false, false, 2},
      {"slots_w64_weight_16", kSlots, Word::w64, 16, 9, false, false, 1, 16},
      {"slots_w52_22_target", kSlots, Word::w52, 22, 9, false, false, 1, 32, 4},
  };
}

INSTANTIATE_TEST_SUITE_P(Configs, ErrorBound, ::testing::ValuesIn(configs()),
                         [](const auto& test_info) { return test_info.param.label; });

/// The density at x of the sum of `count` numbers uniform in [-1/2, 1/2).
double density(int count, double x) {
  long double sum = 0, binomial = 1;
  for (int k = 0; k <= count; ++k) {
    const long double d = x + count / 2.0L - k;
    if (d > 0) sum += (k % 2 ? -1 : 1) * binomial * std::pow(d, count - 1);
    binomial = binomial * (count - k) / (k + 1);
  }
  return static_cast<double>(sum / std::tgamma(static_cast<long double>(count)));
}

TEST(RareIntegers, AreAsRareAsTheirDensityOrMore) {
  for (const int weight : {4, 8, 12}) {
    for (int least = 1; 2 * least < weight + 1; ++least) {
      double exact = 0;
      for (int i = least; 2 * i < weight + 1; ++i) exact += 2 * density(weight + 1, -i);
      const double bound = std::exp2(log2_integer_beyond(weight, least));
      EXPECT_GE(bound, exact * (1 - 1e-9)) << weight << ", " << least;
      EXPECT_LE(bound, 4 * exact) << weight << ", " << least;
    }
  }
  // The whole simplex is one term near the end: (1/2)^32 / 32! in both directions.
  EXPECT_NEAR(log2_integer_beyond(32, 16), 1 - 32 - std::lgamma(33) / std::numbers::ln2, 1e-6);
}

// The sum of the errors at random integers, each drawn as a sum of uniform numbers, is never above
// the bound, and not far below.
TEST(RareIntegers, SumsOfCosineErrorsAreBounded) {
  const circuits::ModularReduction reduction({16, 30, 3, 1, 32});
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  constexpr std::size_t kCount = 1 << 12;
  const double one = largest_cosine_error(reduction, kCount, 0.001, false);
  const double sum = largest_cosine_error(reduction, kCount, 0.001, true);
  EXPECT_LT(one, reduction.interpolation_error());
  double largest = 0, most = 0;
  for (int round = 0; round < 20; ++round) {
    double total = 0;
    for (std::size_t j = 0; j < kCount; ++j) {
      double x = 0;
      for (int k = 0; k < 33; ++k) x += uniform(random);
      const int i = static_cast<int>(std::fabs(std::round(x)));
      const double error = reduction.interpolation_error_at(i, 0);
      total += error;
      most = std::max(most, error);
    }
    largest = std::max(largest, total);
  }
  EXPECT_LT(most, one);
  EXPECT_LT(largest, sum);
  EXPECT_LT(sum, largest + 4 * one);
}

// The roundings of the matrices that a bootstrapping has, as they are: |rho_d(i)|^2 summed over the
// diagonals of a stage. The bounds on errors take it for at most 16 times its mean.
TEST(MatrixRoundings, AreEvenlySpread) {
  for (const auto order : {kSlots, kRaise}) {
    World w({"matrices", Word::w52, 40, 5, precise(order, 3, 3, 40)}, {});
    const std::size_t slots = w.params->slots();
    for (const auto direction :
         {circuits::Dft::slots_to_coefficients, circuits::Dft::coefficients_to_slots}) {
      for (const auto& matrix : circuits::dft_matrices(direction, w.params->log_n() - 1, 3, 0.37)) {
        std::vector<double> squares(slots, 0);
        for (const auto& [d, entries] : matrix) {
          const auto rounded =
              w.evaluator->encoder().decode(w.evaluator->encoder().encode(entries, 1, 2, 0x1p30));
          for (std::size_t j = 0; j < slots; ++j) {
            squares[j] += std::norm((rounded[j] - entries[j]) * 0x1p30);
          }
        }
        const double mean = static_cast<double>(matrix.size() * w.params->n()) / 12;
        EXPECT_LT(*std::ranges::max_element(squares), 16 * mean);
      }
    }
  }
}

// Angles beyond pi/4, up to several turns.
TEST(WorstSineError, HoldsAtEveryAngle) {
  constexpr double kSeries[] = {1, 1.0 / 6, 3.0 / 40, 15.0 / 336};
  for (const int degree : {1, 3, 5, 7}) {
    BootstrapLiteral b = precise(kSlots, 2, 2);
    b.inverse_sine = degree;
    const auto params = ckks::Params::create(literal_of({"sine", Word::w64, 45, 4, b}));
    const BootstrapPlan plan(params);
    // Its bound is a power: the error of a number at the angle theta = 2 pi m / turn is c
    // theta^(degree + 2).
    const double q0 = std::exp2(params->level(0).log_q);
    const double turn =
        q0 / std::max(q0 * std::exp2(-b.ratio_bits), params->scale(0)) / (2 * std::numbers::pi);
    for (double theta = 0.1; theta < 20; theta += 0.01) {
      const double s = std::sin(theta);
      double y = 0;
      for (int k = 0; 2 * k + 1 <= degree; ++k) y += kSeries[k] * std::pow(s, 2 * k + 1);
      EXPECT_LE(std::fabs(y - theta) * turn, plan.worst_sine_error(theta * turn) * (1 + 1e-9))
          << degree << " at " << theta;
    }
  }
}

}  // namespace
}  // namespace jali::bootstrap::testing
