#include <algorithm>

#include "jali/base/error.h"
#include "jali/integers/arithmetic.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {

Integers Arithmetic::gathered(const Rows& rows, double noise, IntegerType type, std::size_t stride,
                              std::size_t offset, std::span<const std::size_t> indices) const {
  const auto n = static_cast<std::size_t>(type.digits(space_.message_bits));
  std::vector<std::uint32_t> which;
  which.reserve(indices.size() * n);
  for (const std::size_t index : indices) {
    for (std::size_t j = 0; j < n; ++j) {
      which.push_back(static_cast<std::uint32_t>(index * stride + offset + j));
    }
  }
  return {type, indices.size(), machine_->gather(rows, which), noise};
}

Integers Arithmetic::take(const Integers& x, std::span<const std::size_t> indices) const {
  for (const std::size_t index : indices) {
    require<InvalidArgument>(index < x.count(), [&] {
      return "the index " + std::to_string(index) + " is beyond the " + std::to_string(x.count()) +
             " integers: give indices from 0 on";
    });
  }
  const auto n = static_cast<std::size_t>(x.type().digits(space_.message_bits));
  return gathered(x.rows(), x.noise(), x.type(), n, 0, indices);
}

/// The integers of x, then those of y.
Integers Arithmetic::after(const Integers& x, const Integers& y) const {
  return {x.type(), x.count() + y.count(), machine_->concatenate(x.rows(), y.rows()),
          std::max(x.noise(), y.noise())};
}

std::size_t Arithmetic::rows_of(const Integers& x, std::size_t length) const {
  require<InvalidArgument>(length > 0 && x.count() % length == 0, [&] {
    return std::to_string(x.count()) + " integers are no rows of " + std::to_string(length) +
           ": give a length that divides their number";
  });
  return x.count() / length;
}

Integers Arithmetic::trivial(std::span<const Wide> values, IntegerType type) const {
  check_type(type);
  check_values(values, type);
  const auto n = static_cast<std::size_t>(type.digits(space_.message_bits));
  std::vector<std::uint8_t> digits(n);
  std::vector<std::int64_t> constants;
  for (const Wide value : values) {
    split(value, type, space_.message_bits, digits);
    for (const std::uint8_t digit : digits)
      constants.push_back(2 * std::int64_t{digit});  // in halves
  }
  return {type, values.size(), machine_->constants(constants), 1};
}

}  // namespace jali::integers
