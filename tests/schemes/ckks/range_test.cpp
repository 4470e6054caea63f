// No number leaves the range of its level without a word: encryption and operations refuse it, and
// decryption compares.
#include "jali/schemes/ckks/range.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "fixture.h"
#include "jali/schemes/ckks/array_evaluator.h"

namespace jali::testing {
namespace {

const Scheme kDepth2{"depth2", Word::w52, 40, 2};
constexpr double kLarge = 3000;

/// What the error says; empty if there is none.
template <class E>
std::string said(const std::function<void()>& work) {
  try {
    work();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

std::vector<double> reals(World& w, double bound) {
  std::uniform_real_distribution<double> uniform(-bound, bound);
  std::vector<double> v(w.params->slots());
  for (double& x : v) x = uniform(w.random);
  return v;
}

ckks::Ciphertext encrypt_reals(World& w, const std::vector<double>& v, params::Declared declared,
                               int log_slots = -1) {
  const int level = w.params->depth();
  return w.encryptor->encrypt(
      w.encoder().encode(std::span(v), 1, level, w.params->scale(level), log_slots), declared);
}

TEST(RangeTest, EncryptionRefusesNumbersAboveWhatIsDeclared) {
  World w(kDepth2, {});
  const std::string text =
      said<InvalidArgument>([&] { w.encrypt({Complex(kLarge)}, -1, -1, 1, {}); });
  EXPECT_NE(text.find("magnitude="), std::string::npos) << text;
  EXPECT_NE(text.find("peak="), std::string::npos) << text;
  EXPECT_EQ(text.find("3000"), std::string::npos) << "it tells the number itself: " << text;
}

TEST(RangeTest, EncryptionRefusesDeclarationsThatTheLevelDoesNotHold) {
  World w(kDepth2, {});
  EXPECT_THROW(w.encrypt(w.vector(), 0, -1, 1, {1, kLarge}), RangeExceeded);
  EXPECT_NO_THROW(w.encrypt(w.vector(), 1, -1, 1, {1, kLarge}));
}

// Found: 10,093 where 6.98e9 is right, at "6.4 bits" and an error of "at most 0.16".
TEST(RangeTest, CubesOfThousandsAreRefusedBeforeTheyAreComputed) {
  World w(kDepth2, {});
  const auto x = w.encrypt({Complex(1910), Complex(kLarge)}, -1, -1, 1, {kLarge, kLarge});
  const auto square = w.automatic->normalise(w.automatic->square(x));
  EXPECT_LT(std::abs(w.decrypt(square)[1] - kLarge * kLarge), 1);
  const std::string text = said<RangeExceeded>([&] { w.automatic->multiply(square, x); });
  EXPECT_NE(text.find("2.7e+10"), std::string::npos) << text;
  EXPECT_NE(text.find("512"), std::string::npos) << text;
  EXPECT_NE(text.find("integer_bits=36"), std::string::npos) << text;
  EXPECT_NE(text.find("depth=3"), std::string::npos) << text;
  // What it advises helps.
  World deeper({"depth3", Word::w52, 40, 3}, {});
  const auto y = deeper.encrypt({Complex(1910)}, -1, -1, 1, {kLarge, kLarge});
  const auto& e = *deeper.automatic;
  const auto cube = e.normalise(e.multiply(e.normalise(e.square(y)), y));
  EXPECT_LT(std::abs(deeper.decrypt(cube)[0] - 6967871000.0), ckks::worst_case_error(cube));
}

TEST(RangeTest, SumsOfProductsAreRefusedWhereTheyAreWritten) {
  World w(kDepth2, {});
  const auto x = std::make_shared<const ckks::Ciphertext>(
      w.automatic->normalise(w.automatic->square(w.encrypt(w.vector(), -1, -1, 1, {1, 4.5}))));
  const auto p = w.automatic->product(x, x);  // up to 410
  EXPECT_THROW(ckks::AutoEvaluator::join(p, p), RangeExceeded);
  const ckks::ArrayEvaluator arrays(w.evaluator);
  EXPECT_THROW(arrays.settle(*arrays.join_scalar(p, 200.0)), RangeExceeded);
  EXPECT_NO_THROW(arrays.settle(*arrays.join_scalar(p, 50.0)));
}

// Every operation of the evaluators, on numbers that the lowest level just holds.
TEST(RangeTest, EveryOperationRefusesWhatItsLevelDoesNotHold) {
  World w(kDepth2);
  const auto& e = *w.evaluator;
  const double most = ckks::largest_held(*w.params, w.params->scale(0), 0);
  const auto high = w.encrypt(w.vector(), 1, -1, 1, {1, 2 * most});
  const auto low = w.encrypt(w.vector(), 0, -1, 1, {1, 0.75 * most});
  const auto plain = w.encoder().encode(std::vector<Complex>{0.5 * most}, 1, 0, w.params->scale(0));
  ckks::Combination sum;
  sum.multiples = {{&high, 1}};
  const std::vector<std::pair<const char*, std::function<void()>>> operations = {
      {"add", [&] { e.add(low, low); }},
      {"sub", [&] { e.sub(low, low); }},
      {"add_inplace",
       [&] {
         auto x = e.copy(low);
         e.add_inplace(x, low);
       }},
      {"add_plain", [&] { e.add_plain(low, plain); }},
      {"sub_plain", [&] { e.sub_plain(low, plain); }},
      {"add_scalar", [&] { e.add_scalar(low, 0.5 * most); }},
      {"multiply_integer", [&] { e.multiply_integer(low, 2); }},
      {"multiply_scalar", [&] { e.multiply_scalar(low, 2, 4); }},
      {"multiply_plain", [&] { e.multiply_plain(low, plain); }},
      {"multiply", [&] { e.multiply(low, low); }},
      {"square", [&] { e.square(low); }},
      {"rescale", [&] { e.rescale(e.multiply_scalar(high, 1, w.params->scale(1))); }},
      {"drop_to", [&] { e.drop_to(high, 0); }},
      {"adjust", [&] { e.adjust(high, 0, w.params->scale(0)); }},
      {"combine", [&] { e.combine_rescale(sum, 1, w.params->scale(1) * w.params->scale(1)); }},
  };
  for (const auto& [name, work] : operations) EXPECT_THROW(work(), RangeExceeded) << name;
  // What changes no number changes no range.
  EXPECT_NO_THROW(e.rotate(low, 1));
  EXPECT_NO_THROW(e.conjugate(low));
  EXPECT_NO_THROW(e.negate(low));
  EXPECT_NO_THROW(e.multiply_i(low));
}

TEST(RangeTest, ProductsAreRefusedAtTheirOwnLevel) {
  World w(kDepth2, {});
  const auto x = w.encrypt(w.vector(), 1, -1, 1, {1, 30});  // 900 does not fit level 0
  EXPECT_THROW(w.evaluator->multiply(x, x), RangeExceeded);
  EXPECT_THROW(w.evaluator->multiply_relinearise_rescale(x, x), RangeExceeded);
  EXPECT_NO_THROW(w.evaluator->multiply(w.encrypt(w.vector(), 2, -1, 1, {1, 30}),
                                        w.encrypt(w.vector(), 2, -1, 1, {1, 30})));
}

// 4,096 slots of which 30 hold numbers: the zeros do not count.
TEST(RangeTest, ZerosPastALengthDoNotCountInSums) {
  World w(kDepth2, {1, 2, 4, 8, 16, 32, 64, 128, 256});
  const ckks::ArrayEvaluator arrays(w.evaluator);
  const std::vector<Complex> v(30, 8.0);
  auto x = w.encrypt(v, 0, -1, 1, {2, 8});
  x.packing = ckks::packing_of_fresh(30, x.log_slots, false, false);
  EXPECT_LT(std::abs(w.decrypt(arrays.sum(x))[5] - 240.0), 1e-3);
  EXPECT_THROW(w.automatic->sum(w.encrypt(v, 0, -1, 1, {2, 8})), RangeExceeded);
}

TEST(RangeTest, AnotherKeyIsNoticed) {
  World w(kDepth2, {}), other(kDepth2, {});
  auto c = w.encrypt(w.vector());
  EXPECT_NO_THROW(w.decrypt(c));
  c.key_id = {};  // else its name tells
  const std::string text =
      said<WrongDecryption>([&] { ckks::decrypt(*other.decryptor, w.encoder(), c); });
  EXPECT_NE(text.find("another key"), std::string::npos) << text;
  EXPECT_NE(text.find("check=False"), std::string::npos) << text;
  EXPECT_NO_THROW(ckks::decrypt(*other.decryptor, w.encoder(), c, ckks::Check::no));
}

// In one slot of a level-0 ciphertext garbage is within the range once in thousands; the other
// coefficients tell.
TEST(RangeTest, AnotherKeyIsNoticedInFewSlotsOfLargeNumbers) {
  World w(kDepth2, {}), other(kDepth2, {});
  for (int i = 0; i < 50; ++i) {
    auto c = w.encrypt({Complex(400)}, 0, 0, 1, {400, 400});
    EXPECT_NO_THROW(w.decrypt(c));
    c.key_id = {};
    EXPECT_THROW(ckks::decrypt(*other.decryptor, w.encoder(), c), WrongDecryption);
  }
}

TEST(RangeTest, RealNumbersStayReal) {
  World w(kDepth2);
  const auto& e = *w.automatic;
  const auto v = reals(w, 1);
  const auto x = encrypt_reals(w, v, {0.6, 1});
  EXPECT_TRUE(x.estimate.real);
  const auto y = e.normalise(e.add(e.rotate(e.square(x), 1), e.multiply_scalar(x, 0.5)));
  EXPECT_TRUE(y.estimate.real);
  EXPECT_NO_THROW(w.decrypt(y));
  for (const auto& z : {e.multiply_scalar(x, Complex(0, 1)),
                        e.multiply_scalar(x, Complex(0.3, 0.1)), e.add_scalar(x, Complex(0, 0.5)),
                        w.evaluator->multiply_i(x), e.add(x, w.encrypt(w.vector()))}) {
    EXPECT_FALSE(z.estimate.real);
    EXPECT_NO_THROW(w.decrypt(z));
  }
  auto lied = w.evaluator->multiply_i(x);
  lied.estimate.real = true;
  EXPECT_THROW(w.decrypt(lied), WrongDecryption);
}

TEST(RangeTest, ClaimsAreCheckedAtDecryption) {
  World w(kDepth2);
  const ckks::ArrayEvaluator arrays(w.evaluator);
  const auto x = w.encrypt(w.vector(), -1, -1, 1, {1, 30});
  EXPECT_NO_THROW(w.decrypt(arrays.with_magnitude(x, {1, 1.5})));
  EXPECT_THROW(w.decrypt(arrays.with_magnitude(x, {0.01, 0.02})), WrongDecryption);
  // With the claim, products fit that did not.
  const auto low = w.evaluator->adjust(x, 1, w.params->scale(1));
  EXPECT_THROW(arrays.multiply(low, low), RangeExceeded);
  EXPECT_NO_THROW(w.decrypt(arrays.multiply(arrays.with_magnitude(low, {1, 1.5}), low)));
  EXPECT_THROW(arrays.with_magnitude(w.evaluator->drop_to(x, 0), {1, 1000}), RangeExceeded);
}

// With a negative peak, any number would fit any level; NaN would be no claim at all.
TEST(RangeTest, ClaimsThatAreNoSizeAreRefused) {
  World w(kDepth2);
  const auto& e = *w.evaluator;
  const auto x = w.encrypt(w.vector());
  const auto extended = e.extend(x);
  const std::vector<std::pair<const char*, std::function<void(double)>>> operations = {
      {"add", [&](double peak) { e.add(x, x, peak); }},
      {"add_inplace",
       [&](double peak) {
         auto y = e.copy(x);
         e.add_inplace(y, x, peak);
       }},
      {"add_inplace of three parts",
       [&](double peak) {
         auto y = e.multiply_scalar(x, 1, x.scale);
         e.add_inplace(y, e.square(x), peak);
       }},
      {"multiply", [&](double peak) { e.multiply(x, x, peak); }},
      {"AutoEvaluator::multiply", [&](double peak) { w.automatic->multiply(x, x, peak); }},
      {"twice_real", [&](double peak) { e.twice_real(x, peak); }},
      {"reduce", [&](double peak) { e.reduce(extended, peak); }},
      {"reduce_rescale",
       [&](double peak) { e.reduce_rescale(e.extend(e.multiply_scalar(x, 1, x.scale)), peak); }},
      {"combine_rescale",
       [&](double peak) {
         ckks::Combination sum;
         sum.multiples = {{&x, 1}};
         sum.peak = peak;
         e.combine_rescale(sum, 2, x.scale * x.scale);
       }},
  };
  for (const auto& [name, work] : operations) {
    for (const double bad : {-1.0, -1e300, std::nan("")}) {
      const std::string text = said<InvalidArgument>([&, call = work] { call(bad); });
      EXPECT_NE(text.find("leave it out"), std::string::npos) << name << " " << bad << ": " << text;
    }
    EXPECT_NO_THROW(work(4)) << name;
    EXPECT_NO_THROW(work(std::numeric_limits<double>::infinity())) << name;
  }
  auto y = e.multiply_scalar(x, 1, x.scale);
  e.add_inplace(y, e.square(x), 1.5);
  EXPECT_EQ(y.estimate.peak, 1.5);
}

TEST(RangeTest, EstimatesWithoutABoundAreRefusedUnlessMeant) {
  World w(kDepth2);
  auto x = w.encrypt(w.vector());
  x.estimate.peak = params::kUnbounded;  // as bytes may say
  EXPECT_THROW(w.evaluator->add(x, x), RangeExceeded);
  EXPECT_THROW(w.evaluator->rotate(x, 1), RangeExceeded);
  EXPECT_THROW(w.decrypt(x), RangeExceeded);
  EXPECT_NO_THROW(ckks::decrypt(*w.decryptor, w.encoder(), x, ckks::Check::no));
}

// The comparison itself, at its edges.
TEST(RangeTest, SlotsAreWithinOrNot) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<Complex> z{{3, 4}, {0, 0}};
  EXPECT_TRUE(ckks::are_within(z, 5, 4));
  EXPECT_FALSE(ckks::are_within(z, 4.99, 4));
  EXPECT_FALSE(ckks::are_within(z, 5, 3.99));
  for (const double bad : {inf, nan}) {
    EXPECT_FALSE(ckks::are_within(std::vector<Complex>{{bad, 0}}, 1e300, inf)) << bad;
    EXPECT_FALSE(ckks::are_within(std::vector<Complex>{{0, bad}}, 1e150, 1e150)) << bad;
  }
}

}  // namespace
}  // namespace jali::testing
