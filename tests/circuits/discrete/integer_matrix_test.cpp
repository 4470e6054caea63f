// Products of matrices in the clear with encrypted vectors, against the same products of integers.
#include "jali/circuits/discrete/integer_matrix.h"

#include "../../schemes/discrete/world.h"

namespace jali::circuits {
namespace {

using discrete::Case;
using discrete::Ciphertext;
using discrete::Evaluator;
using discrete::kN;
using discrete::Numbers;
using discrete::Overflow;
using discrete::World;
__extension__ using Wide = __int128;

Numbers repeated(const Numbers& x) {
  Numbers out(kN);
  for (std::size_t s = 0; s < kN; ++s) out[s] = x[s % x.size()];
  return out;
}

/// M x, and zeros up to a whole number of vectors.
Numbers product(const Numbers& m, const Numbers& x, const World& w, bool wraps) {
  const std::size_t rows = m.size() / x.size();
  Numbers out((rows + kN - 1) / kN * kN, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    Wide sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += Wide{m[i * x.size() + j]} * x[j];
    out[i] = wraps ? discrete::residue(sum, w.params->modulus()) : static_cast<std::int64_t>(sum);
  }
  return out;
}

void append(IntegerMatrix& matrix, const Numbers& m) {
  const std::size_t step = kN * matrix.columns();
  for (std::size_t at = 0; at < m.size(); at += step) {
    matrix.append(std::span(m).subspan(at, std::min(step, m.size() - at)));
  }
}

class IntegerMatrices : public testing::TestWithParam<Case> {};

// Every word and number of primes, one row, several blocks, the most columns, residues, and every
// way to divide the rotations.
TEST_P(IntegerMatrices, AreMultipliedExactly) {
  JALI_SEEDED(rng);
  World w(GetParam());
  for (const auto& [columns, rows, babies, wraps] :
       {std::tuple{std::size_t{1}, std::size_t{1}, std::size_t{0}, false},
        {4, 2 * kN + 3, 2, false},
        {16, kN, 0, true},
        {16, kN / 2 + 1, 4, false},
        {16, 3, 1, true},
        {kN / 2, 5, 32, false}}) {
    IntegerMatrix matrix(w.engine, columns, w.params->top(),
                         wraps ? Overflow::wrap : Overflow::refuse, babies);
    if (GetParam().device != "cpu" && columns > 4) continue;  // other engines are slow
    const std::int64_t most = wraps ? w.params->modulus().high() : columns > 16 ? 1 : 7;
    const Numbers m = w.numbers(rng, -most, most, rows * columns);
    const Numbers x = w.numbers(rng, -5, 5, columns);
    append(matrix, m);
    EXPECT_EQ(matrix.rows(), rows);
    const Evaluator e = w.evaluator(matrix.rotations());
    const Ciphertext y = matrix.multiply(e, w.encrypt(repeated(x), -5, 5));
    EXPECT_EQ(y.level, w.params->top() - 1);
    EXPECT_EQ(y.estimate.range.wraps, wraps);
    EXPECT_EQ(w.decrypt(y), product(m, x, w, wraps)) << columns;
    const auto measured = w.decryptor.measure(y);
    EXPECT_LE(measured.slot, y.estimate.slot) << columns;
    EXPECT_LE(measured.coefficient, y.estimate.largest()) << columns;
  }
}

INSTANTIATE_TEST_SUITE_P(All, IntegerMatrices, testing::ValuesIn(discrete::slot_setups()),
                         [](const auto& info) { return info.param.label; });

const Case kSmall{"w52", Word::w52, 65537, 0, 2};

// The range is that of the worst row, to the last number, and no larger.
TEST(IntegerMatrix, RangesAreThoseOfTheWorstRows) {
  World w(kSmall);
  IntegerMatrix matrix(w.engine, 2, 1);
  matrix.append(Numbers{3, 4, -5, 0, 1, -4, 5, -6, 2, 2, -1, -1});
  const Evaluator e = w.evaluator(matrix.rotations());
  const Ciphertext y = matrix.multiply(e, w.encrypt(repeated({-10, 20}), -10, 20));
  // 3, 4: -70 .. 140. 5, -6: -170 .. 160. 1, -4: -90 .. 60. -5, 0: -100 .. 50.
  EXPECT_EQ(y.estimate.range.low, -170);
  EXPECT_EQ(y.estimate.range.high, 160);
  // A range without 0 in it: slots that are no number may hold zeros.
  const Ciphertext z = matrix.multiply(e, w.encrypt(repeated({15, 20}), 10, 20));
  EXPECT_EQ(z.estimate.range.low, -120);
  EXPECT_EQ(z.estimate.range.high, 140);
  EXPECT_EQ(w.decrypt(z)[0], 125);
}

TEST(IntegerMatrix, WhatDoesNotFitIsRefusedBeforeItComputes) {
  JALI_SEEDED(rng);
  World w(kSmall);
  IntegerMatrix matrix(w.engine, 4, 1);
  const Evaluator e = w.evaluator(matrix.rotations());
  const Numbers x = w.numbers(rng, 0, 9, 4);
  const Ciphertext ct = w.encrypt(repeated(x), 0, 9);
  EXPECT_THROW(matrix.multiply(e, ct), InvalidArgument);  // it has no rows
  EXPECT_THROW(matrix.append(Numbers{1, 2, 3}), InvalidArgument);
  EXPECT_THROW(matrix.append(Numbers(4 * (kN + 1))), InvalidArgument);
  EXPECT_THROW(matrix.append(Numbers{0, 65537, 0, 0}), RangeExceeded);
  EXPECT_EQ(matrix.rows(), 0u);
  matrix.append(Numbers{1000, 2000, 3000, 1281});  // 7281 * 9 = 65,529
  EXPECT_EQ(w.decrypt(matrix.multiply(e, ct))[0],
            1000 * x[0] + 2000 * x[1] + 3000 * x[2] + 1281 * x[3]);
  EXPECT_THROW(matrix.append(Numbers{1, 1, 1, 1}), InvalidArgument);  // behind a part of a block
  EXPECT_THROW(matrix.multiply(e, w.encrypt(repeated(x), 0, 10)), RangeExceeded);
  EXPECT_THROW(matrix.multiply(e, w.encrypt(repeated(x), 0, 9, 0)), InvalidArgument);  // level 0
  EXPECT_THROW(matrix.multiply(w.evaluator({1}), ct), KeyMissing);
  EXPECT_THROW(IntegerMatrix(w.engine, 3, 1), InvalidArgument);
  EXPECT_THROW(IntegerMatrix(w.engine, 4, 1, Overflow::refuse, 8), InvalidArgument);
  EXPECT_THROW(IntegerMatrix(w.engine, 4, 1, Overflow::refuse, 3), InvalidArgument);
  EXPECT_THROW(IntegerMatrix(w.engine, kN, 1), InvalidArgument);
  World other({"other", Word::w52, 65537, 0, 1});
  EXPECT_THROW(matrix.multiply(other.evaluator({1, 2}), other.encrypt(repeated(x), 0, 9)),
               ParamsMismatch);
  World same(kSmall);  // the key of somebody else
  EXPECT_THROW(matrix.multiply(e, same.encrypt(repeated(x), 0, 9)), KeyMismatch);
}

// One matrix serves the clients of one engine, and level 0 is not divided.
TEST(IntegerMatrix, ServesSeveralClientsAndEveryLevel) {
  JALI_SEEDED(rng);
  World w({"w52_small", Word::w52, 12289, 0, 2});
  for (const int level : {1, 2}) {
    IntegerMatrix matrix(w.engine, 8, level);
    const Numbers m = w.numbers(rng, -9, 9, 8 * 20), x = w.numbers(rng, -9, 9, 8);
    matrix.append(m);
    for (int client = 0; client < 2; ++client) {
      World another({"w52_small", Word::w52, 12289, 0, 2});
      const Evaluator e(w.engine, another.keys(matrix.rotations()));
      const Ciphertext y = matrix.multiply(e, another.encrypt(repeated(x), -9, 9));
      EXPECT_EQ(y.level, level - 1);
      EXPECT_EQ(another.decrypt(y), product(m, x, w, false));
    }
  }
}

// Sums of weights beyond 64 bits are refused, and wrap if that is meant.
TEST(IntegerMatrix, HugeWeightsDoNotOverflow) {
  World w({"w52_integers59", Word::w52, {}, 59, 2});
  const std::int64_t most = w.params->modulus().high();
  const Numbers m(kN / 2, most);
  Numbers x(kN / 2, 0);
  x[3] = 1;
  IntegerMatrix strict(w.engine, kN / 2, 1), wrapped(w.engine, kN / 2, 1, Overflow::wrap);
  strict.append(m), wrapped.append(m);
  const Evaluator e = w.evaluator(strict.rotations());
  const Ciphertext ct = w.encrypt(repeated(x), 0, 1);
  EXPECT_THROW(strict.multiply(e, ct), RangeExceeded);
  EXPECT_EQ(w.decrypt(wrapped.multiply(e, ct))[0], most);
  const Ciphertext nothing = w.encrypt(Numbers(kN, 0), 0, 0);
  EXPECT_EQ(w.decrypt(strict.multiply(e, nothing)), Numbers(kN, 0));
}

}  // namespace
}  // namespace jali::circuits
