// A scheme that stands on rlwe/ and circuits/common alone computes what integers give in the clear:
// this program links no other scheme.
#include "scheme.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <tuple>

#include "../seeded.h"
#include "jali/base/error.h"
#include "jali/circuits/common/slot_sum_plan.h"

namespace jali::plain {

// X^k goes to X^(k g mod 2N), and X^N is -1.
Integers rotated(const Integers& x, int steps) {
  const std::uint64_t g = ring::galois_element(kN, steps);
  Integers out(x.size());
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::size_t at = (k % kN) * g % (2 * kN), block = k / kN * kN;
    out[block + at % kN] = at < kN ? x[k] : -x[k];
  }
  return out;
}

namespace {

constexpr std::size_t kSlots = kN / 2;  // rotations are a group of this order
constexpr std::size_t kBatch = 2;

Integers small(std::mt19937_64& random, std::size_t count, int most) {
  std::uniform_int_distribution<std::int64_t> any(-most, most);
  Integers out(count);
  for (auto& v : out) v = any(random);
  return out;
}

/// A polynomial of three terms, so that products of any are quickly checked.
Integers sparse(std::mt19937_64& random) {
  Integers out(kN, 0);
  for (const std::size_t k : {random() % kN, random() % kN, random() % kN}) out[k] = 2;
  out[random() % kN] = -1;
  return out;
}

/// w x modulo X^N + 1, for each vector of x.
Integers product(const Integers& w, const Integers& x) {
  Integers out(x.size(), 0);
  for (std::size_t i = 0; i < kN; ++i) {
    if (w[i] == 0) continue;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const std::size_t at = i + k % kN, block = k / kN * kN;
      out[block + at % kN] += at < kN ? w[i] * x[k] : -w[i] * x[k];
    }
  }
  return out;
}

void operator+=(Integers& a, const Integers& b) {
  for (std::size_t k = 0; k < a.size(); ++k) a[k] += b[k];
}

class PlainScheme : public ::testing::TestWithParam<std::tuple<Word, bool>> {
 protected:
  rlwe::Evaluator evaluator(const std::vector<int>& rotations) {
    keys_ = client_.generator.evaluation_keys(*client_.secret, rotations);
    return rlwe::Evaluator(client_.params, client_.ring, &keys_);
  }

  Client client_ = [] {
    const auto [word, oracle] = GetParam();
    const auto params = make_params(word);
    return Client{params, make_ring(*params, oracle)};
  }();
  rlwe::EvaluationKeys keys_;
};

INSTANTIATE_TEST_SUITE_P(Words, PlainScheme,
                         ::testing::Combine(::testing::Values(Word::w32, Word::w52, Word::w64),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(word_name(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "ref" : "cpu");
                         });

TEST_P(PlainScheme, SumsAndProductsAreThoseOfIntegers) {
  JALI_SEEDED(random);
  const auto e = evaluator({});
  const Integers a = small(random, kBatch * kN, 9), b = small(random, kBatch * kN, 9);
  const Ciphertext x = client_.encrypt(a), y = client_.encrypt(b);
  Integers sum = a, difference = a, times = a;
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum[k] += b[k], difference[k] -= b[k], times[k] *= -5;
  }
  EXPECT_EQ(client_.decrypt(e.add(x, y)), sum);
  EXPECT_EQ(client_.decrypt(e.sub(x, y)), difference);
  EXPECT_EQ(client_.decrypt(e.multiply_integer(x, -5)), times);
  EXPECT_EQ(client_.decrypt(e.rescale(x)), a);
  const Integers w = sparse(random);
  const int top = client_.params->top();
  const auto plain = client_.encode(w, client_.params->level(top).primes, 1);
  EXPECT_EQ(client_.decrypt(e.multiply_plain(x, plain)), product(w, a));
  // Of numbers at a scale of their own: the product of both scales would not fit the modulus.
  const double own = 0x1p26;
  const auto fresh = [&](const Integers& m) {
    return rlwe::SecretEncryptor(client_.secret, client_.ring)
        .encrypt({client_.encode(m, client_.params->level(top).primes, own), top});
  };
  const Integers one(b.begin(), b.begin() + kN);
  const Ciphertext three = e.multiply(fresh(w), fresh(one));
  EXPECT_EQ(three.parts.size(), 3U);
  EXPECT_EQ(client_.decrypt(three, own * own), product(w, one));
  EXPECT_EQ(client_.decrypt(e.relinearise(three), own * own), product(w, one));
  EXPECT_EQ(client_.decrypt(e.vectors(e.stack(x, y), 1, kBatch)), [&] {
    Integers joined(a.begin() + kN, a.end());
    joined.insert(joined.end(), b.begin(), b.begin() + kN);
    return joined;
  }());
}

TEST_P(PlainScheme, SumsOfProductsAreRelinearisedAndRescaledOnce) {
  JALI_SEEDED(random);
  const auto e = evaluator({});
  const int top = client_.params->top();
  const double scale = client_.scale(top), left = std::exp2(std::floor(std::log2(scale) / 2));
  const auto encrypt = [&](const Integers& m, double at) {
    return rlwe::SecretEncryptor(client_.secret, client_.ring)
        .encrypt({client_.encode(m, client_.params->level(top).primes, at), top});
  };
  const Integers w1 = sparse(random), w2 = sparse(random), b = small(random, kN, 9),
                 c = small(random, kN, 9), d = small(random, kN, 9);
  const Ciphertext x1 = encrypt(w1, left), x2 = encrypt(w2, left), y1 = encrypt(b, scale / left),
                   y2 = encrypt(c, scale / left), z = client_.encrypt(d);
  const auto& primes = client_.params->level(top).primes;
  const ring::Ring& ring = *client_.ring;
  rlwe::Terms terms;
  terms.add_product(x1, y1, false);
  terms.add_product(x2, y2, true);
  terms.add_multiple(z.parts, ring::residues(ring, primes, std::int64_t{-3}));
  terms.set_constant(ring::residues(ring, primes, 5 * scale));
  Integers expected = product(w1, b);
  expected += product(w2, c);
  expected += product(w2, c);
  for (std::size_t k = 0; k < kN; ++k) expected[k] -= 3 * d[k];
  expected[0] += 5;
  const Ciphertext sum{z.key_id, e.combine(terms, primes, 1), top, {}};
  EXPECT_EQ(client_.decrypt(sum), expected);
  EXPECT_EQ(client_.decrypt(e.relinearise_rescale(sum)), expected);
  const Ciphertext at_once{z.key_id, e.combine_relinearise_rescale(terms, 1, top), top - 1, {}};
  EXPECT_EQ(client_.decrypt(at_once), expected);
}

TEST_P(PlainScheme, RotationsAreAutomorphisms) {
  JALI_SEEDED(random);
  const auto e = evaluator({1, 4, -2});
  const Integers a = small(random, kBatch * kN, 100);
  const Ciphertext x = client_.encrypt(a);
  const auto hoisted = e.hoist(x);
  for (const int r : {0, 1, 4, -2, 512, 513}) {
    EXPECT_EQ(client_.decrypt(e.rotate(x, r)), rotated(a, r)) << r;
    EXPECT_EQ(client_.decrypt(e.rotate_hoisted(hoisted, r)), rotated(a, r)) << r;
    EXPECT_EQ(client_.decrypt(e.reduce(e.rotate_extended(hoisted, r))), rotated(a, r)) << r;
  }
  EXPECT_THROW(e.rotate(x, 3), KeyMissing);
  EXPECT_FALSE(e.has_rotation(3));
  EXPECT_TRUE(e.can_rotate(3));
  for (const int r : {2, 3, 7}) {  // 2 = 4 - 2, and so on
    EXPECT_EQ(client_.decrypt(rlwe::composed_rotate(e, x, r)), rotated(a, r)) << r;
    const auto term = rlwe::composed_rotate_extended(e, hoisted, r);
    EXPECT_EQ(client_.decrypt(e.reduce_rescale(term)), rotated(a, r)) << r;
  }
  // Sums before their division, one of an operand with itself.
  Extended sum = e.extend(x);
  const Extended one = e.rotate_extended(hoisted, 4);
  const Extended* terms[] = {&sum, &one};
  const int steps[] = {1, -2};
  e.rotate_accumulate(sum, terms, steps);
  Integers expected = a;
  expected += rotated(a, 1);
  expected += rotated(a, 2);
  EXPECT_EQ(client_.decrypt(e.reduce(sum)), expected);
}

TEST_P(PlainScheme, OperandsThatDoNotFitAreRefused) {
  JALI_SEEDED(random);
  const auto e = evaluator({1});
  const Integers a = small(random, kN, 9);
  const Ciphertext x = client_.encrypt(a);
  EXPECT_THROW(e.add(x, e.rescale(x)), InvalidArgument);
  EXPECT_THROW(e.add(x, client_.encrypt(small(random, 3 * kN, 9))), InvalidArgument);
  EXPECT_THROW(e.rotate(e.multiply(x, x), 1), InvalidArgument);
  EXPECT_THROW(e.reduce(Extended{}), InvalidArgument);
  EXPECT_THROW(e.rotate_hoisted(rlwe::Hoisted{}, 1), InvalidArgument);
  const Client other{client_.params, client_.ring};
  EXPECT_THROW(e.negate(other.encrypt(a)), KeyMismatch);
  EXPECT_THROW(other.decrypt(x), KeyMismatch);
  EXPECT_THROW(rlwe::Evaluator(client_.params, client_.ring, nullptr).rotate(x, 1), KeyMissing);
}

TEST_P(PlainScheme, BabyAndGiantStepsSumRotationsOfEveryPlan) {
  JALI_SEEDED(random);
  // Two outputs of two inputs; the second output has nothing of the first input.
  const circuits::BlockDiagonals indices = {{{0, 1, 2, 5, 9, 510}, {3, 4}}, {{}, {0, 7, 8}}};
  Diagonals diagonals;
  for (std::size_t o = 0; o < 2; ++o)
    for (std::size_t i = 0; i < 2; ++i)
      for (const int d : indices[o][i]) diagonals[{o, i, d}] = sparse(random);
  const std::vector<Integers> a = {small(random, kBatch * kN, 9), small(random, kBatch * kN, 9)};
  std::vector<Integers> expected(2, Integers(kBatch * kN, 0));
  for (const auto& [at, w] : diagonals) {
    const auto& [o, i, d] = at;
    expected[o] += product(w, rotated(a[i], d));
  }
  const std::vector<Ciphertext> x = [&] {
    std::vector<Ciphertext> out;
    for (const Integers& one : a) out.push_back(client_.encrypt(one));
    return out;
  }();
  const Ciphertext* inputs[] = {&x[0], &x[1]};
  const int top = client_.params->top();

  std::vector<circuits::BsgsOptions> options(2);
  options[0].hoisting = circuits::Hoisting::single;
  options[1].hoisting = circuits::Hoisting::twice;
  for (const circuits::Sequence s : {circuits::Sequence{1, 1}, {4, 1}, {4, 2}, {4, 4}}) {
    options.emplace_back().sequence = s;
  }
  for (std::size_t k = 0; k < options.size(); ++k) {
    SCOPED_TRACE("plan " + std::to_string(k));
    const auto plan = circuits::plan_bsgs(*client_.params, top, kSlots, indices, options[k]);
    // With a key for every rotation, or with few of which the others are composed.
    for (const bool few : {false, true}) {
      if (few && plan.sequence) continue;
      const auto e = evaluator(few ? std::vector<int>{1, 4, -2} : plan.rotations());
      const Scheme scheme{client_, e, plan, top, diagonals};
      const circuits::BabyGiant<Scheme> steps(scheme, e, plan, top);
      for (const bool rescale : {true, false}) {
        const auto y = steps.apply(inputs, rescale);
        ASSERT_EQ(y.size(), 2U);
        for (std::size_t o = 0; o < 2; ++o) {
          EXPECT_EQ(y[o].level, rescale ? top - 1 : top);
          EXPECT_EQ(client_.decrypt(y[o]), expected[o]) << "output " << o;
        }
      }
    }
  }
}

TEST_P(PlainScheme, SlotSumsAreSumsOfRotations) {
  JALI_SEEDED(random);
  const Integers a = small(random, kN, 9);
  const Ciphertext x = client_.encrypt(a);
  for (const std::size_t count : {1U, 2U, 11U}) {
    const circuits::SlotSumPlan plan(*client_.params, 3, count, 2, kSlots, 2);
    const auto e = evaluator(plan.rotations());
    const auto sum =
        circuits::sum_slots(e, plan, x, [&](const Extended& term, bool) { return e.reduce(term); });
    Integers expected(kN, 0);
    for (std::size_t t = 0; t < count; ++t) expected += rotated(a, static_cast<int>(3 * t));
    EXPECT_EQ(client_.decrypt(sum), expected) << count;
  }
}

TEST_P(PlainScheme, ARecorderWritesDownTheKeysOfAPlan) {
  const auto plan = circuits::plan_bsgs(*client_.params, 2, kSlots, {{{0, 1, 2, 3, 9}}}, {});
  const auto recorder = std::make_shared<rlwe::KeyRecorder>();
  const Ciphertext x = client_.encrypt(Integers(kN, 1));
  const rlwe::Evaluator e(std::make_shared<const rlwe::KeySwitcher>(client_.params, client_.ring),
                          rlwe::zeros_for_all(*client_.ring, *client_.params, x.key_id, recorder));
  const Diagonals diagonals = [&] {
    Diagonals out;
    for (const int d : {0, 1, 2, 3, 9}) out[{0, 0, d}] = Integers(kN, 1);
    return out;
  }();
  const Scheme scheme{client_, e, plan, 2, diagonals};
  const Ciphertext* inputs[] = {&x};
  circuits::BabyGiant<Scheme>(scheme, e, plan, 2).apply(inputs, true);
  std::vector<std::uint64_t> expected;
  for (const int r : plan.rotations()) expected.push_back(ring::galois_element(kN, r));
  std::ranges::sort(expected);
  std::vector<std::uint64_t> used;
  for (const auto& [element, level] : recorder->demand().galois) {
    used.push_back(element);
    EXPECT_EQ(level, 2);
  }
  EXPECT_EQ(used, expected);
  EXPECT_EQ(recorder->demand().relinearise, rlwe::kNoKey);
}

}  // namespace
}  // namespace jali::plain
