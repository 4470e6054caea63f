#include "jali/tfhe/history.h"

#include <algorithm>
#include <limits>
#include <map>
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

History History::fresh(std::span<const std::uint32_t> same, double norm2) {
  History out;
  out.sources_.push_back(std::make_shared<const Source>(Source{norm2}));
  for (const std::uint32_t row : same) {
    out.terms_.push_back({0, row, 1});
    out.begin_.push_back(out.terms_.size());
  }
  out.half_steps_.assign(same.size(), 0);
  return out;
}

History History::fresh(std::size_t rows, double norm2) {
  std::vector<std::uint32_t> all(rows);
  std::iota(all.begin(), all.end(), std::uint32_t{0});
  return fresh(all, norm2);
}

double History::norm2(std::size_t row) const {
  double sum = 0;
  for (const Term& term : terms(row)) {
    const auto weight = static_cast<double>(term.weight);
    sum += weight * weight * sources_[term.source]->norm2;
  }
  return sum;
}

double History::norm2() const {
  double most = 0;
  for (std::size_t row = 0; row < rows(); ++row) most = std::max(most, norm2(row));
  return most;
}

void History::append(std::vector<Term>& terms, std::int64_t half_steps) {
  std::ranges::sort(terms);
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
  std::set<std::pair<const Source*, std::uint32_t>> seen;
  for (std::size_t row = 0; row < rows(); ++row) {
    const auto of_row = terms(row);
    if (of_row.size() > 1) return false;
    for (const Term& term : of_row) {
      if (!seen.emplace(sources_[term.source].get(), term.row).second) return false;
    }
  }
  return true;
}

std::vector<History> History::repeated(std::span<const History* const> results,
                                       std::span<const History* const> recorded,
                                       std::span<const History* const> given) {
  // A source of `recorded`, with its row, is a row of `given`; every other source of the results is a new one.
  std::map<std::pair<const Source*, std::uint32_t>, std::pair<const History*, std::size_t>> place;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    for (std::size_t row = 0; row < recorded[i]->rows(); ++row) {
      for (const Term& term : recorded[i]->terms(row)) {
        place[{recorded[i]->sources_[term.source].get(), term.row}] = {given[i], row};
      }
    }
  }
  std::map<const Source*, std::shared_ptr<const Source>> made;
  std::vector<History> out;
  for (const History* result : results) {
    History history;
    std::map<const Source*, std::uint32_t> number;
    std::vector<Term> terms;
    const auto add = [&](const std::shared_ptr<const Source>& source, std::uint32_t row,
                         std::int64_t weight) {
      const auto at = static_cast<std::uint32_t>(history.sources_.size());
      const auto [found, fresh] = number.emplace(source.get(), at);
      if (fresh) history.sources_.push_back(source);
      terms.push_back({found->second, row, weight});
    };
    for (std::size_t row = 0; row < result->rows(); ++row) {
      terms.clear();
      auto half_steps = static_cast<std::uint64_t>(result->half_steps_[row]);  // modulo 2^64
      for (const Term& term : result->terms(row)) {
        const auto& source = result->sources_[term.source];
        const auto input = place.find({source.get(), term.row});
        if (input == place.end()) {
          auto& renewed = made[source.get()];
          if (renewed == nullptr) renewed = std::make_shared<const Source>(*source);
          add(renewed, term.row, term.weight);
          continue;
        }
        const auto& [of, of_row] = input->second;
        for (const Term& inner : of->terms(of_row)) {
          add(of->sources_[inner.source], inner.row, inner.weight * term.weight);
        }
        half_steps += static_cast<std::uint64_t>(of->half_steps_[of_row]) *
                      static_cast<std::uint64_t>(term.weight);
      }
      history.append(terms, static_cast<std::int64_t>(half_steps));
    }
    out.push_back(std::move(history));
  }
  return out;
}

std::vector<std::uint32_t> History::first_equal(std::span<const std::uint32_t> mark) const {
  const auto less = [&](std::uint32_t a, std::uint32_t b) {
    if (half_steps_[a] != half_steps_[b]) return half_steps_[a] < half_steps_[b];
    if (!mark.empty() && mark[a] != mark[b]) return mark[a] < mark[b];
    const auto x = terms(a), y = terms(b);
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  };
  std::map<std::uint32_t, std::uint32_t, decltype(less)> first(less);
  std::vector<std::uint32_t> out;
  out.reserve(rows());
  for (std::uint32_t row = 0; row < rows(); ++row) {
    out.push_back(first.emplace(row, row).first->second);
  }
  return out;
}

}  // namespace jali::tfhe
