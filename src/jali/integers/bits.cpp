#include "jali/integers/bits.h"

#include <algorithm>
#include <bit>
#include <map>

#include "jali/base/error.h"
#include "jali/integers/columns.h"

namespace jali::integers {
namespace {

Form sum_of(std::span<const Form> terms) {
  Form sum;
  for (const Form& term : terms) sum += term;
  return sum;
}

/// So many bits can be summed for a look-up.
std::size_t flags_at_once(const Builder& b) {
  return std::min(static_cast<std::size_t>(b.top()),
                  static_cast<std::size_t>(b.space().noise_budget));
}

int nonzero(int v) { return v != 0 ? 1 : 0; }

bool is_clear(const Builder& b, const Word& x) {
  return std::all_of(x.digits.begin(), x.digits.end(),
                     [&](const Form& digit) { return b.is_clear(digit); });
}

/// The digits of two words by places of one digit, or, if y is clear, of as many as a look-up
/// takes.
struct Places {
  std::vector<Form> x, y;
};
Places places(const Builder& b, const Word& x, const Word& y) {
  Places out;
  const std::size_t at_once = static_cast<std::size_t>(b.p() / b.m());
  for (std::size_t i = 0; i < x.size(); i += at_once) {
    Form u, v;
    for (std::size_t j = i; j < std::min(i + at_once, x.size()); ++j) {
      const int weight = 1 << (b.m() * static_cast<int>(j - i));
      u += x[j] * weight;
      v += y[j] * weight;
    }
    out.x.push_back(std::move(u));
    out.y.push_back(std::move(v));
  }
  return out;
}

}  // namespace

Form none(Builder& b, std::vector<Form> flags) {
  const std::size_t most = flags_at_once(b);
  std::erase_if(flags, [](const Form& flag) { return flag.hi == 0; });
  while (flags.size() > most) {
    const std::size_t groups = (flags.size() + most - 1) / most;
    std::vector<Form> next;
    for (std::size_t g = 0; g < groups; ++g) {
      const std::size_t first = flags.size() * g / groups, last = flags.size() * (g + 1) / groups;
      next.push_back(b.look_up(sum_of(std::span(flags).subspan(first, last - first)), nonzero));
    }
    flags = std::move(next);
  }
  return b.look_up(sum_of(flags), [](int v) { return v == 0 ? 1 : 0; });
}

std::vector<Form> any_from(Builder& b, std::span<const Form> flags) {
  const std::size_t most = flags_at_once(b);
  std::vector<Form> out(flags.size() + 1);
  if (flags.size() <= most) {
    Form sum;
    for (std::size_t s = flags.size(); s-- > 0;) {
      sum += flags[s];
      out[s] = b.look_up(sum, nonzero);
    }
    return out;
  }
  std::vector<Form> blocks;
  for (std::size_t first = 0; first < flags.size(); first += most) {
    const std::size_t count = std::min(most, flags.size() - first);
    blocks.push_back(b.look_up(sum_of(flags.subspan(first, count)), nonzero));
  }
  const std::vector<Form> after = any_from(b, blocks);
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    Form sum = after[k + 1];
    out[k * most] = after[k];
    for (std::size_t s = std::min((k + 1) * most, flags.size()); --s > k * most;) {
      sum += flags[s];
      out[s] = b.look_up(sum, nonzero);
    }
  }
  return out;
}

Form is_equal(Builder& b, const Word& x, const Word& y) {
  if (is_clear(b, x) && !is_clear(b, y)) return is_equal(b, y, x);
  std::vector<Form> flags;
  if (is_clear(b, y)) {
    const Places of = places(b, x, y);
    for (std::size_t i = 0; i < of.x.size(); ++i) {
      flags.push_back(
          b.look_up_keyed(of.x[i], of.y[i], [](int u, int v) { return nonzero(u - v); }));
    }
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) {
      flags.push_back(b.look_up(x[i] - y[i], nonzero));
    }
  }
  return none(b, std::move(flags));
}

Form is_less(Builder& b, const Word& x, const Word& y, bool or_equal) {
  // y > x is the carry of y + (2^bits - 1 - x), and y >= x that of one more. The lowest place has
  // no place before it: its state and the constant are a carry at once.
  if (is_clear(b, x) && !is_clear(b, y)) return -is_less(b, y, x, !or_equal) + 1;
  const auto compare = [](int u, int v) { return u > v ? 0 : u == v ? 1 : 2; };
  const auto carries = [&](int u, int v) { return compare(u, v) + or_equal >= 2 ? 1 : 0; };
  const std::size_t top = x.size() - 1;
  Word turned = y;  // clear numbers come in the order of unsigned ones
  int sign = x.type.is_signed ? radix(x, top, b) / 2 : 0;
  Places of{x.digits, y.digits};
  const bool clear = is_clear(b, y);
  if (clear) {
    if (sign) turned[top] = y.turned_top;
    of = places(b, x, turned);
    const auto at_once = static_cast<std::size_t>(b.p() / b.m());
    sign <<= static_cast<std::size_t>(b.m()) * (top % at_once);
  }
  const auto place = [&](std::size_t i, const auto& f) {
    const int turn = i + 1 == of.x.size() ? sign : 0;
    if (clear) {
      return b.look_up_keyed(of.x[i], of.y[i], [&](int u, int v) { return f(u ^ turn, v); });
    }
    if (!turn) return b.look_up(of.x[i] - of.y[i], [&](int d) { return f(d, 0); });
    return b.look_up_two(of.x[i], of.y[i], [&](int u, int v) { return f(u ^ turn, v ^ turn); });
  };
  std::vector<Form> states;
  for (std::size_t i = 1; i < of.x.size(); ++i) states.push_back(place(i, compare));
  return carry_of_states(b, states, place(0, carries));
}

Form sign_of(Builder& b, const Word& x) {
  const int half = radix(x, x.size() - 1, b) / 2;
  return b.look_up(x.digits.back(), [half](int v) { return v >= half ? 1 : 0; });
}

Word select(Builder& b, const Form& flag, const Word& x, const Word& y,
            std::span<const int> largest) {
  if (flag.is_constant()) return flag.constant ? x : y;
  Word out{x.type, {}};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Form difference = x[i] - y[i];
    const int most = largest.empty() ? std::max(x[i].hi, y[i].hi) : largest[i];
    const int span = difference.hi - difference.lo + 1;
    Form digit;
    if (b.is_clear(flag) && !difference.is_constant()) {
      digit = y[i] + b.look_up_keyed(difference, flag,
                                     [&](int d, int c) { return c ? std::min(d, most) : 0; });
    } else if (2 * span <= b.space().size()) {
      digit = y[i] + b.look_up(difference - difference.lo + flag * span, [&](int v) {
        return v >= span ? std::min(v - span + difference.lo, most) : 0;
      });
    } else {
      digit = b.look_up_two(x[i], flag, [&](int v, int c) { return c ? std::min(v, most) : 0; }) +
              b.look_up_two(y[i], flag, [](int v, int c) { return c ? 0 : v; });
    }
    digit = digit.within(0, most);
    out.digits.push_back(b.noise(digit) > b.space().noise_budget / 4 ? b.refreshed(digit)
                                                                     : std::move(digit));
  }
  return out;
}

Word bitwise(Builder& b, const Word& x, const Word& y, const std::function<int(int, int)>& f) {
  Word out{x.type, {}};
  for (std::size_t i = 0; i < x.size(); ++i) out.digits.push_back(b.look_up_two(x[i], y[i], f));
  return out;
}

Word moved(Builder& b, const Word& x, IntegerType type, std::span<const int> from) {
  Word out{type, {}};
  const int m = b.m();
  for (int i = 0; i < type.digits(m); ++i) {
    // By digit of x: which of its bits go where.
    std::map<int, std::vector<std::pair<int, int>>> pieces;
    for (int j = 0; j < type.digit_bits(i, m); ++j) {
      const int bit = from[static_cast<std::size_t>(i * m + j)];
      if (bit >= 0) pieces[bit / m].emplace_back(bit % m, j);
    }
    const auto take = [](const std::vector<std::pair<int, int>>& bits, int v) {
      int sum = 0;
      for (const auto& [source, target] : bits) sum |= (v >> source & 1) << target;
      return sum;
    };
    Form digit;
    if (pieces.size() == 2) {
      const auto& low = *pieces.begin();
      const auto& high = *pieces.rbegin();
      digit = b.look_up_two(
          x[static_cast<std::size_t>(low.first)], x[static_cast<std::size_t>(high.first)],
          [&](int u, int v) { return take(low.second, u) | take(high.second, v); });
    } else {
      for (const auto& piece : pieces) {
        const Form& of = x[static_cast<std::size_t>(piece.first)];
        bool whole = true;  // a digit that moves as it is needs no look-up
        for (int v = of.lo; whole && v <= of.hi; ++v) whole = take(piece.second, v) == v;
        digit += whole ? of : b.look_up(of, [&](int v) { return take(piece.second, v); });
      }
      digit = digit.within(0, (1 << type.digit_bits(i, m)) - 1);
    }
    out.digits.push_back(std::move(digit));
  }
  return out;
}

std::vector<int> bits_from(IntegerType type, Move move, int amount) {
  std::vector<int> from(static_cast<std::size_t>(type.bits));
  for (int i = 0; i < type.bits; ++i) {
    int bit = 0;
    switch (move) {
      case Move::left: bit = amount > i ? -1 : i - amount; break;
      case Move::right:
        bit = i < type.bits - amount ? i + amount : type.is_signed ? type.bits - 1 : -1;
        break;
      case Move::rotate_left: bit = (i + type.bits - amount % type.bits) % type.bits; break;
      case Move::rotate_right: bit = (i + amount % type.bits) % type.bits; break;
    }
    from[static_cast<std::size_t>(i)] = bit;
  }
  return from;
}

std::vector<Form> bits_of(Builder& b, const Word& x) {
  std::vector<Form> out;
  for (int bit = 0; bit < x.type.bits; ++bit) {
    out.push_back(b.look_up(x[static_cast<std::size_t>(bit / b.m())],
                            [shift = bit % b.m()](int v) { return v >> shift & 1; }));
  }
  return out;
}

Word moved_by(Builder& b, const Word& x, Move move, std::span<const Form> amount) {
  const int bits = x.type.bits;
  const bool rotates = move == Move::rotate_left || move == Move::rotate_right;
  // The sign does not change, so that its digit, which is filled in, is found once.
  const bool by_sign = move == Move::right && x.type.is_signed;
  const Form sign = by_sign ? sign_of(b, x) : Form();
  Form filled_in;
  if (by_sign) {
    const int half = radix(x, x.size() - 1, b) / 2, all = (1 << b.m()) - 1;
    filled_in = b.look_up(x.digits.back(), [&](int v) { return v >= half ? all : 0; });
  }
  const auto shifted = [&](const Word& word, int places) {
    std::vector<int> from = bits_from(x.type, move, places);
    if (!by_sign) return moved(b, word, x.type, from);
    Word longer = word;
    longer.digits.push_back(filled_in);
    for (int i = bits - std::min(places, bits); i < bits; ++i) {
      from[static_cast<std::size_t>(i)] = static_cast<int>(x.size()) * b.m() + i % b.m();
    }
    return moved(b, longer, x.type, from);
  };
  Word out = x;
  std::vector<Form> too_far;
  int by = rotates ? 1 % bits : 1;  // 2^bit modulo the bits, or at most the bits
  for (const Form& flag : amount) {
    if (rotates ? by != 0 : by < bits) {
      out = select(b, flag, shifted(out, by), out);
    } else if (!rotates) {
      too_far.push_back(flag);
    }
    by = rotates ? 2 * by % bits : std::min(2 * by, bits);
  }
  if (too_far.empty()) return out;
  const Form gone = -none(b, std::move(too_far)) + 1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int filled = radix(x, i, b) - 1;
    if (by_sign) {  // gone + gone and negative: 0 keeps, 1 is 0, 2 is all ones
      const Form state = b.look_up_two(gone, sign, [](int g, int s) { return g + (g & s); });
      if (3 * (filled + 1) <= b.space().size()) {
        out[i] = b.look_up(out[i] + state * (filled + 1), [&](int v) {
          const int s = v / (filled + 1);
          return s == 0 ? v : s == 1 ? 0 : filled;
        });
      } else {
        out[i] = (b.look_up_two(out[i], gone, [](int v, int g) { return g ? 0 : v; }) +
                  b.look_up(state, [&](int s) {
                    return s == 2 ? filled : 0;
                  })).within(0, filled);
      }
    } else {
      out[i] = b.look_up_two(out[i], gone, [](int v, int g) { return g ? 0 : v; });
    }
  }
  return out;
}

Word cast(Builder& b, const Word& x, IntegerType type) {
  std::vector<int> from(static_cast<std::size_t>(type.bits));
  for (int i = 0; i < type.bits; ++i) {
    from[static_cast<std::size_t>(i)] = i < x.type.bits    ? i
                                        : x.type.is_signed ? x.type.bits - 1
                                                           : -1;
  }
  return moved(b, x, type, from);
}

Word zeros(Builder& b, const Word& x, bool trailing, int less, IntegerType type, Carries how) {
  // Digits from the end at which the zeros are. Those before digit i are 0: then digit i counts.
  std::vector<Form> order(x.digits);
  std::vector<int> bits;
  for (std::size_t i = 0; i < x.size(); ++i) {
    bits.push_back(x.type.digit_bits(static_cast<int>(i), b.m()));
  }
  if (!trailing) {
    std::reverse(order.begin(), order.end());
    std::reverse(bits.begin(), bits.end());
  }
  std::vector<Form> flags;
  for (const Form& digit : order) flags.push_back(b.look_up(digit, nonzero));
  std::vector<Form> backwards(flags.rbegin(), flags.rend());
  const std::vector<Form> any = any_from(b, backwards);  // any[n - i]: of the first i
  Columns columns(1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int width = bits[i];
    const auto count = [&](int v) {
      if (v == 0) return width;
      const auto u = static_cast<unsigned>(v);
      return trailing ? std::countr_zero(u) : width - static_cast<int>(std::bit_width(u));
    };
    const Form zero_bits = b.look_up(order[i], count);
    columns[0].push_back(b.look_up_two(zero_bits, any[order.size() - i], [&](int n, int before) {
      const int counted = before ? 0 : n;
      return less < 0 ? counted : width - counted;
    }));
  }
  // `less` counts what is no zero: all bits minus the zeros. What lacks is a constant.
  if (less >= 0) {
    const Word rest = constant(Wide{less} - x.type.bits, type, b);
    columns.resize(rest.size());
    for (std::size_t k = 0; k < rest.size(); ++k) columns[k].push_back(rest[k]);
  }
  return sum_of_columns(b, std::move(columns), type, how);
}

}  // namespace jali::integers
