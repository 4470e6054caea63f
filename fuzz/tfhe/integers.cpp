// Exact integers on digits of TFHE. Operands are honest encryptions, fresh or rows that a peer
// sent; what is computed of the former is compared with the same computation in the clear.
#include <bit>
#include <functional>

#include "run.h"

namespace jali::fuzz {

namespace {

using integers::Arithmetic;
using integers::Clear;
using integers::Integers;
using integers::IntegerType;
using integers::TfheMachine;
using integers::Value;
using integers::Wide;
using Wides = std::vector<Wide>;

constexpr int kMostBits = 7;  // bounds the work on one input

/// A number modulo 2^bits.
Wide wrapped(Wide x, IntegerType type) {
  const Wide modulus = Wide{1} << type.bits;
  Wide out = ((x % modulus) + modulus) % modulus;
  if (type.is_signed && out > type.highest()) out -= modulus;
  return out;
}

class Case {
 public:
  explicit Case(TfheRun& run) : r(run), a(*run.world.arithmetic) {}

  TfheRun& r;
  const Arithmetic& a;

  IntegerType type() { return {1 + static_cast<int>(r.in.below(kMostBits)), r.in.once_in(3)}; }
  Wide number(IntegerType of) {
    return of.lowest() + r.in.byte() % static_cast<int>(of.highest() - of.lowest() + 1);
  }
  Wides numbers(IntegerType of, std::size_t count) {
    Wides out(count);
    for (Wide& x : out) x = number(of);
    return out;
  }
  /// An encryption of these numbers.
  Integers given(const Wides& numbers, IntegerType of) {
    const int m = r.params().message_bits();
    Values digits;
    for (const Wide x : numbers) {
      std::vector<std::uint8_t> one(static_cast<std::size_t>(of.digits(m)));
      integers::split(x, of, m, one);
      digits.insert(digits.end(), one.begin(), one.end());
    }
    return {of, numbers.size(), TfheMachine::rows_of(r.ev().bind(r.world.client.encrypt(digits)))};
  }
  /// Rows of anybody, as an integer of as many digits as there are.
  Integers foreign() {
    const tfhe::Ciphertext& x = r.ev().bind(r.any().x);
    const int m = r.params().message_bits();
    IntegerType of{std::min(kMostBits, m * static_cast<int>(1 + r.in.below(3))), r.in.once_in(2)};
    const auto digits = static_cast<std::size_t>(of.digits(m));
    return {of, x.size() / digits, TfheMachine::rows_of(x), x.history.norm2()};
  }
  void same(const Integers& have, const Wides& want) {
    const int m = r.params().message_bits();
    const auto& machine = static_cast<const TfheMachine&>(a.machine());
    const auto largest = integers::largest_digits(have.type(), m);
    const tfhe::Ciphertext x = machine.ciphertext(have.rows(), largest);
    const Values digits = r.decrypted(x);
    if (have.count() != want.size()) stop("there is another number of integers");
    const auto each = static_cast<std::size_t>(have.type().digits(m));
    for (std::size_t i = 0; i < want.size(); ++i) {
      const std::vector<std::uint8_t> one(
          digits.begin() + static_cast<std::ptrdiff_t>(i * each),
          digits.begin() + static_cast<std::ptrdiff_t>((i + 1) * each));
      if (integers::joined(one, have.type(), m) != want[i]) {
        stop("integer " + std::to_string(i) + " is wrong");
      }
    }
  }
  void same(const Arithmetic::Flagged& have, const Wides& sums) {
    Wides low, flags;
    for (const Wide x : sums) {
      low.push_back(wrapped(x, have.first.type()));
      flags.push_back(low.back() != x);
    }
    same(have.first, low);
    same(have.second, flags);
  }
};

struct Two {
  IntegerType type;
  Wides x, y;
  Integers ex, ey;

  explicit Two(Case& c) : Two(c, c.type(), 1 + c.r.in.below(3)) {}
  Two(Case& c, IntegerType of, std::size_t count)
      : type(of),
        x(c.numbers(of, count)),
        y(c.numbers(of, count)),
        ex(c.given(x, of)),
        ey(c.given(y, of)) {}

  template <class F>
  Wides with(const F& f) const {
    Wides out;
    for (std::size_t i = 0; i < x.size(); ++i) out.push_back(f(x[i], y[i]));
    return out;
  }
  template <class F>
  Wides modulo(const F& f) const {
    return with([&](Wide a, Wide b) { return wrapped(f(a, b), type); });
  }
};

/// Calls with both operands encrypted, or one of them in the clear.
template <class Call>
auto operands(Case& c, const Two& t, const Call& call) {
  const Clear cx(t.x), cy(t.y);
  switch (c.r.in.below(3)) {
    case 0: return call(Value(t.ex), Value(t.ey));
    case 1: return call(Value(t.ex), Value(cy));
    default: return call(Value(cx), Value(t.ey));
  }
}

/// The quotient and remainder, as divide has them.
std::pair<Wide, Wide> divided(Wide x, Wide y, IntegerType type, integers::Rounding rounding) {
  if (y == 0) return {type.highest(), x};
  Wide quotient = x / y, remainder = x % y;
  if (rounding == integers::Rounding::floor && remainder != 0 && (remainder < 0) != (y < 0)) {
    --quotient;
    remainder += y;
  }
  return {wrapped(quotient, type), remainder};
}

void sums(Case& c) {
  const Two t(c);
  const auto& a = c.a;
  switch (c.r.in.below(4)) {
    case 0:
      return c.same(operands(c, t, [&](Value x, Value y) { return a.add(x, y); }),
                    t.modulo(std::plus<>()));
    case 1:
      return c.same(operands(c, t, [&](Value x, Value y) { return a.subtract(x, y); }),
                    t.modulo(std::minus<>()));
    case 2:
      return c.same(operands(c, t, [&](Value x, Value y) { return a.multiply(x, y); }),
                    t.modulo(std::multiplies<>()));
    default: return c.same(a.negate(t.ex), t.modulo([](Wide x, Wide) { return -x; }));
  }
}

void flags(Case& c) {
  const Two t(c);
  const auto& a = c.a;
  switch (c.r.in.below(3)) {
    case 0: return c.same(a.add_overflow(t.ex, t.ey), t.with(std::plus<>()));
    case 1: return c.same(a.subtract_overflow(t.ex, t.ey), t.with(std::minus<>()));
    default: return c.same(a.multiply_overflow(t.ex, t.ey), t.with(std::multiplies<>()));
  }
}

void quotients(Case& c) {
  IntegerType type = c.type();
  type.bits = std::min(type.bits, 4);
  const Two t(c, type, 1 + c.r.in.below(2));
  const auto how = c.r.in.once_in(2) ? integers::Rounding::floor : integers::Rounding::truncate;
  const auto [quotient, remainder] =
      operands(c, t, [&](Value x, Value y) { return c.a.divide(x, y, how); });
  c.same(quotient, t.with([&](Wide x, Wide y) { return divided(x, y, type, how).first; }));
  c.same(remainder, t.with([&](Wide x, Wide y) { return divided(x, y, type, how).second; }));
}

void bits(Case& c) {
  const Two t(c);
  const auto& a = c.a;
  switch (c.r.in.below(4)) {
    case 0:
      return c.same(operands(c, t, [&](Value x, Value y) { return a.bit_and(x, y); }),
                    t.modulo(std::bit_and<>()));
    case 1:
      return c.same(operands(c, t, [&](Value x, Value y) { return a.bit_or(x, y); }),
                    t.modulo(std::bit_or<>()));
    case 2:
      return c.same(operands(c, t, [&](Value x, Value y) { return a.bit_xor(x, y); }),
                    t.modulo(std::bit_xor<>()));
    default: return c.same(a.bit_not(t.ex), t.modulo([](Wide x, Wide) { return ~x; }));
  }
}

void moves(Case& c) {
  const IntegerType type = c.type(), unsigned_type{3, false};
  const Wides x = c.numbers(type, 2);
  const auto how = static_cast<integers::Move>(c.r.in.below(4));
  const Wides amount = c.numbers(unsigned_type, 2);
  const auto moved = [&](Wide v, Wide by) {
    const int n = type.bits, k = static_cast<int>(by);
    const Wide bits = wrapped(v, {n, false});
    const int turn = k % n;
    switch (how) {
      case integers::Move::left: return wrapped(k >= n ? 0 : bits << k, type);
      case integers::Move::right: return v >> k;
      case integers::Move::rotate_left: return wrapped(bits << turn | bits >> (n - turn), type);
      case integers::Move::rotate_right: return wrapped(bits >> turn | bits << (n - turn), type);
    }
    return v;
  };
  const Integers ex = c.given(x, type);
  if (c.r.in.once_in(2)) {
    const Wide one = amount[0];
    c.same(c.a.move(how, ex, Clear(one)), {moved(x[0], one), moved(x[1], one)});
  } else {
    const Wides want{moved(x[0], amount[0]), moved(x[1], amount[1])};
    const Integers by = c.given(amount, unsigned_type);
    c.same(c.r.in.once_in(2) ? c.a.move(how, ex, by) : c.a.move(how, ex, Clear(amount)), want);
  }
}

void comparisons(Case& c) {
  const Two t(c);
  const auto& a = c.a;
  using integers::Comparison;
  switch (c.r.in.below(5)) {
    case 0:
      return c.same(operands(c, t, [&](Value x, Value y) { return a.minimum(x, y); }),
                    t.with([](Wide x, Wide y) { return std::min(x, y); }));
    case 1:
      return c.same(operands(c, t, [&](Value x, Value y) { return a.maximum(x, y); }),
                    t.with([](Wide x, Wide y) { return std::max(x, y); }));
    case 2: {
      const Wides flag = c.numbers(integers::boolean, t.x.size());
      Wides want;
      for (std::size_t i = 0; i < flag.size(); ++i) want.push_back(flag[i] != 0 ? t.x[i] : t.y[i]);
      const Integers chosen = c.given(flag, integers::boolean);
      return c.same(operands(c, t, [&](Value x, Value y) { return a.select(chosen, x, y); }), want);
    }
    default: {
      const auto how = static_cast<Comparison>(c.r.in.below(6));
      const auto holds = [how](Wide x, Wide y) -> Wide {
        switch (how) {
          case Comparison::equal: return x == y;
          case Comparison::not_equal: return x != y;
          case Comparison::less: return x < y;
          case Comparison::less_equal: return x <= y;
          case Comparison::greater: return x > y;
          case Comparison::greater_equal: return x >= y;
        }
        return 0;
      };
      return c.same(operands(c, t, [&](Value x, Value y) { return a.compare(how, x, y); }),
                    t.with(holds));
    }
  }
}

void counts(Case& c) {
  const IntegerType type = c.type();
  const Wides x = c.numbers(type, 2);
  const Integers ex = c.given(x, type);
  const auto of = [&](const std::function<int(unsigned)>& f) {
    Wides out;
    for (const Wide v : x) out.push_back(f(static_cast<unsigned>(wrapped(v, {type.bits, false}))));
    return out;
  };
  switch (c.r.in.below(4)) {
    case 0:
      return c.same(c.a.leading_zeros(ex), of([&](unsigned v) {
                      return type.bits - static_cast<int>(std::bit_width(v));
                    }));
    case 1:
      return c.same(c.a.trailing_zeros(ex),
                    of([&](unsigned v) { return v == 0 ? type.bits : std::countr_zero(v); }));
    case 2:
      return c.same(c.a.ilog2(ex), of([](unsigned v) {
                      return v == 0 ? 255 : static_cast<int>(std::bit_width(v)) - 1;
                    }));
    default: {
      const IntegerType to = c.type();
      Wides want;
      for (const Wide v : x) want.push_back(wrapped(v, to));
      return c.same(c.a.cast(ex, to), want);
    }
  }
}

void rows(Case& c) {
  const IntegerType type = c.type();
  const std::size_t length = 1 + c.r.in.below(4), all = length * (1 + c.r.in.below(2));
  const Wides x = c.numbers(type, all);
  const Integers ex = c.given(x, type);
  const auto of_rows = [&](const std::function<void(std::span<const Wide>)>& f) {
    for (std::size_t i = 0; i < all; i += length) f(std::span(x).subspan(i, length));
  };
  Wides want, at;
  switch (c.r.in.below(5)) {
    case 0: {
      const IntegerType to = c.type();
      of_rows([&](auto row) {
        Wide sum = 0;
        for (const Wide v : row) sum += v;
        want.push_back(wrapped(sum, to));
      });
      return c.same(c.a.sum(ex, length, to), want);
    }
    case 1: {
      const IntegerType to = c.type();
      const Wides weights = c.numbers({4, true}, length);
      of_rows([&](auto row) {
        Wide sum = 0;
        for (std::size_t i = 0; i < length; ++i) sum += weights[i] * row[i];
        want.push_back(wrapped(sum, to));
      });
      return c.same(c.a.dot(ex, weights, to), want);
    }
    case 2: {
      const bool descending = c.r.in.once_in(2);
      of_rows([&](auto row) {
        Wides sorted(row.begin(), row.end());
        std::sort(sorted.begin(), sorted.end());
        if (descending) std::reverse(sorted.begin(), sorted.end());
        want.insert(want.end(), sorted.begin(), sorted.end());
      });
      return c.same(c.a.sort(ex, length, descending), want);
    }
    case 3: {
      const bool largest = c.r.in.once_in(2);
      of_rows([&](auto row) {
        const auto found = largest ? std::max_element(row.begin(), row.end())
                                   : std::min_element(row.begin(), row.end());
        want.push_back(*found);
        at.push_back(found - row.begin());
      });
      const auto [value, index] = c.a.extreme(ex, length, largest);
      c.same(value, want);
      return c.same(index, at);
    }
    default: {
      std::vector<std::size_t> indices;
      for (std::size_t k = 1 + c.r.in.below(4); k > 0; --k) {
        indices.push_back(c.r.index(all));
        if (indices.back() < all) want.push_back(x[indices.back()]);
      }
      return c.same(c.a.take(ex, indices), want);
    }
  }
}

void reads(Case& c) {
  const IntegerType type = c.type(), of_index{3, false};
  const Wides table = c.numbers(type, 1 + c.r.in.below(5)), index = c.numbers(of_index, 2);
  Wides want;
  for (const Wide i : index) {
    want.push_back(i < static_cast<Wide>(table.size()) ? table[static_cast<std::size_t>(i)] : 0);
  }
  const Integers at = c.given(index, of_index);
  switch (c.r.in.below(3)) {
    case 0: return c.same(c.a.read(table, type, at), want);
    case 1: return c.same(c.a.read(c.given(table, type), at), want);
    default: return c.same(c.a.trivial(table, type), table);
  }
}

// Types, numbers and lengths that do not fit are refused.
void refusals(Case& c) {
  const Integers x = c.given(c.numbers({3, false}, 4), {3, false});
  const IntegerType to{c.r.in.integer(), c.r.in.once_in(2)};
  const Wide number = c.r.in.integer();
  switch (c.r.in.below(6)) {
    case 0: (void)c.a.cast(x, to); break;
    case 1: (void)c.a.sum(x, c.r.index(5), to); break;
    case 2: (void)c.a.trivial(Wides{number}, to); break;
    case 3: (void)c.a.read(Wides{number, 1}, to, x); break;
    case 4: (void)c.a.add(x, Clear(number)); break;
    default: (void)c.a.sort(x, c.r.index(5)); break;
  }
}

// Rows that a peer sent hold anything. Results mean nothing, but there are no others than errors
// and results.
void foreign(Case& c) {
  const Integers x = c.foreign(), y = c.foreign();
  const auto largest = integers::largest_digits(x.type(), c.r.params().message_bits());
  const auto& machine = static_cast<const TfheMachine&>(c.a.machine());
  (void)c.a.cost_of([&](const Arithmetic& a) {
    const Integers out = c.r.in.once_in(2) ? a.add(x, y) : a.multiply(x, Clear(Wide{3}));
    c.r.keep(machine.ciphertext(out.rows(), largest), std::nullopt);
  });
}

template <void (*f)(Case&)>
void on(TfheRun& r) {
  if (!r.world.arithmetic) return;
  Case c(r);
  f(c);
}

constexpr TfheOperation kOperations[] = {
    {"sums", on<sums>},           {"flags", on<flags>},
    {"quotients", on<quotients>}, {"bits", on<bits>},
    {"moves", on<moves>},         {"comparisons", on<comparisons>},
    {"counts", on<counts>},       {"rows", on<rows>},
    {"reads", on<reads>},         {"foreign rows", on<foreign>},
    {"refusals", on<refusals>}};

}  // namespace

std::span<const TfheOperation> tfhe_integer_operations() { return kOperations; }

}  // namespace jali::fuzz
