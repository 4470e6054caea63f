// Every operation on integers, with encrypted and clear operands, run at once and recorded
// (tfhe::Program), against plain integers. The CPU's tests and the GPU's share it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jali/base/error.h"
#include "jali/params/tfhe_presets.h"
#include "jali/schemes/tfhe/program.h"
#include "tfhe_world.h"

namespace jali::integers::test {

/// What operations take: x and y encrypted; v and s clear, one each and one for all.
struct Operands {
  IntegerType type;
  Numbers x, y, v;
  Wide s = 0;
};

/// A number of the type that is congruent modulo 2^bits.
inline Wide modulo(Wide number, IntegerType type) {
  const Wide size = Wide{1} << type.bits;
  number = (number % size + size) % size;
  return number > type.highest() ? number - size : number;
}

/// u v modulo 2^128, which is exact, or negative and so no number of an unsigned type.
inline Wide product(Wide u, Wide v) {
  using Unsigned = unsigned __int128;
  return static_cast<Wide>(static_cast<Unsigned>(u) * static_cast<Unsigned>(v));
}

/// An operation on x and y, in memory of the evaluator, and what it gives.
struct Operation {
  std::string name;
  std::function<std::vector<Integers>(const Arithmetic&, const Integers&, const Integers&)> run;
  std::vector<Numbers> want;
};

/// Its result for each pair of numbers.
template <class F>
Numbers pairs(const Numbers& x, const Numbers& y, const F& f) {
  Numbers out;
  for (std::size_t i = 0; i < x.size(); ++i) out.push_back(f(x[i], y.size() == 1 ? y[0] : y[i]));
  return out;
}

class EveryOperation {
 public:
  explicit EveryOperation(Operands operands) : in_(std::move(operands)) {
    arithmetic();
    bits();
    vectors();
  }
  const std::vector<Operation>& all() const { return all_; }

 private:
  using Two = std::function<std::vector<Integers>(const Arithmetic&, Value, Value)>;
  using Oracle = std::function<std::vector<Wide>(Wide, Wide)>;

  void add(std::string name, decltype(Operation::run) run, std::vector<Numbers> want) {
    all_.push_back({std::move(name), std::move(run), std::move(want)});
  }
  /// With both operands encrypted, and with either of them clear.
  void two(const std::string& name, const Two& run, const Oracle& oracle) {
    const auto want = [&](const Numbers& x, const Numbers& y) {
      std::vector<Numbers> out;
      for (std::size_t r = 0; r < oracle(1, 1).size(); ++r) {
        out.push_back(pairs(x, y, [&](Wide u, Wide v) { return oracle(u, v)[r]; }));
      }
      return out;
    };
    const Clear v(in_.v), s(in_.s);
    const Numbers all_s(in_.x.size(), in_.s);
    add(
        name, [run](const auto& a, const auto& x, const auto& y) { return run(a, x, y); },
        want(in_.x, in_.y));
    add(
        name + " by clear ones",
        [run, v](const auto& a, const auto& x, const auto&) { return run(a, x, v); },
        want(in_.x, in_.v));
    add(
        name + " by a clear one",
        [run, s](const auto& a, const auto& x, const auto&) { return run(a, x, s); },
        want(in_.x, all_s));
    add(
        name + " of clear ones",
        [run, v](const auto& a, const auto&, const auto& y) { return run(a, v, y); },
        want(in_.v, in_.y));
    add(
        name + " of a clear one",
        [run, s](const auto& a, const auto&, const auto& y) { return run(a, s, y); },
        want(all_s, in_.y));
  }
  template <class Method>
  void one_result(const std::string& name, Method method,
                  const std::function<Wide(Wide, Wide)>& f) {
    two(
        name,
        [method](const Arithmetic& a, Value x, Value y) {
          return std::vector<Integers>{(a.*method)(x, y)};
        },
        [f, type = in_.type](Wide u, Wide v) { return std::vector{modulo(f(u, v), type)}; });
  }
  template <class Method>
  void flagged(const std::string& name, Method method, const std::function<Wide(Wide, Wide)>& f) {
    two(
        name,
        [method](const Arithmetic& a, Value x, Value y) {
          auto both = (a.*method)(x, y);
          return std::vector<Integers>{both.first, both.second};
        },
        [f, type = in_.type](Wide u, Wide v) {
          const Wide exact = f(u, v);
          return std::vector<Wide>{modulo(exact, type),
                                   exact < type.lowest() || exact > type.highest()};
        });
  }

  void arithmetic() {
    const IntegerType type = in_.type;
    one_result("add", &Arithmetic::add, [](Wide u, Wide v) { return u + v; });
    one_result("subtract", &Arithmetic::subtract, [](Wide u, Wide v) { return u - v; });
    one_result("multiply", &Arithmetic::multiply, product);
    one_result("minimum", &Arithmetic::minimum, [](Wide u, Wide v) { return std::min(u, v); });
    one_result("maximum", &Arithmetic::maximum, [](Wide u, Wide v) { return std::max(u, v); });
    one_result("and", &Arithmetic::bit_and, [](Wide u, Wide v) { return u & v; });
    one_result("or", &Arithmetic::bit_or, [](Wide u, Wide v) { return u | v; });
    one_result("xor", &Arithmetic::bit_xor, [](Wide u, Wide v) { return u ^ v; });
    flagged("add_overflow", &Arithmetic::add_overflow, [](Wide u, Wide v) { return u + v; });
    flagged("subtract_overflow", &Arithmetic::subtract_overflow,
            [](Wide u, Wide v) { return u - v; });
    flagged("multiply_overflow", &Arithmetic::multiply_overflow, product);
    for (const Rounding rounding : {Rounding::floor, Rounding::truncate}) {
      two(
          rounding == Rounding::floor ? "divide" : "divide and truncate",
          [rounding](const Arithmetic& a, Value x, Value y) {
            auto both = a.divide(x, y, rounding);
            return std::vector<Integers>{both.first, both.second};
          },
          [=](Wide u, Wide v) {
            if (v == 0) return std::vector<Wide>{type.highest(), u};
            Wide q = u / v, r = u % v;
            if (rounding == Rounding::floor && r != 0 && (r < 0) != (v < 0)) --q, r += v;
            return std::vector<Wide>{modulo(q, type), r};
          });
    }
    const std::pair<Comparison, std::function<Wide(Wide, Wide)>> comparisons[] = {
        {Comparison::equal, std::equal_to<Wide>()},
        {Comparison::not_equal, std::not_equal_to<Wide>()},
        {Comparison::less, std::less<Wide>()},
        {Comparison::less_equal, std::less_equal<Wide>()},
        {Comparison::greater, std::greater<Wide>()},
        {Comparison::greater_equal, std::greater_equal<Wide>()}};
    for (const auto& [how, f] : comparisons) {
      two(
          "comparison " + std::to_string(static_cast<int>(how)),
          [how = how](const Arithmetic& a, Value x, Value y) {
            return std::vector<Integers>{a.compare(how, x, y)};
          },
          [f = f](Wide u, Wide v) { return std::vector{f(u, v)}; });
    }
    two(
        "select",
        [](const Arithmetic& a, Value x, Value y) {
          const Integers& any = x.encrypted() ? *x.encrypted() : *y.encrypted();
          return std::vector<Integers>{a.select(a.compare(Comparison::less, any, Clear(3)), x, y)};
        },
        // Which of them is chosen depends on the encrypted one; see chosen below.
        [](Wide, Wide) { return std::vector<Wide>{0}; });
    for (std::size_t i = all_.size() - 5; i < all_.size(); ++i) {
      const std::size_t way = i + 5 - all_.size();
      const Numbers all_s(in_.x.size(), in_.s);
      const Numbers &first = way == 3   ? in_.v
                             : way == 4 ? all_s
                                        : in_.x,
                    &second = way == 1   ? in_.v
                              : way == 2 ? all_s
                                         : in_.y,
                    &any = way >= 3 ? in_.y : in_.x;
      for (std::size_t j = 0; j < any.size(); ++j) {
        all_[i].want[0][j] = any[j] < 3 ? first[j] : second[j];
      }
    }
  }

  void bits() {
    const IntegerType type = in_.type;
    const int b = type.bits;
    const auto word = [=](Wide v) { return v & ((Wide{1} << b) - 1); };
    const auto one = [&](const std::string& name, auto method, IntegerType out, auto f) {
      Numbers want;
      for (const Wide v : in_.x) want.push_back(modulo(f(v), out));
      add(name,
          [method](const Arithmetic& a, const Integers& x, const Integers&) {
            return std::vector<Integers>{(a.*method)(x)};
          },
          {want});
    };
    constexpr IntegerType u8{8, false};
    const auto leading = [=](Wide v) {
      int n = 0;
      while (n < b && (word(v) >> (b - 1 - n) & 1) == 0) ++n;
      return Wide{n};
    };
    one("negate", &Arithmetic::negate, type, [](Wide v) { return -v; });
    one("invert", &Arithmetic::bit_not, type, [](Wide v) { return ~v; });
    one("leading zeros", &Arithmetic::leading_zeros, u8, leading);
    one("trailing zeros", &Arithmetic::trailing_zeros, u8, [=](Wide v) {
      int n = 0;
      while (n < b && (word(v) >> n & 1) == 0) ++n;
      return Wide{n};
    });
    one("ilog2", &Arithmetic::ilog2, u8, [=](Wide v) { return b - 1 - leading(v); });
    for (const IntegerType to : {IntegerType{5, false}, {8, true}, {64, false}, {33, true}}) {
      Numbers want;
      for (const Wide v : in_.x) want.push_back(modulo(v, to));
      add("cast to " + std::to_string(to.bits),
          [to](const Arithmetic& a, const Integers& x, const Integers&) {
            return std::vector<Integers>{a.cast(x, to)};
          },
          {want});
    }
    const std::pair<Move, std::function<Wide(Wide, int)>> moves[] = {
        {Move::left, [](Wide v, int by) { return by >= 64 ? 0 : v << by; }},
        {Move::right, [](Wide v, int by) { return v >> by; }},
        {Move::rotate_left,
         [=](Wide v, int by) {
           by %= b;
           return word(v) << by | word(v) >> (b - by);
         }},
        {Move::rotate_right, [=](Wide v, int by) {
           by %= b;
           return word(v) >> by | word(v) << (b - by);
         }}};
    Numbers amounts;
    for (std::size_t i = 0; i < in_.x.size(); ++i) amounts.push_back(static_cast<Wide>(i * 3 % 8));
    for (const auto& [how, f] : moves) {
      const std::string name = "move " + std::to_string(static_cast<int>(how));
      const auto want = [&, &by = f](const Numbers& amount) {
        return pairs(in_.x, amount,
                     [&](Wide v, Wide n) { return modulo(by(v, static_cast<int>(n)), type); });
      };
      Numbers masked;  // encrypted amounts are the lowest 3 bits of y
      for (const Wide v : in_.y) masked.push_back(v & 7);
      add(name,
          [how = how](const Arithmetic& a, const Integers& x, const Integers& y) {
            return std::vector<Integers>{a.move(how, x, a.cast(y, {3, false}))};
          },
          {want(masked)});
      add(name + " by clear ones",
          [how = how, amounts](const Arithmetic& a, const Integers& x, const Integers&) {
            return std::vector<Integers>{a.move(how, x, Clear(amounts))};
          },
          {want(amounts)});
      add(name + " by a clear one",
          [how = how](const Arithmetic& a, const Integers& x, const Integers&) {
            return std::vector<Integers>{a.move(how, x, Clear(3))};
          },
          {want(Numbers(in_.x.size(), 3))});
    }
  }

  void vectors() {
    const IntegerType type = in_.type;
    const std::size_t length = in_.x.size();
    Wide sum = 0, dot = 0;
    Numbers weights;
    for (std::size_t i = 0; i < length; ++i) {
      weights.push_back(static_cast<Wide>(i) * 5 - 7);
      sum += in_.x[i];
      dot = modulo(dot + in_.x[i] * weights[i], type);
    }
    Numbers sorted = in_.x;
    std::ranges::sort(sorted);
    const auto largest = std::ranges::max_element(in_.x);
    add("sum",
        [=](const Arithmetic& a, const Integers& x, const Integers&) {
          return std::vector<Integers>{a.sum(x, length, type)};
        },
        {{modulo(sum, type)}});
    add("dot",
        [=](const Arithmetic& a, const Integers& x, const Integers&) {
          return std::vector<Integers>{a.dot(x, weights, type)};
        },
        {{dot}});
    add("sort",
        [=](const Arithmetic& a, const Integers& x, const Integers&) {
          return std::vector<Integers>{a.sort(x, length)};
        },
        {sorted});
    add("largest and its place",
        [=](const Arithmetic& a, const Integers& x, const Integers&) {
          auto both = a.extreme(x, length, true);
          return std::vector<Integers>{both.first, both.second};
        },
        {{*largest}, {largest - in_.x.begin()}});
    Numbers read, read_clear;  // at the lowest 3 bits of y
    for (const Wide v : in_.y) {
      const auto at = static_cast<std::size_t>(v & 7);
      read.push_back(at < length ? in_.x[at] : 0);
      read_clear.push_back(at < length ? in_.v[at] : 0);
    }
    add("read",
        [=](const Arithmetic& a, const Integers& x, const Integers& y) {
          return std::vector<Integers>{a.read(x, a.cast(y, {3, false}))};
        },
        {read});
    add("read of clear ones",
        [=, v = in_.v](const Arithmetic& a, const Integers&, const Integers& y) {
          return std::vector<Integers>{a.read(v, type, a.cast(y, {3, false}))};
        },
        {read_clear});
  }

  const Operands in_;
  std::vector<Operation> all_;
};

/// Operands with the edges of the type; the clear ones have a 0 and numbers of both signs, if there
/// are.
inline Operands operands_of(IntegerType type, std::mt19937_64& rng) {
  const auto any = [&] { return modulo(static_cast<Wide>(rng()), type); };
  Operands out{type, {}, {}, {}, 0};
  out.x = {type.lowest(), type.highest(), any(), any(), any()};
  out.y = {type.highest(), any(), 0, any(), modulo(-1, type)};
  out.v = {modulo(-1, type), any(), 3, 0, modulo(-6, type)};
  out.s = type.is_signed ? -7 : 7;
  return out;
}

/// Names of a few operations, of every kind of circuit, with both operands encrypted.
inline bool is_one_of_a_few(const std::string& name) {
  constexpr const char* few[] = {
      "add",        "subtract",     "multiply",     "divide",
      "minimum",    "xor",          "comparison 0", "comparison 2",
      "select",     "add_overflow", "negate",       "leading zeros",
      "cast to 33", "move 0",       "move 1",       "move 2 by clear ones",
      "read"};
  return std::ranges::find(few, name) != std::end(few);
}

/// Names of fewer still, without division and shifts.
inline bool is_one_of_the_fewest(const std::string& name) {
  constexpr const char* fewest[] = {"add", "multiply", "comparison 2", "select", "read"};
  return std::ranges::find(fewest, name) != std::end(fewest);
}

/// Runs those of `wanted`, if it is given, and records and plays them if `recorded`. Returns how
/// many.
inline std::size_t expect_every_operation(IntegerWorld& w, IntegerType type, bool recorded,
                                          std::mt19937_64& rng,
                                          bool (*wanted)(const std::string&) = nullptr) {
  const Operands in = operands_of(type, rng);
  const tfhe::Ciphertext x = w.digits_of(in.x, type), y = w.digits_of(in.y, type);
  const auto as_integers = [&](const tfhe::Ciphertext& a) {
    const auto n = static_cast<std::size_t>(type.digits(w.machine->space().message_bits));
    return Integers(type, a.size() / n, TfheMachine::rows_of(a), a.history.norm2());
  };
  const EveryOperation operations(in);
  std::size_t count = 0;
  for (const Operation& operation : operations.all()) {
    if (wanted != nullptr && !wanted(operation.name)) continue;
    ++count;
    SCOPED_TRACE(operation.name + (type.is_signed ? ", signed, " : ", unsigned, ") +
                 std::to_string(type.bits) + " bits");
    std::vector<IntegerType> types;
    const auto f = [&](std::span<const tfhe::Ciphertext> given) {
      std::vector<tfhe::Ciphertext> out;
      types.clear();
      for (const Integers& one :
           operation.run(w.arithmetic, as_integers(given[0]), as_integers(given[1]))) {
        types.push_back(one.type());
        out.push_back(w.ciphertext(one));
      }
      return out;
    };
    std::vector<tfhe::Ciphertext> have;
    if (recorded) {
      // Recorded with zeros, so that what it plays is of these operands.
      const tfhe::Ciphertext zeros = w.digits_of(Numbers(in.x.size()), type),
                             more = w.digits_of(Numbers(in.x.size()), type);
      const tfhe::Ciphertext *const examples[] = {&zeros, &more}, *const inputs[] = {&x, &y};
      tfhe::Program program(w.evaluator, f, examples);
      have = program.run(inputs);
    } else {
      have = f(std::vector{x, y});
    }
    EXPECT_EQ(have.size(), operation.want.size());
    for (std::size_t r = 0; r < std::min(have.size(), operation.want.size()); ++r) {
      try {
        EXPECT_EQ(w.decrypt(have[r], types[r]), operation.want[r]) << "result " << r;
      } catch (const Error& error) {  // so that the operation is named, and others follow
        ADD_FAILURE() << "result " << r << ": " << error.what();
      }
    }
  }
  return count;
}

/// The presets in which integers can be computed: two digits fit into one, with their noise.
inline std::vector<std::string> integer_presets() {
  std::vector<std::string> out;
  for (const tfhe::Preset& preset : tfhe::presets()) {
    const double packed = std::ldexp(1.0, 2 * preset.message_bits) + 1;
    if (preset.carry_bits >= preset.message_bits && preset.max_norm2 >= packed) {
      out.emplace_back(preset.name);
    }
  }
  return out;
}

}  // namespace jali::integers::test
