// Matrices whose diagonals are kept as integers give the bits of those that are kept over all
// primes, in less memory.
#include <cstring>

#include "../../seeded.h"
#include "jali/circuits/ckks/linear_transform.h"
#include "jali/circuits/ckks/matvec.h"
#include "support.h"

namespace jali::circuits::testing {
namespace {

using ckks::Storage;

void expect_same_bits(const ckks::Ciphertext& got, const ckks::Ciphertext& wanted,
                      const std::string& what) {
  ASSERT_EQ(got.parts.size(), wanted.parts.size()) << what;
  EXPECT_EQ(got.level, wanted.level) << what;
  EXPECT_EQ(got.scale, wanted.scale) << what;
  EXPECT_EQ(got.estimate.variance, wanted.estimate.variance) << what;
  EXPECT_EQ(got.estimate.peak, wanted.estimate.peak) << what;
  for (std::size_t k = 0; k < got.parts.size(); ++k) {
    ASSERT_EQ(got.parts[k].bytes(), wanted.parts[k].bytes()) << what;
    EXPECT_EQ(std::memcmp(got.parts[k].data(), wanted.parts[k].data(), got.parts[k].bytes()), 0)
        << what;
  }
}

/// Some of the diagonals of a random matrix; complex or real, all of them with the same period.
Diagonals random_diagonals(std::mt19937_64& random, std::size_t slots, std::size_t period,
                           std::size_t count) {
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  const bool real = random() % 2 == 0;
  Diagonals out;
  while (out.size() < count) {
    std::vector<Complex> entries(slots);
    for (std::size_t s = 0; s < slots; ++s) {
      entries[s] =
          s < period ? Complex(uniform(random), real ? 0 : uniform(random)) : entries[s - period];
    }
    out[static_cast<int>(random() % slots)] = std::move(entries);
  }
  return out;
}

class Compact : public ::testing::TestWithParam<Scheme> {};

TEST_P(Compact, TransformsOfEveryShapeHaveTheSameBits) {
  const auto params = make_params(GetParam());
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random(seed);
  const BsgsOptions ways[] = {{},
                              {.hoisting = Hoisting::single, .baby_step = 8},
                              {.hoisting = Hoisting::twice, .baby_step = 4},
                              {.sequence = Sequence{}},
                              {.sequence = Sequence{8, 4}}};
  for (int round = 0; round < 10; ++round) {
    TransformOptions options;
    options.log_slots = static_cast<int>(4 + random() % static_cast<unsigned>(params->log_n() - 4));
    options.level = static_cast<int>(1 + random() % static_cast<unsigned>(params->depth()));
    options.bsgs = ways[random() % std::size(ways)];
    const std::size_t slots = std::size_t{1} << options.log_slots;
    const std::size_t period = slots >> random() % 4, count = 1 + random() % 14;
    const std::string what = "seed " + std::to_string(seed) + ", round " + std::to_string(round);
    const auto diagonals = random_diagonals(random, slots, period, count);
    LinearTransform resident(params, diagonals, options), integers(params, diagonals, options),
        streamed(params, diagonals, options);
    World world(GetParam(), resident.rotations());
    EXPECT_EQ(resident.bytes(), 0u);
    resident.prepare(world.encoder());
    integers.prepare(world.encoder(), Storage::integers);
    streamed.prepare(world.encoder(), Storage::streamed);
    EXPECT_EQ(resident.bytes(), resident.plaintext_bytes()) << what;
    EXPECT_EQ(integers.bytes(), count * 2 * period * 8) << what;
    EXPECT_EQ(integers.bytes(), integers.plaintext_bytes(Storage::integers)) << what;
    EXPECT_EQ(streamed.bytes(), integers.bytes()) << what;
    integers.forget();
    const std::size_t batch = 1 + random() % 2;
    const auto x =
        world.encrypt(world.vector(1, batch * slots), options.level, options.log_slots, batch);
    const auto wanted = resident.apply(*world.evaluator, x);
    expect_same_bits(integers.apply(*world.evaluator, x), wanted, "integers, " + what);
    expect_same_bits(streamed.apply(*world.evaluator, x), wanted, "streamed, " + what);
  }
}

TEST_P(Compact, MatrixVectorProductsHaveTheSameBits) {
  const auto params = make_params(GetParam());
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  for (int round = 0; round < 4; ++round) {
    const std::size_t m = 1 + random() % 70, n = 1 + random() % 70;
    std::vector<double> matrix(m * n), bias(m);
    for (auto& v : matrix) v = uniform(random);
    for (auto& v : bias) v = uniform(random);
    MatVecOptions options;
    options.bias = bias;
    MatVec resident(matrix, m, n, params, options), compact(matrix, m, n, params, options);
    World world(GetParam(), resident.rotations());
    resident.prepare(world.encoder());
    compact.prepare(world.encoder(), Storage::integers);
    EXPECT_EQ(resident.bytes(), resident.plaintext_bytes());
    EXPECT_EQ(compact.bytes(), compact.plaintext_bytes(Storage::integers));
    std::vector<double> x(n);
    for (auto& v : x) v = uniform(random);
    std::vector<ckks::Ciphertext> inputs;
    for (const auto& slots : resident.pack(x)) {
      inputs.push_back(world.encrypt(std::vector<Complex>(slots.begin(), slots.end())));
    }
    const auto wanted = resident.apply(*world.evaluator, inputs);
    const auto got = compact.apply(*world.evaluator, inputs);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
      expect_same_bits(
          got[k], wanted[k],
          std::to_string(m) + " x " + std::to_string(n) + ", seed " + std::to_string(seed));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Words, Compact, ::testing::ValuesIn(words(3)),
                         [](const auto& info) { return info.param.label; });

TEST(CompactTransform, CanGiveUpItsNumbers) {
  const Scheme scheme{"forgets", Word::w64, 45, 2, 10};
  const auto params = make_params(scheme);
  std::mt19937_64 random(jali::test::test_seed());
  LinearTransform transform(params, random_diagonals(random, 512, 512, 3));
  World world(scheme, transform.rotations());
  EXPECT_THROW(transform.forget(), InvalidArgument);  // it could do nothing then
  transform.prepare(world.encoder(), Storage::integers);
  transform.forget();
  EXPECT_THROW(transform.prepare(world.encoder()), InvalidArgument);
  EXPECT_THROW(transform.plaintext_bytes(Storage::integers), InvalidArgument);
  EXPECT_NO_THROW(transform.apply(*world.evaluator, world.encrypt(world.vector())));
}

// The last prepare counts, and a prepare that fails leaves what there was.
TEST(CompactTransform, MayBePreparedAgain) {
  const Scheme scheme{"again", Word::w64, 45, 2, 10};
  const auto params = make_params(scheme);
  std::mt19937_64 random(jali::test::test_seed());
  LinearTransform transform(params, random_diagonals(random, 512, 512, 3));
  World world(scheme, transform.rotations());
  const auto x = world.encrypt(world.vector());
  const auto wanted = transform.apply(*world.evaluator, x);
  for (const Storage storage :
       {Storage::residues, Storage::integers, Storage::residues, Storage::streamed}) {
    transform.prepare(world.encoder(), storage);
    EXPECT_EQ(transform.bytes(), transform.plaintext_bytes(storage));
    expect_same_bits(transform.apply(*world.evaluator, x), wanted, "again");
  }
  Diagonals large{{0, std::vector<Complex>(512, 0x1p20)}};
  LinearTransform too_large(params, large);
  EXPECT_THROW(too_large.prepare(world.encoder(), Storage::integers), InvalidArgument);
  EXPECT_EQ(too_large.bytes(), 0u);
  EXPECT_NO_THROW(too_large.prepare(world.encoder()));
}

}  // namespace
}  // namespace jali::circuits::testing
