#include "jali/circuits/ckks/linear_transform.h"

#include "../../seeded.h"
#include "support.h"

namespace jali::circuits::testing {
namespace {

std::vector<Complex> clear(const Diagonals& diagonals, const std::vector<Complex>& x) {
  std::vector<Complex> y(x.size(), 0.0);
  for (const auto& [d, entries] : diagonals) {
    const auto turned = rotate(x, d);
    for (std::size_t s = 0; s < x.size(); ++s) y[s] += entries[s] * turned[s];
  }
  return y;
}

Diagonals random_diagonals(std::mt19937_64& random, std::size_t slots,
                           const std::vector<int>& indices) {
  const double size = 1 / std::sqrt(static_cast<double>(std::max<std::size_t>(indices.size(), 1)));
  std::uniform_real_distribution<double> uniform(-size, size);
  Diagonals out;
  for (int d : indices) {
    auto& entries = out[d];
    for (std::size_t s = 0; s < slots; ++s) entries.emplace_back(uniform(random), uniform(random));
  }
  return out;
}

// Makes a plan and exactly the keys that it names, applies it and compares the result.
void check(const Scheme& scheme, const Diagonals& diagonals, TransformOptions options,
           bool prepared, std::size_t batch = 1) {
  const auto params = make_params(scheme);
  LinearTransform transform(params, diagonals, options);
  const auto rotations = transform.rotations();
  World world(scheme, rotations);
  EXPECT_EQ(transform.key_bytes(), params->key_bytes(rotations, false, false));
  if (prepared) transform.prepare(world.encoder());
  const int log_slots = options.log_slots < 0 ? params->log_n() - 1 : options.log_slots;
  const std::size_t slots = std::size_t{1} << log_slots;
  const auto x = world.vector(1, batch * slots);
  const auto y =
      transform.apply(*world.evaluator, world.encrypt(x, options.level, log_slots, batch));
  EXPECT_EQ(y.level, transform.level() - 1);
  EXPECT_EQ(y.scale, params->scale(y.level));
  EXPECT_EQ(y.parts.size(), 2u);
  std::vector<Complex> expected;
  for (std::size_t b = 0; b < batch; ++b) {
    const auto part = clear(diagonals, {x.begin() + static_cast<std::ptrdiff_t>(b * slots),
                                        x.begin() + static_cast<std::ptrdiff_t>((b + 1) * slots)});
    expected.insert(expected.end(), part.begin(), part.end());
  }
  expect_near(world, y, expected, scheme.label);
  // The estimate is not much larger than the noise either. It counts N coefficients; with sparse
  // packing a slot contains the noise of only 2 * slots of them.
  const double shown = std::sqrt(static_cast<double>(slots) / static_cast<double>(params->slots()));
  if (!transform.rotations().empty()) world.expect(y, expected, 0.5 * shown);
}

class LinearTransforms : public ::testing::TestWithParam<Scheme> {
 protected:
  std::mt19937_64 random_{jali::test::test_seed()};
};

TEST_P(LinearTransforms, Dense) {
  const std::size_t slots = 64;  // sparse packing, every diagonal
  std::vector<int> all;
  for (int d = 0; d < 64; ++d) all.push_back(d);
  check(GetParam(), random_diagonals(random_, slots, all), {.log_slots = 6}, true);
}

TEST_P(LinearTransforms, BandedOnAllSlots) {
  const std::size_t slots = std::size_t{1} << (GetParam().log_n - 1);
  check(GetParam(), random_diagonals(random_, slots, {-2, -1, 0, 1, 2}), {}, true);
}

TEST_P(LinearTransforms, ScatteredStreamed) {
  const std::size_t slots = std::size_t{1} << (GetParam().log_n - 1);
  check(GetParam(), random_diagonals(random_, slots, {1, 7, 8, 20, 64, 65, 66, 200, -100}), {},
        false);
}

// With the fewest keys there are at most two rotation keys for any diagonals.
TEST_P(LinearTransforms, FewestKeys) {
  for (const auto& indices : {std::vector<int>{-6, -4, 0, 2, 4}, {0, 1, 2, 3, 60, 62}, {5}, {0}}) {
    const auto diagonals = random_diagonals(random_, 64, {indices.begin(), indices.end()});
    TransformOptions options{.log_slots = 6, .bsgs = {.sequence = Sequence{}}};
    LinearTransform transform(make_params(GetParam()), diagonals, options);
    EXPECT_LE(transform.rotations().size(), 2u);
    check(GetParam(), diagonals, options, indices.size() % 2 == 0);
  }
}

// Every way to make the steps one after the other, with gaps in the diagonals, and none at the
// start.
TEST_P(LinearTransforms, EverySequence) {
  std::vector<int> some{2, 4, 8};
  for (int d = 14; d < 40; d += 2) some.push_back(d);
  const auto diagonals = random_diagonals(random_, 64, some);
  for (const Sequence& steps : {Sequence{2, 1},
                                {8, 1},
                                {32, 1},
                                {4, 2},
                                {8, 2},
                                {8, 8},
                                {7, 3},
                                {32, 4},
                                {32, 32},
                                {20, 20}}) {
    check(GetParam(), diagonals, {.log_slots = 6, .bsgs = {.sequence = steps}},
          steps.babies % 4 == 0, steps.own == 2 ? 2 : 1);
  }
  for (const Sequence& bad : {Sequence{0, 0}, {4, 0}, {4, 5}}) {
    EXPECT_THROW(LinearTransform(make_params(GetParam()), diagonals,
                                 {.log_slots = 6, .bsgs = {.sequence = bad}}),
                 InvalidArgument);
  }
}

TEST_P(LinearTransforms, OneDiagonal) {
  const std::size_t slots = std::size_t{1} << (GetParam().log_n - 1);
  check(GetParam(), random_diagonals(random_, slots, {37}), {.level = 1}, true);
  check(GetParam(), random_diagonals(random_, slots, {0}), {}, true);
}

TEST_P(LinearTransforms, Zero) {
  const std::size_t slots = std::size_t{1} << (GetParam().log_n - 1);
  check(GetParam(), {}, {}, true);
  check(GetParam(), {{3, std::vector<Complex>(slots, 0.0)}}, {}, false);
}

TEST_P(LinearTransforms, EveryHoistingAndStep) {
  std::vector<int> some;
  for (int d = 0; d < 24; ++d) some.push_back(d);
  const auto diagonals = random_diagonals(random_, 128, some);
  for (Hoisting h : {Hoisting::single, Hoisting::twice})
    for (int step : {1, 4, 32, 128})
      check(GetParam(), diagonals, {.log_slots = 7, .bsgs = {.hoisting = h, .baby_step = step}},
            step == 4);
}

TEST_P(LinearTransforms, Batch) {
  const auto diagonals = random_diagonals(random_, 32, {0, 1, 5, 9, 30});
  for (Hoisting h : {Hoisting::single, Hoisting::twice})
    check(GetParam(), diagonals, {.log_slots = 5, .bsgs = {.hoisting = h, .baby_step = 4}}, true,
          3);
}

INSTANTIATE_TEST_SUITE_P(Words, LinearTransforms, ::testing::ValuesIn(words()),
                         [](const auto& info) { return info.param.label; });

TEST(LinearTransform, LargerRings) {
  std::mt19937_64 random(jali::test::test_seed());
  for (int log_n : {11, 12, 13}) {
    const std::size_t slots = std::size_t{1} << (log_n - 1);
    check({"larger", Word::w64, 45, 2, log_n},
          random_diagonals(random, slots, {0, 1, 2, 3, 4, 5, 6, 7, 100, 101}), {}, true);
  }
}

TEST(LinearTransform, SameResultWithAndWithoutDoubleHoisting) {
  const Scheme scheme{"both", Word::w64, 45, 2, 10};
  const auto params = make_params(scheme);
  std::mt19937_64 random(jali::test::test_seed());
  const auto diagonals = random_diagonals(random, 512, {0, 1, 2, 3, 16, 17, 18, 19});
  LinearTransform twice(params, diagonals,
                        {.bsgs = {.hoisting = Hoisting::twice, .baby_step = 16}});
  LinearTransform single(params, diagonals,
                         {.bsgs = {.hoisting = Hoisting::single, .baby_step = 16}});
  EXPECT_EQ(twice.rotations(), single.rotations());
  EXPECT_GT(twice.plaintext_bytes(), single.plaintext_bytes());
  World world(scheme, twice.rotations());
  const auto x = world.vector();
  const auto c = world.encrypt(x);
  const auto expected = clear(diagonals, x);
  expect_near(world, twice.apply(*world.evaluator, c), expected, "twice");
  expect_near(world, single.apply(*world.evaluator, c), expected, "single");
}

TEST(LinearTransform, FromAMatrix) {
  const Scheme scheme{"matrix", Word::w64, 45, 1, 10};
  const auto params = make_params(scheme);
  const std::size_t slots = 16;
  std::mt19937_64 random(jali::test::test_seed());
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<Complex> matrix(slots * slots);
  for (auto& e : matrix) e = {uniform(random), uniform(random)};
  LinearTransform transform(params, diagonals_of(matrix, slots), {.log_slots = 4});
  World world(scheme, transform.rotations());
  const auto x = world.vector(1, slots);
  std::vector<Complex> expected(slots, 0.0);
  for (std::size_t r = 0; r < slots; ++r)
    for (std::size_t c = 0; c < slots; ++c) expected[r] += matrix[r * slots + c] * x[c];
  expect_near(world, transform.apply(*world.evaluator, world.encrypt(x, -1, 4)), expected,
              "matrix");
}

// Rows of zeros leave no noise, so that an average over all slots is below that of the numbers.
TEST(LinearTransform, PromisesNoMorePrecisionThanTheRowsHave) {
  const Scheme scheme{"rows", Word::w64, 45, 2, 10};
  const auto params = make_params(scheme);
  const std::size_t slots = params->slots(), rows = slots / 16;
  std::mt19937_64 random(jali::test::test_seed());
  std::vector<int> some;
  for (int d = 0; d < 24; ++d) some.push_back(d);
  auto diagonals = random_diagonals(random, slots, some);
  for (auto& [d, entries] : diagonals) {
    for (std::size_t s = 0; s < slots; ++s) entries[s] *= s % 16 == 3 ? 10 : 0;
  }
  const BsgsOptions ways[] = {{.hoisting = Hoisting::single},
                              {.hoisting = Hoisting::twice},
                              {.hoisting = Hoisting::twice, .baby_step = 32},
                              {.sequence = Sequence{2, 1}},
                              {.sequence = Sequence{8, 1}},
                              {.sequence = Sequence{8, 4}}};
  for (const BsgsOptions& way : ways) {
    for (const bool prepared : {false, true}) {
      LinearTransform transform(params, diagonals, {.bsgs = way});
      World world(scheme, transform.rotations());
      if (prepared) transform.prepare(world.encoder());
      const auto x = world.vector();
      const auto y = transform.apply(*world.evaluator, world.encrypt(x));
      const auto got = world.decrypt(y), expected = clear(diagonals, x);
      double sum = 0, square = 0;
      for (std::size_t s = 0; s < slots; ++s) {
        if (s % 16 != 3) continue;
        sum += std::norm(got[s] - expected[s]);
        square += std::norm(expected[s]);
      }
      const double each = 1 / static_cast<double>(rows);
      const double promised =
          std::exp2(-world.evaluator->noise().precision_bits(y.estimate, y.scale));
      const double ratio = std::sqrt(sum * each / 2) / promised;
      EXPECT_LT(ratio, 1.6) << "seed " << world.seed;  // 64 normal numbers; it was 4
      EXPECT_GT(ratio, 0.6) << "seed " << world.seed;
      const double size = std::sqrt(square * each) / y.estimate.message;
      EXPECT_LT(size, 1.6) << "seed " << world.seed;
      EXPECT_GT(size, 0.6) << "seed " << world.seed;
    }
  }
}

TEST(LinearTransform, RefusesClaimsThatAreNoSize) {
  const Scheme scheme{"claims", Word::w64, 45, 2, 10};
  const auto params = make_params(scheme);
  const LinearTransform transform(params, {{0, std::vector<Complex>(512, 1.0)}});
  World world(scheme, {});
  const auto x = world.encrypt(world.vector());
  for (const double bad : {-1.0, std::nan("")}) {
    EXPECT_THROW(transform.apply(*world.evaluator, x, bad), InvalidArgument) << bad;
  }
  EXPECT_EQ(transform.apply(*world.evaluator, x, 1.5).estimate.peak, 1.5);
}

TEST(LinearTransform, BringsInputsDown) {
  const Scheme scheme{"down", Word::w64, 45, 3, 10};
  const auto params = make_params(scheme);
  std::mt19937_64 random(jali::test::test_seed());
  const auto diagonals = random_diagonals(random, 512, {0, 3});
  LinearTransform transform(params, diagonals, {.level = 2});
  World world(scheme, transform.rotations());
  const auto x = world.vector();
  const auto y = transform.apply(*world.evaluator, world.encrypt(x, 3));
  EXPECT_EQ(y.level, 1);
  expect_near(world, y, clear(diagonals, x), "from above");
}

TEST(LinearTransform, AnyInputScaleLandsOnTheCanonicalOne) {
  const Scheme scheme{"scale", Word::w64, 45, 2, 10};
  const auto params = make_params(scheme);
  std::mt19937_64 random(jali::test::test_seed());
  const auto diagonals = random_diagonals(random, 512, {0, 3});
  const double scale = 1.37 * params->scale(2);
  LinearTransform transform(params, diagonals, {.input_scale = scale});
  World world(scheme, transform.rotations());
  const auto x = world.vector();
  const auto c = world.encryptor->encrypt(world.encoder().encode(x, 1, 2, scale));
  const auto y = transform.apply(*world.evaluator, c);
  EXPECT_EQ(y.scale, params->scale(1));
  expect_near(world, y, clear(diagonals, x), "scale");
  EXPECT_THROW(transform.apply(*world.evaluator, world.encrypt(x)), ScaleMismatch);
}

TEST(LinearTransform, SaysWhatIsMissing) {
  const Scheme scheme{"errors", Word::w64, 45, 2, 10};
  const auto params = make_params(scheme);
  const std::vector<Complex> ones(512, 1.0);
  LinearTransform transform(params, {{0, ones}, {5, ones}, {-7, ones}});
  World world(scheme, {1, 5});
  const auto c = world.encrypt(world.vector());
  try {
    transform.apply(*world.evaluator, c);
    FAIL() << "no KeyMissing";
  } catch (const KeyMissing& e) {
    EXPECT_NE(std::string(e.what()).find("-7"), std::string::npos) << e.what();
    EXPECT_EQ(std::string(e.what()).find("5,"), std::string::npos) << e.what();
  }
  try {
    transform.apply(*world.evaluator, world.evaluator->drop_to(c, 1));
    FAIL() << "no error";
  } catch (const Error& e) {  // missing keys are reported before anything else
    EXPECT_EQ(e.code(), ErrorCode::key_missing);
  }
  LinearTransform simple(params, {{5, ones}});
  try {
    simple.apply(*world.evaluator, world.evaluator->drop_to(c, 1));
    FAIL() << "no DepthExhausted";
  } catch (const DepthExhausted& e) {
    EXPECT_NE(std::string(e.what()).find("depth 3"), std::string::npos) << e.what();
  }
  EXPECT_THROW(LinearTransform(params, {{0, ones}}, {.level = 0}), DepthExhausted);
  EXPECT_THROW(LinearTransform(params, {{0, ones}}, {.level = 3}), InvalidArgument);
  EXPECT_THROW(LinearTransform(params, {{512, ones}}), InvalidArgument);
  EXPECT_THROW(LinearTransform(params, {{-1, ones}, {511, ones}}), InvalidArgument);
  EXPECT_THROW(LinearTransform(params, {{0, std::vector<Complex>(511, 1.0)}}), InvalidArgument);
  EXPECT_THROW(LinearTransform(params, {{0, ones}}, {.log_slots = 10}), InvalidArgument);
  auto broken = ones;
  broken[3] = std::nan("");
  EXPECT_THROW(LinearTransform(params, {{0, broken}}), InvalidArgument);
  const auto sparse = world.encrypt(world.vector(1, 16), -1, 4);
  EXPECT_THROW(simple.apply(*world.evaluator, sparse), InvalidArgument);
  EXPECT_THROW(simple.apply(*world.evaluator, world.evaluator->square(c)), InvalidArgument);
}

}  // namespace
}  // namespace jali::circuits::testing
