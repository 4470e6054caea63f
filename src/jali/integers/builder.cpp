#include "jali/integers/builder.h"

#include <algorithm>
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

std::uint32_t Builder::node_of(Form input, const Form* key, int amount) {
  std::uint64_t hash = 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(input.constant) +
                       (static_cast<std::uint64_t>(amount) << 32);
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
    if (same_key && node.amount == amount && node.input.terms == input.terms &&
        node.input.constant == input.constant && (amount != 0 || node.input.hi == input.hi)) {
      return it->second;
    }
  }
  const int wave = level(input) + 1;
  nodes_.push_back({.input = std::move(input),
                    .key = key ? *key : Form(),
                    .keys = key ? key->hi - key->lo + 1 : 1,
                    .amount = amount,
                    .level = wave,
                    .outputs = {}});
  node_at_.emplace(hash, static_cast<std::uint32_t>(nodes_.size() - 1));
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t Builder::output_of(std::uint32_t node, std::span<const std::int16_t> table) {
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

std::uint32_t Builder::threshold_of(std::uint32_t node, std::int32_t at) {
  for (const Output& output : nodes_[node].outputs) {
    if (output.at == at) return output.source;
  }
  const auto source = static_cast<std::uint32_t>(sources_.size());
  sources_.push_back({.node = static_cast<std::int32_t>(node),
                      .operand = -1,
                      .index = static_cast<std::uint32_t>(nodes_[node].outputs.size()),
                      .hi = nodes_[node].amount,
                      .noise = 1,
                      .level = nodes_[node].level});
  nodes_[node].outputs.push_back({.at = at, .source = source});
  return source;
}

Form Builder::threshold(const Form& x, int at, int amount) {
  if (at <= x.lo) return amount;
  if (at > x.hi) return 0;
  if (!space_.negacyclic || x.hi - x.lo < space_.size()) {
    return look_up(x, [&](int v) { return v >= at ? amount : 0; });
  }
  require<InternalError>(takes(x.lo, x.hi, at), [&] {
    return "a threshold at " + std::to_string(at) + " of numbers from " + std::to_string(x.lo) +
           " to " + std::to_string(x.hi) + " does not fit " + std::to_string(space_.bits()) +
           " bits";
  });
  Form input = tamed(x);
  at -= input.constant;
  input.constant = 0;
  return of_source(threshold_of(node_of(std::move(input), nullptr, amount), at));
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
  std::vector<std::int16_t> table(size * keys);
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<std::int16_t>(values[i] - base);
  }
  Form input = x - x.lo;
  input.lo = 0;
  const std::uint32_t node = node_of(tamed(std::move(input)), key);
  return of_source(output_of(node, table)) + base;
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
    if (node.amount != 0) {
      const std::int32_t at = node.outputs[from.index].at;
      return threshold_of(node_of(node.input, nullptr, node.amount * factor), at);
    }
    const auto first = values_.begin() + node.outputs[from.index].values;
    std::vector<std::int16_t> table(
        first, first + (node.input.hi + 1) * static_cast<std::ptrdiff_t>(node.keys));
    for (std::int16_t& value : table) value = static_cast<std::int16_t>(value * factor);
    return output_of(static_cast<std::uint32_t>(from.node), table);
  }
  std::vector<std::int16_t> table(static_cast<std::size_t>(from.hi) + 1);
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<std::int16_t>(i * static_cast<std::size_t>(factor));
  }
  return output_of(node_of(of_source(source), nullptr), table);
}

Form Builder::tamed(Form x) {
  // Tables give numbers of the whole circle, if there is one.
  const int most_value = space_.negacyclic ? 2 * space_.size() : space_.size();
  while (noise(x) > space_.noise_budget) {
    std::size_t worst = x.terms.size();
    double most = 1;
    for (std::size_t i = 0; i < x.terms.size(); ++i) {
      const Source& source = sources_[x.terms[i].source];
      const int weight = std::abs(x.terms[i].weight);
      const double here = double(weight) * weight * source.noise;
      if (here > most && weight * source.hi < most_value) most = here, worst = i;
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

}  // namespace jali::integers
