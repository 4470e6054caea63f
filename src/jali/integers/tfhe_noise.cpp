#include "jali/integers/tfhe_noise.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "jali/base/error.h"

namespace jali::integers {

namespace {

using tfhe::History;
using tfhe::Origin;
using tfhe::TableOrigin;

/// What clear digits and the constant add to a row, in half steps.
std::int64_t clear_part(const Circuit& circuit, const NoiseRun& run,
                        const Circuit::Combinations& of, std::size_t row, std::size_t lane) {
  std::int64_t sum = of.constant[row];
  for (std::uint32_t e = of.clear_begin[row]; e < of.clear_begin[row + 1]; ++e) {
    sum += 2 * std::int64_t{of.clear_weight[e]} *
           run.clear[lane * circuit.clear_digits + of.clear_column[e]];
  }
  return sum;
}

/// Follows one lane after the other.
class Follower {
 public:
  Follower(const Circuit& circuit, const NoiseRun& run, const std::vector<History>& operands,
           const Space& space, Cancelling cancelling)
      : circuit_(circuit),
        run_(run),
        operands_(operands),
        space_(space),
        cancelling_(cancelling),
        arena_(circuit.arena) {}

  /// Whether every look-up of the lane may be done. arena() then has what the outputs read.
  bool follow(std::size_t lane) {
    for (const Circuit::Wave& wave : circuit_.waves) {
      results_.clear();
      std::size_t rotation = 0;
      for (const RowLookUps::Group& group : wave.groups) {
        for (std::size_t i = 0; i < group.count; ++i, ++rotation) {
          const History::Combination input = combination(wave.inputs, rotation, lane);
          if (!fits()) return false;
          const bool constant = parts_.empty();
          if (input.id == 0 && !constant && cancelling_ == Cancelling::refused) return false;
          std::uint32_t table = wave.table[rotation];
          if (wave.key[rotation] >= 0)
            table += key(static_cast<std::size_t>(wave.key[rotation]), lane);
          for (int j = 0; j < group.results; ++j) {
            // Result j is that of a table shifted by j stride boxes.
            const TableOrigin& of =
                of_table(table, input.half_steps + 2 * std::int64_t{j} * group.stride);
            results_.push_back(origin_after(of, input.id, constant));
          }
        }
      }
      // A wave's results may take the places of what it has read.
      std::ranges::copy(results_, arena_.begin() + wave.slot);
    }
    return true;
  }
  /// Whether an output has little enough noise.
  bool output_fits(std::size_t output, std::size_t lane) {
    combination(circuit_.outputs, output, lane);
    return fits();
  }
  const std::vector<Origin>& arena() const { return arena_; }

 private:
  /// Roots that are squared again may be above what they were.
  bool fits() { return tfhe::squared_norm(parts_) <= space_.noise_budget * (1 + 1e-9); }
  std::uint32_t key(std::size_t row, std::size_t lane) const {
    return static_cast<std::uint32_t>(clear_part(circuit_, run_, circuit_.keys, row, lane) / 2);
  }
  /// The row, and in parts_ the ciphertexts of which it is a sum.
  History::Combination combination(const Circuit::Combinations& of, std::size_t row,
                                   std::size_t lane) {
    parts_.clear();
    std::uint64_t id = 0,
                  constant = static_cast<std::uint64_t>(clear_part(circuit_, run_, of, row, lane));
    for (std::uint32_t e = of.begin[row]; e < of.begin[row + 1]; ++e) {
      const Circuit::Column& column = circuit_.columns[of.column[e]];
      const std::int64_t times = of.weight[e];
      const auto factor = static_cast<std::uint64_t>(times);
      if (column.operand < 0) {
        const Origin& origin = arena_[column.slot + column.index];
        constant += factor * static_cast<std::uint64_t>(origin.half_steps);
        id += origin.times(factor);
        if (origin.id != tfhe::kNoError) parts_.push_back({&origin, times, 1});
        continue;
      }
      const auto k = static_cast<std::size_t>(column.operand);
      const std::size_t at = (run_.broadcast[k] ? 0 : lane * circuit_.operands[k]) + column.index;
      const History::Combination digit = operands_[k].combination(at);
      id += factor * digit.id;
      constant += factor * static_cast<std::uint64_t>(digit.half_steps);
      operands_[k].for_each(at, [&](const Origin& of_term, std::int64_t weight, double norm2) {
        parts_.push_back({&of_term, weight * times, norm2});
      });
    }
    return {id, static_cast<std::int64_t>(constant)};
  }
  const TableOrigin& of_table(std::uint32_t table, std::int64_t half_steps) {
    const std::uint64_t torus = std::uint64_t{4} << space_.bits();  // in half steps
    const std::uint64_t turn = static_cast<std::uint64_t>(half_steps) % torus;
    const auto [at, fresh] = tables_.try_emplace(table * torus + turn);
    if (fresh) {
      const auto size = static_cast<std::size_t>(space_.size());
      const std::vector<std::int64_t> halves(
          circuit_.tables.begin() + static_cast<std::ptrdiff_t>(table * size),
          circuit_.tables.begin() + static_cast<std::ptrdiff_t>((table + 1) * size));
      at->second = tfhe::table_origin(halves, space_.bits(), half_steps);
    }
    return at->second;
  }

  const Circuit& circuit_;
  const NoiseRun& run_;
  const std::vector<History>& operands_;
  const Space& space_;
  const Cancelling cancelling_;
  std::vector<Origin> arena_, results_;
  std::vector<tfhe::Part> parts_;
  std::unordered_map<std::uint64_t, TableOrigin> tables_;
};

}  // namespace

std::optional<History> noise_after(const Circuit& circuit, const NoiseRun& run,
                                   const std::vector<History>& operands, const Space& space,
                                   Cancelling cancelling) {
  const std::size_t outputs = circuit.outputs.rows();
  // The results of look-ups that outputs read.
  std::vector<std::uint32_t> read;
  for (const std::uint32_t c : circuit.outputs.column) {
    const Circuit::Column& column = circuit.columns[c];
    if (column.operand < 0) read.push_back(column.slot + column.index);
  }
  std::ranges::sort(read);
  read.erase(std::unique(read.begin(), read.end()), read.end());

  // Their origins, one lane after the other; none if there is too much noise.
  const auto origins_of = [&circuit, run, read, space, cancelling, outputs](
                              std::span<const History> of) -> std::optional<std::vector<Origin>> {
    const std::vector<History> given(of.begin(), of.end());
    Follower follower(circuit, run, given, space, cancelling);
    std::vector<Origin> origins;
    origins.reserve(run.lanes * read.size());
    for (std::size_t lane = 0; lane < run.lanes; ++lane) {
      if (!follower.follow(lane)) return {};
      for (std::size_t o = 0; o < outputs; ++o) {
        if (!follower.output_fits(o, lane)) return {};
      }
      for (const std::uint32_t slot : read) origins.push_back(follower.arena()[slot]);
    }
    return origins;
  };
  std::optional<std::vector<Origin>> origins = origins_of(operands);
  if (!origins) return {};
  const History results = [&] {
    if (std::ranges::none_of(operands, &History::recorded)) return History::made(*origins);
    return History::derived(
        operands, [origins_of, keep = circuit.shared_from_this()](std::span<const History> of) {
          auto again = origins_of(of);
          require<InvalidArgument>(again.has_value(),
                                   "integers that are given to a captured function share errors "
                                   "with each other: refresh them before, by x + 0 of one of them");
          return *again;
        });
  }();

  // The rows of the operands, then the results.
  std::vector<const History*> parts;
  std::vector<std::size_t> first;
  std::size_t columns = 0;
  for (const History& operand : operands) {
    parts.push_back(&operand);
    first.push_back(columns);
    columns += operand.rows();
  }
  parts.push_back(&results);
  std::vector<std::uint32_t> begin{0}, column;
  std::vector<std::int64_t> weight, half_steps;
  for (std::size_t lane = 0; lane < run.lanes; ++lane) {
    for (std::size_t o = 0; o < outputs; ++o) {
      for (std::uint32_t e = circuit.outputs.begin[o]; e < circuit.outputs.begin[o + 1]; ++e) {
        const Circuit::Column& of = circuit.columns[circuit.outputs.column[e]];
        std::size_t at = 0;
        if (of.operand < 0) {
          const auto place = std::ranges::lower_bound(read, of.slot + of.index) - read.begin();
          at = columns + lane * read.size() + static_cast<std::size_t>(place);
        } else {
          const auto k = static_cast<std::size_t>(of.operand);
          at = first[k] + (run.broadcast[k] ? 0 : lane * circuit.operands[k]) + of.index;
        }
        column.push_back(static_cast<std::uint32_t>(at));
        weight.push_back(circuit.outputs.weight[e]);
      }
      begin.push_back(static_cast<std::uint32_t>(column.size()));
      half_steps.push_back(clear_part(circuit, run, circuit.outputs, o, lane));
    }
  }
  return History::joined(parts).combined({begin, column, weight, half_steps});
}

namespace {

/// Entries of a table that no message reads.
std::size_t spare(const Space& space) {
  return static_cast<std::size_t>(space.size() - (1 << space.message_bits));
}

}  // namespace

std::size_t most_apart(const Space& space) {
  constexpr std::size_t kEnough = std::size_t{1} << 20;
  std::size_t most = 1;
  for (std::size_t i = 0; i < spare(space) && most < kEnough; ++i) {
    most *= 4 * static_cast<std::size_t>(space.size());
  }
  return std::min(most - 1, kEnough);
}

std::vector<std::int16_t> tables_of(const Apart& apart, const Space& space) {
  const auto size = static_cast<std::size_t>(space.size()), messages = size - spare(space);
  std::vector<std::int16_t> out;
  for (const int factor : {2, 0}) {
    for (std::size_t k = 0; k < apart.each; ++k) {
      // The digits of its number in base 4 size: the torus has so many half steps. A table of zeros
      // alone would have no error.
      std::size_t left = k + 1;
      for (std::size_t v = 0; v < size; ++v) {
        out.push_back(static_cast<std::int16_t>(
            v < messages ? factor * static_cast<int>(v) : static_cast<int>(left % (4 * size))));
        if (v >= messages) left /= 4 * size;
      }
    }
  }
  return out;
}

Apart apart(const Circuit& circuit, const NoiseRun& run, const std::vector<History>& operands) {
  Apart out;
  std::vector<std::size_t> first;
  std::vector<std::uint64_t> ids;
  for (const History& operand : operands) {
    first.push_back(ids.size());
    for (std::size_t row = 0; row < operand.rows(); ++row) {
      ids.push_back(operand.combination(row).id);
    }
  }
  out.of.resize(ids.size());
  out.table.resize(ids.size());
  out.added.resize(ids.size());
  for (std::uint32_t i = 0; i < ids.size(); ++i) out.of[i] = i;
  std::vector<bool> zeros(ids.size());

  struct Lane {
    std::unordered_map<std::uint64_t, std::uint32_t> seen;
    std::optional<std::uint32_t> noisy;  // a digit with an error
  };
  const auto take = [&](Lane& lane, std::size_t from, std::size_t count) {
    const auto number = [&](std::size_t i) {
      out.table[i] = lane.seen[ids[out.of[i]]]++;
      out.each = std::max(out.each, out.table[i] + 1);
    };
    for (std::size_t i = from; i < from + count; ++i) {
      if (ids[i] == 0) continue;
      number(i);
      if (!lane.noisy) lane.noisy = static_cast<std::uint32_t>(i);
    }
    return number;
  };
  // Digits without an error, if the lane has one with an error.
  const auto fill = [&](Lane& lane, const auto& number, std::size_t from, std::size_t count) {
    for (std::size_t i = from; lane.noisy && i < from + count; ++i) {
      if (ids[i] != 0 || out.added[i]) continue;
      out.of[i] = *lane.noisy;
      out.added[i] = zeros[i] = true;
      number(i);
    }
  };
  const auto each_operand = [&](bool broadcast, const auto& f) {
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (run.broadcast[k] == broadcast) f(k);
    }
  };
  Lane all;  // what every lane reads
  each_operand(true, [&](std::size_t k) {
    fill(all, take(all, first[k], circuit.operands[k]), first[k], circuit.operands[k]);
  });
  for (std::size_t at = 0; at < run.lanes; ++at) {
    Lane lane = all;
    const auto of = [&](std::size_t k) { return first[k] + at * circuit.operands[k]; };
    each_operand(false, [&](std::size_t k) { take(lane, of(k), circuit.operands[k]); });
    each_operand(false,
                 [&](std::size_t k) { fill(lane, take(lane, 0, 0), of(k), circuit.operands[k]); });
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (zeros[i]) out.table[i] += out.each;
  }
  return out;
}

std::vector<History> set_apart(const Apart& apart, const std::vector<History>& operands,
                               const Space& space) {
  std::vector<const History*> parts;
  for (const History& operand : operands) parts.push_back(&operand);
  const History all = History::joined(parts);
  const auto rows = static_cast<std::uint32_t>(all.rows());
  std::vector<std::uint32_t> begin(rows + 1);
  std::iota(begin.begin(), begin.end(), std::uint32_t{0});
  const std::vector<std::int64_t> ones(rows, 1);
  const std::vector<std::int16_t> tables = tables_of(apart, space);
  const History looked =
      all.combined({begin, apart.of, ones})
          .looked_up(
              [tables, table = apart.table, bits = space.bits()](std::size_t row, std::int64_t c) {
                const auto at = tables.begin() + (std::ptrdiff_t{table[row]} << bits);
                const std::vector<std::int64_t> halves(at, at + (std::ptrdiff_t{1} << bits));
                return tfhe::table_origin(halves, bits, c);
              });
  const History* const both[] = {&looked, &all};
  const History joined = History::joined(both);
  std::vector<History> out;
  std::uint32_t row = 0;
  for (const History& operand : operands) {
    std::vector<std::uint32_t> from{0}, column;
    for (std::size_t i = 0; i < operand.rows(); ++i, ++row) {
      column.push_back(row);
      if (apart.added[row]) column.push_back(rows + row);
      from.push_back(static_cast<std::uint32_t>(column.size()));
    }
    out.push_back(joined.combined({from, column, std::vector<std::int64_t>(column.size(), 1)}));
  }
  return out;
}

}  // namespace jali::integers
