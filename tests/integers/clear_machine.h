// A machine whose digits are clear, and which checks what a real one cannot: that no look-up meets
// a number outside its space or noise above its budget, and that outputs are digits. It counts
// look-ups and how deep they are. Values are in halves, as tables and constants are.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "jali/base/error.h"
#include "jali/integers/arithmetic.h"

namespace jali::integers::test {

class ClearRows final : public Rows {
 public:
  struct Digit {
    std::int64_t value = 0;  // in halves
    double noise = 0;
    std::size_t depth = 0;
    bool written = false;
  };
  explicit ClearRows(std::size_t count) : digits(count) {}
  std::size_t count() const override { return digits.size(); }
  std::vector<Digit> digits;
};

class ClearMachine final : public Machine {
 public:
  explicit ClearMachine(Space space, std::size_t available = std::size_t{1} << 40)
      : space_(space), available_(available) {}

  const Space& space() const override { return space_; }
  std::size_t available_rows() const override { return available_; }
  std::unique_ptr<Rows> allocate(std::size_t count) const override {
    return std::make_unique<ClearRows>(count);
  }
  void copy(Rows& out, std::size_t out_first, const Rows& in, std::size_t in_first,
            std::size_t count) const override {
    for (std::size_t i = 0; i < count; ++i) at(out, out_first + i) = at(in, in_first + i);
  }
  void combine(Rows& out, std::size_t out_first, const Rows& in,
               const RowCombination& c) const override {
    for (std::size_t r = 0; r + 1 < c.begin.size(); ++r) {
      ClearRows::Digit sum;
      sum.value = c.constant[r];
      sum.written = true;
      for (std::size_t e = c.begin[r]; e < c.begin[r + 1]; ++e) {
        const ClearRows::Digit& digit = at(in, c.column[e]);
        EXPECT_TRUE(digit.written) << "a combination reads a row that nobody wrote";
        sum.value += c.weight[e] * digit.value;
        sum.noise += double(c.weight[e] * c.weight[e]) * digit.noise;
        sum.depth = std::max(sum.depth, digit.depth);
      }
      at(out, out_first + r) = sum;
    }
  }
  void look_up(Rows& out, std::size_t out_first, const Rows& in,
               const RowLookUps& l) const override {
    std::size_t row = 0, to = out_first;
    const std::int64_t size = space_.size();
    for (const RowLookUps::Group& group : l.groups) {
      const bool whole = group.stride == 1;
      EXPECT_TRUE(whole ? space_.negacyclic
                        : group.results * group.stride <= size &&
                              group.results <= 1 << space_.max_log_many);
      const std::int64_t limit = whole ? 2 * size - group.results + 1 : group.stride;
      for (std::size_t i = 0; i < group.count; ++i, ++row) {
        const ClearRows::Digit digit = at(in, row);
        const std::int64_t x = digit.value / 2;
        EXPECT_TRUE(digit.value % 2 == 0 && x >= 0 && x < limit)
            << "a look-up of " << digit.value << " / 2 in [0, " << limit << ")";
        EXPECT_LE(digit.noise, space_.noise_budget);
        const std::size_t table = l.of_input[row] * static_cast<std::size_t>(size);
        for (int j = 0; j < group.results; ++j) {
          const std::int64_t e = std::clamp<std::int64_t>(x, 0, limit - 1) + j * group.stride;
          const std::int64_t value = l.tables[table + static_cast<std::size_t>(e % size)];
          at(out, to++) = {e < size ? value : -value, 1, digit.depth + 1, true};
        }
        depth = std::max(depth, digit.depth + 1);
        ++look_ups;
      }
    }
    EXPECT_EQ(row, l.of_input.size());
    ++waves;
  }

  static ClearRows::Digit& at(Rows& rows, std::size_t row) {
    return static_cast<ClearRows&>(rows).digits.at(row);
  }
  static const ClearRows::Digit& at(const Rows& rows, std::size_t row) {
    return static_cast<const ClearRows&>(rows).digits.at(row);
  }

  mutable std::size_t look_ups = 0, depth = 0, waves = 0;

 private:
  Space space_;
  std::size_t available_;
};

/// A space of m message and m carry bits, whose budget is that of the sum of as many messages as it
/// holds, each of which comes with the weight of that sum: ((2^p - 1) / (2^m - 1))^2.
inline Space space_of(int m, std::size_t wave = 1, int max_log_many = 2, bool negacyclic = true) {
  const double terms = double((1 << 2 * m) - 1) / ((1 << m) - 1);
  return {m, m, terms * terms, max_log_many, negacyclic, wave};
}

inline Integers encrypt(const Arithmetic& a, const std::vector<Wide>& values, IntegerType type) {
  const int m = a.machine().space().message_bits;
  const auto n = static_cast<std::size_t>(type.digits(m));
  auto rows = std::make_shared<ClearRows>(values.size() * n);
  std::vector<std::uint8_t> digits(n);
  for (std::size_t i = 0; i < values.size(); ++i) {
    split(values[i], type, m, digits);
    for (std::size_t j = 0; j < n; ++j) rows->digits[i * n + j] = {2 * digits[j], 1, 0, true};
  }
  return {type, values.size(), rows};
}

/// The numbers, if every digit is one and has no more noise than the integers say.
inline std::vector<Wide> decrypt(const Arithmetic& a, const Integers& x) {
  const int m = a.machine().space().message_bits;
  const auto n = static_cast<std::size_t>(x.type().digits(m));
  EXPECT_EQ(x.rows().count(), x.count() * n);
  std::vector<Wide> out;
  std::vector<std::uint8_t> digits(n);
  for (std::size_t i = 0; i < x.count(); ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const ClearRows::Digit& digit = ClearMachine::at(x.rows(), i * n + j);
      EXPECT_TRUE(digit.written);
      EXPECT_TRUE(digit.value % 2 == 0 && digit.value >= 0 &&
                  digit.value < 2 << x.type().digit_bits(static_cast<int>(j), m))
          << "digit " << j << " is " << digit.value << " / 2";
      EXPECT_LE(digit.noise, x.noise());
      digits[j] = static_cast<std::uint8_t>(digit.value / 2);
    }
    out.push_back(joined(digits, x.type(), m));
  }
  return out;
}

/// The number of the type that is equal modulo 2^bits.
inline Wide wrapped(Wide value, IntegerType type) {
  const Wide modulus = Wide{1} << type.bits;
  const Wide rest = ((value % modulus) + modulus) % modulus;
  return rest > type.highest() ? rest - modulus : rest;
}

inline Wide random_number(std::mt19937_64& rng, IntegerType type) {
  const int bits = static_cast<int>(rng() % static_cast<unsigned>(type.bits)) + 1;
  const Wide value = static_cast<Wide>(rng() >> (64 - bits));
  return wrapped(rng() % 2 ? value : -value, type);
}

/// Pairs of numbers: every pair of edges, and random ones of all sizes.
struct Pairs {
  std::vector<Wide> x, y;
};
inline Pairs pairs_of(std::mt19937_64& rng, IntegerType type, std::size_t count) {
  Pairs out;
  const Wide half = Wide{1} << (type.bits / 2);
  const std::vector<Wide> edges{0,
                                1,
                                2,
                                -1,
                                type.highest(),
                                type.lowest(),
                                half,
                                half - 1,
                                -half,
                                static_cast<Wide>(0x5555555555555555u)};
  for (const Wide u : edges) {
    for (const Wide v : edges) {
      out.x.push_back(wrapped(u, type));
      out.y.push_back(wrapped(v, type));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    out.x.push_back(random_number(rng, type));
    out.y.push_back(i % 5 == 0 ? wrapped(-out.x.back() - static_cast<Wide>(rng() % 3), type)
                               : random_number(rng, type));
  }
  return out;
}

}  // namespace jali::integers::test

namespace jali::integers {
inline std::ostream& operator<<(std::ostream& out, IntegerType type) {
  return out << (type.is_signed ? "int" : "uint") << type.bits;
}
}  // namespace jali::integers
