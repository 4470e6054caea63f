// Look-ups and depth of every operation on 64 bits in digits of 2 message and 2 carry bits: the
// table of docs/math/integers.md. A number that gets smaller is good news, and goes into both; one
// that gets larger needs a reason.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clear_machine.h"
#include "jali/integers/arithmetic.h"

namespace jali::integers::test {
namespace {

constexpr IntegerType u64{64, false}, i64{64, true}, u8{8, false};
const Wide mixed = 0x123456789abcdef;

struct Row {
  const char* name;
  std::function<void(const Arithmetic&)> operation;
  Arithmetic::Cost flat, few;  // on a machine that is empty, and on one that is full
};

std::vector<Row> rows() {
  const auto x = [](const Arithmetic& a) { return encrypt(a, {12345}, u64); };
  const auto s = [](const Arithmetic& a) { return encrypt(a, {-12345}, i64); };
  const auto many = [](const Arithmetic& a, std::size_t n) {
    return encrypt(a, std::vector<Wide>(n, 3), u64);
  };
  const auto amount = [](const Arithmetic& a) { return encrypt(a, {5}, u8); };
  const auto each = [] { return Clear(std::vector<Wide>{mixed}); };
  const auto squares = [] {
    std::vector<Wide> table;
    for (int i = 0; i < 256; ++i) table.push_back(i * i % 251);
    return table;
  };
  using A = Arithmetic;
  return {
      {"x + y", [=](const A& a) { a.add(x(a), x(a)); }, {99, 4}, {32, 32}},
      {"x + clear", [=](const A& a) { a.add(x(a), Clear(mixed)); }, {96, 4}, {32, 32}},
      {"x + 1", [=](const A& a) { a.add(x(a), Clear(1)); }, {85, 3}, {32, 32}},
      {"x + y, overflow", [=](const A& a) { a.add_overflow(x(a), x(a)); }, {103, 4}, {32, 32}},
      {"x - y", [=](const A& a) { a.subtract(x(a), x(a)); }, {99, 4}, {32, 32}},
      {"-x", [=](const A& a) { a.negate(x(a)); }, {85, 3}, {32, 32}},
      {"x * y", [=](const A& a) { a.multiply(x(a), x(a)); }, {1249, 12}, {1014, 113}},
      {"x * clear", [=](const A& a) { a.multiply(x(a), Clear(mixed)); }, {496, 10}, {340, 138}},
      {"x * clear vector", [=](const A& a) { a.multiply(x(a), each()); }, {1185, 10}, {977, 157}},
      {"x * y, overflow",
       [=](const A& a) { a.multiply_overflow(x(a), x(a)); },
       {1885, 12},
       {1657, 160}},
      {"x * y signed, overflow",
       [=](const A& a) { a.multiply_overflow(s(a), s(a)); },
       {2268, 22},
       {1891, 167}},
      {"x / y, x % y",
       [=](const A& a) { a.divide(x(a), x(a), Rounding::floor); },
       {7041, 176},
       {2541, 1157}},
      {"x / y, x % y signed, truncated",
       [=](const A& a) { a.divide(s(a), s(a), Rounding::truncate); },
       {7565, 187},
       {2824, 1223}},
      {"x / y, x % y signed, floor",
       [=](const A& a) { a.divide(s(a), s(a), Rounding::floor); },
       {7733, 192},
       {2925, 1229}},
      {"x / 1000, x % 1000",
       [=](const A& a) { a.divide(x(a), Clear(1000), Rounding::floor); },
       {1426, 29},
       {967, 323}},
      {"x / clear vector, x % clear vector",
       [=](const A& a) { a.divide(x(a), each(), Rounding::floor); },
       {3610, 29},
       {2986, 477}},
      {"x < y", [=](const A& a) { a.compare(Comparison::less, x(a), x(a)); }, {43, 4}, {43, 4}},
      {"x < y signed",
       [=](const A& a) { a.compare(Comparison::less, s(a), s(a)); },
       {43, 4},
       {43, 4}},
      {"x < clear",
       [=](const A& a) { a.compare(Comparison::less, x(a), Clear(mixed)); },
       {21, 3},
       {21, 3}},
      {"x == y", [=](const A& a) { a.compare(Comparison::equal, x(a), x(a)); }, {36, 3}, {36, 3}},
      {"x == clear",
       [=](const A& a) { a.compare(Comparison::equal, x(a), Clear(mixed)); },
       {19, 3},
       {19, 3}},
      {"min, max", [=](const A& a) { a.minimum(x(a), x(a)); }, {75, 5}, {75, 5}},
      {"select",
       [=](const A& a) { a.select(encrypt(a, {1}, boolean), x(a), x(a)); },
       {33, 2},
       {33, 2}},
      {"x & y", [=](const A& a) { a.bit_and(x(a), x(a)); }, {32, 1}, {32, 1}},
      {"x & clear", [=](const A& a) { a.bit_and(x(a), Clear(mixed)); }, {16, 1}, {16, 1}},
      {"~x", [=](const A& a) { a.bit_not(x(a)); }, {0, 0}, {0, 0}},
      {"x << 5", [=](const A& a) { a.move(Move::left, x(a), Clear(5)); }, {30, 1}, {30, 1}},
      {"x << 6", [=](const A& a) { a.move(Move::left, x(a), Clear(6)); }, {0, 0}, {0, 0}},
      {"x << clear vector",
       [=](const A& a) { a.move(Move::left, x(a), Clear(std::vector<Wide>{5})); },
       {32, 1},
       {32, 1}},
      {"x << y", [=](const A& a) { a.move(Move::left, x(a), amount(a)); }, {293, 9}, {293, 9}},
      {"x >> y signed",
       [=](const A& a) { a.move(Move::right, s(a), amount(a)); },
       {295, 10},
       {295, 10}},
      {"rotation by y",
       [=](const A& a) { a.move(Move::rotate_left, x(a), amount(a)); },
       {259, 8},
       {259, 8}},
      {"leading zeros", [=](const A& a) { a.leading_zeros(x(a)); }, {114, 12}, {108, 12}},
      {"ilog2", [=](const A& a) { a.ilog2(x(a)); }, {112, 10}, {109, 13}},
      {"sum of 16", [=](const A& a) { a.sum(many(a, 16), 16, u64); }, {405, 7}, {251, 35}},
      {"sort 16", [=](const A& a) { a.sort(many(a, 16), 16); }, {9493, 57}, {9493, 57}},
      {"argmax of 16",
       [=](const A& a) { a.extreme(many(a, 16), 16, true); },
       {1189, 21},
       {1189, 21}},
      {"clear array of 256, 8 bits",
       [=](const A& a) { a.read(squares(), u8, amount(a)); },
       {148, 3},
       {148, 3}},
      {"encrypted array of 16",
       [=](const A& a) { a.read(many(a, 16), amount(a)); },
       {579, 5},
       {579, 5}},
  };
}

TEST(Costs, AreThoseOfTheTable) {
  const auto empty = std::make_shared<ClearMachine>(space_of(2, std::size_t{1} << 30));
  const auto full = std::make_shared<ClearMachine>(space_of(2, 1));
  for (const Row& row : rows()) {
    const Arithmetic::Cost flat = Arithmetic(empty).cost_of(row.operation);
    const Arithmetic::Cost few = Arithmetic(full).cost_of(row.operation);
    EXPECT_EQ(flat.look_ups, row.flat.look_ups) << row.name;
    EXPECT_EQ(flat.depth, row.flat.depth) << row.name;
    EXPECT_EQ(few.look_ups, row.few.look_ups) << row.name;
    EXPECT_EQ(few.depth, row.few.depth) << row.name;
  }
}

TEST(Costs, AreCountedAsTheMachineCountsThem) {
  for (const std::size_t wave : {std::size_t{1}, std::size_t{1} << 30}) {
    const auto machine = std::make_shared<ClearMachine>(space_of(2, wave));
    const Arithmetic a(machine);
    const Integers x = encrypt(a, {3, 4, 5}, u64);
    const auto cost = a.cost_of([&](const Arithmetic& b) { b.multiply(x, x); });
    EXPECT_EQ(cost.look_ups, machine->look_ups);
    EXPECT_EQ(cost.depth, machine->depth);
    EXPECT_EQ(cost.depth, machine->waves);
  }
}

TEST(Costs, CarriesFollowTheSizeOfAWave) {
  // The more integers there are for a wave, the fewer look-ups each of them takes.
  const Arithmetic a(std::make_shared<ClearMachine>(space_of(2, 1000)));
  std::size_t before = ~std::size_t{0};
  for (const std::size_t lanes : {1u, 50u, 200u, 1000u, 5000u}) {
    const Integers x = encrypt(a, std::vector<Wide>(lanes, 7), u64);
    const std::size_t each = a.cost_of([&](const Arithmetic& b) { b.add(x, x); }).look_ups / lanes;
    EXPECT_LE(each, before) << lanes;
    before = each;
  }
  EXPECT_EQ(before, 32u);
}

}  // namespace
}  // namespace jali::integers::test
