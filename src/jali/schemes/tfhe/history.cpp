#include "jali/schemes/tfhe/history.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "jali/base/error.h"

namespace jali::tfhe {

History History::clear(std::span<const std::int64_t> half_steps) {
  History out;
  out.begin_.assign(half_steps.size() + 1, 0);
  out.half_steps_.assign(half_steps.begin(), half_steps.end());
  return out;
}

History History::of(std::shared_ptr<const Source> source) {
  History out;
  const std::size_t rows = source->origin.size();
  for (std::uint32_t row = 0; row < rows; ++row) {
    const Origin& origin = source->origin[row];
    const bool constant = origin.id == kNoError;
    if (!constant) out.terms_.push_back({0, row, 1});
    out.begin_.push_back(out.terms_.size());
    out.half_steps_.push_back(constant ? origin.half_steps : 0);
  }
  out.sources_.push_back(std::move(source));
  return out;
}

History History::made(std::vector<Origin> origins) {
  auto source = std::make_shared<Source>();
  source->origin = std::move(origins);
  return of(std::move(source));
}

History History::unknown(std::size_t rows, double norm2) {
  auto source = std::make_shared<Source>();
  source->norm2 = norm2;
  source->origin.assign(rows, {kUnknown});
  return of(std::move(source));
}

bool History::known() const {
  return std::ranges::all_of(terms_, [&](const Term& term) {
    const Source& source = *sources_[term.source];
    return source.norm2 == 1 && source.origin[term.row].id != kUnknown;
  });
}

History History::encrypted(const random::Seed& seed, std::size_t rows, double norm2) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < seed.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, seed.data() + i, sizeof word);
    all = mixed(all, word);
  }
  auto source = std::make_shared<Source>();
  source->norm2 = norm2;
  for (std::size_t row = 0; row < rows; ++row) source->origin.push_back({mixed(all, row)});
  return of(std::move(source));
}

History History::fresh(std::size_t rows, double norm2) {
  auto source = std::make_shared<Source>();
  source->norm2 = norm2;
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(source.get()));
  for (std::size_t row = 0; row < rows; ++row) source->origin.push_back({mixed(address, row)});
  return of(std::move(source));
}

double History::norm2(std::size_t row) const {
  const auto all = terms(row);
  if (all.empty()) return 0;
  if (all.size() == 1) {  // exact, also if the squared norm is no square
    const auto weight = static_cast<double>(all[0].weight);
    return weight * weight * sources_[all[0].source]->norm2;
  }
  std::vector<Part> parts;
  parts.reserve(all.size());
  for_each(row, [&](const Origin& origin, std::int64_t weight, double norm2) {
    parts.push_back({&origin, weight, norm2});
  });
  return squared_norm(parts);
}

double History::norm2() const {
  double most = 0;
  if (!distinct()) {
    for (std::size_t row = 0; row < rows(); ++row) most = std::max(most, norm2(row));
    return most;
  }
  for (std::size_t row = 0; row < rows(); ++row) {
    double total = 0;
    for (const Term& term : terms(row)) {
      const auto weight = static_cast<double>(term.weight);
      total += weight * weight * sources_[term.source]->norm2;
    }
    most = std::max(most, total);
  }
  return most;
}

bool History::distinct() const {
  std::size_t count = 0;
  for (const auto& source : sources_) count += source->origin.size();
  if (count > terms_.size()) return false;  // it would take longer than to look at every row
  std::vector<std::uint64_t> ids;
  ids.reserve(count);
  for (const auto& source : sources_) {
    for (const Origin& origin : source->origin) {
      if (origin.id != kNoError) ids.push_back(origin.id);
    }
  }
  std::ranges::sort(ids);
  return std::ranges::adjacent_find(ids) == ids.end();
}

History::Combination History::combination(std::size_t row) const {
  std::uint64_t id = 0, constant = static_cast<std::uint64_t>(half_steps_[row]);
  for (const Term& term : terms(row)) {
    const Origin& origin = sources_[term.source]->origin[term.row];
    const auto weight = static_cast<std::uint64_t>(term.weight);
    id += origin.times(weight);
    constant += weight * static_cast<std::uint64_t>(origin.half_steps);
  }
  return {id, static_cast<std::int64_t>(constant)};
}

void History::append(std::vector<Term>& terms, std::int64_t half_steps) {
  // Rows of a matrix whose columns ascend, of ciphertexts that are no sums, come in order.
  if (!std::ranges::is_sorted(terms)) std::ranges::sort(terms);
  for (std::size_t i = 0, end = 0; i < terms.size(); i = end) {
    Term sum = terms[i];
    for (end = i + 1;
         end < terms.size() && terms[end].source == sum.source && terms[end].row == sum.row;
         ++end) {
      sum.weight += terms[end].weight;
    }
    if (sum.weight != 0) terms_.push_back(sum);
  }
  require<LimitExceeded>(terms_.size() - begin_.back() <= kMostTerms,
                         "a ciphertext would be the sum of more than 65536 others: bootstrap the "
                         "terms before");
  begin_.push_back(terms_.size());
  half_steps_.push_back(half_steps);
}

History History::joined(std::span<const History* const> parts) {
  History out;
  for (const History* part : parts) {
    std::vector<std::uint32_t> number;  // of the part's sources in out
    for (const auto& source : part->sources_) {
      const auto at = std::ranges::find(out.sources_, source);
      number.push_back(static_cast<std::uint32_t>(at - out.sources_.begin()));
      if (at == out.sources_.end()) out.sources_.push_back(source);
    }
    std::vector<Term> row;
    for (std::size_t r = 0; r < part->rows(); ++r) {
      row.clear();
      for (const Term& term : part->terms(r)) {
        row.push_back({number[term.source], term.row, term.weight});
      }
      out.append(row, part->half_steps_[r]);
    }
  }
  return out;
}

History History::combined(const Weights& weights) const {
  History out;
  std::vector<Term> row;
  std::vector<std::uint32_t> number(sources_.size(), std::numeric_limits<std::uint32_t>::max());
  for (std::size_t r = 0; r + 1 < weights.begin.size(); ++r) {
    row.clear();
    // Unsigned, so that a sum that overflows is one modulo 2^64.
    std::uint64_t constant =
        weights.half_steps.empty() ? 0 : static_cast<std::uint64_t>(weights.half_steps[r]);
    for (std::size_t e = weights.begin[r]; e < weights.begin[r + 1]; ++e) {
      constant += static_cast<std::uint64_t>(half_steps_[weights.column[e]]) *
                  static_cast<std::uint64_t>(weights.weight[e]);
      for (const Term& term : terms(weights.column[e])) {
        std::uint32_t& source = number[term.source];
        if (source == std::numeric_limits<std::uint32_t>::max()) {
          source = static_cast<std::uint32_t>(out.sources_.size());
          out.sources_.push_back(sources_[term.source]);
        }
        row.push_back({source, term.row, term.weight * weights.weight[e]});
      }
    }
    out.append(row, static_cast<std::int64_t>(constant));
  }
  return out;
}

bool History::independent() const {
  std::set<std::uint64_t> seen;
  for (std::size_t row = 0; row < rows(); ++row) {
    const auto of_row = terms(row);
    if (of_row.size() > 1) return false;
    for (const Term& term : of_row) {
      if (!seen.insert(sources_[term.source]->origin[term.row].id).second) return false;
    }
  }
  return true;
}

bool History::recorded() const {
  return std::ranges::any_of(sources_, [](const auto& source) { return source->recorded; });
}

History History::example(std::size_t rows, double norm2) {
  History out = fresh(rows, norm2);
  auto source = std::make_shared<Source>(*out.sources_[0]);
  source->recorded = true;
  return of(std::move(source));
}

History History::derived(std::vector<History> inputs, const Remake& remake) {
  auto source = std::make_shared<Source>();
  source->origin = remake(inputs);
  if (std::ranges::any_of(inputs, &History::recorded)) {
    source->recorded = true;
    source->inputs = std::move(inputs);
    source->remake = remake;
  }
  return of(std::move(source));
}

History History::looked_up(TableOf table) const {
  return derived({*this}, [table = std::move(table)](std::span<const History> inputs) {
    const History& input = inputs[0];
    std::vector<Origin> out(input.rows());
    for (std::size_t row = 0; row < out.size(); ++row) {
      const Combination of = input.combination(row);
      out[row] = origin_after(table(row, of.half_steps), of.id, input.terms(row).empty());
    }
    return out;
  });
}

}  // namespace jali::tfhe
