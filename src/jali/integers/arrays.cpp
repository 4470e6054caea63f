#include "jali/integers/arrays.h"

#include <algorithm>

#include "jali/integers/bits.h"

namespace jali::integers {
namespace {

/// The sum of digits of which at most one is not 0.
Form only_one_of(Builder& b, std::vector<Form> terms, int highest) {
  const auto most = static_cast<std::size_t>(b.space().noise_budget);
  while (true) {
    std::vector<Form> next;
    for (std::size_t first = 0; first < terms.size(); first += most) {
      Form sum;
      for (std::size_t i = first; i < std::min(first + most, terms.size()); ++i) sum += terms[i];
      next.push_back(sum.within(0, highest));
    }
    if (next.size() <= 1) return next.empty() ? Form() : next[0];
    for (Form& term : next) term = b.refreshed(term);
    terms = std::move(next);
  }
}

/// 1 if all flags are 1, of which there is at least one.
Form all_of(Builder& b, std::vector<Form> flags) {
  const auto most = static_cast<std::size_t>(b.top());
  while (flags.size() > 1) {
    std::vector<Form> next;
    for (std::size_t first = 0; first < flags.size(); first += most) {
      const std::size_t last = std::min(first + most, flags.size());
      const int count = static_cast<int>(last - first);
      Form sum;
      for (std::size_t i = first; i < last; ++i) sum += flags[i];
      if (count == 1) {
        next.push_back(flags[first]);
      } else if (sum.hi < count) {  // one of them is never 1
        next.emplace_back(0);
      } else {
        next.push_back(b.look_up(sum, [count](int v) { return v == count ? 1 : 0; }));
      }
    }
    flags = std::move(next);
  }
  return flags[0];
}

}  // namespace

std::vector<Form> one_hot(Builder& b, std::span<const Form> index, std::size_t count) {
  // Pieces of as many digits as a look-up takes. Digits that no index below `count` needs must be
  // 0.
  const int m = b.m();
  const auto at_once = static_cast<std::size_t>(b.p() / m);
  std::size_t digits = 1;
  while (digits < index.size() && (count - 1) >> (m * static_cast<int>(digits))) ++digits;
  std::vector<Form> pieces, beyond;
  for (std::size_t i = 0; i < digits; i += at_once) {
    Form piece;
    for (std::size_t j = i; j < std::min(i + at_once, digits); ++j) {
      piece += index[j] * (1 << (m * static_cast<int>(j - i)));
    }
    pieces.push_back(std::move(piece));
  }
  for (std::size_t i = digits; i < index.size(); ++i) {
    beyond.push_back(b.look_up(index[i], [](int v) { return v != 0 ? 1 : 0; }));
  }
  const bool checks = !beyond.empty();
  const Form small = checks ? none(b, std::move(beyond)) : Form(1);
  std::vector<Form> out;
  for (std::size_t i = 0; i < count; ++i) {
    if (i >> (m * static_cast<int>(digits)) != 0) {  // the index is too short for it
      out.emplace_back(0);
      continue;
    }
    std::vector<Form> flags;
    if (checks) flags.push_back(small);
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      const int shift = m * static_cast<int>(k * at_once);
      const int value = static_cast<int>((i >> shift) & static_cast<std::size_t>(b.top()));
      // A piece that is cut at the count has fewer numbers.
      flags.push_back(b.look_up(pieces[k], [value](int v) { return v == value ? 1 : 0; }));
    }
    out.push_back(all_of(b, std::move(flags)));
  }
  return out;
}

Word read(Builder& b, const Word& index, std::span<const Wide> table, IntegerType type) {
  Word out{type, std::vector<Form>(static_cast<std::size_t>(type.digits(b.m()))), {}};
  if (table.empty()) return out;
  // The lowest digits choose in each part of the table; the rest of the index chooses the part.
  const int m = b.m();
  const auto low_digits = std::min(static_cast<std::size_t>(b.p() / m), index.size());
  Form low;
  for (std::size_t j = 0; j < low_digits; ++j) low += index[j] * (1 << (m * static_cast<int>(j)));
  const auto part = static_cast<std::size_t>(low.hi) + 1;
  const std::size_t parts = (table.size() + part - 1) / part;
  const std::span<const Form> high = std::span(index.digits).subspan(low_digits);
  const std::vector<Form> flags =
      high.empty() ? std::vector<Form>{Form(1)} : one_hot(b, high, parts);
  std::vector<std::vector<std::uint8_t>> digits(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    digits[i].resize(out.size());
    split(table[i], type, m, digits[i]);
  }
  for (std::size_t j = 0; j < out.size(); ++j) {
    std::vector<Form> terms;
    for (std::size_t h = 0; h < std::min(parts, flags.size()); ++h) {
      const Form chosen = b.look_up(low, [&](int v) {
        const std::size_t i = h * part + static_cast<std::size_t>(v);
        return i < table.size() ? int{digits[i][j]} : 0;
      });
      terms.push_back(
          b.look_up_two(chosen, flags[h], [](int v, int flag) { return flag ? v : 0; }));
    }
    out[j] = only_one_of(b, std::move(terms), radix(out, j, b) - 1);
  }
  return out;
}

Word read(Builder& b, const Word& index, std::span<const Word> table) {
  Word out{table[0].type, std::vector<Form>(table[0].size()), {}};
  const std::vector<Form> flags = one_hot(b, index.digits, table.size());
  for (std::size_t j = 0; j < out.size(); ++j) {
    std::vector<Form> terms;
    for (std::size_t i = 0; i < table.size(); ++i) {
      terms.push_back(
          b.look_up_two(table[i][j], flags[i], [](int v, int flag) { return flag ? v : 0; }));
    }
    out[j] = only_one_of(b, std::move(terms), radix(out, j, b) - 1);
  }
  return out;
}

}  // namespace jali::integers
