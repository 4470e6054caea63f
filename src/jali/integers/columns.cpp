#include "jali/integers/columns.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "jali/base/error.h"
#include "jali/integers/bits.h"

namespace jali::integers {
namespace {

int total(const std::vector<Form>& terms) {
  return std::accumulate(terms.begin(), terms.end(), 0,
                         [](int sum, const Form& term) { return sum + term.hi; });
}

/// Terms in groups whose sums fill a digit, largest first.
std::vector<std::vector<Form>> grouped(const Builder& b, std::vector<Form> terms) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Form& x, const Form& y) { return x.hi > y.hi; });
  std::vector<std::vector<Form>> out;
  std::vector<int> room;
  std::vector<double> quiet;
  for (Form& term : terms) {
    const double noise = b.noise(term);
    std::size_t g = 0;
    while (g < out.size() && (room[g] < term.hi || quiet[g] < noise)) ++g;
    if (g == out.size()) {
      out.emplace_back();
      room.push_back(b.top());
      quiet.push_back(b.space().noise_budget);
    }
    room[g] -= term.hi;
    quiet[g] -= noise;
    out[g].push_back(std::move(term));
  }
  return out;
}

}  // namespace

Word sum_of_columns(Builder& b, Columns columns, IntegerType type, Carries how,
                    std::vector<Form>* lost) {
  const int m = b.m();
  const auto n = static_cast<std::size_t>(type.digits(m));
  columns.resize(n);
  std::vector<int> radix;
  for (std::size_t k = 0; k < n; ++k) {
    radix.push_back(1 << type.digit_bits(static_cast<int>(k), m));
  }
  // Constants together are one number, which has one digit a place.
  int clear = 0;  // of a place, with the carry from the place before it
  for (std::size_t k = 0; k < n; ++k) {
    std::erase_if(columns[k], [&](const Form& term) {
      if (term.is_constant()) clear += term.constant;
      return term.is_constant();
    });
    if (const int digit = clear % radix[k]) columns[k].emplace_back(digit);
    clear /= radix[k];
  }
  if (lost && clear != 0) lost->emplace_back(1);

  for (bool again = true; again;) {
    again = false;
    Columns next(n);
    for (std::size_t k = 0; k < n; ++k) {
      std::vector<Form>& terms = columns[k];
      if (total(terms) <= 2 * radix[k] - 2) {
        std::move(terms.begin(), terms.end(), std::back_inserter(next[k]));
        continue;
      }
      again = true;
      auto groups = grouped(b, std::move(terms));
      for (std::size_t g = 0; g < groups.size(); ++g) {
        Form sum;
        for (const Form& term : groups[g]) sum += term;
        // What is left over waits for the next wave, if others go.
        if (groups.size() > 1 && sum.hi * 5 < b.top() * 3) {
          std::move(groups[g].begin(), groups[g].end(), std::back_inserter(next[k]));
          continue;
        }
        const int q = radix[k];
        Form low = b.look_up(sum, [q](int v) { return v % q; });
        if (low.hi > 0) next[k].push_back(std::move(low));
        if (sum.hi < q || (k + 1 == n && !lost)) continue;
        Form high = b.look_up(sum, [q](int v) { return v / q; });
        (k + 1 < n ? next[k + 1] : *lost).push_back(std::move(high));
      }
    }
    columns = std::move(next);
  }
  std::vector<Form> sums;
  for (const std::vector<Form>& terms : columns) {
    Form sum;
    for (const Form& term : terms) sum += term;
    sums.push_back(std::move(sum));
  }
  Sum sum = resolve_carries(b, sums, radix, 0, how);
  if (lost) lost->push_back(sum.carry);
  return {type, std::move(sum.digits)};
}

Word multiply(Builder& b, const Word& x, const Word& y, IntegerType type, Carries how,
              std::vector<Form>* lost) {
  const int q = 1 << b.m();
  const auto n = static_cast<std::size_t>(type.digits(b.m()));
  Columns columns(n + 1);
  for (std::size_t i = 0; i < std::min(x.size(), n); ++i) {
    for (std::size_t j = 0; j < y.size() && i + j < n; ++j) {
      columns[i + j].push_back(b.look_up_two(x[i], y[j], [q](int u, int v) { return u * v % q; }));
      if (i + j + 1 < n || lost) {
        columns[i + j + 1].push_back(
            b.look_up_two(x[i], y[j], [q](int u, int v) { return u * v / q; }));
      }
    }
  }
  if (lost) {
    for (Form& term : columns[n]) lost->push_back(std::move(term));
  }
  columns.resize(n);
  return sum_of_columns(b, std::move(columns), type, how, lost);
}

Word multiply_by_squares(Builder& b, const Word& x, const Word& y, IntegerType type) {
  // u v = h(u + v) - g(u) - g(v) with h = g = s (s - 1) / 2 - a s, for any a. Of all a take the one for which h has the
  // fewest values, and of all offsets the one for which h + offset has the smallest high digit.
  const int q = 1 << b.m();
  const auto floor_by = [q](int v) { return v >= 0 ? v / q : -((q - 1 - v) / q); };
  int slope = 0, offset = 0, best = 1 << 20;
  for (int a = 0; a <= q; ++a) {
    for (int d = 0; d < q; ++d) {
      int low = 1 << 20, high = -low;
      for (int s = 0; s <= 2 * q - 2; ++s) {
        const int value = floor_by(s * (s - 1) / 2 - a * s + d);
        low = std::min(low, value);
        high = std::max(high, value);
      }
      if (high - low < best) best = high - low, slope = a, offset = d;
    }
  }
  const auto h = [slope](int s) { return s * (s - 1) / 2 - slope * s; };
  const auto n = static_cast<std::size_t>(type.digits(b.m()));
  Columns columns(n);
  Wide constants = 0;  // what the forms lack, and the offset
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; i + j < n; ++j) {
      const Form s = x[i] + y[j];
      Form low = b.look_up(s, [&](int v) { return h(v) + offset - q * floor_by(h(v) + offset); });
      Form high = b.look_up(s, [&](int v) { return floor_by(h(v) + offset); });
      const int shift = b.m() * static_cast<int>(i + j);
      constants += (Wide{low.lo} + Wide{high.lo} * q - offset) * (Wide{1} << shift);
      columns[i + j].push_back(low - low.lo);
      if (i + j + 1 < n) columns[i + j + 1].push_back(high - high.lo);
    }
  }
  // Of column k lack sum_{i <= k} w_i with w_i = -g(x_i) - g(y_i). Shifted by constants w_i >= 0. The number
  // Y = sum_k 2^(mk) sum_{i <= k} w_i has (q - 1) Y = -sum_i w_i 2^(mi) modulo 2^bits. From the lowest digit on,
  // with s = w_i + e, digit y = s mod q and e' = (s + (q - 1) y) / q = floor(s / q) + y.
  Word rest{type, {}};
  Form e = 0;
  int most = 0;
  for (int v = 0; v < q; ++v) most = std::max(most, h(v));
  for (std::size_t i = 0; i < n; ++i) {
    const Form w = b.look_up_two(x[i], y[i], [&](int u, int v) { return 2 * most - h(u) - h(v); });
    for (std::size_t k = i; k < n; ++k) {
      constants -= Wide{2 * most} * (Wide{1} << (b.m() * static_cast<int>(k)));
    }
    const Form s = w + e;
    const int r = 1 << type.digit_bits(static_cast<int>(i), b.m());
    rest.digits.push_back(b.look_up(s, [r](int v) { return v % r; }));
    e = b.look_up(s, [q](int v) { return v / q + v % q; });
  }
  const Word clear = constant(constants, type, b);
  for (std::size_t k = 0; k < n; ++k) columns[k].push_back(clear[k]);
  const Carries slow{Carries::one_by_one};
  const Word sum = sum_of_columns(b, std::move(columns), type, slow);
  return {type, add(b, sum, rest, slow).digits};
}

Form product_overflows(Builder& b, const Word& x, const Word& y, const std::vector<Form>& lost) {
  // Some x_i y_j with i + j >= n is not 0, or a carry was lost.
  std::vector<Form> flags, of_y;
  for (const Form& carry : lost) {
    flags.push_back(b.look_up(carry, [](int v) { return v != 0 ? 1 : 0; }));
  }
  for (const Form& digit : y.digits) {
    of_y.push_back(b.look_up(digit, [](int v) { return v != 0 ? 1 : 0; }));
  }
  const std::vector<Form> above = any_from(b, of_y);
  for (std::size_t i = 1; i < x.size(); ++i) {
    flags.push_back(b.look_up_two(x[i], above[y.size() - i],
                                  [](int v, int any) { return v != 0 && any ? 1 : 0; }));
  }
  return -none(b, std::move(flags)) + 1;
}

void add_scaled(Builder& b, Columns& columns, const Word& x, Wide weight, IntegerType type,
                Wide& constants) {
  const int m = b.m(), q = 1 << m;
  const auto n = static_cast<std::size_t>(type.digits(m));
  Word of = x;
  if (weight < 0) {
    for (std::size_t i = 0; i < of.size(); ++i) of[i] = -of[i] + (radix(x, i, b) - 1);
    constants += -weight;
    weight = -weight;
  }
  for (std::size_t j = 0; j < n && weight > 0; ++j, weight >>= m) {
    const int digit = static_cast<int>(weight & (q - 1));
    if (digit == 0) continue;
    for (std::size_t i = 0; i < of.size() && i + j < n; ++i) {
      Form low = b.look_up(of[i], [&](int v) { return v * digit % q; });
      columns[i + j].push_back(std::move(low));
      if (i + j + 1 < n) {
        columns[i + j + 1].push_back(b.look_up(of[i], [&](int v) { return v * digit / q; }));
      }
    }
  }
}

}  // namespace jali::integers
