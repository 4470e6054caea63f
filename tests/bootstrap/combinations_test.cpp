// Draws random combinations of all options of a request and of an application. None may throw after
// its keys are made, and each must be as precise as its estimate says and as was asked for.
#include "../backend/sanitized.h"
#include "../seeded.h"
#include "jali/params/ckks/bootstrap_request.h"
#include "jali/schemes/ckks/bounds.h"
#include "jali/schemes/ckks/secret/decryption.h"
#include "support.h"

namespace jali::bootstrap::testing {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  int in(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool one_in(int n) { return in(1, n) == 1; }

 private:
  std::mt19937_64 random_;
};

struct Drawn {
  params::BootstrapRequest request;
  int weight = 32;
  BootstrapperOptions options;
  std::string label;
};

Drawn drawn(Draw& d) {
  Drawn out;
  auto& r = out.request;
  r.log_n = 10;
  r.security = 0;
  r.name = "insecure_test";
  r.order = d.one_in(2) ? BootstrapOrder::raise_first : BootstrapOrder::slots_first;
  r.word = std::array{Word::w32, Word::w52, Word::w64}[static_cast<std::size_t>(d.in(0, 2))];
  r.iterations = d.one_in(3) ? d.in(2, 4) : 1;
  r.precision_bits = d.in(5, std::min(50, 30 * r.iterations + 2));
  r.cts_levels = d.one_in(3) ? 0 : d.in(1, 8);
  r.stc_levels = d.one_in(3) ? 0 : d.in(1, 8);
  r.levels_after = d.in(1, 3);
  if (d.one_in(4)) r.scale_bits = std::max(d.in(20, 60), static_cast<int>(r.precision_bits) + 9);
  out.weight = std::array{8, 16, 24, 32, 32, 32}[static_cast<std::size_t>(d.in(0, 5))];
  out.options.log_slots = d.one_in(4) ? 9 : d.in(1, 9);
  out.options.real = d.one_in(4);
  out.options.minimum = d.one_in(4);
  out.label = std::to_string(r.precision_bits) + " bits, " + std::to_string(r.iterations) +
              " iterations, order " + std::to_string(static_cast<int>(r.order)) + " " +
              std::string(word_name(*r.word)) + ", scale " + std::to_string(r.scale_bits) +
              ", levels " + std::to_string(r.cts_levels) + ", " + std::to_string(r.stc_levels) +
              ", " + std::to_string(r.levels_after) + ", weight " + std::to_string(out.weight) +
              ", slots 2^" + std::to_string(out.options.log_slots) +
              (out.options.real ? ", real" : "") + (out.options.minimum ? ", minimum" : "");
  return out;
}

/// The bits of a decrypted slot that a double holds.
constexpr double kDoubles = 51;

void expect_precise(World& world, const ckks::Ciphertext& y, const std::vector<Complex>& v,
                    double asked) {
  const double predicted =
      std::min(world.evaluator->noise().precision_bits(y.estimate, y.scale), kDoubles);
  // With fewer slots the noise under one key may be far from the average over keys.
  const bool many = v.size() >= 256;
  const auto got = world.decrypt(y);
  EXPECT_GT(World::precision(got, v), predicted - (many ? 1.5 : 5));
  EXPECT_LE(jali::testing::max_error(got, v), ckks::worst_case_error(y));
  EXPECT_NO_THROW(ckks::decrypt(*world.decryptor, world.evaluator->encoder(), y));
  // The precision that was asked for is an expected one. Real numbers that are not known to be real
  // have an error of the sine that is 2.5 bits larger with an arcsin of degree 3, and 1.5 bits
  // without one.
  const bool arcsin = world.params->bootstrap()->inverse_sine > 1;
  params::Estimate independent = y.estimate;
  independent.message_shared = independent.variance_shared = 1;
  const double expected = world.evaluator->noise().precision_bits(independent, y.scale);
  EXPECT_GT(expected, asked - (v.size() > 4 ? 1.5 : 3) - (arcsin ? 2.5 : 1.6));
  // The claim holds for equal numbers, too, of which some packings add up the errors (docs/noise.md
  // says how many bits that costs).
  EXPECT_GT(predicted, std::min(expected, kDoubles) - 9);
}

class DrawnCombinations : public ::testing::TestWithParam<int> {};

TEST_P(DrawnCombinations, AreRightOrRefusedBeforeAnyKey) {
  const std::uint64_t seed = jali::test::test_seed();
  Draw d(seed);
  const int count = backend::test::kSanitized ? 2 : 8;
  int refused = 0;
  for (int k = 0; k < count; ++k) {
    const Drawn c = drawn(d);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.label);
    ckks::ParamsPtr params;
    try {
      params = params::create_with_bootstrap(c.request);
      if (c.weight != 32) {
        auto literal = params->literal();
        literal.bootstrap->weight = c.weight;
        params = ckks::Params::create(literal);
      }
    } catch (const InvalidArgument&) {
      ++refused;  // so small a ring has few primes of 15 bits
      continue;
    }
    auto options = c.options;
    const int lowest = params->bootstrap()->input_level();
    // The target may be far below the highest level, and there may be several applications.
    if (d.one_in(4)) options.target_level = d.in(lowest, params->depth());
    World world(params, options);
    const auto& plan = world.bootstrapper->plan();
    for (int times : {c.request.iterations, 1, d.in(1, 4)}) {
      if (times > 1 && lowest >= plan.depth() - 1) times = 1;
      const int most = plan.depth() - (times > 1 ? 1 : 0);
      const int target = d.one_in(2) ? -1 : d.in(lowest, most);
      const int from = d.one_in(2) ? lowest : d.in(lowest, params->depth());
      const std::size_t batch = d.one_in(4) ? 2 : 1;
      // A scale that is not the canonical one.
      const double own = d.one_in(4) ? 0.01 * d.in(60, 120) : 1;
      const double scale = own * params->scale(from);
      const double asked = times == c.request.iterations && own == 1 ? c.request.precision_bits : 0;
      const std::size_t slots = batch << options.log_slots;
      SCOPED_TRACE(std::to_string(times) + " times to " + std::to_string(target) + " from " +
                   std::to_string(from) + ", scale times " + std::to_string(own));
      const bool pair = !options.real && d.one_in(4);
      auto v = world.vector(slots, pair);
      const auto w = world.vector(slots, true);
      ckks::Ciphertext x, second;
      try {
        x = world.encrypt(v, from, scale, batch);
        if (pair) second = world.encrypt(w, from, scale, batch);
      } catch (const RangeExceeded&) {
        continue;  // a normal number for which a scale above the canonical one leaves no room
      }
      if (pair) {
        const auto [y, z] = world.bootstrapper->apply_pair(x, second, target, times);
        expect_precise(world, y, v, 0);
        expect_precise(world, z, w, 0);
      } else {
        const auto y = world.bootstrapper->apply(x, target, {}, times);
        if (target >= 0) {
          EXPECT_EQ(y.level, target);
        } else {
          EXPECT_EQ(y.level,
                    options.target_level < 0 ? most : std::min(most, options.target_level));
        }
        if (options.real) {
          for (auto& s : v) s = s.real();
        }
        expect_precise(world, y, v, asked);
      }
    }
  }
  EXPECT_LE(refused, std::max(2, count / 2));
}

// The test runs four times, each with a seed of its own.
INSTANTIATE_TEST_SUITE_P(Draws, DrawnCombinations, ::testing::Range(0, 4));

// With 32-bit words and few bits of precision, the modulus of level 0 may be 66 bits larger than a
// scale of 16 bits.
TEST(Combinations, FewBitsEnterALargeModulus) {
  auto request = small_request(BootstrapOrder::raise_first, Word::w32, 7);
  request.cts_levels = 4;
  request.levels_after = 8;
  World world(params::create_with_bootstrap(request), {8});
  ASSERT_GT(world.params->level(0).log_q - std::log2(world.params->scale(0)),
            62 + request.precision_bits);
  const auto v = world.vector(256);
  const auto y = world.bootstrapper->apply(world.encrypt(v, 0));
  expect_precise(world, y, v, request.precision_bits);
}

// These combinations used to be refused after the keys were made: all levels of a DFT for few
// slots, with scales and moduli far apart.
TEST(Combinations, FewSlotsLeaveLevelsOver) {
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    for (const Word word : {Word::w32, Word::w52, Word::w64}) {
      for (const double precision : {5.0, 12.0, 28.0}) {
        for (const int levels : {3, 6}) {
          auto r = small_request(order, word, precision);
          r.levels_after = 1;
          r.cts_levels = r.stc_levels = levels;
          const auto params = params::create_with_bootstrap(r);
          for (const int log_slots : {1, 2, 5}) {
            SCOPED_TRACE("order " + std::to_string(static_cast<int>(order)) + " " +
                         std::string(word_name(word)) + ", bits " + std::to_string(precision) +
                         ", levels " + std::to_string(levels) + ", slots 2^" +
                         std::to_string(log_slots));
            World world(params, {log_slots});
            const auto v = world.vector(std::size_t{1} << log_slots);
            const int level = params->bootstrap()->input_level();
            expect_precise(world, world.bootstrapper->apply(world.encrypt(v, level)), v, precision);
          }
        }
      }
    }
  }
}

// In these cases sizes used to be too small. P' was below q_0 if the levels of slots to
// coefficients have about as many bits as q_0. And a given scale let the error of an application be
// enlarged by less than the sizes assumed.
TEST(Combinations, SizesMeetWhatIsAskedFor) {
  const auto expect = [](double precision, int stc_levels, int iterations, double scale_bits,
                         Word word) {
    SCOPED_TRACE(std::to_string(precision) + " bits, levels " + std::to_string(stc_levels) + ", " +
                 std::to_string(iterations) + " iterations, " + std::string(word_name(word)));
    auto r = small_request(BootstrapOrder::raise_first, word, precision);
    r.stc_levels = stc_levels;
    r.iterations = iterations;
    r.scale_bits = scale_bits;
    World world(params::create_with_bootstrap(r), {});
    const auto v = world.vector(world.params->slots());
    const auto y = world.bootstrapper->apply(world.encrypt(v, 1), -1, {}, iterations);
    EXPECT_GT(world.evaluator->noise().precision_bits(y.estimate, y.scale), precision - 0.7);
    expect_precise(world, y, v, precision);
  };
  for (const Word word : {Word::w52, Word::w64}) {
    for (const int stc_levels : {1, 2, 3, 4}) {
      for (const double precision : {8.0, 9.0, 10.0, 14.0}) {
        expect(precision, stc_levels, 1, 0, word);
      }
    }
    expect(20, 3, 3, 29, word);
    expect(20, 3, 2, 32, word);
  }
}

// At the lowest level a scale above the canonical one makes numbers larger. This is counted as
// magnitude, and refused if it exceeds what the sine accepts.
TEST(Combinations, AScaleIsPartOfTheMagnitude) {
  for (const auto order : {BootstrapOrder::raise_first, BootstrapOrder::slots_first}) {
    World world(params::create_with_bootstrap(small_request(order, {}, 20)), {});
    const auto& plan = world.bootstrapper->plan();
    const int level = plan.input_level();
    const double room = plan.max_magnitude() / jali::testing::kMagnitude;
    const double usual = world.params->scale(level);
    const auto v = world.vector(world.params->slots());
    for (const double times : {0.1, 1.0, 4.0, 16.0}) {
      SCOPED_TRACE(times);
      ASSERT_LT(times, room);
      expect_precise(world, world.bootstrapper->apply(world.encrypt(v, level, times * usual)), v,
                     0);
    }
    // The factor is 2.1 because q_0 has a little more room than was asked for.
    EXPECT_THROW(world.bootstrapper->apply(world.encrypt(v, level, 2.1 * room * usual)),
                 ScaleMismatch);
  }
}

}  // namespace
}  // namespace jali::bootstrap::testing
