#include <algorithm>
#include <bit>

#include "jali/integers/arithmetic.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {

std::pair<Integers, Integers> Arithmetic::extreme(const Integers& x, std::size_t length,
                                                  bool largest) const {
  check_type(x.type());
  const std::size_t rows = rows_of(x, length);
  const IntegerType of_index{std::max(2, static_cast<int>(std::bit_width(length - 1))), false};
  std::vector<Wide> indices(x.count());
  for (std::size_t i = 0; i < x.count(); ++i) indices[i] = static_cast<Wide>(i % length);
  Integers now = x, where = trivial(indices, of_index);
  for (std::size_t left = length; left > 1; left = (left + 1) / 2) {
    // Entry 2 i against entry 2 i + 1; a last one without a partner goes on.
    std::vector<std::size_t> first, second;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < left / 2; ++i) {
        first.push_back(row * left + 2 * i);
        second.push_back(row * left + 2 * i + 1);
      }
    }
    const Flagged best = run_two(
        largest ? "larger" : "smaller",
        {{take(now, first), x.type()},
         {take(now, second), x.type()},
         {take(where, first), of_index},
         {take(where, second), of_index}},
        1, [&](Builder& b, const Words& w, std::size_t) -> Words {
          const Form keep = largest ? is_less(b, w[1], w[0], true) : is_less(b, w[0], w[1], true);
          return {integers::select(b, keep, w[0], w[1]), integers::select(b, keep, w[2], w[3])};
        });
    std::vector<std::size_t> order;
    const std::size_t pairs = left / 2;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < pairs; ++i) order.push_back(x.count() + row * pairs + i);
      if (left % 2) order.push_back(row * left + left - 1);
    }
    // The old entries come first in what is gathered from.
    for (std::size_t& index : order) {
      if (index >= x.count()) index = index - x.count() + now.count();
    }
    now = take(after(now, best.first), order);
    where = take(after(where, best.second), order);
  }
  return {now, where};
}

}  // namespace jali::integers
