// Histories against the sum of squares of the weights of each source, counted in the plainest way.
#include "jali/schemes/tfhe/history.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

#include "../../seeded.h"
#include "jali/base/error.h"

namespace jali::tfhe {
namespace {

struct Matrix {
  std::vector<std::uint32_t> begin{0}, column;
  std::vector<std::int64_t> weight;
  std::vector<std::int64_t> half_steps;
  Weights view() const { return {begin, column, weight, half_steps}; }
};

TEST(History, CountsEqualErrorsBeforeSquaring) {
  const History x = History::fresh(2), y = History::fresh(2);
  const History* const both[] = {&x, &y};
  const History all = History::joined(both);
  EXPECT_EQ(all.rows(), 4u);
  EXPECT_EQ(all.norm2(), 1);
  Matrix m;
  const auto row = [&](std::vector<std::pair<std::uint32_t, std::int64_t>> terms) {
    for (const auto& [column, weight] : terms) {
      m.column.push_back(column);
      m.weight.push_back(weight);
    }
    m.begin.push_back(static_cast<std::uint32_t>(m.column.size()));
    m.half_steps.push_back(0);
  };
  row({{0, 1}, {2, 1}});  // x0 + y0
  row({{0, 1}, {0, 1}});  // x0 + x0
  row({{0, 3}, {1, -2}, {0, -3}});  // -2 x1
  row({});
  const History sums = all.combined(m.view());
  EXPECT_EQ(sums.norm2(0), 2);
  EXPECT_EQ(sums.norm2(1), 4);
  EXPECT_EQ(sums.norm2(2), 4);
  EXPECT_EQ(sums.norm2(3), 0);
  EXPECT_EQ(sums.norm2(), 4);
}

TEST(History, IsTheSumOfSquaresOfRandomPrograms) {
  JALI_SEEDED(rng);
  const auto below = [&](std::uint64_t n) { return rng() % n; };
  // Three sources of 3, 4 and 5 rows with squared norms of 1, 2 and 0.5.
  const History fresh[] = {History::fresh(3), History::fresh(4, 2), History::fresh(5, 0.5)};
  const double unit[] = {1, 2, 0.5};
  using Row = std::map<std::pair<std::size_t, std::size_t>, std::int64_t>;
  std::vector<Row> rows;
  for (std::size_t s = 0; s < 3; ++s) {
    for (std::size_t r = 0; r < fresh[s].rows(); ++r) rows.push_back({{{s, r}, 1}});
  }
  const History* const parts[] = {&fresh[0], &fresh[1], &fresh[2]};
  History history = History::joined(parts);
  for (int round = 0; round < 4; ++round) {
    Matrix m;
    std::vector<Row> next;
    for (int r = 0; r < 12; ++r) {
      Row row;
      for (std::uint64_t e = below(5); e > 0; --e) {
        const auto column = static_cast<std::uint32_t>(below(rows.size()));
        const std::int64_t weight = static_cast<std::int64_t>(below(7)) - 3;
        m.column.push_back(column);
        m.weight.push_back(weight);
        for (const auto& [term, w] : rows[column]) row[term] += w * weight;
      }
      m.begin.push_back(static_cast<std::uint32_t>(m.column.size()));
      m.half_steps.push_back(0);
      next.push_back(row);
    }
    rows = next;
    history = history.combined(m.view());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      double expected = 0;
      for (const auto& [term, w] : rows[r]) {
        expected += static_cast<double>(w * w) * unit[term.first];
      }
      EXPECT_DOUBLE_EQ(history.norm2(r), expected) << "round " << round << " row " << r;
    }
  }
}

Matrix sum_of(std::vector<std::pair<std::uint32_t, std::int64_t>> terms) {
  Matrix m;
  for (const auto& [column, weight] : terms) {
    m.column.push_back(column);
    m.weight.push_back(weight);
  }
  m.begin.push_back(static_cast<std::uint32_t>(m.column.size()));
  m.half_steps.push_back(0);
  return m;
}

/// The squared norm of a sum of first rows.
double of_sum(const History& x, std::int64_t v, const History& y, std::int64_t w) {
  const History* const both[] = {&x, &y};
  return History::joined(both)
      .combined(sum_of({{0, v}, {static_cast<std::uint32_t>(x.rows()), w}}).view())
      .norm2();
}

TEST(History, CountsEqualOriginsAsEqualOrOpposite) {
  random::Seed seed{};
  const History x = History::encrypted(seed, 2), again = History::encrypted(seed, 2);
  seed[31] = 1;
  const History other = History::encrypted(seed, 2);
  EXPECT_EQ(of_sum(x, 1, again, 1), 4);
  EXPECT_EQ(of_sum(x, 3, again, -2), 25);  // they may have been computed differently
  EXPECT_EQ(of_sum(x, 3, x, -2), 1);
  EXPECT_EQ(of_sum(x, 1, other, 1), 2);
  EXPECT_EQ(x.combined(sum_of({{0, 1}, {1, 1}}).view()).norm2(), 2);
  const History unknown = History::unknown(2, 3), more = History::unknown(1, 3);
  EXPECT_DOUBLE_EQ(unknown.combined(sum_of({{0, 1}, {1, 1}}).view()).norm2(), 12);
  EXPECT_DOUBLE_EQ(of_sum(unknown, 1, more, 1), 12);
  EXPECT_EQ(of_sum(History::made({{0}}), 1, x, 1), 1);  // the first has no error
}

// A table of two bits on the whole circle, by its values for 0 to 3 in half steps.
using Halves = std::array<std::int64_t, 4>;

/// One row, looked up in a table after a constant of so many half steps was added.
History looked_up(const History& x, const Halves& table, std::int64_t half_steps = 0) {
  Matrix m = sum_of({{0, 1}});
  m.half_steps = {half_steps};
  return x.combined(m.view()).looked_up(
      [table](std::size_t, std::int64_t c) { return table_origin(table, 2, c); });
}

TEST(History, TellsLookUpsThatRotateTheSamePolynomial) {
  const History x = History::fresh(1), y = History::fresh(1);
  const Halves f{0, 2, 4, 6};
  const History fx = looked_up(x, f);
  EXPECT_EQ(of_sum(fx, 1, looked_up(x, f), 1), 4);
  EXPECT_EQ(of_sum(fx, 1, looked_up(y, f), 1), 2);
  EXPECT_EQ(of_sum(fx, 1, looked_up(x, {0, 2, 4, 2}), 1), 2);
  EXPECT_EQ(of_sum(fx, 1, x, 1), 2);
  // A constant more and the table shifted, whose end comes back with the other sign; and whole
  // turns.
  EXPECT_EQ(of_sum(fx, 1, looked_up(x, {0, 0, 2, 4}, 2), 1), 2);
  EXPECT_EQ(of_sum(fx, 1, looked_up(x, {-6, 0, 2, 4}, 2), 1), 4);
  EXPECT_EQ(of_sum(fx, 1, looked_up(x, f, 16), 1), 4);
  EXPECT_EQ(of_sum(fx, 1, looked_up(x, f, 8), 1), 4);  // half a turn: minus the same
  EXPECT_EQ(of_sum(fx, 1, looked_up(x, f, 4), 1), 2);
  EXPECT_EQ(of_sum(fx, 1, looked_up(x, f, 1), 1), 2);
  // Minus the table, and half the torus more: 8 half steps.
  EXPECT_EQ(of_sum(fx, 1, looked_up(x, {0, -2, -4, -6}), 1), 4);
  EXPECT_EQ(of_sum(fx, 1, looked_up(x, {8, 10, 12, 14}), 1), 4);
  EXPECT_EQ(of_sum(fx, 1, looked_up(x, {8, 6, 4, 2}), 1), 4);
  EXPECT_EQ(of_sum(fx, 1, looked_up(x, {6, 4, 2, 0}), 1), 2);
}

TEST(History, TellsLookUpsOfOppositeResults) {
  const History x = History::fresh(1);
  const Halves f{0, 2, 4, 6}, g{2, 2, 0, 4};
  const History fx = looked_up(x, f), minus = looked_up(x, {8, 6, 4, 2});
  // 8 half steps minus what `minus` holds is what fx holds, with the same mask.
  Matrix m = sum_of({{0, -1}});
  m.half_steps = {8};
  const History same = minus.combined(m.view());
  EXPECT_EQ(of_sum(looked_up(fx, g), 1, looked_up(same, g), 1), 4);
  EXPECT_EQ(of_sum(looked_up(fx, g), 1, looked_up(minus, g), 1), 2);
}

TEST(History, IsIndependentIfNoTwoRowsShareACiphertext) {
  const History x = History::fresh(2), y = History::fresh(2);
  const History* const different[] = {&x, &y};
  const History* const same[] = {&x, &x};
  EXPECT_TRUE(History::joined(different).independent());
  EXPECT_FALSE(History::joined(same).independent());
  const auto combined = [&](std::vector<std::uint32_t> begin, std::vector<std::uint32_t> column,
                            std::vector<std::int64_t> weight) {
    return History::joined(different).combined({begin, column, weight});
  };
  EXPECT_TRUE(combined({0, 1, 2}, {3, 0}, {5, -2}).independent());
  EXPECT_FALSE(combined({0, 1, 2}, {3, 3}, {5, -2}).independent());
  EXPECT_FALSE(combined({0, 2}, {0, 3}, {1, 1}).independent());
  const std::vector<std::int64_t> constants{1, 1};
  EXPECT_TRUE(History::clear(constants).independent());
}

TEST(History, IsRepeatedWithOtherInputs) {
  const History recorded = History::example(2, 4), outside = History::fresh(1);
  const Halves f{0, 2, 4, 6};
  // Of the inputs a and b: f(a), and b plus something that was there before.
  const History fa = looked_up(recorded, f);
  const History* const all[] = {&recorded, &outside};
  const History sum = History::joined(all).combined(sum_of({{1, 1}, {2, 1}}).view());
  EXPECT_TRUE(fa.recorded());
  EXPECT_FALSE(outside.recorded());
  const History fresh = History::fresh(2);
  Matrix m;  // a = 2 y + 1, b = x
  m.begin = {0, 1, 2};
  m.column = {1, 0};
  m.weight = {2, 1};
  m.half_steps = {2, 0};
  const History given = fresh.combined(m.view());
  const History* const results[] = {&fa, &sum};
  const History* const from[] = {&recorded};
  const History* const to[] = {&given};
  const auto once = History::repeated(results, from, to);
  ASSERT_EQ(once.size(), 2u);
  EXPECT_EQ(once[0].norm2(), 1);
  EXPECT_EQ(once[1].norm2(), 2);
  EXPECT_FALSE(once[0].recorded());
  // The same look-up outside of the recording, and in another run of it, has the same error.
  EXPECT_EQ(of_sum(once[0], 1, looked_up(given, f), 1), 4);
  EXPECT_EQ(of_sum(once[0], 1, History::repeated(results, from, to)[0], 1), 4);
  EXPECT_EQ(of_sum(once[0], 1, looked_up(fresh, f), 1), 2);
  // x + outside and x share x.
  EXPECT_EQ(of_sum(once[1], 1, fresh, 1), 5);
  EXPECT_EQ(of_sum(once[1], 1, outside, 1), 5);
  // Twice what was there before in the place of b has the norm of the example, but three times its
  // error is more than was counted.
  m = {.begin = {0, 1, 2}, .column = {0, 0}, .weight = {1, 2}, .half_steps = {0, 0}};
  const History shares = outside.combined(m.view());
  const History* const shared[] = {&shares};
  EXPECT_THROW(History::repeated(results, from, shared), InvalidArgument);
}

}  // namespace
}  // namespace jali::tfhe
