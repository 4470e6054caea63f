// Compares every operation of the explicit evaluator with the same operation on plain numbers, at
// every level and for every word. The measured noise may be neither much larger nor much smaller
// than the formula's.
#include <cmath>
#include <cstring>
#include <limits>

#include "fixture.h"
#include "jali/backend/engines.h"
#include "jali/schemes/ckks/diagonal.h"

namespace jali::testing {
namespace {

class EvaluatorTest : public ::testing::TestWithParam<Scheme> {};

template <class F>
std::vector<Complex> map(const std::vector<Complex>& a, F&& f) {
  std::vector<Complex> out(a.size());
  for (std::size_t j = 0; j < a.size(); ++j) out[j] = f(j);
  return out;
}

// Each vector of `slots` numbers rotated to the left.
std::vector<Complex> rotated(const std::vector<Complex>& a, int steps, std::size_t slots) {
  const auto n = static_cast<std::int64_t>(slots);
  return map(a, [&](std::size_t j) {
    const auto base = static_cast<std::int64_t>(j / slots * slots);
    const auto at = ((static_cast<std::int64_t>(j) - base + steps) % n + n) % n;
    return a[static_cast<std::size_t>(base + at)];
  });
}

TEST_P(EvaluatorTest, AddSubNegate) {
  World w(GetParam(), {});
  for (int level = 0; level <= w.params->depth(); ++level) {
    const auto x = w.vector(), y = w.vector();
    const auto a = w.encrypt(x, level), b = w.encrypt(y, level);
    w.expect(w.evaluator->add(a, b), map(x, [&](auto j) { return x[j] + y[j]; }), 0.85, 1.2);
    w.expect(w.evaluator->sub(a, b), map(x, [&](auto j) { return x[j] - y[j]; }), 0.85, 1.2);
    w.expect(w.evaluator->negate(a), map(x, [&](auto j) { return -x[j]; }), 0.85, 1.2);
    auto c = w.evaluator->copy(a);
    w.evaluator->add_inplace(c, b);
    EXPECT_FALSE(c.seed.has_value());
    w.expect(c, map(x, [&](auto j) { return x[j] + y[j]; }), 0.85, 1.2);
  }
}

TEST_P(EvaluatorTest, PlainOperands) {
  World w(GetParam(), {});
  for (int level = 1; level <= w.params->depth(); ++level) {
    const auto x = w.vector(), y = w.vector();
    const auto a = w.encrypt(x, level);
    const double scale = w.params->scale(level);
    const auto p = w.encoder().encode(y, 1, level, scale);
    w.expect(w.evaluator->add_plain(a, p), map(x, [&](auto j) { return x[j] + y[j]; }), 0.85, 1.2);
    w.expect(w.evaluator->sub_plain(a, p), map(x, [&](auto j) { return x[j] - y[j]; }), 0.85, 1.2);
    const auto product = w.evaluator->multiply_plain(a, p);
    w.expect(product, map(x, [&](auto j) { return x[j] * y[j]; }), 0.8, 1.25);
    const auto lower = w.evaluator->rescale(product);
    EXPECT_EQ(lower.level, level - 1);
    EXPECT_NEAR(lower.scale / w.params->scale(level - 1), 1, 1e-12);
    w.expect(lower, map(x, [&](auto j) { return x[j] * y[j]; }), 0.8, 1.25);
  }
}

TEST_P(EvaluatorTest, Scalars) {
  World w(GetParam(), {});
  const int top = w.params->depth();
  const auto x = w.vector();
  const auto a = w.encrypt(x);
  for (const Complex s : {Complex(0.375), Complex(-1.7), Complex(0.25, -0.6), Complex(0, 1)}) {
    w.expect(w.evaluator->add_scalar(a, s), map(x, [&](auto j) { return x[j] + s; }), 0.85, 1.2);
    const auto product = w.evaluator->multiply_scalar(a, s, w.params->scale(top));
    w.expect(product, map(x, [&](auto j) { return x[j] * s; }), 0.8, 1.25);
    w.expect(w.evaluator->rescale(product), map(x, [&](auto j) { return x[j] * s; }), 0.8, 1.25);
  }
  w.expect(w.evaluator->multiply_integer(a, -5), map(x, [&](auto j) { return -5.0 * x[j]; }), 0.85,
           1.2);
  w.expect(w.evaluator->multiply_i(a), map(x, [&](auto j) { return Complex(0, 1) * x[j]; }), 0.85,
           1.2);
  w.expect(w.evaluator->multiply_monomial(a, 3 * w.params->n() / 2),
           map(x, [&](auto j) { return Complex(0, -1) * x[j]; }), 0.85, 1.2);
  EXPECT_THROW(w.evaluator->multiply_monomial(a, 2 * w.params->n()), InvalidArgument);
  EXPECT_THROW(w.evaluator->prepare_monomial(2 * w.params->n()), InvalidArgument);
}

TEST_P(EvaluatorTest, MultiplyRelineariseRescaleAtEveryLevel) {
  World w(GetParam(), {});
  for (int level = 1; level <= w.params->depth(); ++level) {
    const auto x = w.vector(), y = w.vector();
    const auto a = w.encrypt(x, level), b = w.encrypt(y, level);
    const auto expected = map(x, [&](auto j) { return x[j] * y[j]; });
    const auto raw = w.evaluator->multiply(a, b);
    ASSERT_EQ(raw.parts.size(), 3u);
    w.expect(raw, expected, 0.7, 1.4);
    // With three parts the factor of s^2 is rounded too.
    w.expect(w.evaluator->rescale(raw), expected, 0.7, 1.4);
    const auto two = w.evaluator->relinearise(raw);
    ASSERT_EQ(two.parts.size(), 2u);
    w.expect(two, expected, 0.7, 1.4);
    w.expect(w.evaluator->rescale(two), expected, 0.7, 1.4);
    const auto merged = w.evaluator->multiply_relinearise_rescale(a, b);
    EXPECT_EQ(merged.level, level - 1);
    EXPECT_NEAR(merged.scale / w.params->scale(level - 1), 1, 1e-12);
    w.expect(merged, expected, 0.7, 1.4);
    w.expect(w.evaluator->square(a), map(x, [&](auto j) { return x[j] * x[j]; }), 0.6, 1.6);
  }
}

TEST_P(EvaluatorTest, CombinationsMatchTheClearAtEveryLevel) {
  World w(GetParam(), {});
  for (int level = 1; level <= w.params->depth(); ++level) {
    const auto x = w.vector(), y = w.vector(), z = w.vector();
    const auto a = w.encrypt(x, level), b = w.encrypt(y, level);
    const auto high = w.encrypt(z);  // rational levels: it may lack limbs that `level` has
    const double scale = a.scale * b.scale;
    const auto expect = [&](const ckks::Combination& c, double at, const auto& value) {
      const auto got = w.evaluator->combine_rescale(c, level, at);
      EXPECT_EQ(got.level, level - 1);
      EXPECT_EQ(got.scale, at / w.params->ratio(level));
      w.expect(got, map(x, value), 0.6, 1.6);
    };
    expect({{{&a, &b}}, {}, -0.5}, scale, [&](auto j) { return x[j] * y[j] - 0.5; });
    expect({{{&a, &a, 2}}, {}, -1}, scale / 2, [&](auto j) { return 2.0 * x[j] * x[j] - 1.0; });
    expect({{{&a, &b, 2}}, {{&high, -1.5}}, {0.25, -0.75}}, scale,
           [&](auto j) { return 2.0 * x[j] * y[j] - 1.5 * z[j] + Complex(0.25, -0.75); });
    expect({{{&a, &b}}, {{&high, 0.5}}}, scale, [&](auto j) { return x[j] * y[j] + 0.5 * z[j]; });
    expect({{{&a, &b}, {&b, &b}}, {{&a, 0.7}, {&high, 0.3}}, 1}, scale,
           [&](auto j) { return x[j] * y[j] + y[j] * y[j] + 0.7 * x[j] + 0.3 * z[j] + 1.0; });
    expect({{}, {{&a, -0.7}, {&high, 0.3}, {&high, 1}}, 2}, scale,
           [&](auto j) { return -0.7 * x[j] + 1.3 * z[j] + 2.0; });
    EXPECT_THROW(w.evaluator->combine_rescale({}, level, scale), InvalidArgument);
    EXPECT_THROW(w.evaluator->combine_rescale({{{&a, &b}}}, level, scale * 1.01), ScaleMismatch);
    EXPECT_THROW(w.evaluator->combine_rescale({{}, {{&a, 1}}}, level + 1, scale), InvalidArgument);
  }
  const auto a = w.encrypt(w.vector(), 0);
  EXPECT_THROW(w.evaluator->combine_rescale({{}, {{&a, 1}}}, 0, a.scale * a.scale), DepthExhausted);
}

TEST_P(EvaluatorTest, DepthCanBeUsedUp) {
  World w(GetParam(), {});
  auto x = w.vector(0.9);
  auto c = w.encrypt(x, -1, -1, 1, {kMagnitude, 0.9 * std::sqrt(2.0)});
  while (c.level > 0) {
    c = w.evaluator->multiply_relinearise_rescale(c, c);
    for (auto& z : x) z *= z;
  }
  EXPECT_LT(max_error(w.decrypt(c), x), std::exp2(18 - GetParam().scale_bits));
  EXPECT_THROW(w.evaluator->rescale(c), DepthExhausted);
}

TEST_P(EvaluatorTest, RotationsAndConjugationAtEveryLevel) {
  World w(GetParam());
  const std::size_t slots = w.params->slots();
  for (int level = 0; level <= w.params->depth(); ++level) {
    const auto x = w.vector();
    const auto a = w.encrypt(x, level);
    const auto hoisted = w.evaluator->hoist(a);
    for (const int steps : {1, 8, -3, 17}) {
      const auto expected = rotated(x, steps, slots);
      w.expect(w.evaluator->rotate(a, steps), expected, 0.75, 1.3);
      w.expect(w.evaluator->rotate_hoisted(hoisted, steps), expected, 0.75, 1.3);
      w.expect(w.evaluator->reduce(w.evaluator->rotate_extended(hoisted, steps)), expected, 0.75,
               1.3);
    }
    w.expect(w.evaluator->rotate(a, 0), x, 0.85, 1.2);
    w.expect(w.evaluator->conjugate(a), map(x, [&](auto j) { return std::conj(x[j]); }), 0.75, 1.3);
  }
}

TEST_P(EvaluatorTest, SparsePackingRotatesWithinItsSlots) {
  World w(GetParam());
  for (const int log_slots : {0, 2, 6}) {
    const std::size_t slots = std::size_t{1} << log_slots;
    const auto x = w.vector(1, slots);
    const auto a = w.encrypt(x, -1, log_slots);
    EXPECT_LT(max_error(w.decrypt(w.evaluator->rotate(a, 1)), rotated(x, 1, slots)), 1e-3);
    const auto squared = w.evaluator->multiply_relinearise_rescale(a, a);
    EXPECT_LT(max_error(w.decrypt(squared), map(x, [&](auto j) { return x[j] * x[j]; })), 1e-3);
  }
}

TEST_P(EvaluatorTest, BatchesBehaveAsTheirEntries) {
  World w(GetParam());
  const std::size_t slots = w.params->slots();
  const auto x = w.vector(1, 3 * slots), y = w.vector(1, 3 * slots), p = w.vector();
  const auto a = w.encrypt(x, -1, -1, 3), b = w.encrypt(y, -1, -1, 3);
  w.expect(w.evaluator->multiply_relinearise_rescale(a, b),
           map(x, [&](auto j) { return x[j] * y[j]; }), 0.7, 1.4);
  w.expect(w.evaluator->rotate(a, 2), rotated(x, 2, slots), 0.75, 1.3);
  const auto hoisted = w.evaluator->hoist(a);
  w.expect(w.evaluator->rotate_hoisted(hoisted, 4), rotated(x, 4, slots), 0.75, 1.3);
  const auto plain = w.encoder().encode(p, 1, a.level, a.scale);  // one plaintext for all entries
  w.expect(w.evaluator->multiply_plain(a, plain),
           map(x, [&](auto j) { return x[j] * p[j % slots]; }), 0.8, 1.25);
  w.expect(w.evaluator->add(a, w.encrypt(p)), map(x, [&](auto j) { return x[j] + p[j % slots]; }),
           0.75, 1.3);
}

TEST_P(EvaluatorTest, ExtendedSumsMatchTheClear) {
  World w(GetParam());
  const std::size_t slots = w.params->slots();
  const auto x = w.vector(), d0 = w.vector(), d1 = w.vector();
  const auto a = w.encrypt(x);
  const auto hoisted = w.evaluator->hoist(a);
  const auto r0 = w.evaluator->extend(a), r1 = w.evaluator->rotate_extended(hoisted, 1);
  const double scale = w.params->scale(a.level);
  const auto p0 = ckks::encode_diagonal(*w.evaluator, d0, 1, a.level, scale);
  const auto p1 = ckks::encode_diagonal(*w.evaluator, d1, 1, a.level, scale);
  const ckks::Extended* operands[] = {&r0, &r1};
  const ckks::Diagonal* diagonals[] = {&p0, &p1};
  auto sum = ckks::multiply_accumulate(*w.evaluator, operands, diagonals);
  const auto x1 = rotated(x, 1, slots);
  const auto inner = map(x, [&](auto j) { return x[j] * d0[j] + x1[j] * d1[j]; });
  w.expect(w.evaluator->reduce(sum), inner, 0.7, 1.4);
  w.expect(w.evaluator->reduce_rescale(sum), inner, 0.7, 1.4);
  // The sum plus its rotation by 8.
  const ring::Poly* polys[] = {&p0.poly, &p1.poly};
  auto total =
      w.evaluator->multiply_accumulate(operands, polys, scale, std::sqrt(2.0 / 3), std::sqrt(2.0));
  w.evaluator->rotate_accumulate(total, sum, 8);
  const auto inner8 = rotated(inner, 8, slots);
  w.expect(w.evaluator->reduce_rescale(total), map(x, [&](auto j) { return inner[j] + inner8[j]; }),
           0.6, 1.5);
  // Several sums rotated at once, one of them by 0; then the total itself is rotated.
  ckks::Extended many;
  const ckks::Extended* terms[] = {&sum, &sum, &sum};
  const int steps[] = {8, 0, 1};
  w.evaluator->rotate_accumulate(many, terms, steps);
  const auto inner1 = rotated(inner, 1, slots);
  const auto all = map(x, [&](auto j) { return inner[j] + inner8[j] + inner1[j]; });
  w.expect(w.evaluator->reduce_rescale(many), all, 0.5, 1.6);
  w.evaluator->rotate_accumulate(many, many, 1);
  const auto turned = rotated(all, 1, slots);
  w.expect(w.evaluator->reduce_rescale(many), map(x, [&](auto j) { return all[j] + turned[j]; }),
           0.5, 1.7);
}

TEST(Diagonal, KnowsItsEntriesAndIsRefusedWhereItDoesNotFit) {
  World w(all_setups()[0]);
  const auto a = w.evaluator->extend(w.encrypt(w.vector()));
  const std::vector<std::complex<double>> entries = {{3, 4}, {0, 0}};
  const auto d = ckks::encode_diagonal(*w.evaluator, entries, 1, a.level, 1024.0);
  EXPECT_DOUBLE_EQ(d.peak, 5);
  EXPECT_DOUBLE_EQ(d.message, 5 / std::sqrt(static_cast<double>(w.params->slots())));
  const auto other = ckks::encode_diagonal(*w.evaluator, entries, 1, a.level, 2048.0);
  const ckks::Extended* operands[] = {&a, &a};
  const ckks::Diagonal* diagonals[] = {&d, &other};
  EXPECT_THROW(ckks::multiply_accumulate(*w.evaluator, operands, diagonals), ScaleMismatch);
  EXPECT_THROW(ckks::multiply_accumulate(*w.evaluator, operands, std::span(diagonals, 1)),
               InvalidArgument);
  EXPECT_THROW(ckks::multiply_accumulate(*w.evaluator, {}, {}), InvalidArgument);
  EXPECT_THROW(ckks::encode_diagonal(*w.evaluator, entries, 1, a.level, 0.5), InvalidArgument);
  EXPECT_THROW(ckks::encode_diagonal(*w.evaluator, entries, 1, -1, 1024.0), InvalidArgument);
  EXPECT_THROW(ckks::encode_diagonal(*w.evaluator, entries, 1, a.level + 1, 1024.0),
               InvalidArgument);
}

TEST_P(EvaluatorTest, DropAndAdjustKeepTheMessage) {
  World w(GetParam(), {});
  const auto x = w.vector();
  const auto a = w.encrypt(x);
  const auto product = w.evaluator->multiply(a, a);
  std::vector<Complex> squares;
  for (const Complex& z : x) squares.push_back(z * z);
  for (int level = 0; level < w.params->depth(); ++level) {
    const auto dropped = w.evaluator->drop_to(a, level);
    EXPECT_EQ(dropped.level, level);
    w.expect(dropped, x, 0.8, 1.25);
    const double scale = w.params->scale(level) * 1.001;
    const auto adjusted = w.evaluator->adjust(a, level, scale);
    EXPECT_EQ(adjusted.scale, scale);
    w.expect(adjusted, x, 0.8, 1.25);
    if (level + 2 > w.params->depth()) continue;
    // The product was not rescaled. Dropping to the level just below would leave no room for the
    // factor that adjusts the scale; dropping several levels does.
    const auto low = w.evaluator->adjust(product, level, scale);
    EXPECT_EQ(low.scale, scale);
    w.expect(low, squares, 0.5, 1.7);
  }
}

// Over many levels Q_a / Q_level is too large for a double. With 32-bit words the level just above
// `level` often has primes that a's level lacks.
TEST_P(EvaluatorTest, DropAndAdjustReachAnyDepth) {
  Scheme deep = GetParam();
  deep.depth = 44;
  deep.log_n = 12;  // for a larger ring the small words have too few primes
  World w(deep, {});
  for (int from = deep.depth; from > 3; from -= 3) {
    const auto x = w.vector();
    const auto a = w.encrypt(x, from);
    for (int level = 0; level < from; level += 1 + level / 2) {
      const double scale = w.params->scale(level) * 1.001;
      for (const auto& low :
           {w.evaluator->adjust(a, level, scale), w.evaluator->drop_to(a, level)}) {
        EXPECT_EQ(low.level, level);
        EXPECT_TRUE(std::isfinite(low.estimate.variance)) << from << " to " << level;
        w.expect(low, x, 0.8, 1.25);
      }
    }
  }
}

TEST_P(EvaluatorTest, MismatchesAreErrors) {
  World w(GetParam(), {1});
  const auto x = w.vector();
  const auto a = w.encrypt(x), low = w.encrypt(x, 0);
  EXPECT_THROW(w.evaluator->add(a, low), InvalidArgument);
  EXPECT_THROW(w.evaluator->multiply(a, low), InvalidArgument);
  auto off = w.evaluator->copy(a);
  off.scale *= 1.5;
  EXPECT_THROW(w.evaluator->add(a, off), ScaleMismatch);
  EXPECT_THROW(w.evaluator->rotate(a, 5), KeyMissing);
  const auto raw = w.evaluator->multiply(a, a);
  EXPECT_THROW(w.evaluator->multiply(raw, a), InvalidArgument);
  EXPECT_THROW(w.evaluator->rotate(raw, 1), InvalidArgument);
  EXPECT_THROW(w.evaluator->add_scalar(a, NAN), InvalidArgument);
  EXPECT_THROW(w.evaluator->drop_to(low, 1), InvalidArgument);
  Scheme changed = GetParam();
  changed.depth += 1;
  World other(changed, {});
  EXPECT_THROW(w.evaluator->add(a, other.encrypt(other.vector(), 1)), ParamsMismatch);
  const ckks::Evaluator no_keys(w.params, w.ring, nullptr);
  EXPECT_THROW(no_keys.relinearise(raw), KeyMissing);
  EXPECT_THROW(no_keys.conjugate(a), KeyMissing);
}

// Neither a hostile scale nor products that were never rescaled may lead to a scale that is
// infinite, zero or refused by the loaders.
TEST_P(EvaluatorTest, ScalesThatHoldNoMessageAreRefused) {
  World w(GetParam(), {1});
  const auto& ev = *w.evaluator;
  const int top = w.params->depth();
  auto large = w.encrypt(w.vector()), small = ev.copy(large);
  large.scale = std::exp2(w.params->level(top).log_q + 63);
  small.scale = 0x1p-64;
  const auto plain = w.encoder().encode(w.vector(), 1, top, w.params->scale(top));
  EXPECT_THROW(ev.multiply(large, large), ScaleMismatch);
  EXPECT_THROW(ev.square(large), ScaleMismatch);
  EXPECT_THROW(ev.multiply_relinearise_rescale(large, large), ScaleMismatch);
  EXPECT_THROW(ev.multiply_plain(large, plain), ScaleMismatch);
  EXPECT_THROW(ev.multiply_scalar(large, 0.5, 4), ScaleMismatch);
  EXPECT_THROW(ev.drop_to(large, 0), ScaleMismatch);
  EXPECT_THROW(ev.multiply(small, small), ScaleMismatch);
  EXPECT_THROW(ev.rescale(small), ScaleMismatch);
  EXPECT_THROW(ev.adjust(w.encrypt(w.vector()), 0, 0x1p-65), ScaleMismatch);
  const auto extended = ev.extend(small);
  EXPECT_THROW(ev.reduce_rescale(extended), ScaleMismatch);
  ckks::Combination sum;
  sum.multiples.push_back({&large, 1});
  for (const double scale : {large.scale * 4, 0x1p-65, 0.0, double(INFINITY), double(NAN)}) {
    EXPECT_THROW(ev.combine_rescale(sum, top, scale), ScaleMismatch) << scale;
  }
  // Products are multiplied without rescaling until the modulus has no more room; then they are
  // refused.
  auto x = w.encrypt(w.vector(0.5), -1, -1, 1, {0.5, 0.75});
  for (int k = 0; k < 40; ++k) {
    try {
      x = ev.relinearise(ev.square(x));
    } catch (const ScaleMismatch&) {
      break;
    }
  }
  EXPECT_LE(std::log2(x.scale), w.params->level(top).log_q + 64);
}

// A sender may state any finite noise and magnitude, which can grow to infinity. Infinity times
// zero is NaN, and a comparison with NaN is false, so a limit would never refuse it. No estimate
// may become NaN.
TEST_P(EvaluatorTest, EstimatesStayNumbers) {
  World w(GetParam(), {1});
  const auto& ev = *w.evaluator;
  for (const double variance : {0.0, 5e-324, 1.7e308}) {
    for (const double message : {0.0, 5e-324, 1.7e308}) {
      auto a = w.encrypt(w.vector()), b = w.encrypt(w.vector());
      a.estimate.variance = variance, a.estimate.message = message;
      // What leaves the range of its level is refused.
      const auto expect_numbers = [&](const auto& make, const char* what) {
        ckks::Ciphertext x;
        try {
          x = make();
        } catch (const RangeExceeded&) {
          return;
        }
        EXPECT_FALSE(std::isnan(x.estimate.variance)) << what << variance << message;
        EXPECT_FALSE(std::isnan(x.estimate.message)) << what << variance << message;
        EXPECT_FALSE(std::isnan(ev.noise().precision_bits(x.estimate, x.scale))) << what;
      };
      for (int k = 0; k < 3; ++k) {  // from the second time on, the estimates are infinite
        expect_numbers([&] { return ev.multiply_integer(a, 0); }, "times 0: ");
        expect_numbers([&] { return ev.multiply_scalar(a, 0, a.scale); }, "times 0: ");
        expect_numbers([&] { return ev.add(a, b); }, "sum: ");
        expect_numbers([&] { return ev.sub(b, a); }, "difference: ");
        b.estimate = {0, 0, 0, 0, 0};
        expect_numbers([&] { return ev.multiply(a, b); }, "product: ");
        expect_numbers([&] { return ev.adjust(a, 0, w.params->scale(0)); }, "adjusted: ");
        ckks::Combination sum;
        sum.products.push_back({&a, &a});
        sum.multiples.push_back({&a, 0});
        expect_numbers(
            [&] { return ev.combine_rescale(sum, w.params->depth(), a.scale * a.scale); },
            "combination: ");
        const auto square = ev.square(a);
        expect_numbers([&] { return ev.square(a); }, "square: ");
        expect_numbers([&] { return ev.rescale(square); }, "rescaled: ");
        a.estimate = ev.add(a, a).estimate;
        if (k == 1) a.estimate = square.estimate;
        expect_numbers([&] { return ev.copy(a); }, "itself: ");
      }
    }
  }
}

TEST_P(EvaluatorTest, LevelsThatAreNotThereAreRefused) {
  World w(GetParam(), {1});
  const auto a = w.encrypt(w.vector());
  const double scale = w.params->scale(0);
  constexpr int kMost = std::numeric_limits<int>::max(), kLeast = std::numeric_limits<int>::min();
  ckks::Combination sum;
  sum.multiples.push_back({&a, 1});
  for (const int level : {w.params->top() + 1, kMost, -1, kLeast}) {
    EXPECT_THROW(w.params->level(level), InvalidArgument) << level;
    EXPECT_THROW(w.evaluator->drop_to(a, level), InvalidArgument) << level;
    EXPECT_THROW(w.evaluator->adjust(a, level, scale), InvalidArgument) << level;
    EXPECT_THROW(w.evaluator->combine_rescale(sum, level, scale), Error) << level;
  }
}

TEST_P(EvaluatorTest, EveryEngineGivesTheSameBits) {
  const Scheme setup = GetParam();
  World w(setup, {1});
  const auto x = w.vector();
  const auto a = w.encrypt(x);
  const auto reference = w.evaluator->rotate(w.evaluator->multiply_relinearise_rescale(a, a), 1);
  std::vector<std::string> devices{"ref"};
  for (const auto& isa : backend::cpu_isas()) devices.push_back("cpu/" + isa);
  for (const auto& device : devices) {
    const auto ring = ckks::make_ring(*w.params, device, device == "ref" ? 1 : 2);
    const ckks::Evaluator evaluator(w.params, ring, w.keys);
    const auto got = evaluator.rotate(evaluator.multiply_relinearise_rescale(a, a), 1);
    for (int part = 0; part < 2; ++part) {
      EXPECT_EQ(0, std::memcmp(got.parts[part].data(), reference.parts[part].data(),
                               reference.parts[part].bytes()))
          << device << " part " << part;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, EvaluatorTest, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
