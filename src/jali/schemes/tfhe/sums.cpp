// Sums with small integer weights. Linear::repeated and the operations of Evaluator that do not
// bootstrap.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "jali/base/checked.h"
#include "jali/base/error.h"
#include "jali/schemes/tfhe/bounds.h"
#include "jali/schemes/tfhe/evaluator.h"

namespace jali::tfhe {

namespace {

/// The degree of a sum whose values are `low` to `high`.
std::uint32_t checked_degree(const Params& params, std::int64_t low, std::int64_t high) {
  require<RangeExceeded>(low >= 0, [&] {
    return "a value could be as small as " + std::to_string(low) +
           ", and values must not be negative: add a constant of at least " + std::to_string(-low);
  });
  require<RangeExceeded>(high < static_cast<std::int64_t>(params.value_modulus()), [&] {
    return "a value could be as large as " + std::to_string(high) + ", and there is room up to " +
           std::to_string(params.value_modulus() - 1) +
           ": apply a table that reduces the operands before, as refresh does modulo the message, "
           "use a preset with more carry bits, or encrypt integers (encrypt_uint), whose sums have "
           "as many bits as they need";
  });
  return static_cast<std::uint32_t>(high);
}

/// a + b c, or RangeExceeded.
std::int64_t add_product(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t product = 0, sum = 0;
  require<RangeExceeded>(
      !__builtin_mul_overflow(b, c, &product) && !__builtin_add_overflow(a, product, &sum),
      "a weight is so large that values overflow: use smaller weights");
  return sum;
}

void check_shape(const Linear& matrix, std::size_t columns) {
  require<InvalidArgument>(!matrix.begin.empty() && matrix.begin.front() == 0 &&
                               std::ranges::is_sorted(matrix.begin) &&
                               matrix.begin.back() == matrix.column.size() &&
                               matrix.column.size() == matrix.weight.size() &&
                               (matrix.constant.empty() || matrix.constant.size() == matrix.rows()),
                           "a matrix has ascending beginnings of rows, one weight for each column, "
                           "and one constant for each row or none");
  for (const std::uint32_t column : matrix.column) {
    require<InvalidArgument>(column < columns, [&] {
      return "element " + std::to_string(column) + " does not exist: there are " +
             std::to_string(columns);
    });
  }
}
}  // namespace

Linear Linear::repeated(std::size_t times, std::size_t columns) const {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  require<LimitExceeded>(
      checked_mul(times, columns) <= kMost && checked_mul(times, column.size()) <= kMost,
      "a matrix for so many groups has more than 2^32 - 1 elements: take fewer "
      "groups at once");
  Linear out;
  out.begin.reserve(times * begin.size() + 1);
  out.column.reserve(times * column.size());
  out.weight.reserve(times * weight.size());
  out.constant.reserve(times * constant.size());
  for (std::size_t i = 0; i < times; ++i) {
    const auto first = static_cast<std::uint32_t>(i * columns);
    const auto before = static_cast<std::uint32_t>(out.column.size());
    for (std::size_t r = 1; r < begin.size(); ++r) out.begin.push_back(before + begin[r]);
    for (const std::uint32_t c : column) out.column.push_back(first + c);
    out.weight.insert(out.weight.end(), weight.begin(), weight.end());
    out.constant.insert(out.constant.end(), constant.begin(), constant.end());
  }
  return out;
}
Ciphertext Evaluator::concatenate(std::span<const Ciphertext* const> parts) const {
  KeyId key_id;
  std::size_t count = 0;
  std::vector<std::uint32_t> degree;
  std::vector<const History*> histories;
  for (const Ciphertext* part : parts) {
    check(*part);
    key_id = common_key(key_id, part->key_id);
    count = checked_add(count, part->size());
    degree.insert(degree.end(), part->degree.begin(), part->degree.end());
    histories.push_back(&part->history);
  }
  require<InvalidArgument>(count <= std::numeric_limits<std::uint32_t>::max(),
                           "a vector has at most 2^32 - 1 elements");
  if (parts.size() == 1) {
    Ciphertext same = *parts[0];
    same.seed.reset();
    return same;
  }
  auto out = std::make_shared<lwe::LweBlock>(lwe::make_lwe(
      *engine_->device()->pool(), params_->ciphertext_torus(), params_->dimension(), count));
  auto* at = static_cast<std::byte*>(out->data.data());
  for (const Ciphertext* part : parts) {
    if (part->size() == 0) continue;
    engine_->copies().copy(at, part->data->data.data(), part->data->bytes());
    at += part->data->bytes();
  }
  return made(std::move(out), key_id, std::move(degree), History::joined(histories));
}

Ciphertext Evaluator::linear_of(std::span<const Ciphertext* const> inputs, const Linear& matrix,
                                std::vector<std::uint32_t> degree) const {
  std::vector<const History*> histories;
  std::size_t columns = 0;
  for (const Ciphertext* input : inputs) {
    histories.push_back(&input->history);
    columns += input->size();
  }
  std::vector<std::uint64_t> constants;
  std::vector<std::int64_t> half_steps;
  for (std::size_t r = 0; r < matrix.rows(); ++r) {
    const auto constant =
        static_cast<std::uint64_t>(matrix.constant.empty() ? 0 : matrix.constant[r]);
    constants.push_back(constant * params_->step());
    half_steps.push_back(static_cast<std::int64_t>(constant * 2));
  }
  const Weights weights{matrix.begin, matrix.column, matrix.weight, half_steps};
  History history = histories.size() == 1 ? histories[0]->combined(weights)
                                          : History::joined(histories).combined(weights);
  check_norm(*params_, history.norm2());
  if (columns == 0) {  // rows of constants
    std::vector<std::uint64_t> values(matrix.constant.begin(), matrix.constant.end());
    values.resize(matrix.rows());
    return clear(values);
  }
  const Ciphertext all = concatenate(inputs);
  return made(combined(*all.data, matrix, constants), all.key_id, std::move(degree),
              std::move(history));
}

Ciphertext Evaluator::linear(std::span<const Ciphertext* const> inputs,
                             const Linear& matrix) const {
  require<InvalidArgument>(!inputs.empty(), "a linear combination needs an operand");
  // Everything is checked before anything is copied or computed.
  std::vector<std::uint32_t> degrees;
  for (const Ciphertext* input : inputs) {
    check(*input);
    degrees.insert(degrees.end(), input->degree.begin(), input->degree.end());
  }
  check_shape(matrix, degrees.size());
  std::vector<std::uint32_t> degree;
  degree.reserve(matrix.rows());
  for (std::size_t r = 0; r < matrix.rows(); ++r) {
    std::int64_t low = matrix.constant.empty() ? 0 : matrix.constant[r], high = low;
    for (std::size_t e = matrix.begin[r]; e < matrix.begin[r + 1]; ++e) {
      const std::int64_t weight = matrix.weight[e];
      std::int64_t& end = weight < 0 ? low : high;
      end = add_product(end, weight, degrees[matrix.column[e]]);
    }
    degree.push_back(checked_degree(*params_, low, high));
  }
  return linear_of(inputs, matrix, std::move(degree));
}

Ciphertext Evaluator::linear(const Ciphertext& a, const Linear& matrix) const {
  const Ciphertext* const inputs[] = {&a};
  return linear(inputs, matrix);
}

Ciphertext Evaluator::linear_within(const Ciphertext& a, const Linear& matrix,
                                    std::uint64_t largest) const {
  check(a);
  check_shape(matrix, a.size());
  require<RangeExceeded>(largest < params_->value_modulus(), [&] {
    return "sums of up to " + std::to_string(largest) + " do not fit, there is room up to " +
           std::to_string(params_->value_modulus() - 1) + ": use a preset with more carry bits";
  });
  const auto most = static_cast<std::int64_t>(params_->value_modulus());
  for (const std::int64_t weight : matrix.weight) {
    require<RangeExceeded>(-most <= weight && weight <= most, [&] {
      return "a weight is " + std::to_string(weight) + ", and sums have room up to " +
             std::to_string(most - 1) + ": use smaller weights";
    });
  }
  require<InvalidArgument>(a.size() > 0 || matrix.rows() == 0,
                           "sums of no elements have no ciphertext: give at least one element");
  const Ciphertext* const inputs[] = {&a};
  return linear_of(inputs, matrix,
                   std::vector<std::uint32_t>(matrix.rows(), static_cast<std::uint32_t>(largest)));
}

Ciphertext Evaluator::add(const Ciphertext& a, const Ciphertext& b) const {
  const std::size_t count = common_size(a.size(), b.size());
  Linear matrix;
  for (std::size_t i = 0; i < count; ++i) {
    matrix.add(static_cast<std::uint32_t>(a.size() == 1 ? 0 : i), 1);
    matrix.add(static_cast<std::uint32_t>(a.size() + (b.size() == 1 ? 0 : i)), 1);
    matrix.end_row();
  }
  const Ciphertext* const inputs[] = {&a, &b};
  return linear(inputs, matrix);
}

namespace {

/// The smallest multiple of `modulus` that is at least x.
std::int64_t multiple(std::uint64_t modulus, std::uint32_t x) {
  return static_cast<std::int64_t>((x + modulus - 1) / modulus * modulus);
}

}  // namespace

Ciphertext Evaluator::subtract(const Ciphertext& a, const Ciphertext& b) const {
  const std::size_t count = common_size(a.size(), b.size());
  Linear matrix;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t of_b = b.size() == 1 ? 0 : i;
    matrix.add(static_cast<std::uint32_t>(a.size() == 1 ? 0 : i), 1);
    matrix.add(static_cast<std::uint32_t>(a.size() + of_b), -1);
    matrix.end_row(multiple(params_->message_modulus(), b.degree[of_b]));
  }
  const Ciphertext* const inputs[] = {&a, &b};
  return linear(inputs, matrix);
}

Ciphertext Evaluator::negate(const Ciphertext& a) const {
  Linear matrix;
  for (std::size_t i = 0; i < a.size(); ++i) {
    matrix.add(static_cast<std::uint32_t>(i), -1);
    matrix.end_row(multiple(params_->message_modulus(), a.degree[i]));
  }
  return linear(a, matrix);
}

Ciphertext Evaluator::scale(const Ciphertext& a, std::span<const std::uint64_t> factors) const {
  const std::size_t count = common_size(a.size(), factors.size());
  Linear matrix;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t factor = factors[factors.size() == 1 ? 0 : i];
    require<RangeExceeded>(factor < params_->value_modulus(), [&] {
      return "a factor is " + std::to_string(factor) + ", and values have room up to " +
             std::to_string(params_->value_modulus() - 1) +
             ": look the product up in a table (apply)";
    });
    if (factor != 0) {
      matrix.add(static_cast<std::uint32_t>(a.size() == 1 ? 0 : i),
                 static_cast<std::int64_t>(factor));
    }
    matrix.end_row();
  }
  return linear(a, matrix);
}

Ciphertext Evaluator::scale(const Ciphertext& a, std::uint64_t factor) const {
  return scale(a, std::span(&factor, 1));
}

Ciphertext Evaluator::add_clear(const Ciphertext& a, std::span<const std::uint64_t> values) const {
  const std::size_t count = common_size(a.size(), values.size());
  Linear matrix;
  for (std::size_t i = 0; i < count; ++i) {
    matrix.add(static_cast<std::uint32_t>(a.size() == 1 ? 0 : i), 1);
    matrix.end_row(checked_cast<std::int64_t, RangeExceeded>(values[values.size() == 1 ? 0 : i]));
  }
  return linear(a, matrix);
}

Ciphertext Evaluator::add_clear(const Ciphertext& a, std::uint64_t value) const {
  return add_clear(a, std::span(&value, 1));
}

Ciphertext Evaluator::gather(const Ciphertext& a, std::span<const std::uint32_t> indices) const {
  Linear matrix;
  for (const std::uint32_t index : indices) {
    matrix.add(index, 1);
    matrix.end_row();
  }
  return linear(a, matrix);
}

}  // namespace jali::tfhe
