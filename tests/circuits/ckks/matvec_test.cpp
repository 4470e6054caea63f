#include "jali/circuits/ckks/matvec.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "../../seeded.h"
#include "jali/schemes/ckks/composed.h"
#include "support.h"

namespace jali::circuits::testing {
namespace {

struct Problem {
  std::size_t m = 0, n = 0;
  std::vector<double> matrix;
};

Problem random_problem(std::mt19937_64& random, std::size_t m, std::size_t n, double zeros = 0) {
  const double size = 1 / std::sqrt(static_cast<double>(n));
  std::uniform_real_distribution<double> uniform(-size, size), coin(0, 1);
  Problem p{m, n, std::vector<double>(m * n)};
  for (double& e : p.matrix) e = coin(random) < zeros ? 0 : uniform(random);
  return p;
}

std::vector<double> random_vector(std::mt19937_64& random, std::size_t n) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> x(n);
  for (double& e : x) e = uniform(random);
  return x;
}

std::vector<double> clear(const Problem& p, const std::vector<double>& x, std::size_t batch = 1) {
  std::vector<double> y(batch * p.m, 0.0);
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t r = 0; r < p.m; ++r)
      for (std::size_t c = 0; c < p.n; ++c)
        y[b * p.m + r] += p.matrix[r * p.n + c] * x[b * p.n + c];
  return y;
}

std::vector<ckks::Ciphertext> encrypt(World& world, const std::vector<std::vector<double>>& packed,
                                      int level, int log_slots, std::size_t batch = 1) {
  std::vector<ckks::Ciphertext> out;
  for (const auto& slots : packed)
    out.push_back(world.encryptor->encrypt(
        world.encoder().encode(slots, batch, level, world.params->scale(level), log_slots)));
  return out;
}

std::vector<std::vector<double>> decrypt(World& world, const std::vector<ckks::Ciphertext>& y) {
  std::vector<std::vector<double>> out;
  for (const auto& c : y) {
    auto& slots = out.emplace_back();
    for (const Complex z : world.decrypt(c)) slots.push_back(z.real());
  }
  return out;
}

void expect_close(const World& world, const std::vector<double>& got,
                  const std::vector<double>& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::abs(got[i] - expected[i]));
  EXPECT_LE(worst, tolerance) << what << ", seed " << world.seed;
}

void check(const Scheme& scheme, const Problem& p, MatVecOptions options = {}, bool prepared = true,
           std::size_t batch = 1) {
  const std::string what = scheme.label + " " + std::to_string(p.m) + "x" + std::to_string(p.n);
  const auto params = make_params(scheme);
  MatVec product(p.matrix, p.m, p.n, params, options);
  const auto rotations = product.rotations();
  World world(scheme, rotations);
  EXPECT_EQ(product.key_bytes(), params->key_bytes(rotations, false, false));
  if (prepared) product.prepare(world.encoder());
  const auto x = random_vector(world.random, batch * p.n);
  const int log_slots = options.log_slots < 0 ? params->log_n() - 1 : options.log_slots;
  const auto c = encrypt(world, product.pack(x, batch), product.level(), log_slots, batch);
  const auto y = product.apply(*world.evaluator, c);
  ASSERT_EQ(y.size(), product.output_layout().ciphertexts()) << what;
  auto expected = clear(p, x, batch);
  if (!options.bias.empty())
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += options.bias[i % p.m];
  const auto slots = decrypt(world, y);
  double tolerance = 0;
  for (const auto& c_out : y) {
    EXPECT_EQ(c_out.level, product.level() - 1);
    EXPECT_EQ(c_out.scale, params->scale(c_out.level));
    tolerance = std::max(tolerance, bound(world, c_out));
  }
  EXPECT_LT(tolerance, 0.05);
  expect_close(world, product.unpack(slots, batch), expected, tolerance, what);
  // The measured noise is neither much larger nor much smaller than the estimate.
  if (options.log_slots < 0 && !product.rotations().empty()) {
    const auto packed = product.output_layout().pack(expected, batch);
    world.expect(y[0], {packed[0].begin(), packed[0].end()}, 0.35, 2.0);
  }
  // Every slot that the layout names holds its output, not only the first for each; all other slots
  // are zero.
  const auto all = product.output_layout().pack(expected, batch);
  for (std::size_t o = 0; o < all.size(); ++o)
    expect_close(world, slots[o], all[o], tolerance, what + " in every slot");
}

class MatVecs : public ::testing::TestWithParam<Scheme> {
 protected:
  std::mt19937_64 random_{jali::test::test_seed()};
};

TEST_P(MatVecs, Wide) { check(GetParam(), random_problem(random_, 10, 100)); }
TEST_P(MatVecs, Tall) { check(GetParam(), random_problem(random_, 100, 10)); }
TEST_P(MatVecs, Square) { check(GetParam(), random_problem(random_, 64, 64)); }
TEST_P(MatVecs, LongInputAndOutput) {
  check(GetParam(), random_problem(random_, 600, 700), {}, false);
}
TEST_P(MatVecs, BatchAndBias) {
  const auto p = random_problem(random_, 20, 45);
  check(GetParam(), p, {.bias = random_vector(random_, 20)}, true, 3);
  check(GetParam(), p, {.bias = random_vector(random_, 20)}, false, 2);
}

INSTANTIATE_TEST_SUITE_P(Words, MatVecs, ::testing::ValuesIn(words()),
                         [](const auto& info) { return info.param.label; });

const Scheme kScheme{"w64", Word::w64, 45, 3, 10};

TEST(MatVec, Shapes) {
  std::mt19937_64 random(jali::test::test_seed());
  struct Shape {
    std::size_t m, n;
  };
  for (const Shape s : {Shape{1, 1}, Shape{1, 512}, Shape{512, 1}, Shape{3, 200}, Shape{200, 3},
                        Shape{512, 512}, Shape{100, 845}, Shape{1000, 30}, Shape{30, 1100},
                        Shape{513, 17}, Shape{17, 513}, Shape{84, 84}})
    check(kScheme, random_problem(random, s.m, s.n), {.level = 1}, false);
}

TEST(MatVec, OtherRings) {
  std::mt19937_64 random(jali::test::test_seed());
  for (int log_n : {11, 12, 13})
    check({"ring", Word::w64, 45, 2, log_n}, random_problem(random, 50, 200));
}

TEST(MatVec, SparsePackingAndSparseMatrices) {
  std::mt19937_64 random(jali::test::test_seed());
  check(kScheme, random_problem(random, 10, 20), {.log_slots = 5});
  check(kScheme, random_problem(random, 40, 70), {.level = 2, .log_slots = 5});
  check(kScheme, random_problem(random, 60, 200, 0.97));
  check(kScheme, random_problem(random, 60, 200, 1.0));  // zero
  // A band: few diagonals.
  Problem band{256, 256, std::vector<double>(256 * 256, 0.0)};
  for (std::size_t r = 0; r < 256; ++r)
    for (std::size_t c = r; c < std::min<std::size_t>(r + 3, 256); ++c)
      band.matrix[r * 256 + c] = 0.25;
  check(kScheme, band);
  MatVec product(band.matrix, 256, 256, make_params(kScheme));
  EXPECT_LE(product.plan().diagonal_count(), 6u);
}

TEST(MatVec, EveryHoisting) {
  std::mt19937_64 random(jali::test::test_seed());
  for (Hoisting h : {Hoisting::single, Hoisting::twice})
    check(kScheme, random_problem(random, 30, 90), {.bsgs = {.hoisting = h}});
}

// A client may have any layout of its input, with holes that hold garbage.
TEST(MatVec, GivenInputLayouts) {
  std::mt19937_64 random(jali::test::test_seed());
  const auto params = make_params(kScheme);
  const std::size_t slots = params->slots();
  std::vector<std::int32_t> scattered(slots, kNothing);
  std::vector<std::size_t> places(slots);
  std::iota(places.begin(), places.end(), 0);
  std::ranges::shuffle(places, random);
  for (int e = 0; e < 50; ++e) scattered[places[static_cast<std::size_t>(e)]] = e;
  std::vector<std::int32_t> spaced(slots, kNothing), head(slots, kNothing);
  for (int e = 0; e < 50; ++e) {
    spaced[static_cast<std::size_t>(4 * e + 3)] = e;
    head[static_cast<std::size_t>(e)] = e;
  }
  for (const auto& row : {scattered, spaced, head}) {
    const Layout layout{50, slots, {row}};
    const Problem p = random_problem(random, 24, 50);
    MatVec product(p.matrix, p.m, p.n, params, {.input = layout});
    World world(kScheme, product.rotations());
    const auto x = random_vector(world.random, 50);
    auto packed = product.pack(x);
    for (std::size_t s = 0; s < slots; ++s)
      if (row[s] == kNothing) packed[0][s] = 1.0 - 0.001 * static_cast<double>(s);  // garbage
    const auto y = product.apply(*world.evaluator, encrypt(world, packed, 3, -1));
    expect_close(world, product.unpack(decrypt(world, y)), clear(p, x), bound(world, y[0]),
                 "layout");
  }
}

// A dense layer, a square and a dense layer, like the networks of the demos, with no masks in
// between.
TEST(MatVec, LayersChain) {
  std::mt19937_64 random(jali::test::test_seed());
  struct Shape {
    std::size_t n, hidden, m;
  };
  for (const Shape s :
       {Shape{145, 100, 10}, Shape{700, 100, 10}, Shape{20, 600, 10}, Shape{10, 33, 600}}) {
    const auto params = make_params(kScheme);
    Problem p = random_problem(random, s.hidden, s.n), q = random_problem(random, s.m, s.hidden);
    // No result of any input leaves level 0: rows add up to 1 at most.
    for (double& entry : p.matrix) entry /= static_cast<double>(s.n);
    for (double& entry : q.matrix) entry /= static_cast<double>(s.hidden);
    const auto bias = random_vector(random, s.hidden);
    MatVec first(p.matrix, p.m, p.n, params, {.bias = bias});
    MatVec second(q.matrix, q.m, q.n, params, {.level = 1, .input = first.output_layout()});
    auto rotations = first.rotations();
    for (int r : second.rotations()) rotations.push_back(r);
    World world(kScheme, rotations);
    const auto x = random_vector(world.random, s.n);
    auto hidden = first.apply(*world.evaluator, encrypt(world, first.pack(x), 3, -1));
    for (auto& h : hidden) h = world.evaluator->multiply_relinearise_rescale(h, h);
    const auto y = second.apply(*world.evaluator, hidden);
    auto expected = clear(p, x);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = (expected[i] + bias[i]) * (expected[i] + bias[i]);
    expected = clear(q, expected);
    expect_close(world, second.unpack(decrypt(world, y)), expected, 8 * bound(world, y[0]) + 1e-8,
                 "chain");
  }
}

// The plan of the paper has m n / slots diagonals, and log2 of the number of chunks rotations that
// sum the chunks.
TEST(MatVec, PlansOfThePaper) {
  const auto params = make_params({"plan", Word::w64, 45, 3, 14});
  struct Shape {
    std::size_t m, n, padded_m, padded_n;
  };
  for (const Shape s : {Shape{512, 1344, 512, 2048}, Shape{1024, 2048, 1024, 2048},
                        Shape{1600, 1600, 2048, 2048}}) {
    const MatVec product(std::vector<double>(s.m * s.n, 1.0), s.m, s.n, params);
    EXPECT_LE(product.plan().diagonal_count(), s.padded_m * s.padded_n / params->slots());
    const std::size_t d = product.plan().diagonal_count();
    // Baby and giant steps need far fewer key switches than the paper's plan, which has one for
    // each of d diagonals.
    EXPECT_LT(product.plan().full_key_switches() + product.plan().hoisted_key_switches(), d / 2);
    EXPECT_GT(product.plaintext_bytes(), d * params->n() * 8);
    EXPECT_GT(product.working_bytes(), 0u);
  }
}

// Keys for powers of two, or the fewest for the plan's rotations, serve every plan: prepared or
// not, hoisted once or twice, with one output or several.
TEST(MatVec, IsComposedOfTheKeysThatThereAre) {
  const auto params = make_params(kScheme);
  World powers(kScheme, rlwe::power_rotations(params->slots()));
  for (const auto& [m, n] : {std::pair{20u, 30u}, {600u, 40u}, {7u, 700u}}) {
    for (const Hoisting hoisting : {Hoisting::single, Hoisting::twice}) {
      MatVecOptions options;
      options.bsgs.hoisting = hoisting;
      const Problem p = random_problem(powers.random, m, n);
      const MatVec plan(p.matrix, m, n, params, options);
      World minimum(kScheme, rlwe::composing_rotations(plan.rotations(), params->slots()));
      for (World* world : {&powers, &minimum}) {
        MatVec product(p.matrix, m, n, params, options);
        EXPECT_FALSE(std::ranges::all_of(product.rotations(), [&](int r) {
          return world->evaluator->has_rotation(r);
        })) << "nothing is composed";
        const auto x = random_vector(world->random, n);
        for (const bool prepared : {false, true}) {
          if (prepared) product.prepare(world->encoder());
          const auto y = product.apply(*world->evaluator,
                                       encrypt(*world, product.pack(x), product.level(), -1));
          expect_close(*world, product.unpack(decrypt(*world, y)), clear(p, x), 1e-4,
                       std::to_string(m) + "x" + std::to_string(n));
        }
      }
    }
  }
}

TEST(MatVec, SaysWhatIsWrong) {
  const auto params = make_params(kScheme);
  const std::vector<double> ones(6, 1.0);
  EXPECT_THROW(MatVec(ones, 2, 4, params), InvalidArgument);
  EXPECT_THROW(MatVec({}, 0, 4, params), InvalidArgument);
  EXPECT_THROW(MatVec({1.0, std::nan("")}, 1, 2, params), InvalidArgument);
  EXPECT_THROW(MatVec(ones, 2, 3, params, {.level = 0}), DepthExhausted);
  EXPECT_THROW(MatVec(ones, 2, 3, params, {.level = 4}), InvalidArgument);
  EXPECT_THROW(MatVec(ones, 2, 3, params, {.log_slots = 10}), InvalidArgument);
  EXPECT_THROW(MatVec(ones, 2, 3, params, {.bias = {1.0}}), InvalidArgument);
  EXPECT_THROW(MatVec(ones, 2, 3, params, {.input = Layout::periodic(4, 512)}), InvalidArgument);
  const MatVec product(ones, 2, 3, params);
  ASSERT_FALSE(product.rotations().empty());
  World world(kScheme, {});
  const auto packed = product.pack(std::vector<double>{0.1, 0.2, 0.3});
  const auto c = encrypt(world, packed, 3, -1);
  try {
    product.apply(*world.evaluator, c);
    FAIL() << "no KeyMissing";
  } catch (const KeyMissing& e) {
    for (int r : product.rotations())
      EXPECT_NE(std::string(e.what()).find(std::to_string(r)), std::string::npos) << e.what();
  }
  World full(kScheme, product.rotations());
  EXPECT_THROW(product.apply(*full.evaluator, {}), InvalidArgument);
  EXPECT_THROW(product.apply(*full.evaluator, encrypt(full, packed, 2, -1)), DepthExhausted);
}

}  // namespace
}  // namespace jali::circuits::testing
