#include "jali/integers/tfhe_machine.h"

#include <algorithm>
#include <string>
#include <vector>

#include "jali/base/error.h"
#include "jali/integers/tfhe_noise.h"

namespace jali::integers {

namespace {

using backend::LweCombination;

constexpr std::size_t kMostBytes = std::size_t{4} << 30;
constexpr std::size_t kTableBytes = std::size_t{128} << 20;
// A call of the engine takes so many waves at most, because every rotation of it has an accumulator
// in memory.
constexpr std::size_t kWavesAtOnce = 64;
// A graph is worth its memory if its waves are so short that the host's share of them counts.
constexpr std::size_t kPrograms = 32;
constexpr std::size_t kRecordedWaves = 16;

const lwe::LweBlock& block_of(const Rows& rows) {
  return *static_cast<const TfheRows&>(rows).block();
}

}  // namespace

/// Inputs of one kind of look-up, which follow each other, and where their results begin.
struct TfheMachine::Share {
  RowLookUps::Group kind;
  std::size_t count = 0, out = 0;
};

TfheMachine::TfheMachine(std::shared_ptr<const tfhe::Evaluator> evaluator,
                         const TfheMachineOptions& options)
    : evaluator_(std::move(evaluator)),
      options_(options),
      tables_(evaluator_->params(), kTableBytes),
      programs_(evaluator_->engine().device(), kPrograms, options_.unrecorded) {
  const tfhe::Params& params = *evaluator_->params();
  space_ = validated({.message_bits = params.message_bits(),
                      .carry_bits = params.carry_bits(),
                      .noise_budget = params.max_norm2(),
                      .max_log_many = params.message_bits() + params.carry_bits() - 1,
                      .negacyclic = true,
                      .wave = std::max<std::size_t>(
                          options_.wave == 0 ? evaluator_->engine().width() : options_.wave, 1)});
  if (!options_.records) {
    options_.records = !evaluator_->engine().device()->memory()->host_accessible();
  }
}

std::shared_ptr<const Rows> TfheMachine::rows_of(const tfhe::Ciphertext& digits) {
  const std::uint64_t radix = digits.params->message_modulus();
  require<RangeExceeded>(digits.max_degree() < radix, [&] {
    return "a digit of the integers could be as large as " + std::to_string(digits.max_degree()) +
           ", and digits are below " + std::to_string(radix) +
           ": encrypt the integers digit by digit, as encrypt_uint does, or refresh the digits";
  });
  // Nothing writes to the rows of an operand.
  return std::make_shared<const TfheRows>(
      std::const_pointer_cast<lwe::LweBlock>(digits.data.block()), digits.history);
}

const tfhe::History& TfheRows::history() const {
  require<InternalError>(history_.has_value() && history_->rows() == block_->count,
                         "nobody has counted the noise of these digits: please report");
  return *history_;
}

tfhe::Ciphertext TfheMachine::ciphertext(const Rows& digits, std::span<const int> largest) const {
  tfhe::Ciphertext out;
  out.params = evaluator_->params();
  out.key_id = evaluator_->key_id();
  out.data = static_cast<const TfheRows&>(digits).block();
  out.degree.resize(digits.count());
  for (std::size_t i = 0; i < out.degree.size(); ++i) {
    out.degree[i] = static_cast<std::uint32_t>(largest[i % largest.size()]);
  }
  out.history = static_cast<const TfheRows&>(digits).history();
  return out;
}

std::size_t TfheMachine::available_rows() const {
  std::size_t bytes = options_.memory;
  if (bytes == 0) {
    const std::size_t free = evaluator_->free_bytes();
    bytes = free == device::kUnknown ? kMostBytes : std::min(free / 2, kMostBytes);
  }
  return bytes / evaluator_->params()->ciphertext_bytes();
}

std::size_t TfheMachine::most_rows() const {
  return evaluator_->free_bytes() / evaluator_->params()->ciphertext_bytes();
}

std::size_t TfheMachine::rotations_at_once() const {
  return std::min(evaluator_->rotations_that_fit(),
                  std::max<std::size_t>(kWavesAtOnce * space_.wave, 256));
}

std::unique_ptr<Rows> TfheMachine::allocate(std::size_t count) const {
  const tfhe::Params& params = *evaluator_->params();
  return std::make_unique<TfheRows>(std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*evaluator_->engine().device()->pool(), params.ciphertext_torus(),
                    params.dimension(), count)));
}

void TfheMachine::copy(Rows& out, std::size_t out_first, const Rows& in, std::size_t in_first,
                       std::size_t count) const {
  lwe::LweBlock& to = *static_cast<TfheRows&>(out).block();
  const lwe::LweBlock& from = block_of(in);
  evaluator_->engine().copies().copy(to.part(out_first, count).data,
                                     from.part(in_first, count).data, count * from.row_bytes());
}

void TfheMachine::combine(Rows& out, std::size_t out_first, const Rows& in,
                          const RowCombination& c) const {
  const std::size_t rows = c.begin.size() - 1;
  if (rows == 0) return;
  const std::uint64_t half = evaluator_->params()->step() / 2;
  std::vector<std::uint64_t> words(c.constant.size());
  std::ranges::transform(c.constant, words.begin(),
                         [&](std::int64_t x) { return static_cast<std::uint64_t>(x) * half; });
  lwe::LweBlock& to = *static_cast<TfheRows&>(out).block();
  const backend::TfheOps& engine = evaluator_->engine();
  const LweCombination sums{c.begin, c.column, c.weight, words};
  if (in.count() > 0) {
    engine.combine(to.part(out_first, rows), block_of(in).view(), sums);
    return;
  }
  // Constants alone, of a circuit that reads nothing: engines take no empty input.
  const auto none = allocate(1);
  lwe::LweBlock& zero = *static_cast<TfheRows&>(*none).block();
  engine.device()->memory()->fill(zero.data.data(), 0, zero.bytes());
  engine.combine(to.part(out_first, rows), std::as_const(zero).view(), sums);
}

void TfheMachine::look_up(Rows& out, std::size_t out_first, const Rows& in,
                          const RowLookUps& look_ups) const {
  if (look_ups.of_input.empty()) return;
  const backend::TfheOps& engine = evaluator_->engine();
  if (engine.device()->stream().recording()) {  // a graph's memory is its own
    return look_up_in(tables_.made(engine, look_ups.tables), out, out_first, in, look_ups);
  }
  look_up_in(*tables_.of(engine, look_ups.tables), out, out_first, in, look_ups);
}

void TfheMachine::look_up_in(const Polynomials& tables, Rows& out, std::size_t out_first,
                             const Rows& in, const RowLookUps& look_ups) const {
  const std::size_t at_once = rotations_at_once();
  // Every call takes what follows in the input, of whatever kinds, so that a wave is one blind
  // rotation.
  std::size_t group = 0, taken = 0, result = out_first;
  for (std::size_t first = 0; first < look_ups.of_input.size();) {
    std::vector<Share> shares;
    std::size_t count = 0;
    while (count < at_once && group < look_ups.groups.size()) {
      const RowLookUps::Group& kind = look_ups.groups[group];
      const std::size_t now = std::min(kind.count - taken, at_once - count);
      if (now > 0) shares.push_back({kind, now, result});
      result += now * static_cast<std::size_t>(kind.results);
      count += now;
      taken += now;
      if (taken == kind.count) ++group, taken = 0;
    }
    const backend::TableView view{tables.data.data(), tables.count, false,
                                  look_ups.of_input.subspan(first, count), 0};
    rotate(*static_cast<TfheRows&>(out).block(), block_of(in).part(first, count), view, shares);
    first += count;
  }
}

/// The machine, with a circuit's tables at hand, which it keeps: for recordings, which upload
/// nothing.
class TfheMachine::WithTables final : public Machine {
 public:
  WithTables(const TfheMachine& machine, std::shared_ptr<const Polynomials> tables)
      : machine_(machine), tables_(std::move(tables)) {}

  const Space& space() const override { return machine_.space(); }
  std::size_t available_rows() const override { return machine_.available_rows(); }
  std::size_t most_rows() const override { return machine_.most_rows(); }
  std::unique_ptr<Rows> allocate(std::size_t count) const override {
    return machine_.allocate(count);
  }
  void copy(Rows& out, std::size_t out_first, const Rows& in, std::size_t in_first,
            std::size_t count) const override {
    machine_.copy(out, out_first, in, in_first, count);
  }
  void combine(Rows& out, std::size_t out_first, const Rows& in,
               const RowCombination& combination) const override {
    machine_.combine(out, out_first, in, combination);
  }
  void look_up(Rows& out, std::size_t out_first, const Rows& in,
               const RowLookUps& look_ups) const override {
    if (look_ups.of_input.empty()) return;
    machine_.look_up_in(*tables_, out, out_first, in, look_ups);
  }

 private:
  const TfheMachine& machine_;
  const std::shared_ptr<const Polynomials> tables_;
};

std::unique_ptr<Rows> TfheMachine::run(const Circuit& circuit, const Run& run) const {
  NoiseRun noise{{}, {run.clear.begin(), run.clear.end()}, run.lanes};
  std::vector<tfhe::History> histories;
  for (const Operand& operand : run.operands) {
    noise.broadcast.push_back(operand.broadcast);
    histories.push_back(static_cast<const TfheRows&>(*operand.rows).history());
  }
  const auto with = [](std::unique_ptr<Rows> rows, tfhe::History history) {
    static_cast<TfheRows&>(*rows).set_history(std::move(history));
    return rows;
  };
  if (auto history = noise_after(circuit, noise, histories, space_, Cancelling::refused)) {
    return with(computed(circuit, run), std::move(*history));
  }
  // Operands have errors in common: look-ups in tables that differ make them independent.
  constexpr const char* kShared =
      "the numbers of this operation have errors in common, for example because a sum has an "
      "element many times: multiply by how often it occurs instead";
  const Apart parting = apart(circuit, noise, histories);
  require<RangeExceeded>(parting.each <= most_apart(space_), kShared);
  std::vector<tfhe::History> independent = set_apart(parting, histories, space_);
  auto history = noise_after(circuit, noise, independent, space_, Cancelling::counted);
  require<RangeExceeded>(history.has_value(), kShared);
  const std::vector<std::unique_ptr<Rows>> rows = parted(parting, run.operands);
  std::vector<Operand> operands;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    operands.push_back({rows[k].get(), run.operands[k].broadcast});
  }
  return with(computed(circuit, {operands, run.clear, run.lanes}), std::move(*history));
}

std::vector<std::unique_ptr<Rows>> TfheMachine::parted(const Apart& parting,
                                                       std::span<const Operand> operands) const {
  const std::size_t count = parting.of.size();
  // All digits, then what is looked up in the place of each.
  const auto all = allocate(2 * count), inputs = allocate(count);
  std::size_t at = 0;
  for (const Operand& operand : operands) {
    if (operand.rows->count() > 0) copy(*all, at, *operand.rows, 0, operand.rows->count());
    at += operand.rows->count();
  }
  std::vector<std::uint32_t> begin{0};
  for (std::size_t i = 0; i < count; ++i) begin.push_back(begin.back() + 1);
  const std::vector<std::int64_t> ones(count, 1), nothing(count, 0);
  combine(*inputs, 0, *all, {begin, parting.of, ones, nothing});
  const std::vector<std::int16_t> tables = tables_of(parting, space_);
  const RowLookUps::Group group{count, 1, space_.size()};
  look_up(*all, count, *inputs, {{&group, 1}, tables, parting.table});
  std::vector<std::unique_ptr<Rows>> out;
  std::uint32_t row = 0;
  for (const Operand& operand : operands) {
    const std::size_t rows = operand.rows->count();
    std::vector<std::uint32_t> from{0}, column;
    for (std::size_t i = 0; i < rows; ++i, ++row) {
      column.push_back(static_cast<std::uint32_t>(count) + row);
      if (parting.added[row]) column.push_back(row);
      from.push_back(static_cast<std::uint32_t>(column.size()));
    }
    const std::vector<std::int64_t> weight(column.size(), 1), constant(rows, 0);
    out.push_back(allocate(rows));
    combine(*out.back(), 0, *all, {from, column, weight, constant});
  }
  return out;
}

std::unique_ptr<Rows> TfheMachine::gather(const Rows& in,
                                          std::span<const std::uint32_t> which) const {
  auto out = Machine::gather(in, which);
  std::vector<std::uint32_t> begin{0}, column;
  for (const std::uint32_t row : which) {
    if (row != none) column.push_back(row);
    begin.push_back(static_cast<std::uint32_t>(column.size()));
  }
  const std::vector<std::int64_t> weight(column.size(), 1);
  static_cast<TfheRows&>(*out).set_history(
      static_cast<const TfheRows&>(in).history().combined({begin, column, weight}));
  return out;
}

std::unique_ptr<Rows> TfheMachine::concatenate(const Rows& a, const Rows& b) const {
  auto out = Machine::concatenate(a, b);
  const tfhe::History* const parts[] = {&static_cast<const TfheRows&>(a).history(),
                                        &static_cast<const TfheRows&>(b).history()};
  static_cast<TfheRows&>(*out).set_history(tfhe::History::joined(parts));
  return out;
}

std::unique_ptr<Rows> TfheMachine::constants(std::span<const std::int64_t> halves) const {
  auto out = Machine::constants(halves);
  static_cast<TfheRows&>(*out).set_history(tfhe::History::clear(halves));
  return out;
}

std::unique_ptr<Rows> TfheMachine::computed(const Circuit& circuit, const Run& run) const {
  const auto plain = [this, &circuit](const Run& of) { return Machine::run(circuit, of); };
  const device::Device& device = *evaluator_->engine().device();
  if (!*options_.records || circuit.clear_digits > 0 || circuit.waves.empty() || run.lanes == 0 ||
      device.stream().recording()) {
    return plain(run);
  }
  // In one part, and in few enough waves of the machine.
  std::size_t rows = circuit.arena + circuit.widest + circuit.outputs.rows();
  for (const std::uint32_t digits : circuit.operands) rows += digits;
  const std::size_t most = std::min(kRecordedWaves * space_.wave, rotations_at_once());
  if (circuit.widest * run.lanes > most || 2 * rows * run.lanes > available_rows()) {
    return plain(run);
  }
  const auto machine =
      std::make_shared<const WithTables>(*this, tables_.of(evaluator_->engine(), circuit.tables));
  return programs_.run(*this, circuit, run,
                       [of = circuit.shared_from_this(), machine](const Run& again) {
                         return machine->run(*of, again);
                       });
}

void TfheMachine::rotate(lwe::LweBlock& out, backend::ConstLweView in,
                         const backend::TableView& view, std::span<const Share> shares) const {
  const backend::TfheOps& engine = evaluator_->engine();
  const tfhe::Params& params = *evaluator_->params();
  const lwe::PreparedKeys& keys = evaluator_->prepared_keys();
  const void *const switching = keys.switching.data(), *const rotation = keys.rotation.data();
  const bool switches_first = params.order() == tfhe::Order::switch_first;
  if (shares.size() == 1 && shares[0].kind.results == 1) {
    const auto results = out.part(shares[0].out, in.count);
    if (switches_first) return engine.switch_bootstrap(results, in, view, switching, rotation);
    return engine.bootstrap_switch(results, in, view, switching, rotation);
  }
  device::Pool& pool = *engine.device()->pool();
  lwe::GlweBlock rotated = lwe::make_glwe(pool, params.torus(), params.k(), params.N(), in.count);
  std::size_t rows = 0;
  for (const Share& share : shares) {
    rows += share.count * static_cast<std::size_t>(share.kind.results);
  }
  lwe::LweBlock large;  // the results before they are switched
  if (switches_first) {
    lwe::LweBlock small = lwe::make_lwe(pool, lwe::Torus::t32, params.n(), in.count);
    engine.key_switch(small.view(), in, switching);
    engine.blind_rotate(rotated.view(), small.view(), view, rotation);
  } else {
    engine.blind_rotate(rotated.view(), in, view, rotation);
    large = lwe::make_lwe(pool, params.torus(), params.large(), rows);
  }
  // Result j is coefficient j stride N / 2^p of a rotated accumulator.
  const std::size_t box = params.N().value >> space_.bits();
  std::size_t first = 0, row = 0;
  std::vector<std::uint32_t> coefficients;
  for (const Share& share : shares) {
    const auto results = static_cast<std::size_t>(share.kind.results);
    coefficients.resize(share.count * results);
    for (std::size_t i = 0; i < coefficients.size(); ++i) {
      coefficients[i] = static_cast<std::uint32_t>(
          i % results * static_cast<std::size_t>(share.kind.stride) * box);
    }
    const backend::GlweView all = rotated.view();
    const std::size_t bytes =
        (params.large().value + params.N().value) * backend::torus_bytes(params.torus());
    const backend::ConstGlweView of{static_cast<const std::byte*>(all.data) + first * bytes,
                                    share.count};
    engine.extract(switches_first ? out.part(share.out, coefficients.size())
                                  : large.part(row, coefficients.size()),
                   of, coefficients, results);
    first += share.count;
    row += coefficients.size();
  }
  if (!switches_first) engine.key_switch(out.part(shares[0].out, rows), large.view(), switching);
}

}  // namespace jali::integers
