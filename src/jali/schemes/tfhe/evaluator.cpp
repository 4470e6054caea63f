#include "jali/schemes/tfhe/evaluator.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "jali/base/checked.h"
#include "jali/base/error.h"
#include "jali/params/tfhe_noise.h"
#include "jali/schemes/tfhe/bounds.h"

namespace jali::tfhe {

namespace {

using Block = std::shared_ptr<const lwe::LweBlock>;

}  // namespace

Evaluator::Evaluator(std::shared_ptr<const backend::TfheOps> engine,
                     const lwe::EvaluationKeys& keys, const Progress& progress,
                     const Checkpoint& checkpoint)
    : params_(keys.params), key_id_(keys.key_id), engine_(std::move(engine)) {
  require<InvalidArgument>(engine_ != nullptr, "an evaluator needs an engine");
  keys_ =
      std::make_shared<const lwe::PreparedKeys>(lwe::prepare(*engine_, keys, progress, checkpoint));
}

// --- checks and blocks ---------------------------------------------------------------------------

void Evaluator::check_owner(const ParamsPtr& params, const KeyId& key_id) const {
  require<ParamsMismatch>(params->hash() == params_->hash(),
                          "a ciphertext has other parameters than this evaluator: use an evaluator "
                          "of the parameters with which it was encrypted");
  require<KeyMismatch>(agree(key_id, key_id_),
                       "a ciphertext belongs to another secret key than the evaluation keys: use "
                       "the keys of the client who encrypted it");
}

void Evaluator::check(const Ciphertext& a) const {
  require<InvalidArgument>(a.params != nullptr && a.data != nullptr,
                           "a ciphertext is empty: encrypt or compute one first");
  check_owner(a.params, a.key_id);
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

std::size_t Evaluator::free_bytes() const {
  const device::Device& device = *engine_->device();
  if (device.stream().recording()) return device::kUnknown;
  const std::size_t free = device.memory()->available();
  return free == device::kUnknown ? free : free + device.pool()->bytes_cached();
}

std::size_t Evaluator::rotations_that_fit() const {
  const std::size_t free = free_bytes();
  if (free == device::kUnknown) return ~std::size_t{0};
  const std::size_t word = backend::torus_bytes(params_->torus());
  const std::size_t large = params_->large().value + 1;
  const auto levels = static_cast<std::size_t>(params_->config().switch_gadget.levels);
  const std::size_t each = (large + params_->N().value) * word + 4 * (params_->n().value + 1) +
                           4 * large * (word + levels);
  return std::max<std::size_t>(free / 4 / each, 1);
}

template <class F>
void Evaluator::in_parts(std::size_t count, const backend::TableView& tables, const F& run) const {
  // So few are looked up at once, without the time that it takes to ask for the memory that is
  // free.
  constexpr std::size_t kFew = 256;
  const std::size_t at_once = count <= kFew ? kFew : std::max(rotations_that_fit(), kFew);
  for (std::size_t first = 0; first < count; first += at_once) {
    const std::size_t part = std::min(at_once, count - first);
    backend::TableView of_part = tables;
    if (!tables.of_input.empty()) of_part.of_input = tables.of_input.subspan(first, part);
    run(first, part, of_part);
  }
}

Block Evaluator::bootstrapped(const lwe::LweBlock& in, const backend::TableView& tables) const {
  const std::size_t many = std::size_t{1} << tables.log_many;
  auto out = std::make_shared<lwe::LweBlock>(lwe::make_lwe(
      *engine_->device()->pool(), in.torus, in.dimension, checked_mul(in.count, many)));
  const void *const switching = keys_->switching.data(), *const rotation = keys_->rotation.data();
  in_parts(in.count, tables, [&](std::size_t first, std::size_t count, const auto& of_part) {
    const auto results = out->part(first * many, count * many);
    if (params_->order() == Order::switch_first) {
      engine_->switch_bootstrap(results, in.part(first, count), of_part, switching, rotation);
    } else {
      engine_->bootstrap_switch(results, in.part(first, count), of_part, switching, rotation);
    }
  });
  return out;
}

std::vector<Block> Evaluator::rotated(const lwe::LweBlock& in, const backend::TableView& table,
                                      std::span<const std::uint32_t> coefficients) const {
  device::Pool& pool = *engine_->device()->pool();
  const bool switches_first = params_->order() == Order::switch_first;
  const void *const switching = keys_->switching.data(), *const rotation = keys_->rotation.data();
  std::vector<std::shared_ptr<lwe::LweBlock>> out;
  for (std::size_t j = 0; j < coefficients.size(); ++j) {
    out.push_back(
        std::make_shared<lwe::LweBlock>(lwe::make_lwe(pool, in.torus, in.dimension, in.count)));
  }
  in_parts(in.count, table, [&](std::size_t first, std::size_t count, const auto& of_part) {
    lwe::GlweBlock rotations =
        lwe::make_glwe(pool, params_->torus(), params_->k(), params_->N(), count);
    if (switches_first) {
      lwe::LweBlock small = lwe::make_lwe(pool, lwe::Torus::t32, params_->n(), count);
      engine_->key_switch(small.view(), in.part(first, count), switching);
      engine_->blind_rotate(rotations.view(), small.view(), of_part, rotation);
    } else {
      engine_->blind_rotate(rotations.view(), in.part(first, count), of_part, rotation);
    }
    for (std::size_t j = 0; j < coefficients.size(); ++j) {
      const std::vector<std::uint32_t> same(count, coefficients[j]);
      if (switches_first) {
        engine_->extract(out[j]->part(first, count), rotations.view(), same, 1);
      } else {
        lwe::LweBlock large = lwe::make_lwe(pool, params_->torus(), params_->large(), count);
        engine_->extract(large.view(), rotations.view(), same, 1);
        engine_->key_switch(out[j]->part(first, count), large.view(), switching);
      }
    }
  });
  return {out.begin(), out.end()};
}

// --- to and from the engine ----------------------------------------------------------------------

Ciphertext Evaluator::bind(const Ciphertext& a) const {
  const auto& memory = engine_->device()->memory();
  const lwe::SeededLwe* const seeded = a.data.seeded();
  if (a.data == nullptr || a.size() == 0 ||
      (seeded == nullptr && a.data->data.memory() == memory.get())) {
    check(a);
    return a;
  }
  const auto block_like = [&](const auto& rows) {
    return std::make_shared<lwe::LweBlock>(
        lwe::make_lwe(*engine_->device()->pool(), rows.torus, rows.dimension, rows.count));
  };
  std::shared_ptr<lwe::LweBlock> out;
  if (seeded != nullptr) {
    out = block_like(*seeded);
    engine_->copy_in_seeded(out->view(), {seeded->seed, seeded->bodies.data()});
  } else {
    require<InvalidArgument>(
        a.data->data.host_accessible(),
        "a ciphertext is in another device's memory: take its host_copy there");
    out = block_like(*a.data);
    memory->copy_in(out->data.data(), a.data->data.data(), a.data->bytes());
  }
  Ciphertext bound = a;
  bound.data = std::move(out);
  check(bound);
  return bound;
}

Ciphertext Evaluator::bind(const CompactCiphertext& a) const {
  require<InvalidArgument>(a.params != nullptr,
                           "a ciphertext is empty: encrypt or compute one first");
  check_owner(a.params, a.key_id);
  const device::Device& device = *engine_->device();
  auto rows = std::make_shared<lwe::LweBlock>(extracted(*device::Pool::create(), a));
  std::vector<std::uint32_t> degree(a.count, a.degree);
  if (params_->order() == Order::switch_first) {
    return bind(made(std::move(rows), a.key_id, std::move(degree), history_of(a)));
  }
  lwe::LweBlock large = lwe::make_lwe(*device.pool(), params_->torus(), params_->large(), a.count);
  device.memory()->copy_in(large.data.data(), rows->data.data(), rows->bytes());
  auto small = std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*device.pool(), lwe::Torus::t32, params_->n(), a.count));
  if (a.count > 0) engine_->key_switch(small->view(), large.view(), keys_->switching.data());
  return made(std::move(small), a.key_id, std::move(degree), history_of(a));
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

// --- look-ups ------------------------------------------------------------------------------------

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
           norm_text(most) + " for these parameters, and the operand has " + norm_text(norm2) +
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

/// What follows from a table, by the constants of its inputs, of which a block of ciphertexts has
/// few. It may be used from several threads.
class Origins {
 public:
  template <class F>
  TableOrigin at(std::int64_t half_steps, const F& make) {
    const std::lock_guard lock(mutex_);
    const auto [found, fresh] = known_.try_emplace(half_steps);
    if (fresh) found->second = make();
    return found->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::int64_t, TableOrigin> known_;
};

/// Origins of function j of a table.
History::TableOf origins_of(std::shared_ptr<const LookUpTable> table, std::size_t j) {
  auto halves = table->halves();
  return [table = std::move(table), halves = std::move(halves), j,
          known = std::make_shared<Origins>()](std::size_t, std::int64_t c) {
    return known->at(c, [&] { return table->origin(halves, j, c); });
  };
}

/// Origins of the table that each row takes.
History::TableOf origins_of(std::span<const LookUpTable> tables,
                            std::span<const std::uint32_t> which) {
  std::vector<std::vector<std::int64_t>> halves;
  std::vector<std::shared_ptr<Origins>> known;
  for (const LookUpTable& table : tables) {
    halves.push_back(table.halves());
    known.push_back(std::make_shared<Origins>());
  }
  const int bits = tables[0].params()->message_bits() + tables[0].params()->carry_bits();
  return [halves = std::move(halves), known = std::move(known), bits,
          which = std::vector<std::uint32_t>(which.begin(), which.end())](std::size_t row,
                                                                          std::int64_t c) {
    const std::uint32_t of = which[row];
    return known[of]->at(c, [&] { return table_origin(halves[of], bits, c); });
  };
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
              a.history.looked_up(origins_of(table.table, 0)));
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
              a.history.looked_up(origins_of(tables.tables, which)));
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
  for (std::size_t j = 0; j < many; ++j) {
    out.push_back(made(std::move(blocks[j]), key_id_, degrees_after(a, table, j),
                       a.history.looked_up(origins_of(bound.table, j))));
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
