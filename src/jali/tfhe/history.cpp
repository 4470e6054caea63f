#include "jali/tfhe/history.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

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
