// Histories against the sum of squares of the weights of each source, counted in the plainest way.
#include "jali/tfhe/history.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "../seeded.h"
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

TEST(History, KnowsEqualCiphertexts) {
  const History x = History::fresh(3);
  Matrix m;
  const auto row = [&](std::uint32_t column, std::int64_t weight, std::int64_t half_steps) {
    m.column.push_back(column);
    m.weight.push_back(weight);
    m.begin.push_back(static_cast<std::uint32_t>(m.column.size()));
    m.half_steps.push_back(half_steps);
  };
  row(0, 1, 0);
  row(1, 1, 0);
  row(0, 1, 0);  // row 0 again
  row(0, 1, 2);  // row 0 plus a constant
  row(0, 2, 0);
  const History sums = x.combined(m.view());
  EXPECT_EQ(sums.first_equal(), (std::vector<std::uint32_t>{0, 1, 0, 3, 4}));
  const std::vector<std::uint32_t> mark{0, 0, 1, 0, 0};
  EXPECT_EQ(sums.first_equal(mark), (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  // Equal ciphertexts, bootstrapped, are one source.
  const History fresh = History::fresh(sums.first_equal());
  Matrix sum;
  sum.column = {0, 2, 0, 1};
  sum.weight = {1, 1, 1, 1};
  sum.begin = {0, 2, 4};
  sum.half_steps = {0, 0};
  EXPECT_EQ(fresh.combined(sum.view()).norm2(0), 4);
  EXPECT_EQ(fresh.combined(sum.view()).norm2(1), 2);
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
  const History recorded = History::fresh(2), inner = History::fresh(1, 0.5);
  const History* const all[] = {&recorded, &inner};
  const auto combined = [](const History& of, std::vector<std::uint32_t> begin,
                           std::vector<std::uint32_t> column, std::vector<std::int64_t> weight) {
    return of.combined({begin, column, weight});
  };
  // 3 a + i and i, of the inputs a and b.
  const History result = combined(History::joined(all), {0, 2, 3}, {0, 2, 2}, {3, 1, 1});
  const History fresh = History::fresh(2, 2);
  const History given = combined(fresh, {0, 1, 2}, {1, 0}, {2, 1});  // a = 2 y, b = x
  const History* const results[] = {&result, &result};
  const History* const from[] = {&recorded};
  const History* const to[] = {&given};
  const auto once = History::repeated(results, from, to),
             again = History::repeated(results, from, to);
  ASSERT_EQ(once.size(), 2u);
  EXPECT_EQ(once[0].norm2(0), 36 * 2 + 0.5);  // 6 y + i
  EXPECT_EQ(once[0].norm2(1), 0.5);
  const auto sum = [&](const History& a, const History& b) {
    const History* const both[] = {&a, &b};
    return combined(History::joined(both), {0, 2}, {0, static_cast<std::uint32_t>(a.rows())},
                    {1, 1})
        .norm2();
  };
  EXPECT_EQ(sum(once[0], once[1]), 144 * 2 + 4 * 0.5);  // the results of one run share i
  EXPECT_EQ(sum(once[0], again[0]), 144 * 2 + 2 * 0.5);  // those of two runs do not
}

}  // namespace
}  // namespace jali::tfhe
