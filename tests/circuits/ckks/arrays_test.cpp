// Tests circuits on vectors whose length is known, and plans that several threads share.
#include "jali/circuits/ckks/arrays.h"

#include <atomic>
#include <thread>

#include "../../seeded.h"
#include "jali/schemes/ckks/packing.h"
#include "support.h"

namespace jali::circuits::testing {
namespace {

const Scheme kScheme{"w52", Word::w52, 40, 2};

std::vector<double> real_numbers(std::mt19937_64& random, std::size_t count) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> out(count);
  for (auto& x : out) x = uniform(random);
  return out;
}

TEST(CircuitsOnArrays, MatVecShowsItsRows) {
  std::mt19937_64 random(jali::test::test_seed());
  const auto params = make_params(kScheme);
  const auto matrix = real_numbers(random, 3 * 5);
  MatVecOptions options;
  options.input = Layout::periodic(5, params->slots(), params->slots());
  const Shared<MatVec> plan(params, {}, matrix, std::size_t{3}, std::size_t{5}, params, options);
  World world(kScheme, plan->rotations());
  const auto x = real_numbers(random, 5);
  std::vector<Complex> slots(params->slots());
  std::copy(x.begin(), x.end(), slots.begin());
  auto c = world.encrypt(slots);
  c.packing = ckks::packing_of_fresh(5, params->log_n() - 1, true, false);
  const ckks::Ciphertext* const inputs[] = {&c};
  const auto outputs = apply(*world.evaluator, plan, inputs);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].packing.length, 3u);
  EXPECT_TRUE(outputs[0].packing.batched);
  const auto got = world.decrypt(outputs[0]);
  for (std::size_t r = 0; r < 3; ++r) {
    double expected = 0;
    for (std::size_t k = 0; k < 5; ++k) expected += matrix[r * 5 + k] * x[k];
    EXPECT_LE(std::abs(got[r] - expected), bound(world, outputs[0])) << world.seed;
  }
  // Inputs that do not fit the plan are refused.
  const ckks::Ciphertext* const two[] = {&c, &c};
  EXPECT_THROW(apply(*world.evaluator, plan, two), InvalidArgument);
  c.packing.complex_values = true;
  EXPECT_THROW(apply(*world.evaluator, plan, inputs), InvalidArgument);
  c.packing = ckks::packing_of_fresh(4, params->log_n() - 1, false, false);
  EXPECT_THROW(apply(*world.evaluator, plan, inputs), InvalidArgument) << "an element is missing";
  c.packing = ckks::packing_of_fresh(6, params->log_n() - 1, false, false);
  EXPECT_THROW(apply(*world.evaluator, plan, inputs), InvalidArgument) << "a sixth number";
  c.packing = {};
  EXPECT_THROW(apply(*world.evaluator, plan, inputs), InvalidArgument) << "a number in every slot";
  const std::uint32_t half = static_cast<std::uint32_t>(params->slots() / 2);
  c.packing = {5, false, false, params::kUnbounded, {0, half, half, 1}};
  EXPECT_NO_THROW(apply(*world.evaluator, plan, inputs))
      << "the first five are where they should be";
  c.packing.tiling = {0, 2, 4, 4};
  EXPECT_THROW(apply(*world.evaluator, plan, inputs), InvalidArgument) << "windows";
}

TEST(CircuitsOnArrays, MatVecNamesBothLayouts) {
  std::mt19937_64 random(jali::test::test_seed());
  const auto params = make_params(kScheme);
  const Shared<MatVec> plan(params, {}, real_numbers(random, 4 * 20), std::size_t{4},
                            std::size_t{20}, params, MatVecOptions{});
  World world(kScheme, plan->rotations());
  auto c = world.encrypt(std::vector<Complex>(params->slots(), 0.5));
  const ckks::Ciphertext* const inputs[] = {&c};
  const int log_slots = params->log_n() - 1;
  ckks::Packing plus_one = ckks::packing_of_fresh(20, log_slots, false, false);
  plus_one.rest = params::kUnbounded;
  for (const ckks::Packing& lies :
       {ckks::packing_of_fresh(20, log_slots, false, false), plus_one, ckks::Packing{}}) {
    c.packing = lies;
    try {
      apply(*world.evaluator, plan, inputs);
      FAIL() << "it was accepted";
    } catch (const InvalidArgument& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(ckks::described(lies, log_slots)), std::string::npos) << message;
      EXPECT_NE(message.find(plan->input_layout().described()), std::string::npos) << message;
      EXPECT_NE(message.find("arrange"), std::string::npos) << message;
    }
  }
  c.packing = plan->input_layout().packing[0];
  const auto outputs = apply(*world.evaluator, plan, inputs);
  EXPECT_EQ(outputs[0].packing, plan->output_layout().packing[0]);
}

TEST(CircuitsOnArrays, MatVecTakesThePartsOfALongVectorInTurn) {
  std::mt19937_64 random(jali::test::test_seed());
  const auto params = make_params(kScheme);
  const std::size_t slots = params->slots(), n = 2 * slots;
  const Shared<MatVec> plan(params, {}, real_numbers(random, n), std::size_t{1}, n, params,
                            MatVecOptions{});
  World world(kScheme, plan->rotations());
  const Layout& layout = plan->input_layout();
  auto a = world.encrypt(std::vector<Complex>(slots, 0.5));
  auto b = world.encrypt(std::vector<Complex>(slots, 0.25));
  a.packing = layout.packing[0];
  b.packing = layout.packing[1];
  const ckks::Ciphertext* const in_turn[] = {&a, &b};
  const ckks::Ciphertext* const swapped[] = {&b, &a};
  EXPECT_NO_THROW(apply(*world.evaluator, plan, in_turn));
  EXPECT_THROW(apply(*world.evaluator, plan, swapped), InvalidArgument);
}

TEST(CircuitsOnArrays, LinearTransformsAndPolynomials) {
  const auto params = make_params(kScheme);
  const Diagonals ones{{0, std::vector<Complex>(params->slots(), 1.0)}};
  const Shared<LinearTransform> plan(params, {}, params, ones, TransformOptions{});
  World world(kScheme, plan->rotations());
  auto c = world.encrypt(world.vector());
  c.packing = {5, true, false, 0.0};
  const auto y = apply(*world.evaluator, plan, false, c);
  EXPECT_EQ(y.packing.length, 0u);
  EXPECT_TRUE(y.packing.batched && !y.packing.complex_values && y.packing.rest != 0);
  EXPECT_TRUE(apply(*world.evaluator, plan, true, c).packing.complex_values);
  Polynomial square;
  square.coefficients = {1, 0, 1};
  const auto z = apply(*world.evaluator, PolynomialPlan(square), c);
  EXPECT_EQ(z.packing.length, 5u);
  EXPECT_EQ(z.packing.rest, 1) << "the constant lies past the end";
  EXPECT_FALSE(z.packing.complex_values);
  square.coefficients[1] = Complex(0, 1);
  EXPECT_TRUE(apply(*world.evaluator, PolynomialPlan(square), c).packing.complex_values);
  square.coefficients[1] = 1e40;
  EXPECT_THROW(apply(*world.evaluator, PolynomialPlan(square), c), InvalidArgument);
}

TEST(SharedPlans, AreAppliedByManyAndPreparedByOne) {
  const auto params = make_params(kScheme);
  const Diagonals ones{{0, std::vector<Complex>(params->slots(), 1.0)}};
  Shared<LinearTransform> plan(params, {}, params, ones, TransformOptions{});
  World world(kScheme, plan->rotations());
  const auto v = world.vector();
  const auto c = world.encrypt(v);
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 5; ++k) {
        if (t == 0) plan.prepare(*world.evaluator);
        right += plan.apply(*world.evaluator, c).level == c.level - 1;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(right, 20);
  expect_near(world, plan.apply(*world.evaluator, c), v, "prepared");
}

TEST(SharedPlans, RefuseOtherParametersAndOtherDevices) {
  const auto params = make_params(kScheme);
  const Diagonals ones{{0, std::vector<Complex>(params->slots(), 1.0)}};
  Shared<LinearTransform> plan(params, {}, params, ones, TransformOptions{});
  World world(kScheme, plan->rotations());
  World apart(kScheme, plan->rotations(), "cpu/apart");
  World other({"w52", Word::w52, 38, 2}, plan->rotations());
  EXPECT_THROW(plan.prepare(*other.evaluator), ParamsMismatch);
  EXPECT_THROW(plan.apply(*other.evaluator, other.encrypt(other.vector())), ParamsMismatch);
  plan.prepare(*world.evaluator);
  const auto away = apart.evaluator->bring(apart.encrypt(apart.vector()));
  EXPECT_THROW(plan.apply(*apart.evaluator, away), InvalidArgument);
  plan.prepare(*apart.evaluator);
  EXPECT_EQ(plan.apply(*apart.evaluator, away).level, away.level - 1);
}

}  // namespace
}  // namespace jali::circuits::testing
