// The last step of a builder: which results share a rotation, in which wave each rotation runs, and
// where its results lie.
#include <algorithm>
#include <bit>
#include <string>

#include "jali/base/error.h"
#include "jali/integers/builder.h"

namespace jali::integers {

void Builder::append(Circuit::Combinations& to, const Form& form,
                     std::span<const std::uint32_t> column_of) const {
  std::int32_t halves = 2 * form.constant;
  for (const Form::Term& term : form.terms) {
    const Source& source = sources_[term.source];
    if (source.node < 0 && source.operand < 0) {
      to.clear_column.push_back(source.index);
      to.clear_weight.push_back(term.weight);
    } else {
      to.column.push_back(column_of[term.source]);
      to.weight.push_back(term.weight);
      // A threshold is amount / 2 or -amount / 2.
      if (source.node >= 0)
        halves += term.weight * nodes_[static_cast<std::size_t>(source.node)].amount;
    }
  }
  to.begin.push_back(static_cast<std::uint32_t>(to.column.size()));
  to.clear_begin.push_back(static_cast<std::uint32_t>(to.clear_column.size()));
  to.constant.push_back(halves);
}

/// Sets the deadlines of what the results need. A node is made after those that it reads. Returns
/// the number of waves.
int Builder::need(std::span<const Form> results) {
  int depth = 0;
  for (const Form& result : results) depth = std::max(depth, level(result));
  const auto by = [&](const Form& form, int wave) {
    for (const Form::Term& term : form.terms) {
      const Source& source = sources_[term.source];
      if (source.node < 0) continue;
      int& deadline = nodes_[static_cast<std::size_t>(source.node)].outputs[source.index].deadline;
      deadline = deadline == 0 ? wave : std::min(deadline, wave);
    }
  };
  for (const Form& result : results) by(result, depth);
  for (std::size_t n = nodes_.size(); n-- > 0;) {
    int first = 0;
    for (const Output& output : nodes_[n].outputs) {
      if (output.deadline != 0) {
        first = first == 0 ? output.deadline : std::min(first, output.deadline);
      }
    }
    if (first != 0) by(nodes_[n].input, first - 1);
  }
  return depth;
}

/// The outputs that are needed, the most urgent of a node together: as many on one rotation as its
/// range allows, or two neighbouring thresholds.
std::vector<Builder::Rotation> Builder::rotations() {
  std::vector<Rotation> out;
  const auto begin = [&](std::uint32_t node, int stride) {
    out.push_back({.node = node, .stride = stride, .outputs = {}});
  };
  const auto add = [&](Node& node, std::uint32_t o) {
    Rotation& rotation = out.back();
    const int deadline = node.outputs[o].deadline;
    rotation.deadline = rotation.outputs.empty() ? deadline : std::min(rotation.deadline, deadline);
    rotation.outputs.push_back(o);
    node.outputs[o].rotation = static_cast<std::uint32_t>(out.size() - 1);
  };
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    Node& node = nodes_[n];
    std::vector<std::uint32_t> live;
    for (std::uint32_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o].deadline != 0) live.push_back(o);
    }
    if (node.amount != 0) {
      std::ranges::sort(live, std::greater(), [&](std::uint32_t o) { return node.outputs[o].at; });
      for (std::size_t i = 0; i < live.size(); ++i) {
        const bool second = i > 0 && out.back().outputs.size() == 1 &&
                            node.outputs[live[i]].at == node.outputs[live[i - 1]].at - 1;
        if (!second) begin(n, 1);
        add(node, live[i]);
      }
      continue;
    }
    std::ranges::stable_sort(live, {}, [&](std::uint32_t o) { return node.outputs[o].deadline; });
    const auto room = static_cast<unsigned>(space_.size() / (node.input.hi + 1));
    const int most = std::min(space_.max_log_many, static_cast<int>(std::bit_width(room)) - 1);
    for (std::size_t at = 0; at < live.size();) {
      const std::size_t take = std::min(live.size() - at, std::size_t{1} << most);
      begin(n, space_.size() >> std::bit_width(take - 1));
      for (std::size_t i = 0; i < take; ++i) add(node, live[at++]);
    }
  }
  return out;
}

/// Gives each rotation its wave: those whose deadline it is, and then the most urgent ones. These
/// fill it up to what the machine looks up at once, or, of a small circuit, to a third above the
/// average. The inputs of a rotation have earlier deadlines.
void Builder::place(std::vector<Rotation>& rotations, int depth) const {
  const std::size_t most =
      std::min(space_.wave, rotations.size() * 4 / (3 * static_cast<std::size_t>(depth) + 1) + 1);
  std::vector<std::uint32_t> waiting(rotations.size());
  for (std::uint32_t r = 0; r < waiting.size(); ++r) waiting[r] = r;
  std::ranges::stable_sort(waiting, {}, [&](std::uint32_t r) { return rotations[r].deadline; });
  const auto is_ready = [&](const Form& input) {
    return std::ranges::all_of(input.terms, [&](const Form::Term& term) {
      const Source& source = sources_[term.source];
      if (source.node < 0) return true;
      const Node& node = nodes_[static_cast<std::size_t>(source.node)];
      return rotations[node.outputs[source.index].rotation].wave != 0;
    });
  };
  for (int wave = 1; wave <= depth; ++wave) {
    std::size_t taken = 0;
    std::vector<std::uint32_t> now, rest;
    for (const std::uint32_t r : waiting) {
      Rotation& rotation = rotations[r];
      const bool full = taken >= most && rotation.deadline > wave;
      if (full || !is_ready(nodes_[rotation.node].input)) {
        rest.push_back(r);
        continue;
      }
      now.push_back(r);
      ++taken;
    }
    for (const std::uint32_t r : now) rotations[r].wave = wave;
    waiting = std::move(rest);
  }
}

namespace {

/// The first place of `count` neighbouring slots that are free, where slot s is in use up to wave
/// in_use[s].
std::uint32_t find_slots(std::vector<int>& in_use, std::size_t count, int wave) {
  std::size_t run = 0, s = 0;
  for (; s < in_use.size() && run < count; ++s) run = in_use[s] <= wave ? run + 1 : 0;
  if (run < count) in_use.resize(in_use.size() + count - run, 0);
  return static_cast<std::uint32_t>((run < count ? in_use.size() : s) - count);
}

/// Tables of a circuit, each once.
class Tables {
 public:
  Tables(std::vector<std::int16_t>& all, std::size_t size) : all_(all), size_(size) {}

  /// The number of the first of these tables.
  std::uint32_t number(std::span<const std::int16_t> tables) {
    std::uint64_t hash = 14695981039346656037u;
    for (const std::int16_t value : tables) {
      hash = (hash ^ static_cast<std::uint16_t>(value)) * 1099511628211u;
    }
    const auto [first, last] = at_.equal_range(hash);
    for (auto same = first; same != last; ++same) {
      const std::size_t from = same->second * size_;
      if (from + tables.size() <= all_.size() &&
          std::equal(tables.begin(), tables.end(),
                     all_.begin() + static_cast<std::ptrdiff_t>(from))) {
        return same->second;
      }
    }
    const auto out = static_cast<std::uint32_t>(all_.size() / size_);
    at_.emplace(hash, out);
    all_.insert(all_.end(), tables.begin(), tables.end());
    return out;
  }

 private:
  std::vector<std::int16_t>& all_;
  std::size_t size_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> at_;
};

}  // namespace

std::shared_ptr<const Circuit> Builder::finish(std::span<const Form> outputs,
                                               std::span<const int> largest, double most_noise) {
  std::vector<Form> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Form result = noise(outputs[i]) > most_noise ? refreshed(outputs[i]) : outputs[i];
    require<InternalError>(result.lo >= 0 && result.hi <= largest[i], [&] {
      return "an output from " + std::to_string(result.lo) + " to " + std::to_string(result.hi) +
             " is no digit up to " + std::to_string(largest[i]);
    });
    results.push_back(std::move(result));
  }
  const int depth = need(results);
  std::vector<Rotation> all = rotations();
  place(all, depth);

  // The rotations of each wave, by kind; and when their results are read for the last time, the
  // outputs after all waves.
  std::vector<std::vector<std::uint32_t>> waves(static_cast<std::size_t>(depth));
  const auto read_by = [&](const Form& form, int wave) {
    for (const Form::Term& term : form.terms) {
      const Source& source = sources_[term.source];
      if (source.node < 0) continue;
      const Node& node = nodes_[static_cast<std::size_t>(source.node)];
      int& last = all[node.outputs[source.index].rotation].last_use;
      last = std::max(last, wave);
    }
  };
  for (std::uint32_t r = 0; r < all.size(); ++r) {
    waves[static_cast<std::size_t>(all[r].wave) - 1].push_back(r);
    read_by(nodes_[all[r].node].input, all[r].wave);
  }
  for (const Form& result : results) read_by(result, depth + 1);

  auto circuit = std::make_shared<Circuit>();
  circuit->operands = operands_;
  circuit->clear_digits = clear_digits_;
  std::vector<std::uint32_t> column_of(sources_.size(), nowhere);
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    if (sources_[s].operand < 0) continue;
    column_of[s] = static_cast<std::uint32_t>(circuit->columns.size());
    circuit->columns.push_back({.operand = sources_[s].operand, .index = sources_[s].index});
  }
  const auto size = static_cast<std::size_t>(space_.size());
  std::vector<int> in_use;
  Tables tables(circuit->tables, size);
  std::vector<std::int16_t> values;
  for (std::size_t w = 0; w < waves.size(); ++w) {
    const auto kind = [&](std::uint32_t r) {
      return std::pair(all[r].stride, all[r].outputs.size());
    };
    std::ranges::stable_sort(waves[w], std::greater(), kind);
    Circuit::Wave wave;
    std::size_t slots = 0;
    for (const std::uint32_t r : waves[w]) slots += all[r].outputs.size();
    wave.slot = find_slots(in_use, slots, static_cast<int>(w) + 1);
    std::uint32_t slot = wave.slot;
    for (const std::uint32_t r : waves[w]) {
      const Rotation& rotation = all[r];
      const Node& node = nodes_[rotation.node];
      const std::size_t results_of = rotation.outputs.size();
      Form input = node.input;
      values.assign(size * static_cast<std::size_t>(node.keys), 0);
      if (node.amount != 0) {  // -amount / 2 up to 2^p - 1; the highest threshold comes first
        std::ranges::fill(values, static_cast<std::int16_t>(-node.amount));
        input = input + (space_.size() - node.outputs[rotation.outputs[0]].at);
      } else {
        const auto inputs = static_cast<std::size_t>(node.input.hi) + 1;
        for (std::size_t j = 0; j < results_of; ++j) {
          const std::size_t first = node.outputs[rotation.outputs[j]].values;
          for (std::size_t key = 0; key < static_cast<std::size_t>(node.keys); ++key) {
            for (std::size_t x = 0; x < inputs; ++x) {
              values[key * size + j * static_cast<std::size_t>(rotation.stride) + x] =
                  static_cast<std::int16_t>(2 * values_[first + key * inputs + x]);
            }
          }
        }
      }
      append(wave.inputs, input, column_of);
      wave.table.push_back(tables.number(values));
      wave.key.push_back(-1);
      if (node.keys > 1) {
        wave.key.back() = static_cast<std::int32_t>(circuit->keys.rows());
        append(circuit->keys, node.key - node.key.lo, column_of);
      }
      for (std::size_t j = 0; j < results_of; ++j) {
        column_of[node.outputs[rotation.outputs[j]].source] =
            static_cast<std::uint32_t>(circuit->columns.size());
        circuit->columns.push_back({.slot = slot,
                                    .index = static_cast<std::uint32_t>(j),
                                    .results = static_cast<std::uint32_t>(results_of)});
      }
      const RowLookUps::Group group{0, static_cast<int>(results_of), rotation.stride};
      if (wave.groups.empty() || wave.groups.back().results != group.results ||
          wave.groups.back().stride != group.stride) {
        wave.groups.push_back(group);
      }
      ++wave.groups.back().count;
      for (std::size_t j = 0; j < results_of; ++j) in_use[slot++] = rotation.last_use;
    }
    circuit->widest = std::max(circuit->widest, static_cast<std::uint32_t>(waves[w].size()));
    circuit->waves.push_back(std::move(wave));
  }
  circuit->arena = static_cast<std::uint32_t>(in_use.size());
  for (const Form& result : results) {
    append(circuit->outputs, result, column_of);
    circuit->output_noise = std::max(circuit->output_noise, noise(result));
  }
  return circuit;
}

}  // namespace jali::integers
