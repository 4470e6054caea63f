#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "jali/integers/arithmetic.h"
#include "jali/integers/columns.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {

std::pair<Integers, Integers> Arithmetic::divide(Value x, Value y, Rounding rounding) const {
  const IntegerType type = common_type(x, y);
  if (x.clear() && !x.clear()->scalar) {
    check_values(x.clear()->values, type);
    return divide(trivial(x.clear()->values, type), y, rounding);
  }
  const std::string key = rounding == Rounding::floor ? "divide floor" : "divide truncate";
  const Clear* divisor = y.clear();
  if (divisor && divisor->scalar && !type.is_signed && divisor->values[0] > 0) {
    check_values(divisor->values, type);
    const Wide by = divisor->values[0];
    return run_two("divide constant", {{x, type}, {y, type}}, 2,
                   [&](Builder& b, const Words& w, std::size_t c) -> Words {
                     Quotient out = divide_by_constant(b, w[0], by, {c ? Carries::one_by_one : 0});
                     return {std::move(out.quotient), std::move(out.remainder)};
                   });
  }
  if (divisor && !type.is_signed && !divisor->scalar) {
    check_values(divisor->values, type);
    return divide_each(*x.encrypted(), divisor->values);
  }
  if (divisor && type.is_signed) {
    check_values(divisor->values, type);
    return divide_signed(*x.encrypted(), *divisor, rounding);
  }
  // The multiples of clear divisors are clear.
  const int m = space_.message_bits;
  const IntegerType wide{(type.digits(m) + 1) * m, false};
  std::vector<Clear> multiples;
  std::vector<Input> inputs{{x, type}, {y, type}};
  if (divisor) {
    check_values(divisor->values, type);
    for (int k = 1; k < 1 << m; ++k) {
      Clear multiple = *divisor;
      for (Wide& value : multiple.values) value = k * (value < 0 ? -value : value);
      multiples.push_back(std::move(multiple));
    }
    for (const Clear& multiple : multiples) inputs.push_back({multiple, wide});
  }
  std::vector<Integers> out =
      run(key, inputs, 2, [&](Builder& b, const Words& w, std::size_t c) -> Words {
        const Division how{c == 1, {c ? Carries::one_by_one : 0}};
        Quotient quotient = integers::divide(b, w[0], w[1], std::span(w).subspan(2), rounding, how);
        return {std::move(quotient.quotient), std::move(quotient.remainder)};
      });
  return {std::move(out[0]), std::move(out[1])};
}

std::pair<Integers, Integers> Arithmetic::divide_signed(const Integers& x, const Clear& divisor,
                                                        Rounding rounding) const {
  const IntegerType type = x.type(), magnitude{type.bits, false};
  Clear negative = divisor, zero = divisor, size = divisor;
  for (Wide& d : negative.values) d = d < 0;
  for (Wide& d : zero.values) d = d == 0;
  for (Wide& d : size.values) d = d < 0 ? -d : d;
  if (std::ranges::count(zero.values, 0) == std::ssize(zero.values)) zero = Clear(0);
  const Integers x_size =
      run_one("magnitude", {{x, type}}, ways, [&](Builder& b, const Words& w, std::size_t c) {
        return Word{magnitude, negate_if(b, w[0], sign_of(b, w[0]), carries_of[c]).digits, {}};
      });
  const auto [quotient, remainder] = divide(x_size, size, Rounding::truncate);
  return run_two(rounding == Rounding::floor ? "signs floor" : "signs truncate",
                 {{x, type},
                  {quotient, magnitude},
                  {remainder, magnitude},
                  {negative, boolean},
                  {zero, boolean},
                  {size, magnitude}},
                 ways, [&](Builder& b, const Words& w, std::size_t c) -> Words {
                   Quotient out = with_signs(b, {w[1], w[2]}, sign_of(b, w[0]),
                                             {w[3][0], w[4][0], w[5]}, rounding, carries_of[c]);
                   return {std::move(out.quotient), std::move(out.remainder)};
                 });
}

std::pair<Integers, Integers> Arithmetic::divide_each(const Integers& x,
                                                      std::span<const Wide> divisors) const {
  // With 2^(l-1) < d <= 2^l and f = floor(2^bits (2^l - d) / d) + 1 < 2^bits + 1: floor(x / d) =
  // floor((x + floor(x f / 2^bits)) / 2^l) for all x < 2^bits (Granlund and Montgomery 1994,
  // figure 4.1).
  const int m = space_.message_bits, bits = x.type().bits;
  const IntegerType sum_type{(x.type().digits(m) + 1) * m, false}, product_type{2 * bits, false};
  std::vector<Wide> factors, shifts, complements, of_zero;
  bool zero = false;
  for (const Wide d : divisors) {
    int l = 0;
    while (d > 0 && (Wide{1} << l) < d) ++l;
    unsigned __int128 factor = 0,
                      rest = d > 0 ? static_cast<unsigned __int128>((Wide{1} << l) - d) : 0;
    for (int i = 0; d > 0 && i < bits; ++i) {  // long division, bit by bit
      factor *= 2;
      rest *= 2;
      if (rest >= static_cast<unsigned __int128>(d))
        rest -= static_cast<unsigned __int128>(d), ++factor;
    }
    factors.push_back(d > 0 ? static_cast<Wide>(factor + 1) : 0);
    shifts.push_back(d > 0 ? l : sum_type.bits);
    complements.push_back(d > 0 ? (Wide{1} << bits) - d : 0);
    of_zero.push_back(d > 0 ? 0 : x.type().highest());
    zero = zero || d == 0;
  }
  const auto how = [](std::size_t c) { return Carries{c == 2 ? Carries::one_by_one : 0}; };
  const Clear by_factors{std::move(factors)}, by_complements{std::move(complements)};
  const Integers sum = run_one(
      "divide each", {{x, x.type()}, {by_factors, x.type()}}, 3,
      [&](Builder& b, const Words& w, std::size_t c) {
        const Word product =
            integers::multiply(b, w[0], w[1], product_type, how(c), nullptr, static_cast<int>(c));
        std::vector<int> from(static_cast<std::size_t>(sum_type.bits), -1);
        for (int i = 0; i < bits; ++i) from[static_cast<std::size_t>(i)] = bits + i;
        const Word high = moved(b, product, sum_type, from);
        return Word{
            sum_type, integers::add(b, integers::cast(b, w[0], sum_type), high, how(c)).digits, {}};
      });
  const Integers shifted = moved_each(Move::right, sum, shifts);  // below 2^bits
  std::vector<std::size_t> all(shifted.count());
  std::iota(all.begin(), all.end(), std::size_t{0});
  Integers quotient = gathered(shifted.rows(), shifted.noise(), x.type(),
                               static_cast<std::size_t>(sum_type.digits(m)), 0, all);
  if (zero) quotient = bit_or(quotient, Clear(std::move(of_zero)));
  // x - q d = x + q (2^bits - d) modulo 2^bits.
  Integers rest = run_one("divide each, rest",
                          {{x, x.type()}, {quotient, x.type()}, {by_complements, x.type()}}, 3,
                          [&](Builder& b, const Words& w, std::size_t c) {
                            Columns columns = products(b, w[1], w[2], x.type());
                            for (std::size_t k = 0; k < w[0].size(); ++k) {
                              columns[k].push_back(w[0][k]);
                            }
                            return sum_of_columns(b, std::move(columns), x.type(), how(c), nullptr,
                                                  static_cast<int>(c));
                          });
  return {std::move(quotient), std::move(rest)};
}

}  // namespace jali::integers
