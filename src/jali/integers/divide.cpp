#include "jali/integers/divide.h"

#include <algorithm>
#include <bit>

#include "jali/integers/columns.h"

namespace jali::integers {
namespace {

/// Remainder minus a multiple, and whether the remainder is at least that. above: whether the
/// multiple has digits that the remainder has not; it is one more place, through which a carry
/// passes if there are none.
Sum minus_multiple(Builder& b, const Word& remainder, const Word& multiple, const Form& above,
                   Carries how) {
  const int q = 1 << b.m();
  std::vector<Form> sums;
  for (std::size_t i = 0; i < remainder.size(); ++i) {
    sums.push_back(remainder[i] - multiple[i] + (q - 1));
  }
  std::vector<int> radix(remainder.size(), q);
  sums.push_back(-above + 1);
  radix.push_back(2);
  Sum out = resolve_carries(b, sums, radix, 1, how);
  out.digits.pop_back();
  return out;
}

Quotient divide_unsigned(Builder& b, const Word& x, const Word& y, std::span<const Word> given,
                         Division how) {
  const int m = b.m(), q = 1 << m;
  const std::size_t n = x.size();
  const IntegerType wide{(y.type.digits(m) + 1) * m, false};
  // The multiples that a digit of the quotient needs, from multiples[1] = y on.
  std::vector<Word> multiples(static_cast<std::size_t>(q));
  std::vector<std::vector<Form>> above(static_cast<std::size_t>(q));
  const Word one = cast(b, y, wide);
  for (int k = 1; k < q; ++k) {
    if (how.bit_by_bit && !std::has_single_bit(static_cast<unsigned>(k))) continue;
    const auto at = static_cast<std::size_t>(k);
    if (!given.empty()) {
      multiples[at] = given[at - 1];
    } else if (std::has_single_bit(static_cast<unsigned>(k))) {
      multiples[at] = moved(
          b, one, wide, bits_from(wide, Move::left, std::countr_zero(static_cast<unsigned>(k))));
    } else {
      const auto high = std::bit_floor(at);
      multiples[at] = {wide, add(b, multiples[high], multiples[at - high], how.carries).digits};
    }
    std::vector<Form> flags;
    for (const Form& digit : multiples[at].digits) {
      flags.push_back(b.look_up(digit, [](int v) { return v != 0 ? 1 : 0; }));
    }
    above[at] = any_from(b, flags);
  }

  Quotient out{{x.type, std::vector<Form>(n), {}}, {x.type, {}, {}}};
  Word remainder{{m, false}, {}, {}};
  for (std::size_t step = n; step-- > 0;) {
    remainder.digits.insert(remainder.digits.begin(), x[step]);
    remainder.type.bits = static_cast<int>(remainder.size()) * m;
    const std::size_t width = remainder.size();
    // What is left is at most what was taken from x so far, so that its highest digit has no more
    // bits than that of x.
    std::vector<int> largest(width, q - 1);
    largest.back() = radix(x, n - 1, b) - 1;
    if (how.bit_by_bit) {
      for (int k = radix(x, step, b) / 2; k > 0; k /= 2) {
        const auto at = static_cast<std::size_t>(k);
        Sum less = minus_multiple(b, remainder, multiples[at], above[at][width], how.carries);
        remainder =
            select(b, less.carry, {remainder.type, std::move(less.digits), {}}, remainder, largest);
        out.quotient[step] += less.carry * k;
      }
    } else {
      // The remainder is at least k y for k up to the digit. So the digit is the number of carries.
      std::vector<Sum> less(1);
      less[0].digits = remainder.digits;
      const int values = radix(x, step, b);  // of this digit of the quotient
      for (int k = 1; k < values; ++k) {
        const auto at = static_cast<std::size_t>(k);
        less.push_back(minus_multiple(b, remainder, multiples[at], above[at][width], how.carries));
        out.quotient[step] += less.back().carry;
      }
      for (std::size_t i = 0; i < width; ++i) {
        Form digit;
        for (int k = 0; k < values; ++k) {
          digit += b.look_up_two(
              less[static_cast<std::size_t>(k)].digits[i], out.quotient[step],
              [&](int v, int chosen) { return chosen == k ? std::min(v, largest[i]) : 0; });
        }
        digit = digit.within(0, largest[i]);
        remainder[i] = b.noise(digit) > b.space().noise_budget / 4 ? b.refreshed(digit) : digit;
      }
    }
  }
  out.remainder.digits = std::move(remainder.digits);
  for (std::size_t i = 0; i < n; ++i) {
    out.quotient[i] = out.quotient[i].within(0, radix(x, i, b) - 1);
  }
  return out;
}

}  // namespace

Quotient divide(Builder& b, const Word& x, const Word& y, std::span<const Word> multiples,
                Rounding rounding, Division how) {
  if (!x.type.is_signed) return divide_unsigned(b, x, y, multiples, how);
  const IntegerType magnitude{x.type.bits, false};
  const Form x_negative = sign_of(b, x), y_negative = sign_of(b, y);
  const Word x_size{magnitude, negate_if(b, x, x_negative, how.carries).digits};
  const Word y_size{magnitude, negate_if(b, y, y_negative, how.carries).digits};
  std::vector<Form> y_flags;
  for (const Form& digit : y.digits) {
    y_flags.push_back(b.look_up(digit, [](int v) { return v != 0 ? 1 : 0; }));
  }
  return with_signs(b, divide_unsigned(b, x_size, y_size, multiples, how), x_negative,
                    {y_negative, none(b, std::move(y_flags)), y_size}, rounding, how.carries);
}

Quotient with_signs(Builder& b, const Quotient& sizes, const Form& x_negative, const Divisor& y,
                    Rounding rounding, Carries how) {
  const IntegerType magnitude = sizes.quotient.type, type{magnitude.bits, true};
  const std::size_t n = sizes.quotient.size();
  const Form differ = b.look_up(x_negative + y.negative, [](int v) { return v == 1 ? 1 : 0; });
  // -u = (2^bits - 1 - u) + 1. If it is rounded down, and there is a rest, then the 1 is not added.
  Form one_more = differ, down;
  if (rounding == Rounding::floor) {
    std::vector<Form> rest_flags;
    for (const Form& digit : sizes.remainder.digits) {
      rest_flags.push_back(b.look_up(digit, [](int v) { return v != 0 ? 1 : 0; }));
    }
    const Form no_rest = none(b, std::move(rest_flags));
    one_more = b.look_up_two(differ, no_rest, [](int d, int zero) { return d & zero; });
    down = b.look_up_two(differ, no_rest, [](int d, int zero) { return d & (1 - zero); });
  }
  std::vector<Form> sums;
  std::vector<int> radices;
  for (std::size_t i = 0; i < n; ++i) {
    const int q = radix(sizes.quotient, i, b);
    sums.push_back(b.look_up_two(sizes.quotient[i], differ,
                                 [q](int v, int flag) { return flag ? q - 1 - v : v; }));
    radices.push_back(q);
  }
  Quotient out{{type, resolve_carries(b, sums, radices, one_more, how).digits}, {type, {}}};
  const Word highest = constant(type.highest(), type, b);
  for (std::size_t i = 0; i < n; ++i) {
    out.quotient[i] = b.look_up_two(
        out.quotient[i], y.zero, [&](int v, int flag) { return flag ? highest[i].constant : v; });
  }
  if (rounding == Rounding::truncate) {
    out.remainder.digits = negate_if(b, sizes.remainder, x_negative, how).digits;
  } else {  // the rest has the sign of y
    Word rest{magnitude, subtract(b, y.size, sizes.remainder, how).digits};
    rest = select(b, down, rest, sizes.remainder);
    out.remainder.digits = negate_if(b, rest, y.negative, how).digits;
  }
  return out;
}

Quotient divide_by_constant(Builder& b, const Word& x, Wide divisor, Carries how) {
  const int bits = x.type.bits;
  int shift = 0;
  while ((Wide{1} << shift) < divisor) ++shift;
  Quotient out;
  if ((Wide{1} << shift) == divisor) {
    out.quotient = moved(b, x, x.type, bits_from(x.type, Move::right, shift));
    std::vector<int> from = bits_from(x.type, Move::left, 0);
    for (int i = shift; i < bits; ++i) from[static_cast<std::size_t>(i)] = -1;
    out.remainder = moved(b, x, x.type, from);
    return out;
  }
  // With f = ceil(2^(bits + shift) / d), 2^(shift-1) < d < 2^shift: floor(x / d) = floor(x f /
  // 2^(bits + shift)) for all x < 2^bits (Granlund and Montgomery 1994, theorem 4.2). f has bits +
  // 1 bits.
  using Wider = unsigned __int128;
  Wider factor = 0, rest = 1;  // long division of 2^(bits + shift), bit by bit, and 1 more
  for (int i = 0; i < bits + shift; ++i) {
    rest *= 2;
    factor *= 2;
    if (rest >= static_cast<Wider>(divisor)) rest -= static_cast<Wider>(divisor), ++factor;
  }
  const IntegerType of_factor{bits + 1, false}, of_product{2 * bits + 1, false};
  const Word f = constant(static_cast<Wide>(factor + 1), of_factor, b);
  const Word product = multiply(b, x, f, of_product, how);
  std::vector<int> from(static_cast<std::size_t>(bits), -1);
  for (int i = 0; i < bits && i + bits + shift < of_product.bits; ++i) {
    from[static_cast<std::size_t>(i)] = i + bits + shift;
  }
  out.quotient = moved(b, product, x.type, from);
  const Wide minus = (Wide{1} << bits) - divisor;
  // x - q d = x + q (2^bits - d) modulo 2^bits.
  const Word subtrahend = multiply(b, out.quotient, constant(minus, x.type, b), x.type, how);
  out.remainder = {x.type, add(b, x, subtrahend, how).digits};
  return out;
}

}  // namespace jali::integers
