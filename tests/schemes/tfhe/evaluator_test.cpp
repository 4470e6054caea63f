// Encrypted computation against clear arithmetic, with the oracle's engine at sizes without
// security.
#include "jali/schemes/tfhe/evaluator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "../../seeded.h"
#include "as_read.h"
#include "jali/base/error.h"
#include "little_world.h"
#include "world.h"

namespace jali::tfhe {
namespace {

using test::counting;
using test::TfheShape;
using test::TfheWorld;
using test::Values;

TEST(Evaluator, LooksUpEveryValueInEveryKindOfParameters) {
  JALI_SEEDED(rng);
  for (const TfheShape& shape : test::every_shape()) {
    SCOPED_TRACE(test::name_of(shape));
    TfheWorld world(shape);
    const std::uint64_t p = world.params->value_modulus();
    const Ciphertext x = world.evaluator->bind(world.client.encrypt(counting(p), p - 1));
    Values f(p);
    for (auto& value : f) value = rng() % p;
    const LookUpTable table(world.params, f);
    const Ciphertext y = world.evaluator->apply(x, table);
    EXPECT_EQ(world.decrypt(y), f);
    // Again, on what was bootstrapped.
    Values twice;
    for (const std::uint64_t value : f) twice.push_back(f[value]);
    EXPECT_EQ(world.decrypt(world.evaluator->apply(y, table)), twice);
  }
}

TEST(Evaluator, AddsSubtractsAndScales) {
  JALI_SEEDED(rng);
  for (const TfheShape& shape : test::every_shape()) {
    SCOPED_TRACE(test::name_of(shape));
    TfheWorld world(shape);
    const auto& ev = *world.evaluator;
    Values a(20), b(20);
    for (auto& x : a) x = rng() % 4;
    for (auto& x : b) x = rng() % 4;
    const Ciphertext x = world.encrypt(a), y = world.encrypt(b), one = world.encrypt({b[0]});
    Values sum, difference, negative, scaled, plus, mixed, broadcast;
    for (std::size_t i = 0; i < a.size(); ++i) {
      sum.push_back(a[i] + b[i]);
      difference.push_back(a[i] + 4 - b[i]);
      negative.push_back(4 - b[i]);
      scaled.push_back(3 * a[i]);
      plus.push_back(a[i] + 11);
      mixed.push_back(2 * a[i] + (4 - b[i]) + 1);
      broadcast.push_back(a[i] + b[0]);
    }
    EXPECT_EQ(world.decrypt(ev.add(x, y)), sum);
    EXPECT_EQ(world.decrypt(ev.subtract(x, y)), difference);
    EXPECT_EQ(world.decrypt(ev.negate(y)), negative);
    EXPECT_EQ(world.decrypt(ev.scale(x, 3)), scaled);
    EXPECT_EQ(world.decrypt(ev.add_clear(x, 11)), plus);
    EXPECT_EQ(world.decrypt(ev.add(x, one)), broadcast);
    EXPECT_EQ(world.decrypt(ev.add(one, x)), broadcast);
    EXPECT_EQ(world.decrypt(ev.add_clear(ev.add(ev.scale(x, 2), ev.negate(y)), 1)), mixed);
    EXPECT_EQ(world.decrypt(ev.gather(x, std::vector<std::uint32_t>{5, 5, 0})),
              (Values{a[5], a[5], a[0]}));
    const Ciphertext clear = ev.clear(b);
    EXPECT_EQ(world.decrypt(clear), b);
    EXPECT_TRUE(clear.key_id.is_none());
    EXPECT_EQ(world.decrypt(ev.add(x, clear)), sum);
    const Ciphertext* const parts[] = {&x, &one, &clear};
    Values all = a;
    all.push_back(b[0]);
    all.insert(all.end(), b.begin(), b.end());
    EXPECT_EQ(world.decrypt(ev.concatenate(parts)), all);
    // A sum, looked up.
    Values reduced;
    for (const std::uint64_t s : mixed) reduced.push_back(s % 4);
    EXPECT_EQ(world.decrypt(ev.refresh(ev.add_clear(ev.add(ev.scale(x, 2), ev.negate(y)), 1))),
              reduced);
  }
}

TEST(Evaluator, LooksUpFunctionsOfTwoInputs) {
  for (const TfheShape& shape : test::every_shape()) {
    SCOPED_TRACE(test::name_of(shape));
    TfheWorld world(shape);
    if (world.params->max_norm2() < 17) continue;  // 4^2 + 1^2
    Values a, b, products;
    for (std::uint64_t x = 0; x < 4; ++x) {
      for (std::uint64_t y = 0; y < 4; ++y) {
        a.push_back(x);
        b.push_back(y);
        products.push_back(x * y);
      }
    }
    const LookUpTable product =
        LookUpTable::of_two(world.params, [](std::uint64_t x, std::uint64_t y) { return x * y; });
    const Ciphertext z = world.evaluator->apply(world.encrypt(a), world.encrypt(b), product);
    EXPECT_EQ(world.decrypt(z), products);
    EXPECT_EQ(z.max_degree(), 9u);
  }
}

TEST(Evaluator, ComputesSeveralTablesOnOneRotationAndOneForEachElement) {
  JALI_SEEDED(rng);
  for (const TfheShape& shape : test::every_shape(2, 0)) {
    SCOPED_TRACE(test::name_of(shape));
    TfheWorld world(shape);
    std::vector<LookUpTable> tables;
    for (int j = 0; j < 4; ++j) {
      tables.emplace_back(world.params, [&](std::uint64_t) { return rng() % 4; });
    }
    const Ciphertext x = world.encrypt(counting(4));
    const auto results = world.evaluator->apply_all(x, LookUpTable::together(tables));
    ASSERT_EQ(results.size(), 4u);
    for (std::size_t j = 0; j < 4; ++j) {
      const auto values = tables[j].values();
      EXPECT_EQ(world.decrypt(results[j]), Values(values.begin(), values.end())) << j;
    }
    const std::vector<std::uint32_t> which{3, 0, 1, 2};
    Values expected;
    for (std::size_t i = 0; i < 4; ++i) expected.push_back(tables[which[i]].values()[i]);
    const Ciphertext each = world.evaluator->apply(x, world.evaluator->bind(tables), which);
    EXPECT_EQ(world.decrypt(each), expected);
    EXPECT_THROW(world.evaluator->apply(x, LookUpTable::together(tables)), InvalidArgument);
    // Of bits, two tables fit side by side.
    const Values first{3, 1}, second{0, 2};
    const LookUpTable of_bits = LookUpTable::together(std::vector<LookUpTable>{
        LookUpTable(world.params, first), LookUpTable(world.params, second)});
    const Ciphertext bits = world.evaluator->bind(world.client.encrypt(Values{1, 0, 1}, 1));
    const auto both = world.evaluator->apply_all(bits, of_bits);
    EXPECT_EQ(world.decrypt(both[0]), (Values{1, 3, 1}));
    EXPECT_EQ(world.decrypt(both[1]), (Values{2, 0, 2}));
    EXPECT_THROW(world.evaluator->apply_all(x, of_bits), RangeExceeded);
    EXPECT_THROW(world.evaluator->apply(x, world.evaluator->bind(tables),
                                        std::vector<std::uint32_t>{0, 1, 2, 4}),
                 InvalidArgument);
  }
}

TEST(Evaluator, RefusesCarriesThatOverflowAndNegativeValues) {
  TfheWorld world;
  const auto& ev = *world.evaluator;
  const Ciphertext x = world.encrypt({1, 2, 3});
  const Ciphertext most = ev.scale(x, 5);  // up to 15
  EXPECT_EQ(most.max_degree(), 15u);
  EXPECT_THROW(ev.scale(x, 6), RangeExceeded);
  EXPECT_THROW(ev.add(most, x), RangeExceeded);
  EXPECT_THROW(ev.add_clear(most, 1), RangeExceeded);
  EXPECT_THROW(ev.scale(x, 16), RangeExceeded);
  Linear minus;
  minus.add(0, -1);
  minus.end_row(2);
  EXPECT_THROW(ev.linear(x, minus), RangeExceeded);
  minus.constant[0] = 3;
  EXPECT_EQ(world.decrypt(ev.linear(x, minus)), Values{2});
  minus.weight[0] = std::numeric_limits<std::int64_t>::min();
  EXPECT_THROW(ev.linear(x, minus), RangeExceeded);
  EXPECT_THROW(ev.apply(most, x, LookUpTable::of_two(world.params, [](auto a, auto) { return a; })),
               RangeExceeded);
  EXPECT_THROW(ev.apply(most, LookUpTable(world.params, Values(15))), RangeExceeded);
  try {
    ev.scale(x, 6);
  } catch (const RangeExceeded& error) {
    EXPECT_NE(std::string(error.what()).find("as large as 18"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("apply"), std::string::npos) << error.what();
  }
}

TEST(Evaluator, TakesTheWordOfACallerWhoKnowsHowLargeSumsAre) {
  JALI_SEEDED(rng);
  for (const TfheShape& shape : test::every_shape()) {
    SCOPED_TRACE(test::name_of(shape));
    TfheWorld world(shape);
    const auto& ev = *world.evaluator;
    const auto p = static_cast<std::int64_t>(world.params->value_modulus());
    // Two rows of every group of three, whose worst case has no room: 3 x - 2 y + 7 and 7 - 3 z.
    Linear row;
    row.add(0, 3);
    row.add(1, -2);
    row.end_row(7);
    row.add(2, -3);
    row.end_row(7);
    Values x(9), expected, looked_up, table(world.params->value_modulus());
    for (auto& value : x) value = rng() % 4;
    for (auto& value : table) value = rng() % 4;
    x[0] = 3, x[1] = 0;  // 16, which breaks the promise, and of which a look-up gives -table[0]
    for (std::size_t i = 0; i < x.size(); i += 3) {
      for (const std::int64_t sum :
           {3 * static_cast<std::int64_t>(x[i]) - 2 * static_cast<std::int64_t>(x[i + 1]) + 7,
            7 - 3 * static_cast<std::int64_t>(x[i + 2])}) {
        const auto value = static_cast<std::uint64_t>((sum + 2 * p) % (2 * p));
        const auto entry = static_cast<std::int64_t>(table[value % table.size()]);
        expected.push_back(value % table.size());
        looked_up.push_back(
            static_cast<std::uint64_t>((sum >= 0 && sum < p ? entry : p - entry) % p));
      }
    }
    const Linear matrix = row.repeated(3, 3);
    const Ciphertext in = world.encrypt(x);
    if (world.params->max_norm2() < 13) {
      EXPECT_THROW(ev.linear_within(in, matrix, 15), RangeExceeded);
      continue;
    }
    EXPECT_THROW(ev.linear(in, matrix), RangeExceeded);
    const Ciphertext sums = ev.linear_within(in, matrix, 15);
    EXPECT_EQ(sums.max_degree(), 15u);
    EXPECT_EQ(sums.history.norm2(), 13);
    EXPECT_THROW(world.decrypt(sums), WrongDecryption);
    EXPECT_EQ(world.client.decrypt(ev.host_copy(sums), Check::no), expected);
    const Ciphertext fresh = ev.apply(sums, LookUpTable(world.params, table));
    EXPECT_EQ(world.client.decrypt(ev.host_copy(fresh), Check::no), looked_up);
  }
}

TEST(Evaluator, RefusesPromisesThatHaveNoRoom) {
  TfheWorld world;
  const auto& ev = *world.evaluator;
  const Ciphertext x = world.encrypt({1, 2, 3});
  Linear row;
  row.add(0, -16);
  row.end_row();
  EXPECT_THROW(ev.linear_within(x, row, 16), RangeExceeded);  // room up to 15
  row.weight[0] = 17;
  EXPECT_THROW(ev.linear_within(x, row, 15), RangeExceeded);
  row.weight[0] = std::numeric_limits<std::int64_t>::min();
  EXPECT_THROW(ev.linear_within(x, row, 15), RangeExceeded);
  row.weight[0] = 1;
  EXPECT_EQ(world.decrypt(ev.linear_within(x, row, 3)), Values{1});
  EXPECT_THROW(ev.linear_within(x, row.repeated(2, 3), 3), InvalidArgument);  // element 3 of 3
  EXPECT_THROW(row.repeated(std::size_t{1} << 31, 3), LimitExceeded);
  EXPECT_EQ(world.decrypt(ev.linear_within(world.encrypt({}), Linear{}, 3)), Values{});
  EXPECT_THROW(ev.linear_within(world.encrypt({}), Linear{{0, 0}, {}, {}, {3}}, 3),
               InvalidArgument);
}

TEST(Evaluator, RefusesNoiseThatTheParametersDoNotAllowFor) {
  Literal literal = test::insecure_literal();
  literal.max_norm2 = 5;
  TfheWorld world(Params::create(literal));
  const auto& ev = *world.evaluator;
  const Ciphertext x = world.encrypt({1, 0, 1}), y = world.encrypt({1, 1, 0});
  EXPECT_NO_THROW(ev.add(ev.scale(x, 2), y));  // 4 + 1
  EXPECT_THROW(ev.add(ev.scale(x, 2), x), RangeExceeded);  // 9
  EXPECT_THROW(ev.scale(x, 3), RangeExceeded);
  EXPECT_NO_THROW(ev.scale(ev.clear(Values{1}), 15));
  // Five of them are enough, the fresh result of a bootstrapping is one again.
  Linear five;
  for (std::uint32_t i = 0; i < 5; ++i) five.add(i, 1);
  five.end_row();
  const Ciphertext bits = world.evaluator->bind(world.client.encrypt(Values{1, 1, 0, 1, 1, 1}, 1));
  const Ciphertext sum = ev.linear(bits, five);
  EXPECT_EQ(sum.history.norm2(), 5);
  EXPECT_EQ(world.decrypt(sum), Values{4});
  five.add(5, 1);
  five.begin.back() = 6;
  EXPECT_THROW(ev.linear(bits, five), RangeExceeded);
  const Ciphertext fresh = ev.refresh(sum);
  EXPECT_EQ(fresh.history.norm2(), 1);
  EXPECT_EQ(world.decrypt(fresh), Values{0});
}

TEST(Evaluator, RefusesForeignKeysAndParameters) {
  TfheWorld world, other;
  TfheShape shape;
  shape.n = 14;
  TfheWorld different(shape);
  const auto& ev = *world.evaluator;
  const Ciphertext mine = world.encrypt({1}), foreign = other.client.encrypt(Values{1});
  EXPECT_THROW(ev.bind(foreign), KeyMismatch);
  EXPECT_THROW(ev.add(mine, foreign), KeyMismatch);
  EXPECT_THROW(ev.bind(different.client.encrypt(Values{1})), ParamsMismatch);
  EXPECT_THROW(ev.apply(mine, LookUpTable(different.params, Values(16))), ParamsMismatch);
  EXPECT_THROW(
      Evaluator(backend::make_ref_tfhe(different.params->config()), world.client.evaluation_keys()),
      ParamsMismatch);
  EXPECT_THROW(ev.bind(Ciphertext{}), InvalidArgument);
  const Ciphertext two = world.encrypt({1, 2}), three = world.encrypt({1, 2, 3});
  EXPECT_THROW(ev.add(two, three), InvalidArgument);
  EXPECT_THROW(ev.gather(two, std::vector<std::uint32_t>{2}), InvalidArgument);
}

// What was read has a seed and bodies.
TEST(Evaluator, BindsSeeds) {
  for (const TfheShape& shape : test::every_shape()) {
    SCOPED_TRACE(test::name_of(shape));
    TfheWorld world(shape);
    const auto& ev = *world.evaluator;
    const Values values = counting(4);
    const Ciphertext whole = world.client.encrypt(values), read = test::as_read(whole);
    Ciphertext bound[3];
    std::vector<std::thread> threads;
    for (Ciphertext& out : bound) threads.emplace_back([&] { out = ev.bind(read); });
    for (auto& thread : threads) thread.join();
    for (const Ciphertext& x : bound) {
      ASSERT_EQ(x.data->bytes(), whole.data->bytes());
      EXPECT_EQ(std::memcmp(x.data->data.data(), whole.data->data.data(), whole.data->bytes()), 0);
      EXPECT_EQ(x.seed, whole.seed);
      EXPECT_EQ(world.decrypt(ev.refresh(x)), values);
    }
    EXPECT_THROW(ev.refresh(read), InvalidArgument) << "it is not bound";
    EXPECT_EQ(world.client.decrypt(read), values);
    EXPECT_EQ(world.decrypt(ev.bind(read)), values) << "the client has asked for its words";
  }
  TfheWorld world, other;
  EXPECT_THROW(world.evaluator->bind(test::as_read(other.client.encrypt(Values{1}))), KeyMismatch);
  const Ciphertext none = test::as_read(world.client.encrypt(Values{}));
  EXPECT_EQ(world.decrypt(world.evaluator->bind(none)), Values{});
}

TEST(Evaluator, TakesEmptyVectors) {
  TfheWorld world;
  const auto& ev = *world.evaluator;
  const Ciphertext none = world.encrypt({});
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(world.decrypt(ev.refresh(ev.add(none, none))), Values{});
  EXPECT_EQ(world.decrypt(ev.gather(world.encrypt({1}), {})), Values{});
}

// Accumulators of all inputs at once would not fit. Results that fit are computed in parts.
TEST(Evaluator, LooksUpInPartsIfThereIsLittleMemory) {
  test::LittleWorld world;
  const std::size_t count = 3000;
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = i * i % 4;
  const Ciphertext x = world.evaluator->bind(world.client.encrypt(values, 3));
  const std::size_t result = count * world.params->ciphertext_bytes();
  const auto leave = [&](std::size_t bytes) {
    world.engine->device()->pool()->trim();
    world.memory->most = world.memory->used + bytes;
  };
  const std::vector<std::uint64_t> f_values{3, 2, 1, 0}, g_values{0, 0, 1, 1};
  const auto f = [&](std::uint64_t v) { return f_values[v]; };
  const auto g = [&](std::uint64_t v) { return g_values[v]; };
  const LookUpTable tables[] = {LookUpTable(world.params, f_values),
                                LookUpTable(world.params, g_values)};
  const auto expect = [&](const Ciphertext& y, const auto& function) {
    const Values got = world.client.decrypt(y);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(got[i], function(values[i])) << i;
  };
  // Every accumulator has twice the size of a result.
  leave(2 * result + result);
  const auto both = world.evaluator->apply_all(x, LookUpTable::together(tables));
  expect(both[0], f);
  expect(both[1], g);
  leave(result + result / 4);
  expect(world.evaluator->apply(x, tables[0]), f);
  // Each input has a table of its own.
  std::vector<std::uint32_t> which(count);
  for (std::size_t i = 0; i < count; ++i) which[i] = i % 3 == 0 ? 1 : 0;
  const Values got =
      world.client.decrypt(world.evaluator->apply(x, world.evaluator->bind(tables), which));
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(got[i], which[i] == 1 ? g(values[i]) : f(values[i])) << i;
  }
  // Not even the result fits.
  leave(result / 2);
  EXPECT_THROW(world.evaluator->refresh(x), OutOfMemory);
}

}  // namespace
}  // namespace jali::tfhe
