#include "jali/tfhe/evaluator.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "jali/base/checked.h"
#include "jali/base/error.h"
#include "jali/params/tfhe_noise.h"

namespace jali::tfhe {

namespace {

using Block = std::shared_ptr<const lwe::LweBlock>;

std::string text(double x) {
  std::string out = std::to_string(x);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out;
}

void check_norm(const Params& params, double norm2) {
  require<RangeExceeded>(norm2 <= params.max_norm2(), [&] {
    return "the noise would be that of a combination of squared norm " + text(norm2) +
           " of fresh ciphertexts, and these parameters allow " + text(params.max_norm2()) +
           ": bootstrap the operands before (apply or refresh), or use smaller factors";
  });
}

/// The degree of a sum whose values are `low` to `high`.
std::uint32_t checked_degree(const Params& params, std::int64_t low, std::int64_t high) {
  require<RangeExceeded>(low >= 0, [&] {
    return "a value could be as small as " + std::to_string(low) +
           ", and values must not be negative: add a constant of at least " + std::to_string(-low);
  });
  require<RangeExceeded>(high < static_cast<std::int64_t>(params.value_modulus()), [&] {
    return "a value could be as large as " + std::to_string(high) + ", and there is room up to " +
           std::to_string(params.value_modulus() - 1) +
           ": apply a table that reduces the operands before, as refresh does, or use a preset "
           "with "
           "more carry bits";
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

/// The number of elements of an operation on two vectors, of which one may have a single element.
std::size_t common_size(std::size_t a, std::size_t b) {
  require<InvalidArgument>(a == b || a == 1 || b == 1, [&] {
    return "the operands have " + std::to_string(a) + " and " + std::to_string(b) +
           " elements: use vectors of one length, or one element";
  });
  return a == 1 ? b : a;
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

Evaluator::Evaluator(std::shared_ptr<const backend::TfheOps> engine,
                     const lwe::EvaluationKeys& keys, const Progress& progress,
                     const Checkpoint& checkpoint)
    : params_(keys.params), key_id_(keys.key_id), engine_(std::move(engine)) {
  require<InvalidArgument>(engine_ != nullptr, "an evaluator needs an engine");
  keys_ =
      std::make_shared<const lwe::PreparedKeys>(lwe::prepare(*engine_, keys, progress, checkpoint));
}

// --- checks and blocks ------------------------------------------------------------------------------

void Evaluator::check(const Ciphertext& a) const {
  require<InvalidArgument>(a.params != nullptr && a.data != nullptr,
                           "a ciphertext is empty: encrypt or compute one first");
  require<ParamsMismatch>(a.params->hash() == params_->hash(),
                          "a ciphertext has other parameters than this evaluator: use an evaluator "
                          "of the parameters with which it was encrypted");
  require<KeyMismatch>(agree(a.key_id, key_id_),
                       "a ciphertext belongs to another secret key than the evaluation keys: use "
                       "the keys of the client who encrypted it");
  require<InvalidArgument>(a.data->torus == params_->ciphertext_torus() &&
                               a.data->dimension == params_->dimension() &&
                               a.data->count == a.size() && a.history.rows() == a.size(),
                           "a ciphertext has another shape than its parameters say");
  require<InvalidArgument>(
      a.size() == 0 || a.data->data.memory() == engine_->device()->memory().get(),
      "a ciphertext is not in the memory of this evaluator's device: bind it first");
}

Ciphertext Evaluator::made(Block data, const KeyId& key_id, std::vector<std::uint32_t> degree,
                           History history) const {
  return {params_, key_id, std::move(data), std::move(degree), std::move(history), std::nullopt};
}

Block Evaluator::combined(const lwe::LweBlock& in, const Linear& matrix,
                          std::span<const std::uint64_t> constants) const {
  auto out = std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*engine_->device()->pool(), in.torus, in.dimension, matrix.rows()));
  if (matrix.rows() > 0) {
    engine_->combine(out->view(), in.view(),
                     {matrix.begin, matrix.column, matrix.weight, constants});
  }
  return out;
}

Block Evaluator::bootstrapped(const lwe::LweBlock& in, const backend::TableView& tables) const {
  auto out = std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*engine_->device()->pool(), in.torus, in.dimension,
                    checked_mul(in.count, std::size_t{1} << tables.log_many)));
  if (in.count == 0) return out;
  if (params_->order() == Order::switch_first) {
    engine_->switch_bootstrap(out->view(), in.view(), tables, keys_->switching.data(),
                              keys_->rotation.data());
  } else {
    engine_->bootstrap_switch(out->view(), in.view(), tables, keys_->switching.data(),
                              keys_->rotation.data());
  }
  return out;
}

std::vector<Block> Evaluator::rotated(const lwe::LweBlock& in, const backend::TableView& table,
                                      std::span<const std::uint32_t> coefficients) const {
  device::Pool& pool = *engine_->device()->pool();
  const bool switches_first = params_->order() == Order::switch_first;
  std::vector<std::shared_ptr<lwe::LweBlock>> out;
  for (std::size_t j = 0; j < coefficients.size(); ++j) {
    out.push_back(
        std::make_shared<lwe::LweBlock>(lwe::make_lwe(pool, in.torus, in.dimension, in.count)));
  }
  if (in.count > 0) {
    lwe::GlweBlock rotations =
        lwe::make_glwe(pool, params_->torus(), params_->k(), params_->N(), in.count);
    if (switches_first) {
      lwe::LweBlock small = lwe::make_lwe(pool, lwe::Torus::t32, params_->n(), in.count);
      engine_->key_switch(small.view(), in.view(), keys_->switching.data());
      engine_->blind_rotate(rotations.view(), small.view(), table, keys_->rotation.data());
    } else {
      engine_->blind_rotate(rotations.view(), in.view(), table, keys_->rotation.data());
    }
    for (std::size_t j = 0; j < coefficients.size(); ++j) {
      const std::vector<std::uint32_t> same(in.count, coefficients[j]);
      if (switches_first) {
        engine_->extract(out[j]->view(), rotations.view(), same, 1);
      } else {
        lwe::LweBlock large = lwe::make_lwe(pool, params_->torus(), params_->large(), in.count);
        engine_->extract(large.view(), rotations.view(), same, 1);
        engine_->key_switch(out[j]->view(), large.view(), keys_->switching.data());
      }
    }
  }
  return {out.begin(), out.end()};
}

// --- to and from the engine -------------------------------------------------------------------------

Ciphertext Evaluator::bind(const Ciphertext& a) const {
  const auto& memory = engine_->device()->memory();
  if (a.data == nullptr || a.size() == 0 || a.data->data.memory() == memory.get()) {
    check(a);
    return a;
  }
  auto out = std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*engine_->device()->pool(), a.data->torus, a.data->dimension, a.data->count));
  require<InvalidArgument>(a.data->data.host_accessible(),
                           "a ciphertext is in another device's memory: take its host_copy there");
  memory->copy_in(out->data.data(), a.data->data.data(), a.data->bytes());
  Ciphertext bound = a;
  bound.data = std::move(out);
  check(bound);
  return bound;
}

Ciphertext Evaluator::host_copy(const Ciphertext& a) const {
  check(a);
  if (a.size() == 0 || a.data->data.host_accessible()) return a;
  auto out = std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*device::Pool::create(), a.data->torus, a.data->dimension, a.data->count));
  engine_->device()->memory()->copy_out(out->data.data(), a.data->data.data(), a.data->bytes());
  Ciphertext copy = a;
  copy.data = std::move(out);
  return copy;
}

Ciphertext Evaluator::copy(const Ciphertext& a) const {
  check(a);
  auto data = std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*engine_->device()->pool(), a.data->torus, a.data->dimension, a.data->count));
  if (a.size() > 0) {
    engine_->copies().copy(data->data.data(), a.data->data.data(), a.data->bytes());
  }
  Ciphertext out = a;
  out.data = std::move(data);
  return out;
}

BoundTable Evaluator::bind(const LookUpTable& table) const {
  BoundTables bound = bind(std::span(&table, 1));
  return {std::make_shared<const LookUpTable>(table), std::move(bound.data)};
}

BoundTables Evaluator::bind(std::span<const LookUpTable> tables) const {
  require<InvalidArgument>(!tables.empty(), "there must be at least one table");
  BoundTables out{{tables.begin(), tables.end()}, nullptr};
  std::vector<std::uint8_t> words;
  for (const LookUpTable& table : tables) {
    require<ParamsMismatch>(table.params()->hash() == params_->hash(),
                            "a look-up table has other parameters than this evaluator: make it "
                            "with the evaluator's params()");
    require<InvalidArgument>(
        table.count() == tables[0].count(),
        "tables among which elements choose have the same number of functions");
    const auto polynomial = table.polynomial();
    words.insert(words.end(), polynomial.begin(), polynomial.end());
  }
  device::Buffer data = engine_->device()->pool()->allocate(words.size());
  engine_->copy_in(data.data(), words.data(), words.size());
  out.data = std::make_shared<const device::Buffer>(std::move(data));
  return out;
}

Ciphertext Evaluator::clear(std::span<const std::uint64_t> values) const {
  std::vector<std::uint32_t> degree;
  for (const std::uint64_t value : values) {
    require<InvalidArgument>(value < params_->value_modulus(), [&] {
      return "a value is " + std::to_string(value) + ", and there is room up to " +
             std::to_string(params_->value_modulus() - 1);
    });
    degree.push_back(static_cast<std::uint32_t>(value));
  }
  const lwe::LweBlock zero = [&] {
    lwe::LweBlock out = lwe::make_lwe(*engine_->device()->pool(), params_->ciphertext_torus(),
                                      params_->dimension(), 1);
    engine_->device()->memory()->fill(out.data.data(), 0, out.bytes());
    return out;
  }();
  Linear matrix;
  std::vector<std::uint64_t> constants;
  std::vector<std::int64_t> half_steps;
  for (const std::uint64_t value : values) {
    matrix.end_row();
    constants.push_back(value * params_->step());
    half_steps.push_back(static_cast<std::int64_t>(2 * value));
  }
  return made(combined(zero, matrix, constants), KeyId{}, std::move(degree),
              History::clear(half_steps));
}

// --- sums -------------------------------------------------------------------------------------------

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

// --- look-ups ---------------------------------------------------------------------------------------

void Evaluator::check_room(const Ciphertext& a, const LookUpTable& table) const {
  const std::size_t values = table.shortest();
  require<RangeExceeded>(a.max_degree() < values, [&] {
    return "values could be as large as " + std::to_string(a.max_degree()) +
           ", and the table ends at " + std::to_string(values - 1) + ": give it more values";
  });
  const double norm2 = a.history.norm2();
  check_norm(*params_, norm2);
  if (table.log_many() == 0) return;
  const Literal& literal = params_->literal();
  const double most = NoiseModel(literal).largest_norm2(literal.order, literal.log2_p_fail,
                                                        half_box(literal), table.log_many());
  require<RangeExceeded>(norm2 <= most, [&] {
    return std::to_string(table.count()) + " tables on one rotation allow a squared norm of " +
           text(most) + " for these parameters, and the operand has " + text(norm2) +
           ": use fewer tables, refresh the operand before, or, if its values are small, give the "
           "tables no more values than it has";
  });
}

namespace {

std::vector<std::uint32_t> degrees_after(const Ciphertext& a, const LookUpTable& table,
                                         std::size_t j) {
  std::vector<std::uint32_t> most(a.max_degree() + std::size_t{1});
  std::uint32_t largest = 0;
  for (std::size_t v = 0; v < most.size(); ++v) {
    largest = std::max(largest, static_cast<std::uint32_t>(table.values(j)[v]));
    most[v] = largest;
  }
  std::vector<std::uint32_t> out;
  out.reserve(a.size());
  for (const std::uint32_t degree : a.degree) out.push_back(most[degree]);
  return out;
}

void require_one(const LookUpTable& table) {
  require<InvalidArgument>(table.count() == 1,
                           "a table of several functions has several results: use apply_all");
}

}  // namespace

Ciphertext Evaluator::apply(const Ciphertext& a, const BoundTable& table) const {
  require_one(*table.table);
  check(a);
  check_room(a, *table.table);
  Block data = bootstrapped(*a.data, {table.data->data(), 1, false, {}, 0});
  return made(std::move(data), key_id_, degrees_after(a, *table.table, 0),
              History::fresh(a.history.first_equal()));
}

Ciphertext Evaluator::apply(const Ciphertext& a, const LookUpTable& table) const {
  return apply(a, bind(table));
}

Ciphertext Evaluator::apply(const Ciphertext& a, const BoundTables& tables,
                            std::span<const std::uint32_t> which) const {
  check(a);
  require<InvalidArgument>(which.size() == a.size(), [&] {
    return "there are " + std::to_string(a.size()) + " elements and " +
           std::to_string(which.size()) + " choices of a table: give one for each element";
  });
  std::vector<std::uint32_t> degree;
  for (const LookUpTable& table : tables.tables) require_one(table);
  for (std::size_t i = 0; i < a.size(); ++i) {
    require<InvalidArgument>(which[i] < tables.tables.size(), [&] {
      return "table " + std::to_string(which[i]) + " does not exist: there are " +
             std::to_string(tables.tables.size());
    });
    const LookUpTable& table = tables.tables[which[i]];
    require<RangeExceeded>(a.degree[i] < table.values().size(),
                           "values could be above the end of their table: give it more values");
    degree.push_back(table.largest(0, a.degree[i]));
  }
  check_norm(*params_, a.history.norm2());
  Block data = bootstrapped(*a.data, {tables.data->data(), tables.tables.size(), false, which, 0});
  return made(std::move(data), key_id_, std::move(degree),
              History::fresh(a.history.first_equal(which)));
}

std::vector<Ciphertext> Evaluator::apply_all(const Ciphertext& a, const BoundTable& bound) const {
  const LookUpTable& table = *bound.table;
  check(a);
  check_room(a, table);
  const std::size_t many = table.count();
  const auto spacing =
      static_cast<std::uint32_t>(table.side_by_side() ? params_->N().value / many : 1);
  std::vector<std::uint32_t> coefficients;
  for (std::uint32_t j = 0; j < many; ++j) coefficients.push_back(j * spacing);
  auto blocks =
      rotated(*a.data, {bound.data->data(), 1, false, {}, table.log_many()}, coefficients);
  std::vector<Ciphertext> out;
  const std::vector<std::uint32_t> equal = a.history.first_equal();
  for (std::size_t j = 0; j < many; ++j) {
    out.push_back(
        made(std::move(blocks[j]), key_id_, degrees_after(a, table, j), History::fresh(equal)));
  }
  return out;
}

std::vector<Ciphertext> Evaluator::apply_all(const Ciphertext& a, const LookUpTable& table) const {
  return apply_all(a, bind(table));
}

Ciphertext Evaluator::apply(const Ciphertext& x, const Ciphertext& y,
                            const BoundTable& table) const {
  const std::uint64_t m = params_->message_modulus();
  require<RangeExceeded>(x.max_degree() < m, [&] {
    return "the first operand could be as large as " + std::to_string(x.max_degree()) +
           ", and a table of two inputs takes it up to " + std::to_string(m - 1) +
           ": refresh it before, which reduces it modulo " + std::to_string(m);
  });
  const std::size_t count = common_size(x.size(), y.size());
  Linear matrix;
  for (std::size_t i = 0; i < count; ++i) {
    matrix.add(static_cast<std::uint32_t>(x.size() == 1 ? 0 : i), 1);
    matrix.add(static_cast<std::uint32_t>(x.size() + (y.size() == 1 ? 0 : i)),
               static_cast<std::int64_t>(m));
    matrix.end_row();
  }
  const Ciphertext* const inputs[] = {&x, &y};
  return apply(linear(inputs, matrix), table);
}

Ciphertext Evaluator::apply(const Ciphertext& x, const Ciphertext& y,
                            const LookUpTable& table) const {
  return apply(x, y, bind(table));
}

Ciphertext Evaluator::refresh(const Ciphertext& a) const {
  const std::uint64_t m = params_->message_modulus();
  return apply(a, LookUpTable(params_, [m](std::uint64_t v) { return v % m; }));
}

}  // namespace jali::tfhe
