// What origins say of errors, against the errors of look-ups themselves, with every kind of
// rotation.
#include "jali/schemes/tfhe/origin.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "world.h"

namespace jali::tfhe {
namespace {

using test::TfheWorld;
using test::Values;

constexpr std::size_t kCount = 200;

struct Looked {
  Ciphertext result;
  std::vector<double> errors;
};

/// Look-ups of the value 1 of the same encryptions.
struct Look {
  TfheWorld& w;
  Evaluator evaluator;
  Ciphertext x;

  Look(TfheWorld& of, const std::shared_ptr<const backend::TfheOps>& engine)
      : w(of), evaluator(engine, of.client.evaluation_keys()) {
    x = evaluator.bind(w.client.encrypt(Values(kCount, 1)));
  }
  Looked operator()(const Values& table, std::uint64_t plus = 0) const {
    Looked out;
    out.result = evaluator.apply(evaluator.add_clear(x, plus), LookUpTable(w.params, table));
    out.errors = w.client.errors(evaluator.host_copy(out.result));
    return out;
  }
};

double correlation(std::vector<double> a, std::vector<double> b) {
  for (auto* const of : {&a, &b}) {
    const double mean = std::reduce(of->begin(), of->end()) / double(kCount);
    for (double& x : *of) x -= mean;
  }
  const auto product = [](const std::vector<double>& u, const std::vector<double>& v) {
    return std::inner_product(u.begin(), u.end(), v.begin(), 0.0);
  };
  return product(a, b) / std::sqrt(product(a, a) * product(b, b));
}

/// The squared norm of the sum of the first elements: 4 if they have one id, else 2.
double of_sum(const Looked& a, const Looked& b) {
  const History* const both[] = {&a.result.history, &b.result.history};
  const std::vector<std::uint32_t> begin{0, 2}, column{0, kCount};
  const std::vector<std::int64_t> weight{1, 1};
  return History::joined(both).combined({begin, column, weight}).norm2();
}

TEST(Origin, SaysWhichErrorsAreEqualOppositeOrIndependent) {
  // 200 independent pairs have a correlation of 0.07. The first steps of two rotations may resemble
  // each other, and there are but 42 and less.
  constexpr double kNone = 0.4;
  for (test::TfheShape shape : test::every_shape()) {
    shape.n = 42;
    shape.N = 1024;
    SCOPED_TRACE(name_of(shape));
    TfheWorld w(shape);
    const Look look(w, backend::make_cpu_tfhe(w.params->config()));
    // From 1 on, so that 16 minus it has room: 16 steps are half the torus.
    const Values f{1, 2, 5, 4, 7, 3, 3, 8, 1, 1, 6, 2, 9, 4, 5, 2};
    Values minus, spare = f;
    for (const std::uint64_t v : f) minus.push_back(16 - v);
    spare[9] = 2;
    const Looked one = look(f), again = look(f), opposite = look(minus), other = look(spare);
    EXPECT_EQ(one.errors, again.errors);
    EXPECT_EQ(of_sum(one, again), 4);
    EXPECT_EQ(of_sum(one, opposite), 4);
    // An entry that nothing reads makes the errors independent.
    EXPECT_LT(std::abs(correlation(one.errors, other.errors)), kNone);
    EXPECT_EQ(of_sum(one, other), 2);
    // The input one step on, and the table, too: its last entry comes back at its beginning, with
    // the other sign. 0 is its own.
    Values before{0, 2, 5, 4, 7, 3, 3, 8, 1, 1, 6, 2, 9, 4, 5, 0}, after{0};
    after.insert(after.end(), before.begin(), before.end() - 1);
    const Looked a = look(before), b = look(after, 1);
    EXPECT_GT(correlation(a.errors, b.errors), 0.9);
    EXPECT_EQ(of_sum(a, b), 4);
    const Looked c = look(before, 1);
    EXPECT_LT(std::abs(correlation(a.errors, c.errors)), kNone);
    EXPECT_EQ(of_sum(a, c), 2);
    // The double table, and one with 1 added to all of its entries.
    Values twice, plus;
    for (const std::uint64_t v : f) {
      twice.push_back(2 * v % 16);
      plus.push_back(v + 1);
    }
    for (const Values& table : {twice, plus}) {
      const Looked d = look(table);
      EXPECT_LT(std::abs(correlation(one.errors, d.errors)), kNone);
      EXPECT_EQ(of_sum(one, d), 2);
    }
  }
}

// Engines round halves up, so that they take other digits for minus a polynomial as soon as a word
// lies halfway. The errors are independent from then on, and are counted as equal. In few steps of
// short polynomials it happens seldom.
TEST(Origin, MinusATableHasOppositeErrors) {
  TfheWorld w;
  const Look look(w, backend::make_ref_tfhe(w.params->config()));
  const Values f{1, 2, 5, 4, 7, 3, 3, 8, 1, 1, 6, 2, 9, 4, 5, 2};
  Values minus;
  for (const std::uint64_t v : f) minus.push_back(16 - v);
  EXPECT_LT(correlation(look(f).errors, look(minus).errors), -0.4);
}

}  // namespace
}  // namespace jali::tfhe
