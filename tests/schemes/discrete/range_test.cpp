// Ranges: what is refused, what wraps, and that the advice of refusals is true.
#include <limits>
#include <regex>

#include "jali/circuits/discrete/slot_sum.h"
#include "world.h"

namespace jali::discrete {
namespace {

const Case kSmall{"w52", Word::w52, 65537, 0, 2};
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

template <class E, class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(DiscreteRange, SumsAndProductsThatMayLeaveTheModulusAreRefused) {
  JALI_SEEDED(rng);
  World w(kSmall);
  const Evaluator e = w.evaluator({1});
  const Numbers x = w.numbers(rng, 0, 255), y = w.numbers(rng, -128, 127);
  const Ciphertext a = w.encrypt(x, 0, 255), b = w.encrypt(y, -128, 127);
  // 0 .. 65,025 is one of 65,537 numbers; -32,640 .. 32,385 as well.
  EXPECT_EQ(w.decrypt(e.square(a)), times(x, x));
  EXPECT_EQ(w.decrypt(e.multiply(a, b)), times(x, y));
  const Ciphertext square = e.square(a);
  EXPECT_THROW(e.add(square, e.multiply(a, b)), RangeExceeded);
  EXPECT_THROW(e.multiply(square, a), RangeExceeded);
  EXPECT_THROW(e.multiply_integer(square, 2), RangeExceeded);
  EXPECT_THROW(e.add_integer(a, kMost), RangeExceeded);
  EXPECT_THROW(e.sub(e.negate(square), square), RangeExceeded);
  EXPECT_THROW(e.add_plain(square, w.encoder().encode_clear(Numbers{-513}, 1)), RangeExceeded);
  EXPECT_EQ(w.decrypt(e.add_plain(square, w.encoder().encode_clear(Numbers(kN, 0), 1))),
            times(x, x));
  EXPECT_EQ(w.decrypt(e.add_plain(square, w.encoder().encode_clear(Numbers{-511}, 1)))[0],
            x[0] * x[0] - 511);
  EXPECT_THROW(e.multiply_plain(square, w.encoder().encode_clear(Numbers(kN, 2), 1)),
               RangeExceeded);
  const std::pair<const Ciphertext*, const Ciphertext*> pairs[] = {{&a, &a}, {&a, &a}};
  EXPECT_THROW(e.sum_of_products(pairs), RangeExceeded);
  EXPECT_THROW(e.stack(square, e.multiply(a, b)), RangeExceeded);
}

// The edges: exactly T numbers fit, T + 1 do not.
TEST(DiscreteRange, TheEdgesAreExact) {
  World w(kSmall);
  const Evaluator e = w.evaluator();
  Numbers x(kN, 0);
  x[0] = 65536, x[1] = 0, x[2] = 65535;
  const Ciphertext whole = w.encrypt(x, 0, 65536);
  EXPECT_EQ(w.decrypt(whole), x);
  EXPECT_THROW(w.noise().range(0, 65537), RangeExceeded);
  EXPECT_THROW(w.noise().range(std::numeric_limits<std::int64_t>::min(), kMost), RangeExceeded);
  EXPECT_THROW(w.noise().range(1, 0), InvalidArgument);
  // Shifted by an integer, it is another range of T numbers.
  EXPECT_EQ(w.decrypt(e.add_integer(whole, -65536)), plus(x, {-65536}));
  EXPECT_EQ(w.decrypt(e.add_integer(whole, 1)), plus(x, {1}));
  EXPECT_EQ(w.decrypt(e.negate(whole)), times(x, {-1}));
  EXPECT_EQ(w.decrypt(e.add_integer(whole, kMost - 65536)), plus(x, {kMost - 65536}));
  EXPECT_THROW(e.add_integer(whole, kMost - 65535), RangeExceeded);  // no signed 64-bit integer
  EXPECT_THROW(e.add(whole, w.encrypt(Numbers(kN, 0), 0, 1)), RangeExceeded);
  EXPECT_EQ(w.decrypt(e.add(whole, w.encrypt(Numbers(kN, 0), 0, 0))), x);
}

TEST(DiscreteRange, NumbersOutsideWhatIsDeclaredAreRefused) {
  World w(kSmall);
  EXPECT_THROW(w.encrypt({1, 2, 3}, 0, 2), InvalidArgument);
  EXPECT_THROW(w.encrypt({1, 2, 3}, 1, 3), InvalidArgument) << "zeros fill the vector up";
  EXPECT_NO_THROW(w.encrypt(Numbers(kN, 3), 1, 3));
  EXPECT_THROW(w.encrypt(Numbers(kN + 1, 0), 0, 1), InvalidArgument);
  EXPECT_THROW(w.encoder().encode(Numbers{1}, 1, Range{0, 70000, false}), InvalidArgument);
  EXPECT_THROW(w.encoder().encode(Numbers{1}, 1, Range{0, 3, true}), InvalidArgument);
  EXPECT_THROW(w.encoder().encode(Numbers{1, 2, 3}, 2, Range{0, 3, false}), InvalidArgument);
}

TEST(DiscreteRange, WrappedValuesAreResiduesFromThereOn) {
  JALI_SEEDED(rng);
  World w(kSmall);
  const Evaluator e = w.evaluator();
  const PlainModulus& t = w.params->modulus();
  const Numbers x = w.numbers(rng, 0, 255), y = w.numbers(rng, -kMost, kMost);
  const Ciphertext a = w.encrypt(x, 0, 255), residues = w.encrypt_residues(y);
  const auto expect = [&](const Ciphertext& c, auto f) {
    EXPECT_TRUE(c.estimate.range.wraps);
    const Numbers got = w.decrypt(c);
    for (std::size_t i = 0; i < kN; ++i) ASSERT_EQ(got[i], residue(f(Wide{x[i]}, Wide{y[i]}), t));
  };
  const Ciphertext cube = e.multiply(e.square(a), a, Overflow::wrap);
  expect(cube, [](Wide u, Wide) { return u * u * u; });
  expect(e.add(cube, a), [](Wide u, Wide) { return u * u * u + u; });
  expect(residues, [](Wide, Wide v) { return v; });
  expect(e.multiply(residues, a), [](Wide u, Wide v) { return u * (v % 65537); });
  expect(e.sub(a, residues), [](Wide u, Wide v) { return u - v; });
  expect(e.multiply_integer(residues, kMost), [](Wide, Wide v) { return (v % 65537) * kMost; });
  expect(e.add_integer(residues, kMost), [](Wide, Wide v) { return v + kMost; });
  expect(e.add_plain(a, w.encoder().encode_clear(y, 1, Overflow::wrap)),
         [](Wide u, Wide v) { return u + v; });
  expect(e.multiply_plain(a, w.encoder().encode_clear(y, 1, Overflow::wrap)),
         [](Wide u, Wide v) { return u * (v % 65537); });
  // Overflow::wrap alone changes nothing for a result that fits.
  EXPECT_EQ(e.add(a, a, Overflow::wrap).estimate.range, (Range{0, 510, false}));
}

TEST(DiscreteRange, AdviceOfRefusalsIsTrue) {
  JALI_SEEDED(rng);
  World w(kSmall);
  const Evaluator e = w.evaluator();
  const Numbers x = w.numbers(rng, -1000, 1000);
  const Ciphertext a = w.encrypt(x, -1000, 1000);
  const std::string text = refusal<RangeExceeded>([&] { e.square(a); });
  std::smatch bits;
  ASSERT_TRUE(std::regex_search(text, bits, std::regex("integers=(\\d+)"))) << text;
  EXPECT_NE(text.find("x.wrap()"), std::string::npos);
  Case wider = kSmall;
  wider.modulus.reset();
  wider.integers = std::stoi(bits[1]);
  World other(wider);
  EXPECT_EQ(other.decrypt(other.evaluator().square(other.encrypt(x, -1000, 1000))), times(x, x));
  // No modulus is wide enough: none is named.
  const Ciphertext one = w.encrypt({0}, 0, 0);
  const std::string none =
      refusal<RangeExceeded>([&] { e.sub(e.add_integer(one, kMost), e.add_integer(one, -kMost)); });
  EXPECT_EQ(none.find("integers="), std::string::npos) << none;
}

TEST(DiscreteRange, SumsOfSlots) {
  JALI_SEEDED(rng);
  World w(kSmall);
  const circuits::IntegerSlotSum all(w.params, 1, kN / 2), few(w.params, 2, 5);
  std::vector<int> rotations = all.rotations();
  for (const int r : few.rotations()) rotations.push_back(r);
  const Evaluator e = w.evaluator(rotations);
  const Numbers x = w.numbers(rng, -60, 60);
  const Ciphertext a = w.encrypt(x, -60, 60);
  const auto sums = [&](std::size_t stride, std::size_t count) {
    Numbers out(kN, 0);
    for (std::size_t t = 0; t < count; ++t) {
      out = plus(out, rotated(x, static_cast<int>(t * stride)));
    }
    return out;
  };
  const Ciphertext total = all.apply(e, a);
  EXPECT_EQ(w.decrypt(total), sums(1, kN / 2));
  EXPECT_EQ(total.estimate.range, (Range{-60 * 512, 60 * 512, false}));
  EXPECT_EQ(w.decrypt(few.apply(e, a)), sums(2, 5));
  expect_noise(w, total, 14, "sum of slots");
  const Ciphertext wide = w.encrypt(x, -65, 65);
  EXPECT_THROW(all.apply(e, wide), RangeExceeded);
  EXPECT_EQ(w.decrypt(all.apply(e, wide, Overflow::wrap)), sums(1, kN / 2));
  EXPECT_THROW(all.apply(w.evaluator({1}), a), KeyMissing);
}

}  // namespace
}  // namespace jali::discrete
