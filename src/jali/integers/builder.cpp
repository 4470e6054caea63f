#include "jali/integers/builder.h"

#include <algorithm>
#include <bit>
#include <string>

#include "jali/base/error.h"

namespace jali::integers {

Form Form::within(std::int32_t low, std::int32_t high) const {
  Form out = *this;
  out.lo = std::max(lo, low);
  out.hi = std::min(hi, high);
  return out;
}

Form& Form::operator+=(const Form& other) {
  constant += other.constant;
  lo += other.lo;
  hi += other.hi;
  if (other.terms.empty()) return *this;
  if (terms.empty() || terms.back().source < other.terms.front().source) {
    terms.insert(terms.end(), other.terms.begin(), other.terms.end());
    return *this;
  }
  std::vector<Term> sum;
  sum.reserve(terms.size() + other.terms.size());
  auto a = terms.begin();
  auto b = other.terms.begin();
  while (a != terms.end() || b != other.terms.end()) {
    if (b == other.terms.end() || (a != terms.end() && a->source < b->source)) {
      sum.push_back(*a++);
    } else if (a == terms.end() || b->source < a->source) {
      sum.push_back(*b++);
    } else {
      if (const std::int32_t weight = a->weight + b->weight) sum.push_back({a->source, weight});
      ++a, ++b;
    }
  }
  terms = std::move(sum);
  if (terms.empty()) lo = hi = constant;
  return *this;
}

Form& Form::operator*=(std::int32_t factor) {
  if (factor == 0) return *this = Form(0);
  for (Term& term : terms) term.weight *= factor;
  constant *= factor;
  lo *= factor;
  hi *= factor;
  if (lo > hi) std::swap(lo, hi);
  return *this;
}

Builder::Builder(const Space& space) : space_(validated(space)) {}

std::vector<Form> Builder::operand(std::span<const int> largest, double noise) {
  std::vector<Form> out;
  out.reserve(largest.size());
  for (std::size_t i = 0; i < largest.size(); ++i) {
    sources_.push_back({.node = -1,
                        .operand = static_cast<std::int32_t>(operands_.size()),
                        .index = static_cast<std::uint32_t>(i),
                        .hi = largest[i],
                        .noise = noise,
                        .level = 0});
    out.push_back(of_source(static_cast<std::uint32_t>(sources_.size() - 1)));
  }
  operands_.push_back(static_cast<std::uint32_t>(largest.size()));
  return out;
}

Form Builder::clear(int largest) {
  sources_.push_back(
      {.node = -1, .operand = -1, .index = clear_digits_++, .hi = largest, .noise = 0, .level = 0});
  return of_source(static_cast<std::uint32_t>(sources_.size() - 1));
}

bool Builder::is_clear(const Form& form) const {
  return std::all_of(form.terms.begin(), form.terms.end(), [&](const Form::Term& term) {
    const Source& source = sources_[term.source];
    return source.node < 0 && source.operand < 0;
  });
}

double Builder::noise(const Form& form) const {
  double sum = 0;
  for (const Form::Term& term : form.terms) {
    sum += double(term.weight) * term.weight * sources_[term.source].noise;
  }
  return sum;
}

int Builder::level(const Form& form) const {
  int out = 0;
  for (const Form::Term& term : form.terms) out = std::max(out, sources_[term.source].level);
  return out;
}

void Builder::check_range(const Form& x) const {
  require<InternalError>(x.lo <= x.hi && x.hi - x.lo < space_.size(), [&] {
    return "a look-up of numbers from " + std::to_string(x.lo) + " to " + std::to_string(x.hi) +
           " does not fit " + std::to_string(space_.bits()) + " bits";
  });
}

Form Builder::of_source(std::uint32_t source) const {
  Form out;
  out.terms.push_back({source, 1});
  out.hi = sources_[source].hi;
  return out;
}

std::uint32_t Builder::node_of(Form input, const Form* key) {
  std::uint64_t hash = 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(input.constant);
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  };
  const auto mix_form = [&](const Form& form) {
    for (const Form::Term& term : form.terms) {
      mix(std::uint64_t{term.source} << 32 | static_cast<std::uint32_t>(term.weight));
    }
  };
  mix_form(input);
  if (key) mix_form(*key);
  const auto [first, last] = node_at_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    Node& node = nodes_[it->second];
    const bool same_key =
        key ? node.keys > 1 && node.key.terms == key->terms && node.key.constant == key->constant
            : node.keys == 1;
    if (same_key && node.input.terms == input.terms && node.input.constant == input.constant &&
        node.input.hi == input.hi) {
      return it->second;
    }
  }
  const int wave = level(input) + 1;
  nodes_.push_back({.input = std::move(input),
                    .key = key ? *key : Form(),
                    .keys = key ? key->hi - key->lo + 1 : 1,
                    .level = wave,
                    .outputs = {}});
  node_at_.emplace(hash, static_cast<std::uint32_t>(nodes_.size() - 1));
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t Builder::output_of(std::uint32_t node, std::vector<std::uint8_t> table) {
  for (const Output& output : nodes_[node].outputs) {
    if (std::equal(table.begin(), table.end(), values_.begin() + output.values)) {
      return output.source;
    }
  }
  const auto source = static_cast<std::uint32_t>(sources_.size());
  sources_.push_back({.node = static_cast<std::int32_t>(node),
                      .operand = -1,
                      .index = static_cast<std::uint32_t>(nodes_[node].outputs.size()),
                      .hi = *std::max_element(table.begin(), table.end()),
                      .noise = 1,
                      .level = nodes_[node].level});
  nodes_[node].outputs.push_back(
      {.values = static_cast<std::uint32_t>(values_.size()), .source = source});
  values_.insert(values_.end(), table.begin(), table.end());
  return source;
}

Form Builder::look_up_values(const Form& x, const std::int32_t* values, const Form* key,
                             bool always) {
  if (x.is_constant() && !key) return Form(values[0]);
  const auto size = static_cast<std::size_t>(x.hi - x.lo + 1);
  const std::size_t keys = key ? static_cast<std::size_t>(key->hi - key->lo + 1) : 1;
  const auto [low, high] = std::minmax_element(values, values + size * keys);
  const int base = *low;
  if (base == *high) return Form(base);
  require<InternalError>(*high - base < space_.size(), "the values of a table do not fit a digit");
  // The identity, and x -> constant - x, of a digit as fresh as a look-up would leave it.
  if (!always && !key && x.terms.size() == 1 && std::abs(x.terms[0].weight) == 1 &&
      sources_[x.terms[0].source].noise <= 1) {
    for (const int sign : {1, -1}) {
      bool linear = true;
      for (std::size_t i = 1; linear && i < size; ++i) {
        linear = values[i] == values[0] + sign * static_cast<int>(i);
      }
      if (linear) return x * sign + (values[0] - sign * x.lo);
    }
  }
  std::vector<std::uint8_t> table(size * keys);
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<std::uint8_t>(values[i] - base);
  }
  Form input = x - x.lo;
  input.lo = 0;
  const std::uint32_t node = node_of(tamed(std::move(input)), key);
  return of_source(output_of(node, std::move(table))) + base;
}

Form Builder::packed(const Form& x, const Form& y, int span) {
  const Form low = noise(x) + 1 > space_.noise_budget ? refreshed(x) : x;
  Form high = y - y.lo;
  if (high.terms.size() > 1 && noise(low) + noise(high) * span * span > space_.noise_budget) {
    high = look_up(high, [span](int v) { return v * span; });
  } else {
    high *= span;
  }
  return low - x.lo + high;
}

Form Builder::refreshed(const Form& x) {
  if (x.is_constant()) return x;
  check_range(x);
  std::array<std::int32_t, 256> values{};
  for (int v = x.lo; v <= x.hi; ++v) values[static_cast<std::size_t>(v - x.lo)] = v;
  return look_up_values(x, values.data(), nullptr, true);
}

std::uint32_t Builder::scaled(std::uint32_t source, int factor) {
  const Source from = sources_[source];
  if (from.node >= 0) {
    const Node& node = nodes_[static_cast<std::size_t>(from.node)];
    const auto first = values_.begin() + node.outputs[from.index].values;
    std::vector<std::uint8_t> table(
        first, first + (node.input.hi + 1) * static_cast<std::ptrdiff_t>(node.keys));
    for (std::uint8_t& value : table) value = static_cast<std::uint8_t>(value * factor);
    return output_of(static_cast<std::uint32_t>(from.node), std::move(table));
  }
  std::vector<std::uint8_t> table(static_cast<std::size_t>(from.hi) + 1);
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<std::uint8_t>(i * static_cast<std::size_t>(factor));
  }
  return output_of(node_of(of_source(source), nullptr), std::move(table));
}

Form Builder::tamed(Form x) {
  while (noise(x) > space_.noise_budget) {
    std::size_t worst = x.terms.size();
    double most = 1;
    for (std::size_t i = 0; i < x.terms.size(); ++i) {
      const Source& source = sources_[x.terms[i].source];
      const int weight = std::abs(x.terms[i].weight);
      const double here = double(weight) * weight * source.noise;
      if (here > most && weight * source.hi < space_.size()) most = here, worst = i;
    }
    require<InternalError>(worst < x.terms.size(), [&] {
      return "a sum of " + std::to_string(x.terms.size()) +
             " digits has more noise than a look-up bears";
    });
    const Form::Term term = x.terms[worst];
    const int factor = std::abs(term.weight);
    const std::uint32_t by = scaled(term.source, factor);
    const Form::Term replaced{by, term.weight < 0 ? -1 : 1};
    x.terms.erase(x.terms.begin() + static_cast<std::ptrdiff_t>(worst));
    const auto at = std::lower_bound(
        x.terms.begin(), x.terms.end(), by,
        [](const Form::Term& a, std::uint32_t source) { return a.source < source; });
    if (at != x.terms.end() && at->source == by) {
      at->weight += replaced.weight;
      if (at->weight == 0) x.terms.erase(at);
    } else {
      x.terms.insert(at, replaced);
    }
  }
  return x;
}

void Builder::append(Circuit::Combinations& to, const Form& form,
                     std::span<const std::uint32_t> column_of) const {
  for (const Form::Term& term : form.terms) {
    const Source& source = sources_[term.source];
    if (source.node < 0 && source.operand < 0) {
      to.clear_column.push_back(source.index);
      to.clear_weight.push_back(term.weight);
    } else {
      to.column.push_back(column_of[term.source]);
      to.weight.push_back(term.weight);
    }
  }
  to.begin.push_back(static_cast<std::uint32_t>(to.column.size()));
  to.clear_begin.push_back(static_cast<std::uint32_t>(to.clear_column.size()));
  to.constant.push_back(form.constant);
}

namespace {

/// A rotation before it has its place.
struct Rotation {
  std::uint32_t node = 0;
  int log_many = 0;
  std::vector<std::uint32_t> outputs;  // of the node
  int last_use = 0;
};

/// The first place of `count` neighbouring slots that are free, where slot s is in use up to wave in_use[s].
std::uint32_t find_slots(std::vector<int>& in_use, std::size_t count, int wave) {
  std::size_t run = 0, s = 0;
  for (; s < in_use.size() && run < count; ++s) run = in_use[s] <= wave ? run + 1 : 0;
  if (run < count) in_use.resize(in_use.size() + count - run, 0);
  return static_cast<std::uint32_t>((run < count ? in_use.size() : s) - count);
}

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

  // What the outputs need. A node is made after those that it reads.
  const auto mark = [&](const Form& form) {
    for (const Form::Term& term : form.terms) {
      const Source& source = sources_[term.source];
      if (source.node >= 0) {
        nodes_[static_cast<std::size_t>(source.node)].outputs[source.index].live = true;
      }
    }
  };
  for (const Form& result : results) mark(result);
  int depth = 0;
  for (std::size_t n = nodes_.size(); n-- > 0;) {
    const bool live = std::any_of(nodes_[n].outputs.begin(), nodes_[n].outputs.end(),
                                  [](const Output& output) { return output.live; });
    if (!live) continue;
    depth = std::max(depth, nodes_[n].level);
    mark(nodes_[n].input);
  }

  // Rotations: the live outputs of a node, as many on one as the range of the input allows.
  std::vector<std::vector<Rotation>> waves(static_cast<std::size_t>(depth));
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    Node& node = nodes_[n];
    std::vector<std::uint32_t> live;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o].live) live.push_back(static_cast<std::uint32_t>(o));
    }
    const auto room = static_cast<unsigned>(space_.size() / (node.input.hi + 1));
    const int many = std::min(space_.max_log_many, static_cast<int>(std::bit_width(room)) - 1);
    for (std::size_t at = 0; at < live.size();) {
      const std::size_t take = std::min(live.size() - at, std::size_t{1} << many);
      Rotation rotation{.node = static_cast<std::uint32_t>(n),
                        .log_many = static_cast<int>(std::bit_width(take - 1)),
                        .outputs = {},
                        .last_use = 0};
      rotation.outputs.assign(live.begin() + static_cast<std::ptrdiff_t>(at),
                              live.begin() + static_cast<std::ptrdiff_t>(at + take));
      waves[static_cast<std::size_t>(node.level) - 1].push_back(std::move(rotation));
      at += take;
    }
  }

  // When each rotation's results are read for the last time; outputs are read after the last wave.
  for (auto& wave : waves) {
    std::stable_sort(wave.begin(), wave.end(),
                     [](const Rotation& a, const Rotation& b) { return a.log_many < b.log_many; });
    for (std::size_t r = 0; r < wave.size(); ++r) {
      for (std::size_t place = 0; place < wave[r].outputs.size(); ++place) {
        Output& output = nodes_[wave[r].node].outputs[wave[r].outputs[place]];
        output.rotation = static_cast<std::uint32_t>(r);
        output.place = static_cast<std::uint32_t>(place);
      }
    }
  }
  const auto used = [&](const Form& form, int wave) {
    for (const Form::Term& term : form.terms) {
      const Source& source = sources_[term.source];
      if (source.node < 0) continue;
      const Node& node = nodes_[static_cast<std::size_t>(source.node)];
      int& last =
          waves[static_cast<std::size_t>(node.level) - 1][node.outputs[source.index].rotation]
              .last_use;
      last = std::max(last, wave);
    }
  };
  for (std::size_t w = 0; w < waves.size(); ++w) {
    for (const Rotation& rotation : waves[w]) {
      used(nodes_[rotation.node].input, static_cast<int>(w) + 1);
    }
  }
  for (const Form& result : results) used(result, depth + 1);

  auto circuit = std::make_shared<Circuit>();
  circuit->operands = operands_;
  circuit->clear_digits = clear_digits_;
  std::vector<std::uint32_t> column_of(sources_.size(), ~std::uint32_t{0});
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    if (sources_[s].operand < 0) continue;
    column_of[s] = static_cast<std::uint32_t>(circuit->columns.size());
    circuit->columns.push_back(
        {.operand = sources_[s].operand, .slot = 0, .index = sources_[s].index, .log_many = 0});
  }
  std::vector<int> in_use;
  std::unordered_multimap<std::uint64_t, std::uint32_t> table_at;
  const auto size = static_cast<std::size_t>(space_.size());
  for (std::size_t w = 0; w < waves.size(); ++w) {
    Circuit::Wave wave;
    const int number = static_cast<int>(w) + 1;
    std::size_t slots = 0;
    for (const Rotation& rotation : waves[w]) slots += std::size_t{1} << rotation.log_many;
    wave.slot = find_slots(in_use, slots, number);
    std::uint32_t slot = wave.slot;
    std::vector<std::uint8_t> tables;
    for (const Rotation& rotation : waves[w]) {
      const Node& node = nodes_[rotation.node];
      append(wave.inputs, node.input, column_of);
      if (node.keys > 1) {
        wave.key.push_back(static_cast<std::int32_t>(circuit->keys.rows()));
        append(circuit->keys, node.key - node.key.lo, column_of);
      } else {
        wave.key.push_back(-1);
      }
      // The tables of the outputs, side by side.
      tables.assign(size * static_cast<std::size_t>(node.keys), 0);
      const std::size_t stride = size >> rotation.log_many;
      const auto inputs = static_cast<std::size_t>(node.input.hi) + 1;
      for (std::size_t j = 0; j < rotation.outputs.size(); ++j) {
        const Output& output = node.outputs[rotation.outputs[j]];
        for (std::size_t key = 0; key < static_cast<std::size_t>(node.keys); ++key) {
          const auto from =
              values_.begin() + output.values + static_cast<std::ptrdiff_t>(key * inputs);
          std::copy(from, from + static_cast<std::ptrdiff_t>(inputs),
                    tables.begin() + static_cast<std::ptrdiff_t>(key * size + j * stride));
        }
        column_of[output.source] = static_cast<std::uint32_t>(circuit->columns.size());
        circuit->columns.push_back({.operand = -1,
                                    .slot = slot,
                                    .index = static_cast<std::uint32_t>(j),
                                    .log_many = rotation.log_many});
      }
      std::uint64_t hash = 14695981039346656037u;
      for (const std::uint8_t value : tables) hash = (hash ^ value) * 1099511628211u;
      const auto [first, last] = table_at.equal_range(hash);
      auto same = first;
      while (same != last && !(circuit->tables.size() >= same->second * size + tables.size() &&
                               std::equal(tables.begin(), tables.end(),
                                          circuit->tables.begin() +
                                              static_cast<std::ptrdiff_t>(same->second * size)))) {
        ++same;
      }
      if (same != last) {
        wave.table.push_back(same->second);
      } else {
        wave.table.push_back(static_cast<std::uint32_t>(circuit->tables.size() / size));
        table_at.emplace(hash, wave.table.back());
        circuit->tables.insert(circuit->tables.end(), tables.begin(), tables.end());
      }
      if (wave.groups.empty() || wave.groups.back().log_many != rotation.log_many) {
        wave.groups.push_back({0, rotation.log_many});
      }
      ++wave.groups.back().count;
      for (int j = 0; j < 1 << rotation.log_many; ++j) in_use[slot++] = rotation.last_use;
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
