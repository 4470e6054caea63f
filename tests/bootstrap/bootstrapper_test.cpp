// Tests bootstrapping through its public class. Results of every legal combination are compared
// with plain numbers.
#include <cstring>
#include <numeric>
#include <string_view>

#include "support.h"

namespace jali::bootstrap::testing {
namespace {

constexpr auto kRaise = BootstrapOrder::raise_first;
constexpr auto kSlots = BootstrapOrder::slots_first;

/// Cases for every word and order, with a few budgets of levels.
std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto order : {kRaise, kSlots}) {
    const std::string o = order == kRaise ? "raise" : "slots";
    out.push_back({o + "_w64_3_2", Word::w64, 45, 3, precise(order, 3, 2)});
    out.push_back({o + "_w52_2_3", Word::w52, 45, 4, precise(order, 2, 3)});
    out.push_back({o + "_w32_4_1", Word::w32, 50, 3, precise(order, 4, 1, 50)});
    out.push_back({o + "_w52_1_2", Word::w52, 40, 3, precise(order, 1, 2, 40)});
  }
  // Secrets of other weights, with the range they need.
  Case dense{"weight_192", Word::w64, 45, 2, precise(kRaise, 2, 2)};
  dense.bootstrap.weight = 192;
  dense.bootstrap.range = 30;
  dense.bootstrap.doublings = 3;
  out.push_back(dense);
  Case sparse{"weight_8", Word::w64, 45, 2, precise(kRaise, 2, 2)};
  sparse.bootstrap.weight = 8;
  sparse.bootstrap.range = 5;
  sparse.bootstrap.degree = 40;
  sparse.bootstrap.doublings = 1;
  out.push_back(sparse);
  return out;
}

/// Expects that the result is as precise as predicted. If there are enough slots for an average, it
/// may also not be much more precise.
void expect_refreshed(World& world, const ckks::Ciphertext& y, const std::vector<Complex>& v) {
  const auto& params = *world.params;
  EXPECT_EQ(y.scale, params.scale(y.level));
  EXPECT_EQ(y.parts.size(), 2u);
  const double predicted = world.evaluator->noise().precision_bits(y.estimate, y.scale);
  const auto got = world.decrypt(y);
  ASSERT_EQ(got.size(), v.size());
  const double measured = World::precision(got, v);
  // With fewer slots the noise under one key may be far from the average over keys.
  const bool many = v.size() >= 256;
  EXPECT_GT(measured, predicted - (many ? 1 : 3)) << "seed " << world.seed;
  if (many) {
    EXPECT_LT(measured, predicted + 2.5) << "seed " << world.seed;
  }
  EXPECT_GT(predicted, 24);
}

class Bootstrappers : public ::testing::TestWithParam<Case> {};

TEST_P(Bootstrappers, EveryPackingLevelScaleAndBatch) {
  const Case& c = GetParam();
  for (int log_slots = 1; log_slots < c.log_n; ++log_slots) {
    World world(c, {log_slots}, /*prepare=*/log_slots % 2 == 0);
    const auto& params = *world.params;
    const std::size_t slots = std::size_t{1} << log_slots;
    const int lowest = world.bootstrapper->plan().input_level();
    SCOPED_TRACE("slots 2^" + std::to_string(log_slots));
    for (int level = lowest; level <= params.depth(); ++level) {
      // A scale that is not the canonical one belongs to the message and is not an error.
      const double drift = level == lowest ? 0.83 : 1;
      const auto v = world.vector(slots);
      const auto x = world.encrypt(v, level, params.scale(level) * drift);
      const auto y = world.bootstrapper->apply(x);
      EXPECT_EQ(y.level, params.depth());
      EXPECT_EQ(y.log_slots, log_slots);
      expect_refreshed(world, y, v);
    }
    // A batch is bootstrapped to a chosen level. The result can be computed with and bootstrapped
    // again.
    auto v = world.vector(3 * slots);
    auto y = world.bootstrapper->apply(world.encrypt(v, lowest, 0, 3), lowest + 1);
    EXPECT_EQ(y.level, lowest + 1);
    EXPECT_EQ(y.batch(), 3u);
    expect_refreshed(world, y, v);
    if (lowest == 0) {
      y = world.evaluator->relinearise_rescale(world.evaluator->square(y));
      for (auto& z : v) z *= z;
      expect_refreshed(world, world.bootstrapper->apply(y), v);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Bootstrappers, ::testing::ValuesIn(cases()),
                         [](const auto& test_info) { return test_info.param.label; });

/// All at once would take 26 MB and more for each. In parts, no bit is another.
TEST(Bootstrapper, LargeBatchesAreBootstrappedInParts) {
  for (const auto order : {kRaise, kSlots}) {
    World world({"parts", Word::w52, 45, 3, precise(order, 2, 2)}, {1});
    const int level = world.bootstrapper->plan().input_level();
    constexpr std::size_t kBatch = 60, kSlotsOfOne = 2;
    const auto v = world.vector(kBatch * kSlotsOfOne);
    const auto x = world.encrypt(v, level, 0, kBatch);
    std::vector<std::size_t> parts;
    const auto seen = [&](const char* stage, const ckks::Ciphertext& at) {
      if (std::string_view(stage) == "raise") parts.push_back(at.batch());
    };
    const auto y = world.bootstrapper->apply(x, -1, seen);
    ASSERT_GT(parts.size(), 2U);
    EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), std::size_t{0}), kBatch);
    EXPECT_EQ(y.batch(), kBatch);
    EXPECT_EQ(y.packing, x.packing);
    expect_refreshed(world, y, v);
    const auto& ev = *world.evaluator;
    for (const std::size_t i : {std::size_t{0}, parts[0] - 1, parts[0], kBatch - 1}) {
      const auto alone = world.bootstrapper->apply(ev.vectors(x, i, 1));
      const auto in_batch = ev.vectors(y, i, 1);
      for (std::size_t p = 0; p < 2; ++p) {
        EXPECT_EQ(
            std::memcmp(alone.parts[p].data(), in_batch.parts[p].data(), alone.parts[p].bytes()), 0)
            << i;
      }
      EXPECT_EQ(y.estimate.variance, alone.estimate.variance);
      EXPECT_EQ(y.estimate.claim().variance, alone.estimate.claim().variance);
      EXPECT_EQ(y.estimate.principal, alone.estimate.principal);
      EXPECT_EQ(y.estimate.error, alone.estimate.error);
      EXPECT_EQ(y.estimate.lineage.root, alone.estimate.lineage.root);
      EXPECT_EQ(y.scale, alone.scale);
    }
  }
}

TEST(Bootstrapper, LargeBatchesOfPairsAreBootstrappedInParts) {
  World world({"parts", Word::w52, 45, 3, precise(kSlots, 2, 2)}, {1});
  const auto& ev = *world.evaluator;
  const int level = world.bootstrapper->plan().input_level();
  constexpr std::size_t kBatch = 60, kFew = 4, kSlotsOfOne = 2;
  const auto v = world.vector(kBatch * kSlotsOfOne, true), w = world.vector(v.size(), true);
  const auto x = world.encrypt(v, level, 0, kBatch), y = world.encrypt(w, level, 0, kBatch);
  std::pair<ckks::Ciphertext, ckks::Ciphertext> few, all;
  device::Pool& pool = *ev.ring()->pool();
  const std::size_t of_few = pool.peak_of([&] {
    few = world.bootstrapper->apply_pair(ev.vectors(x, kBatch - kFew, kFew),
                                         ev.vectors(y, kBatch - kFew, kFew));
  });
  const std::size_t of_all = pool.peak_of([&] { all = world.bootstrapper->apply_pair(x, y); });
  EXPECT_LT(of_all, 10 * of_few);  // of 15 times as many
  expect_refreshed(world, all.first, v);
  expect_refreshed(world, all.second, w);
  for (const auto& [each, in_batch] :
       {std::pair{&few.first, &all.first}, {&few.second, &all.second}}) {
    const auto last = ev.vectors(*in_batch, kBatch - kFew, kFew);
    for (std::size_t p = 0; p < 2; ++p) {
      EXPECT_EQ(std::memcmp(each->parts[p].data(), last.parts[p].data(), last.parts[p].bytes()), 0);
    }
    EXPECT_EQ(each->estimate.variance, in_batch->estimate.variance);
  }
}

/// Every weight of the secret, every order and word, some budgets of levels, and every kind of
/// packing.
TEST(Bootstrapper, EveryCombination) {
  struct Secret {
    int weight, range, degree, doublings;
  };
  for (const Secret& s : {Secret{8, 5, 40, 1}, {32, 16, 62, 2}, {192, 30, 62, 3}}) {
    for (const auto order : {kRaise, kSlots}) {
      for (const Word word : {Word::w32, Word::w52, Word::w64}) {
        for (const auto& [cts, stc] : {std::pair{1, 1}, {2, 3}, {4, 2}}) {
          const double scale = word == Word::w32 ? 50 : 45;
          Case c{"every", word, scale, stc + 1, precise(order, cts, stc, scale)};
          c.bootstrap.weight = s.weight;
          c.bootstrap.range = s.range;
          c.bootstrap.degree = s.degree;
          c.bootstrap.doublings = s.doublings;
          for (const int log_slots : {9, 8, 4, 1}) {
            SCOPED_TRACE("weight " + std::to_string(s.weight) + " order " +
                         std::to_string(static_cast<int>(order)) + " " +
                         std::string(word_name(word)) + " levels " + std::to_string(cts) + ", " +
                         std::to_string(stc) + " slots 2^" + std::to_string(log_slots));
            World world(c, {log_slots});
            const auto v = world.vector(std::size_t{1} << log_slots);
            const int level = world.bootstrapper->plan().input_level();
            expect_refreshed(world, world.bootstrapper->apply(world.encrypt(v, level)), v);
          }
        }
      }
    }
  }
}

// With slots_first and `real`, imaginary parts are dropped together with their noise.
TEST(Bootstrapper, RealSlots) {
  for (int log_slots : {9, 4, 1}) {
    World world({"real", Word::w64, 45, 3, precise(kSlots, 2, 2)}, {log_slots, /*real=*/true});
    const auto v = world.vector(std::size_t{1} << log_slots);
    std::vector<Complex> expected;
    for (const auto& z : v) expected.emplace_back(z.real());
    const auto y = world.bootstrapper->apply(world.encrypt(v, 2));
    expect_refreshed(world, y, expected);
  }
}

// A message of which one coefficient holds everything is the worst for the sine. Its error stays
// within the bound and comes to within a tenth of it.
TEST(Bootstrapper, SineErrorIsBounded) {
  for (const auto order : {kRaise, kSlots}) {
    for (int inverse_sine : {1, 3}) {
      BootstrapLiteral b = precise(order, 2, 2);
      b.inverse_sine = inverse_sine;
      b.ratio_bits = inverse_sine == 1 ? 7 : 5;
      World world({"worst", Word::w64, 45, 2 + b.input_level(), b}, {});
      const double bound = world.bootstrapper->plan().worst_sine_error(1);
      const std::vector<Complex> v(world.params->slots(), 1.0);
      const auto x = world.encrypt(v, b.input_level(), 0, 1, 1.0);
      const auto got = world.decrypt(world.bootstrapper->apply(x));
      const double worst = jali::testing::max_error(got, v);
      EXPECT_LT(worst, 1.05 * bound) << inverse_sine;
      EXPECT_GT(worst, 0.9 * bound) << inverse_sine;
    }
  }
}

// At the largest magnitude that is accepted, the sine changes a slot by at most 2^-10 of its value.
// With slots_first one slot may be kPeak times as large as the others; it changes by less than a
// tenth.
TEST(Bootstrapper, TakesMagnitudesThatTheSineHolds) {
  for (const auto order : {kRaise, kSlots}) {
    for (int inverse_sine : {1, 3, 5, 7}) {
      SCOPED_TRACE(inverse_sine);
      BootstrapLiteral b = precise(order, 2, 2);
      b.inverse_sine = inverse_sine;
      World world({"limit", Word::w64, 45, 2 + b.input_level(), b}, {});
      const auto& plan = world.bootstrapper->plan();
      const double most = plan.max_magnitude();
      EXPECT_GT(most, 2);
      EXPECT_LE(plan.worst_sine_error(most), 1.001 * 0x1p-10 * most);
      std::vector<Complex> v(world.params->slots(), most);
      const auto apply = [&](double magnitude) {
        const double scale = world.params->scale(b.input_level());
        const int level = b.input_level();
        return world.decrypt(world.bootstrapper->apply(world.encryptor->encrypt(
            world.evaluator->encoder().encode(v, 1, level, scale), magnitude)));
      };
      EXPECT_LT(jali::testing::max_error(apply(most), v), 1.05 * 0x1p-10 * most);
      EXPECT_THROW(apply(1.001 * most), InvalidArgument);
      v[5] *= params::kPeak;
      const auto got = apply(most);
      EXPECT_LT(std::abs(got[5] - v[5]), (order == kSlots ? 0.1 : 0x1p-10) * std::abs(v[5]));
      // The encryptor refuses numbers above the declared peak, which is kPeak times this magnitude.
      EXPECT_THROW(apply(most / 1.01 / params::kPeak), InvalidArgument);
    }
  }
  // With few ratio bits the limit would be below 1, but magnitude 1 is always accepted.
  BootstrapLiteral coarse = precise(kSlots, 2, 2);
  coarse.inverse_sine = 1;
  coarse.ratio_bits = 5;
  const auto params = ckks::Params::create(literal_of({"coarse", Word::w64, 45, 4, coarse}));
  EXPECT_EQ(BootstrapPlan(params).max_magnitude(), 1);
}

// The sine's error is what the estimate adds for it: of random numbers with slots_first, of equal
// ones with raise_first.
TEST(Bootstrapper, SineErrorIsPredicted) {
  for (const auto& [order, log_slots] : {std::pair{kRaise, 6}, {kRaise, 9}, {kSlots, 9}}) {
    BootstrapLiteral b = precise(order, 2, 2);
    b.inverse_sine = 1;
    b.ratio_bits = 6;
    World world({"sine", Word::w64, 45, 2 + b.input_level(), b}, {log_slots});
    const std::size_t slots = std::size_t{1} << log_slots;
    const auto v = order == kRaise ? std::vector<Complex>(slots, 1.0) : world.vector(slots);
    const double magnitude = order == kRaise ? 1 : jali::testing::kMagnitude;
    const auto y = world.bootstrapper->apply(world.encrypt(v, b.input_level(), 0, 1, magnitude));
    const double predicted = world.evaluator->noise().precision_bits(y.estimate, y.scale);
    const double measured = World::precision(world.decrypt(y), v);
    // What is not known to be real is taken for real normal numbers, whose error is 2.5 bits above
    // that of uniform complex ones.
    EXPECT_GT(measured, predicted - 0.5) << log_slots << " seed " << world.seed;
    EXPECT_LT(measured, predicted + 3) << log_slots << " seed " << world.seed;
  }
}

// With slots_first the sine's error depends on how large single parts of slots are. Real normal
// numbers have a larger one than complex normal numbers of the same declared magnitude, and equal
// numbers a smaller one than both.
TEST(Bootstrapper, SineErrorOfRealNumbersIsPredicted) {
  BootstrapLiteral b = precise(kSlots, 2, 2);
  b.inverse_sine = 1;
  b.ratio_bits = 6;
  World world({"sine", Word::w64, 45, 2 + b.input_level(), b}, {});
  const std::size_t slots = world.params->slots();
  const int level = b.input_level();
  constexpr double kRms = 0.5;
  std::normal_distribution<double> normal(0, kRms);
  std::vector<double> normals(slots), equal(slots, kRms);
  for (double& x : normals) x = std::clamp(normal(world.random), -8 * kRms, 8 * kRms);
  const auto errs = [&](const ckks::Plaintext& plain, const std::vector<double>& of, double peak) {
    const auto x = world.encryptor->encrypt(plain, {kRms, peak});
    const auto y = world.bootstrapper->apply(x);
    const auto got = world.decrypt(y);
    double sum = 0;
    for (std::size_t j = 0; j < slots; ++j) sum += std::pow(got[j].real() - of[j], 2);
    const double measured = -std::log2(std::sqrt(sum / static_cast<double>(slots)));
    return world.evaluator->noise().precision_bits(y.estimate, y.scale) - measured;
  };
  const auto& encoder = world.evaluator->encoder();
  const double scale = world.params->scale(level);
  const auto real = [&](const std::vector<double>& of) {
    return encoder.encode(std::span<const double>(of), 1, level, scale);
  };
  const std::vector<Complex> unknown(normals.begin(), normals.end());
  EXPECT_NEAR(errs(real(normals), normals, 8 * kRms), 0, 1) << world.seed;
  EXPECT_NEAR(errs(real(equal), equal, kRms), 0, 0.3) << world.seed;
  // Numbers that are not known to be real may be.
  EXPECT_NEAR(errs(encoder.encode(unknown, 1, level, scale), normals, 8 * kRms), 0, 1)
      << world.seed;
}

TEST(Bootstrapper, RefusesWhatItCannotDo) {
  const Case c{"refuse", Word::w64, 45, 3, precise(kRaise, 2, 2)};
  World world(c, {5});
  const auto v = world.vector(32);
  const auto x = world.encrypt(v, 1);
  EXPECT_THROW(world.bootstrapper->apply(x, 4), InvalidArgument);
  EXPECT_THROW(world.bootstrapper->apply(world.evaluator->square(x)), InvalidArgument);
  auto loud = world.evaluator->copy(x);
  loud.estimate.message = 1.01 * world.bootstrapper->plan().max_magnitude();
  EXPECT_THROW(world.bootstrapper->apply(loud), InvalidArgument);
  // At level 0 such a large scale leaves no room above the message.
  const auto tall = world.encryptor->encrypt(world.evaluator->encoder().encode(v, 1, 0, 0x1p56, 5),
                                             {jali::testing::kMagnitude, 1.5});
  EXPECT_THROW(world.bootstrapper->apply(tall), ScaleMismatch);

  EXPECT_THROW(BootstrapPlan(world.params, {0}), InvalidArgument);
  EXPECT_THROW(BootstrapPlan(world.params, {10}), InvalidArgument);
  auto plain = literal_of(c);
  plain.bootstrap.reset();
  EXPECT_THROW(BootstrapPlan(ckks::Params::create(plain)), InvalidArgument);
  World slots({"late", Word::w64, 45, 4, precise(kSlots, 2, 2)}, {5});
  EXPECT_THROW(slots.bootstrapper->apply(slots.encrypt(v, 1)), DepthExhausted);
}

TEST(Bootstrapper, NamesMissingKeys) {
  const Case c{"keys", Word::w64, 45, 3, precise(kRaise, 2, 2)};
  const auto params = ckks::Params::create(literal_of(c));
  const auto ring = ckks::make_ring(*params);
  rlwe::KeyGenerator keygen(params, ring);
  const auto sk = keygen.secret_key();
  const BootstrapperOptions three{3};
  const BootstrapPlan plan(params, three);
  const auto make = [&](std::vector<int> rotations, bool conjugate, bool encapsulation) {
    auto keys = keygen.evaluation_keys(sk, rotations, conjugate);
    if (encapsulation) keys.encapsulation = keygen.encapsulation_keys(sk);
    return std::make_shared<const ckks::Evaluator>(
        params, ring, std::make_shared<const rlwe::EvaluationKeys>(std::move(keys)));
  };
  auto fewer = plan.rotations();
  fewer.pop_back();
  const auto build = [&](auto evaluator) {
    Bootstrapper b(evaluator, BootstrapPlan(params, three));
  };
  EXPECT_NO_THROW(build(make(plan.rotations(), true, true)));
  EXPECT_THROW(build(make(fewer, true, true)), KeyMissing);
  EXPECT_THROW(build(make(plan.rotations(), false, true)), KeyMissing);
  EXPECT_THROW(build(make(plan.rotations(), true, false)), KeyMissing);
}

}  // namespace
}  // namespace jali::bootstrap::testing
