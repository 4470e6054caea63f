#include "jali/integers/columns.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "jali/base/error.h"
#include "jali/integers/bits.h"

namespace jali::integers {
namespace {

int total(const std::vector<Form>& terms) {
  return std::accumulate(terms.begin(), terms.end(), 0,
                         [](int sum, const Form& term) { return sum + term.hi; });
}

/// Low digit and carry of a sum. One of more than 2^p - 1 is looked up without its highest bit,
/// which goes into the carry with the weight that it has there. The bit is then needed once if the
/// sum has so little noise that q^2 more does not hurt.
struct Split {
  Form low, high;
};
Split split(Builder& b, const Form& sum, int q) {
  const int size = b.space().size();
  Form rest = sum, bit;
  if (sum.hi - sum.lo >= size) {
    bit = b.threshold(sum, size, size / q);
    rest = (sum - bit * q).within(0, size - 1);
  }
  Form low = b.look_up(rest, [q](int v) { return v % q; });
  Form high = b.look_up(rest, [q](int v) { return v / q; });
  return {std::move(low), (high + bit).within(0, sum.hi / q)};
}

/// Takes terms whose sum can be split, as much as fits, from terms that are sorted by their worth.
/// wide: sums may have more than p bits, if this makes them so large that three look-ups split them
/// and not two.
Form take_sum(const Builder& b, std::vector<Form>& terms, bool wide) {
  const int q = 1 << b.m(), size = b.space().size();
  const double budget = b.space().noise_budget;
  struct Limit {
    int most, least;
    double noise;
  };
  const Limit limits[] = {{2 * size - 1, size + size * 3 / 8, budget - q * q},
                          {size - 1, 0, budget}};
  for (const Limit& limit : std::span(limits).subspan(wide && b.space().negacyclic ? 0 : 1)) {
    std::vector<std::size_t> chosen;
    int sum = 0;
    double noise = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const double here = b.noise(terms[i]);
      if (sum + terms[i].hi > limit.most || noise + here > limit.noise) continue;
      sum += terms[i].hi;
      noise += here;
      chosen.push_back(i);
    }
    if (sum < limit.least) continue;
    require<InternalError>(!chosen.empty(), "a term of a column does not fit a digit");
    Form out;
    for (const std::size_t i : chosen) out += terms[i];
    for (std::size_t c = chosen.size(); c-- > 0;) {
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(chosen[c]));
    }
    return out;
  }
  return {};
}

/// By how much of a digit a term fills for its noise, or by size alone.
void sort_terms(const Builder& b, std::vector<Form>& terms, bool wide) {
  std::ranges::stable_sort(terms, std::greater(), [&](const Form& term) {
    return wide ? term.hi / std::max(b.noise(term), 0.01) : double(term.hi);
  });
}

/// One column after the other, from the lowest on: fewest look-ups, and deep.
Word sum_one_by_one(Builder& b, Columns columns, IntegerType type, std::span<const int> radix,
                    std::vector<Form>* lost) {
  const std::size_t n = radix.size();
  Word out{type, {}, {}};
  const bool wide = b.space().negacyclic;
  for (std::size_t k = 0; k < n; ++k) {
    std::vector<Form>& terms = columns[k];
    const auto fits = [&] {
      double noise = 0;
      for (const Form& term : terms) noise += b.noise(term);
      return total(terms) <= b.top() ? noise <= b.space().noise_budget
                                     : wide && total(terms) < 2 * b.space().size() &&
                                           noise + 1 <= b.space().noise_budget;
    };
    for (bool last = false; !last;) {
      last = fits();
      Form sum;
      if (last) {
        for (const Form& term : terms) sum += term;
      } else {
        sort_terms(b, terms, true);
        sum = take_sum(b, terms, true);
      }
      Split parts = split(b, sum, radix[k]);
      if (last) {
        out.digits.push_back(std::move(parts.low));
      } else if (parts.low.hi > 0) {
        terms.push_back(std::move(parts.low));
      }
      if (parts.high.hi > 0 && k + 1 < n)
        columns[k + 1].push_back(std::move(parts.high));
      else if (parts.high.hi > 0 && lost)
        lost->push_back(std::move(parts.high));
    }
  }
  return out;
}

}  // namespace

Word sum_of_columns(Builder& b, Columns columns, IntegerType type, Carries how,
                    std::vector<Form>* lost, int wide_rounds) {
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

  if (how.block == Carries::one_by_one) {
    return sum_one_by_one(b, std::move(columns), type, radix, lost);
  }

  bool again = true;
  for (int round = 0; again; ++round) {
    again = false;
    Columns next(n);
    for (std::size_t k = 0; k < n; ++k) {
      std::vector<Form>& terms = columns[k];
      if (total(terms) <= 2 * radix[k] - 2) {
        std::move(terms.begin(), terms.end(), std::back_inserter(next[k]));
        continue;
      }
      again = true;
      const bool wide = round < wide_rounds;
      sort_terms(b, terms, wide);
      for (bool first = true; !terms.empty(); first = false) {
        std::vector<Form> left = terms;
        const Form sum = take_sum(b, left, wide);
        // What is left over waits for the next wave, if others go.
        if (!first && sum.hi * 5 < b.top() * 3) {
          std::move(terms.begin(), terms.end(), std::back_inserter(next[k]));
          break;
        }
        terms = std::move(left);
        Split parts = split(b, sum, radix[k]);
        if (parts.low.hi > 0) next[k].push_back(std::move(parts.low));
        if (parts.high.hi == 0 || (k + 1 == n && !lost)) continue;
        (k + 1 < n ? next[k + 1] : *lost).push_back(std::move(parts.high));
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

Columns products(Builder& b, const Word& x, const Word& y, IntegerType type,
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
  if (lost) std::move(columns[n].begin(), columns[n].end(), std::back_inserter(*lost));
  columns.resize(n);
  return columns;
}

Word multiply(Builder& b, const Word& x, const Word& y, IntegerType type, Carries how,
              std::vector<Form>* lost, int wide_rounds) {
  return sum_of_columns(b, products(b, x, y, type, lost), type, how, lost, wide_rounds);
}

Word multiply_by_squares(Builder& b, const Word& x, const Word& y, IntegerType type, Carries how,
                         int wide_rounds) {
  // u v = h(u + v) - g(u) - g(v) with h = g = s (s - 1) / 2 - a s, for any a. Of all a take the one
  // for which h has the fewest values, and of all offsets the one for which h + offset has the
  // smallest high digit.
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
  // Of column k lacks W_k = sum_{i <= k} w_i with w_i = -g(x_i) - g(y_i), shifted by constants so
  // that w_i >= 0. Let e_k be any numbers with e_0 = 0 that are W_{k-1} modulo q - 1. Then z_k = (q
  // e_{k+1} - e_k - w_k) / (q - 1) are integers, and modulo q^n their sum of z_k q^k is that of W_k
  // q^k, because (q - 1) sum_{k >= i} q^k = q^n - q^i. Take e_{k+1} = E + P_k, where P_k is the sum
  // of the w of its group up to w_k modulo q - 1, and E the sum of the last P of the groups before.
  // Then z_k = E + P_k - f_k with f_k = floor((P_{k-1} + w_k) / (q - 1)).
  int most = 0;
  for (int v = 0; v < q; ++v) most = std::max(most, h(v));
  const bool slow = how.block == Carries::one_by_one;
  const std::size_t group = slow ? n : static_cast<std::size_t>(b.top() / (q - 2));
  std::vector<Form> before;  // the last P of each group
  Form of_group, last;  // the residues of the group so far, and P_{k-1}
  for (std::size_t k = 0; k < n; ++k) {
    const auto w_of = [&](int u, int v) { return 2 * most - h(u) - h(v); };
    constants -= Wide{2 * most} * ((Wide{1} << b.m() * static_cast<int>(n - k)) - 1) / (q - 1) *
                 (Wide{1} << (b.m() * static_cast<int>(k)));
    if (k % group == 0 && k > 0) {
      before.push_back(last);
      of_group = last = 0;
    }
    const Form w = b.look_up_two(x[k], y[k], w_of);
    const Form s = last + w;
    const Form f = b.look_up(s, [q](int v) { return v / (q - 1); });
    if (slow) {
      last = b.look_up(s, [q](int v) { return v % (q - 1); });
    } else {
      of_group += b.look_up_two(x[k], y[k], [&](int u, int v) { return w_of(u, v) % (q - 1); });
      last = b.look_up(of_group, [q](int v) { return v % (q - 1); });
    }
    for (const Form& one : before) columns[k].push_back(one);
    columns[k].push_back(last);
    columns[k].push_back(-f + f.hi);
    constants -= Wide{f.hi} * (Wide{1} << (b.m() * static_cast<int>(k)));
  }
  const Word clear = constant(constants, type, b);
  for (std::size_t k = 0; k < n; ++k) columns[k].push_back(clear[k]);
  return sum_of_columns(b, std::move(columns), type, how, nullptr, wide_rounds);
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
