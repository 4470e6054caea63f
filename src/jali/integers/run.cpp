// How a machine whose ciphertext is one digit runs a circuit: each wave is a combination of rows
// and a look-up.
#include <algorithm>
#include <string>
#include <vector>

#include "jali/base/error.h"
#include "jali/integers/circuit.h"
#include "jali/integers/digits.h"

namespace jali::integers {

Space validated(Space space) {
  require<InvalidArgument>(space.message_bits >= 1 && space.message_bits <= 4, [&] {
    return "a digit has 1 to 4 message bits, not " + std::to_string(space.message_bits);
  });
  require<InvalidArgument>(space.carry_bits >= space.message_bits && space.bits() <= 8, [&] {
    return "integers of " + std::to_string(space.message_bits) +
           " message bits a digit need at least as many carry bits, and at most 8 bits in all, "
           "not " +
           std::to_string(space.carry_bits) + " carry bits";
  });
  require<InvalidArgument>(space.noise_budget >= (1 << 2 * space.message_bits) + 1, [&] {
    return "the noise budget must be at least " +
           std::to_string((1 << 2 * space.message_bits) + 1) +
           ", which two packed digits need: choose parameters with less noise";
  });
  require<InvalidArgument>(space.max_log_many >= 0 && space.max_log_many <= 7,
                           "the largest log_many is from 0 to 7");
  require<InvalidArgument>(space.wave >= 1, "a wave has at least one look-up");
  return space;
}

std::size_t Circuit::look_ups() const {
  std::size_t sum = 0;
  for (const Wave& wave : waves) sum += wave.inputs.rows();
  return sum;
}

double Circuit::time(std::size_t lanes, std::size_t wave) const {
  double sum = 0;
  for (const Wave& w : waves) {
    sum += std::max(1.0, double(w.inputs.rows()) * double(lanes) / double(wave));
  }
  return sum;
}

namespace {

/// Row of lane l is base + l * stride.
struct Address {
  std::uint32_t base = 0, stride = 0;
};

/// The combinations of every lane. Lane-major puts the rows of one lane together; else those of one
/// combination.
class Expanded {
 public:
  void expand(const Circuit::Combinations& from, std::span<const Address> address,
              std::span<const std::uint8_t> clear, std::size_t clear_digits, std::size_t lanes,
              bool lane_major) {
    const std::size_t rows = from.rows();
    begin_.resize(rows * lanes + 1);
    constant_.resize(rows * lanes);
    column_.resize(from.column.size() * lanes);
    weight_.resize(from.column.size() * lanes);
    std::uint32_t entry = 0;
    std::size_t at = 0;
    const auto one = [&](std::size_t row, std::size_t lane) {
      begin_[at] = entry;
      std::int64_t constant = from.constant[row];
      for (std::uint32_t e = from.clear_begin[row]; e < from.clear_begin[row + 1]; ++e) {
        constant += 2 * std::int64_t{from.clear_weight[e]} *
                    clear[lane * clear_digits + from.clear_column[e]];
      }
      constant_[at++] = constant;
      for (std::uint32_t e = from.begin[row]; e < from.begin[row + 1]; ++e, ++entry) {
        const Address& of = address[from.column[e]];
        column_[entry] = of.base + static_cast<std::uint32_t>(lane) * of.stride;
        weight_[entry] = from.weight[e];
      }
    };
    if (lane_major) {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        for (std::size_t row = 0; row < rows; ++row) one(row, lane);
      }
    } else {
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t lane = 0; lane < lanes; ++lane) one(row, lane);
      }
    }
    begin_[at] = entry;
  }
  RowCombination view() const { return {begin_, column_, weight_, constant_}; }
  std::span<const std::int64_t> constants() const { return constant_; }

 private:
  std::vector<std::uint32_t> begin_, column_;
  std::vector<std::int64_t> weight_, constant_;
};

}  // namespace

std::unique_ptr<Rows> Machine::run(const Circuit& circuit, const Run& run) const {
  const std::size_t outputs = circuit.outputs.rows();
  if (run.lanes == 0 || outputs == 0) return allocate(run.lanes * outputs);

  // Rows: operands that all lanes share, then for each lane of a part its operands, its slots, and
  // what it looks up.
  std::size_t shared = 0, own = circuit.arena;
  for (std::size_t k = 0; k < circuit.operands.size(); ++k) {
    (run.operands[k].broadcast ? shared : own) += circuit.operands[k];
  }
  const std::size_t a_lane = std::max<std::size_t>(own + circuit.widest, 1);
  const std::size_t most = most_rows(), result = run.lanes * outputs, work = shared + a_lane;
  require<OutOfMemory>(most >= work && most - work >= result, [&] {
    const std::size_t fit = most > work ? (most - work) / outputs : 0;
    return "a result of " + std::to_string(run.lanes) + " integers takes " +
           std::to_string(result) + " digits, and there is room for " + std::to_string(most) +
           (fit > 0 ? ": compute on at most " + std::to_string(fit) + " integers at a time"
                    : ": free ciphertexts, or use fewer bits");
  });
  auto out = allocate(result);
  const std::size_t free = available_rows();
  require<OutOfMemory>(free >= work, [&] {
    return "an operation on integers needs room for " + std::to_string(work) +
           " digits, and there is room for " + std::to_string(free) +
           ": free ciphertexts, or use fewer bits";
  });
  const std::size_t limit = (std::size_t{1} << 31) / (own + 1);
  const std::size_t part = std::min({run.lanes, (free - shared) / a_lane, limit});
  const auto arena = allocate(shared + own * part);
  const auto staging = allocate(circuit.widest * part);
  std::vector<Address> address(circuit.columns.size());
  std::vector<std::size_t> operand_at(circuit.operands.size());
  Expanded rows, keys;
  std::vector<std::uint32_t> of_input;
  std::vector<RowLookUps::Group> groups;

  for (std::size_t first = 0; first < run.lanes; first += part) {
    const std::size_t lanes = std::min(part, run.lanes - first);
    std::size_t at = 0;
    for (std::size_t k = 0; k < circuit.operands.size(); ++k) {
      operand_at[k] = at;
      const Operand& operand = run.operands[k];
      const std::size_t count = circuit.operands[k] * (operand.broadcast ? 1 : lanes);
      if (count) {
        copy(*arena, at, *operand.rows, operand.broadcast ? 0 : first * circuit.operands[k], count);
      }
      at += count;
    }
    for (std::size_t c = 0; c < circuit.columns.size(); ++c) {
      const Circuit::Column& column = circuit.columns[c];
      if (column.operand >= 0) {
        const auto k = static_cast<std::size_t>(column.operand);
        address[c] = {static_cast<std::uint32_t>(operand_at[k] + column.index),
                      run.operands[k].broadcast ? 0 : circuit.operands[k]};
      } else {
        address[c] = {static_cast<std::uint32_t>(at + column.slot * lanes + column.index),
                      column.results};
      }
    }
    const auto clear = run.clear.subspan(first * circuit.clear_digits);
    keys.expand(circuit.keys, address, clear, circuit.clear_digits, lanes, false);
    for (const Circuit::Wave& wave : circuit.waves) {
      rows.expand(wave.inputs, address, clear, circuit.clear_digits, lanes, false);
      combine(*staging, 0, *arena, rows.view());
      const std::size_t rotations = wave.inputs.rows();
      of_input.resize(rotations * lanes);
      for (std::size_t r = 0; r < rotations; ++r) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          std::uint32_t table = wave.table[r];
          if (wave.key[r] >= 0) {
            table += static_cast<std::uint32_t>(
                keys.constants()[static_cast<std::size_t>(wave.key[r]) * lanes + lane] / 2);
          }
          of_input[r * lanes + lane] = table;
        }
      }
      groups.assign(wave.groups.begin(), wave.groups.end());
      for (RowLookUps::Group& group : groups) group.count *= lanes;
      look_up(*arena, at + wave.slot * lanes, *staging, {groups, circuit.tables, of_input});
    }
    rows.expand(circuit.outputs, address, clear, circuit.clear_digits, lanes, true);
    combine(*out, first * outputs, *arena, rows.view());
  }
  return out;
}

std::unique_ptr<Rows> Machine::gather(const Rows& in, std::span<const std::uint32_t> which) const {
  auto out = allocate(which.size());
  std::vector<std::uint32_t> begin{0}, column;
  begin.reserve(which.size() + 1);
  column.reserve(which.size());
  for (const std::uint32_t row : which) {
    if (row != none) column.push_back(row);
    begin.push_back(static_cast<std::uint32_t>(column.size()));
  }
  const std::vector<std::int64_t> weight(column.size(), 1), constant(which.size(), 0);
  if (!which.empty()) combine(*out, 0, in, {begin, column, weight, constant});
  return out;
}

std::unique_ptr<Rows> Machine::concatenate(const Rows& a, const Rows& b) const {
  auto out = allocate(a.count() + b.count());
  if (a.count()) copy(*out, 0, a, 0, a.count());
  if (b.count()) copy(*out, a.count(), b, 0, b.count());
  return out;
}

std::unique_ptr<Rows> Machine::constants(std::span<const std::int64_t> halves) const {
  auto out = allocate(halves.size());
  const std::vector<std::uint32_t> begin(halves.size() + 1, 0);
  if (!halves.empty()) combine(*out, 0, *allocate(0), {begin, {}, {}, halves});
  return out;
}

}  // namespace jali::integers
