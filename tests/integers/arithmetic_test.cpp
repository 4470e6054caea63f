// Every operation against plain integers, for every message space, for both ways of carries, with
// encrypted and clear operands.
#include "jali/integers/arithmetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "../seeded.h"
#include "clear_machine.h"

namespace jali::integers::test {
namespace {

using Numbers = std::vector<Wide>;

/// Message bits, and how many look-ups take as long as one: 1 makes carries go one by one, many
/// make trees.
struct Setting {
  int m;
  std::size_t wave;
};
void PrintTo(const Setting& setting, std::ostream* out) {
  *out << "m" << setting.m << "_wave" << setting.wave;
}

/// u v modulo 2^128.
Wide times(Wide u, Wide v) {
  using Word128 = unsigned __int128;
  return static_cast<Wide>(static_cast<Word128>(u) * static_cast<Word128>(v));
}

class Operations : public ::testing::TestWithParam<Setting> {
 protected:
  Operations()
      : machine_(std::make_shared<ClearMachine>(space_of(GetParam().m, GetParam().wave))),
        a_(machine_) {}

  std::vector<IntegerType> types() const {
    const int m = GetParam().m;
    std::vector<IntegerType> out;
    for (const int bits : {8, 16, 32, 64, 3 * m, 13, 1}) {
      for (const bool sign : {false, true}) out.push_back({bits, sign});
    }
    return out;
  }

  /// The operation on encrypted pairs, and with either side clear: each for itself, and one for
  /// all.
  template <class Operation, class Oracle>
  void check_pairs(IntegerType type, const Operation& operation, const Oracle& oracle,
                   std::size_t count = 30) {
    SCOPED_TRACE(::testing::Message() << type << " m " << GetParam().m);
    JALI_SEEDED(rng);
    const Pairs p = pairs_of(rng, type, count);
    const Integers x = encrypt(a_, p.x, type), y = encrypt(a_, p.y, type);
    Numbers want;
    for (std::size_t i = 0; i < p.x.size(); ++i) want.push_back(oracle(p.x[i], p.y[i]));
    ASSERT_EQ(decrypt(a_, operation(x, y)), want);
    ASSERT_EQ(decrypt(a_, operation(x, Clear(p.y))), want);
    ASSERT_EQ(decrypt(a_, operation(Clear(p.x), y)), want);
    for (const Wide scalar : {p.y[5], p.y[rng() % p.y.size()], p.y.back()}) {
      Numbers left, right;
      for (const Wide v : p.x) {
        right.push_back(oracle(v, scalar));
        left.push_back(oracle(scalar, v));
      }
      ASSERT_EQ(decrypt(a_, operation(x, Clear(scalar))), right);
      ASSERT_EQ(decrypt(a_, operation(Clear(scalar), x)), left);
      ASSERT_EQ(decrypt(a_, operation(x, encrypt(a_, {scalar}, type))), right);
    }
  }

  std::shared_ptr<ClearMachine> machine_;
  Arithmetic a_;
};

TEST_P(Operations, AddAndSubtract) {
  for (const IntegerType type : types()) {
    check_pairs(
        type, [&](Value x, Value y) { return a_.add(x, y); },
        [&](Wide u, Wide v) { return wrapped(u + v, type); });
    check_pairs(
        type, [&](Value x, Value y) { return a_.subtract(x, y); },
        [&](Wide u, Wide v) { return wrapped(u - v, type); });
  }
}

TEST_P(Operations, Overflow) {
  for (const IntegerType type : types()) {
    const auto beyond = [&](Wide v) { return v < type.lowest() || v > type.highest() ? 1 : 0; };
    check_pairs(
        type, [&](Value x, Value y) { return a_.add_overflow(x, y).first; },
        [&](Wide u, Wide v) { return wrapped(u + v, type); }, 5);
    check_pairs(
        type, [&](Value x, Value y) { return a_.add_overflow(x, y).second; },
        [&](Wide u, Wide v) { return beyond(u + v); });
    check_pairs(
        type, [&](Value x, Value y) { return a_.subtract_overflow(x, y).second; },
        [&](Wide u, Wide v) { return beyond(u - v); });
  }
}

TEST_P(Operations, Multiply) {
  for (const IntegerType type : types()) {
    check_pairs(
        type, [&](Value x, Value y) { return a_.multiply(x, y); },
        [&](Wide u, Wide v) { return wrapped(times(u, v), type); }, 10);
  }
}

TEST_P(Operations, MultiplyOverflow) {
  for (const IntegerType type : types()) {
    if (type.bits > 32 && GetParam().m == 1) continue;  // the long test has it
    const auto beyond = [&](Wide v) { return v < type.lowest() || v > type.highest() ? 1 : 0; };
    const auto product = [&](Wide u, Wide v) {
      Wide out = 0;
      return __builtin_mul_overflow(u, v, &out) ? type.highest() + 1 : out;
    };
    check_pairs(
        type, [&](Value x, Value y) { return a_.multiply_overflow(x, y).first; },
        [&](Wide u, Wide v) { return wrapped(times(u, v), type); }, 5);
    check_pairs(
        type, [&](Value x, Value y) { return a_.multiply_overflow(x, y).second; },
        [&](Wide u, Wide v) { return beyond(product(u, v)); }, 10);
  }
}

TEST_P(Operations, Divide) {
  for (const IntegerType type : types()) {
    if (type.bits > 16) continue;
    for (const Rounding rounding : {Rounding::truncate, Rounding::floor}) {
      const auto quotient = [&](Wide u, Wide v) {
        if (v == 0) return type.highest();
        Wide q = u / v;
        if (rounding == Rounding::floor && u % v != 0 && (u < 0) != (v < 0)) --q;
        return wrapped(q, type);
      };
      check_pairs(
          type, [&](Value x, Value y) { return a_.divide(x, y, rounding).first; }, quotient, 10);
      check_pairs(
          type, [&](Value x, Value y) { return a_.divide(x, y, rounding).second; },
          [&](Wide u, Wide v) { return v == 0 ? u : wrapped(u - quotient(u, v) * v, type); }, 10);
    }
  }
}

TEST_P(Operations, DivideLong) {
  for (const IntegerType type : {IntegerType{32, true}, {64, false}}) {
    check_pairs(
        type, [&](Value x, Value y) { return a_.divide(x, y, Rounding::truncate).first; },
        [&](Wide u, Wide v) { return v == 0 ? type.highest() : wrapped(u / v, type); }, 10);
  }
}

TEST_P(Operations, Bitwise) {
  for (const IntegerType type : types()) {
    check_pairs(
        type, [&](Value x, Value y) { return a_.bit_and(x, y); },
        [](Wide u, Wide v) { return u & v; });
    check_pairs(
        type, [&](Value x, Value y) { return a_.bit_or(x, y); },
        [](Wide u, Wide v) { return u | v; });
    check_pairs(
        type, [&](Value x, Value y) { return a_.bit_xor(x, y); },
        [](Wide u, Wide v) { return u ^ v; });
  }
}

TEST_P(Operations, Compare) {
  for (const IntegerType type : types()) {
    const auto check = [&](Comparison how, bool (*oracle)(Wide, Wide)) {
      check_pairs(
          type, [&](Value x, Value y) { return a_.compare(how, x, y); },
          [&](Wide u, Wide v) -> Wide { return oracle(u, v); });
    };
    check(Comparison::equal, [](Wide u, Wide v) { return u == v; });
    check(Comparison::not_equal, [](Wide u, Wide v) { return u != v; });
    check(Comparison::less, [](Wide u, Wide v) { return u < v; });
    check(Comparison::less_equal, [](Wide u, Wide v) { return u <= v; });
    check(Comparison::greater, [](Wide u, Wide v) { return u > v; });
    check(Comparison::greater_equal, [](Wide u, Wide v) { return u >= v; });
    check_pairs(
        type, [&](Value x, Value y) { return a_.minimum(x, y); },
        [](Wide u, Wide v) { return std::min(u, v); });
    check_pairs(
        type, [&](Value x, Value y) { return a_.maximum(x, y); },
        [](Wide u, Wide v) { return std::max(u, v); });
  }
}

TEST_P(Operations, Select) {
  for (const IntegerType type : types()) {
    JALI_SEEDED(rng);
    const Pairs p = pairs_of(rng, type, 5);
    Numbers flags, want;
    for (std::size_t i = 0; i < p.x.size(); ++i) {
      flags.push_back(static_cast<Wide>(rng() % 2));
      want.push_back(flags[i] ? p.x[i] : p.y[i]);
    }
    const Integers flag = encrypt(a_, flags, boolean);
    const Integers x = encrypt(a_, p.x, type), y = encrypt(a_, p.y, type);
    EXPECT_EQ(decrypt(a_, a_.select(flag, x, y)), want);
    EXPECT_EQ(decrypt(a_, a_.select(flag, Clear(p.x), y)), want);
    EXPECT_EQ(decrypt(a_, a_.select(flag, x, Clear(p.y))), want);
    // Choices after choices: noise must not grow without end.
    Integers chosen = y;
    for (int i = 0; i < 12; ++i) chosen = a_.select(flag, x, chosen);
    EXPECT_EQ(decrypt(a_, chosen), want);
    EXPECT_EQ(decrypt(a_, a_.add(chosen, a_.bit_not(chosen))),
              Numbers(want.size(), wrapped(-1, type)));
  }
}

TEST_P(Operations, OneOperand) {
  for (const IntegerType type : types()) {
    SCOPED_TRACE(::testing::Message() << type);
    JALI_SEEDED(rng);
    Numbers v = pairs_of(rng, type, 20).x;
    for (int i = 0; i < type.bits; ++i) v.push_back(wrapped(Wide{1} << i, type));
    const Integers x = encrypt(a_, v, type);
    Numbers negated, inverted, leading, trailing, logarithm;
    for (const Wide value : v) {
      const auto bits = static_cast<std::uint64_t>(value) &
                        (type.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << type.bits) - 1);
      negated.push_back(wrapped(-value, type));
      inverted.push_back(wrapped(~value, type));
      leading.push_back(type.bits - static_cast<int>(std::bit_width(bits)));
      trailing.push_back(bits ? std::countr_zero(bits) : type.bits);
      logarithm.push_back(bits ? static_cast<int>(std::bit_width(bits)) - 1 : 255);
    }
    EXPECT_EQ(decrypt(a_, a_.negate(x)), negated);
    EXPECT_EQ(decrypt(a_, a_.bit_not(x)), inverted);
    EXPECT_EQ(decrypt(a_, a_.leading_zeros(x)), leading);
    EXPECT_EQ(decrypt(a_, a_.trailing_zeros(x)), trailing);
    EXPECT_EQ(decrypt(a_, a_.ilog2(x)), logarithm);
    for (const IntegerType to : types()) {
      Numbers cast;
      for (const Wide value : v) cast.push_back(wrapped(value, to));
      ASSERT_EQ(decrypt(a_, a_.cast(x, to)), cast) << " to " << to;
    }
  }
}

TEST_P(Operations, Move) {
  const auto oracle = [](Move move, Wide v, int by, IntegerType type) {
    const Wide modulus = Wide{1} << type.bits;
    const Wide u = ((v % modulus) + modulus) % modulus;
    const int turn = by % type.bits;
    const int most = std::min(by, type.bits);
    switch (move) {
      case Move::left: return wrapped(most == type.bits ? 0 : u << most, type);
      case Move::right: return wrapped(v >> most, type);
      case Move::rotate_left: return wrapped(u << turn | u >> (type.bits - turn), type);
      case Move::rotate_right: break;
    }
    return wrapped(u >> turn | u << (type.bits - turn), type);
  };
  for (const IntegerType type : types()) {
    for (const Move move : {Move::left, Move::right, Move::rotate_left, Move::rotate_right}) {
      SCOPED_TRACE(::testing::Message() << type << " move " << static_cast<int>(move));
      JALI_SEEDED(rng);
      Numbers v, amounts;
      for (int i = 0; i < 40; ++i) {
        v.push_back(random_number(rng, type));
        amounts.push_back(i < 3 ? Wide{type.bits} - 1 + i : static_cast<Wide>(rng() % 70));
      }
      const Integers x = encrypt(a_, v, type);
      Numbers want;
      for (std::size_t i = 0; i < v.size(); ++i) {
        want.push_back(oracle(move, v[i], static_cast<int>(amounts[i]), type));
      }
      ASSERT_EQ(decrypt(a_, a_.move(move, x, Clear(amounts))), want);
      ASSERT_EQ(decrypt(a_, a_.move(move, x, encrypt(a_, amounts, {7, false}))), want);
      for (const int by : {0, 1, GetParam().m, type.bits - 1, type.bits, 5, 100}) {
        Numbers all;
        for (const Wide value : v) all.push_back(oracle(move, value, by, type));
        ASSERT_EQ(decrypt(a_, a_.move(move, x, Clear(by))), all) << by;
      }
    }
  }
}

TEST_P(Operations, Rows) {
  for (const IntegerType type : {IntegerType{8, false}, {16, true}, {3 * GetParam().m, true}}) {
    for (const std::size_t length : {1u, 2u, 3u, 7u, 16u}) {
      SCOPED_TRACE(::testing::Message() << type << " length " << length);
      JALI_SEEDED(rng);
      const std::size_t rows = 3;
      Numbers v, weights;
      for (std::size_t i = 0; i < rows * length; ++i) v.push_back(random_number(rng, type));
      v[rng() % v.size()] = v[0];
      for (std::size_t i = 0; i < length; ++i) {
        weights.push_back(static_cast<Wide>(rng() % 200) - 100);
      }
      const Integers x = encrypt(a_, v, type);
      const IntegerType wide{24, type.is_signed};
      Numbers sums, dots, up, down, largest, smallest, at_largest, at_smallest;
      for (std::size_t r = 0; r < rows; ++r) {
        Wide sum = 0, dot = 0;
        const auto first = v.begin() + static_cast<std::ptrdiff_t>(r * length);
        Numbers row(first, first + static_cast<std::ptrdiff_t>(length));
        for (std::size_t i = 0; i < length; ++i) sum += row[i], dot += weights[i] * row[i];
        sums.push_back(wrapped(sum, wide));
        dots.push_back(wrapped(dot, wide));
        const auto high = std::max_element(row.begin(), row.end());
        const auto low = std::min_element(row.begin(), row.end());
        largest.push_back(*high);
        smallest.push_back(*low);
        at_largest.push_back(high - row.begin());
        at_smallest.push_back(low - row.begin());
        std::sort(row.begin(), row.end());
        up.insert(up.end(), row.begin(), row.end());
        down.insert(down.end(), row.rbegin(), row.rend());
      }
      EXPECT_EQ(decrypt(a_, a_.sum(x, length, wide)), sums);
      EXPECT_EQ(decrypt(a_, a_.dot(x, weights, wide)), dots);
      EXPECT_EQ(decrypt(a_, a_.sort(x, length)), up);
      EXPECT_EQ(decrypt(a_, a_.sort(x, length, true)), down);
      const auto high = a_.extreme(x, length, true), low = a_.extreme(x, length, false);
      EXPECT_EQ(decrypt(a_, high.first), largest);
      EXPECT_EQ(decrypt(a_, high.second), at_largest);
      EXPECT_EQ(decrypt(a_, low.first), smallest);
      EXPECT_EQ(decrypt(a_, low.second), at_smallest);
    }
  }
}

TEST_P(Operations, Read) {
  const IntegerType type{12, true};
  for (const std::size_t size : {1u, 2u, 5u, 16u, 17u, 40u, 300u}) {
    JALI_SEEDED(rng);
    Numbers table;
    for (std::size_t i = 0; i < size; ++i) table.push_back(random_number(rng, type));
    for (const int bits : {3, 8, 10}) {
      SCOPED_TRACE(::testing::Message() << size << " entries, index of " << bits << " bits");
      Numbers indices, want;
      for (int i = 0; i < 40; ++i) {
        indices.push_back(random_number(rng, {bits, false}));
        if (i < 10) indices.back() %= static_cast<Wide>(size);
        want.push_back(indices.back() < static_cast<Wide>(size)
                           ? table[static_cast<std::size_t>(indices.back())]
                           : 0);
      }
      const Integers index = encrypt(a_, indices, {bits, false});
      EXPECT_EQ(decrypt(a_, a_.read(table, type, index)), want);
      if (size > 40) continue;
      EXPECT_EQ(decrypt(a_, a_.read(encrypt(a_, table, type), index)), want);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Spaces, Operations,
                         ::testing::Values(Setting{1, 1}, Setting{1, 1 << 20}, Setting{2, 1},
                                           Setting{2, 1 << 20}, Setting{2, 1500}, Setting{3, 1},
                                           Setting{3, 1 << 20}, Setting{4, 1},
                                           Setting{4, 1 << 20}));

TEST(Arithmetic, VectorsOfAnyLength) {
  const auto machine = std::make_shared<ClearMachine>(space_of(2));
  const Arithmetic a(machine);
  const IntegerType type{16, false};
  JALI_SEEDED(rng);
  for (const std::size_t count : {0u, 1u, 2u, 33u}) {
    Numbers v, w, want;
    for (std::size_t i = 0; i < count; ++i) {
      v.push_back(random_number(rng, type));
      w.push_back(random_number(rng, type));
      want.push_back(wrapped(v[i] + w[i], type));
    }
    const Integers x = encrypt(a, v, type), y = encrypt(a, w, type);
    EXPECT_EQ(decrypt(a, a.add(x, y)), want);
    EXPECT_EQ(decrypt(a, a.add(x, Clear(w))), want);
    EXPECT_EQ(a.add(x, Clear(7)).count(), count);
    EXPECT_EQ(a.add(x, encrypt(a, {7}, type)).count(), count);
    EXPECT_EQ(a.divide(x, y, Rounding::floor).second.count(), count);
    EXPECT_EQ(a.sort(x, std::max<std::size_t>(count, 1)).count(), count);
    EXPECT_EQ(a.sort(x, 1).count(), count);
  }
}

TEST(Arithmetic, LanesAreTakenInPartsThatFit) {
  JALI_SEEDED(rng);
  const IntegerType type{16, true};
  const Pairs p = pairs_of(rng, type, 50);
  for (const std::size_t rows : {300u, 1000u, 5000u}) {
    const auto machine = std::make_shared<ClearMachine>(space_of(2), rows);
    const Arithmetic a(machine);
    const Integers x = encrypt(a, p.x, type), y = encrypt(a, p.y, type);
    Numbers want, by_one;
    for (std::size_t i = 0; i < p.x.size(); ++i) {
      want.push_back(wrapped(p.x[i] * p.y[i], type));
      by_one.push_back(wrapped(p.x[i] * p.y[3], type));
    }
    EXPECT_EQ(decrypt(a, a.multiply(x, y)), want);
    EXPECT_EQ(decrypt(a, a.multiply(x, Clear(p.y))), want);
    EXPECT_EQ(decrypt(a, a.multiply(x, encrypt(a, {p.y[3]}, type))), by_one);
  }
  const Arithmetic tiny(std::make_shared<ClearMachine>(space_of(2), 10));
  const Integers x = encrypt(tiny, {1}, type);
  EXPECT_THROW(tiny.multiply(x, x), OutOfMemory);
}

template <class E, class Operation>
void expect_refusal(const Operation& operation, const std::string& words) {
  try {
    operation();
    FAIL() << "nothing was refused: " << words;
  } catch (const E& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(Arithmetic, RefusalsSayWhatToChange) {
  const Arithmetic a(std::make_shared<ClearMachine>(space_of(2)));
  const Integers u8 = encrypt(a, {1, 2}, {8, false}), u16 = encrypt(a, {1, 2}, {16, false});
  const Integers i8 = encrypt(a, {1, 2}, {8, true}), three = encrypt(a, {1, 2, 3}, {8, false});
  expect_refusal<InvalidArgument>([&] { a.add(u8, u16); }, "cast one of them");
  expect_refusal<InvalidArgument>([&] { a.add(u8, i8); }, "cast one of them");
  expect_refusal<InvalidArgument>([&] { a.add(u8, three); }, "give as many of each, or one");
  expect_refusal<InvalidArgument>([&] { a.add(u8, Clear(Numbers{1, 2, 3})); }, "as many of each");
  expect_refusal<InvalidArgument>([&] { a.add(u8, Clear(-1)); }, "encrypt them as signed");
  expect_refusal<InvalidArgument>([&] { a.add(u8, Clear(256)); }, "cast the integers to a wider");
  expect_refusal<InvalidArgument>([&] { a.add(i8, Clear(Numbers{1, 128})); }, "from -128 to 127");
  expect_refusal<InvalidArgument>([&] { a.multiply(i8, Clear(-129)); }, "from -128 to 127");
  expect_refusal<InvalidArgument>([&] { a.divide(u8, Clear(300), Rounding::floor); }, "wider type");
  expect_refusal<InvalidArgument>([&] { a.add(Clear(1), Clear(2)); }, "encrypt one of them");
  expect_refusal<InvalidArgument>([&] { a.select(u8, u8, u8); }, "compare them with a number");
  expect_refusal<InvalidArgument>([&] { a.move(Move::left, u8, Clear(-3)); }, "other direction");
  expect_refusal<InvalidArgument>([&] { a.move(Move::left, u8, i8); }, "cast them first");
  expect_refusal<InvalidArgument>([&] { a.sort(three, 2); }, "a length that divides");
  expect_refusal<InvalidArgument>([&] { a.cast(u8, {65, false}); }, "1 to 64 bits");
  expect_refusal<InvalidArgument>([&] { a.read(u8, i8); }, "unsigned");
  const std::vector<std::size_t> beyond{2};
  expect_refusal<InvalidArgument>([&] { a.take(u8, beyond); }, "beyond the 2 integers");
}

TEST(Space, RefusesWhatHoldsNoIntegers) {
  expect_refusal<InvalidArgument>([] { validated({5, 5, 1e9, 0, 1}); }, "1 to 4 message bits");
  expect_refusal<InvalidArgument>([] { validated({2, 1, 25, 0, 1}); }, "as many carry bits");
  expect_refusal<InvalidArgument>([] { validated({2, 2, 16, 0, 1}); }, "less noise");
  EXPECT_NO_THROW(validated({2, 2, 17, 0, 1}));
}

}  // namespace
}  // namespace jali::integers::test
