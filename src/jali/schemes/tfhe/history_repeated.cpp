// The histories of a recording that is repeated with other inputs.
#include <map>
#include <utility>

#include "jali/base/error.h"
#include "jali/schemes/tfhe/history.h"

namespace jali::tfhe {

class History::Repeater {
 public:
  Repeater(std::span<const History* const> recorded, std::span<const History* const> given) {
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      for (std::size_t row = 0; row < recorded[i]->rows(); ++row) {
        for (const Term& term : recorded[i]->terms(row)) {
          place_[{recorded[i]->sources_[term.source].get(), term.row}] = {given[i], row};
        }
      }
    }
  }

  /// The same combinations of what takes the place of their ciphertexts. An example is a row of
  /// `given`, and what was made of examples is made again.
  History again(const History& of) {
    History out;
    std::map<const Source*, std::uint32_t> number;
    std::vector<Term> terms;
    std::uint64_t half_steps = 0;  // of a row, modulo 2^64
    const auto add = [&](const std::shared_ptr<const Source>& source, std::uint32_t row,
                         std::int64_t weight) {
      const Origin& origin = source->origin[row];
      if (origin.id == kNoError) {  // a look-up of an input that is now a constant
        half_steps +=
            static_cast<std::uint64_t>(origin.half_steps) * static_cast<std::uint64_t>(weight);
        return;
      }
      const auto at = static_cast<std::uint32_t>(out.sources_.size());
      const auto [found, fresh] = number.emplace(source.get(), at);
      if (fresh) out.sources_.push_back(source);
      terms.push_back({found->second, row, weight});
    };
    for (std::size_t row = 0; row < of.rows(); ++row) {
      terms.clear();
      half_steps = static_cast<std::uint64_t>(of.half_steps_[row]);
      for (const Term& term : of.terms(row)) {
        const auto& source = of.sources_[term.source];
        const auto input = place_.find({source.get(), term.row});
        if (input == place_.end()) {
          add(renewed(source), term.row, term.weight);
          continue;
        }
        const auto& [from, from_row] = input->second;
        for (const Term& inner : from->terms(from_row)) {
          add(from->sources_[inner.source], inner.row, inner.weight * term.weight);
        }
        half_steps += static_cast<std::uint64_t>(from->half_steps_[from_row]) *
                      static_cast<std::uint64_t>(term.weight);
      }
      out.append(terms, static_cast<std::int64_t>(half_steps));
      require<InvalidArgument>(
          out.norm2(row) <= of.norm2(row) * (1 + 1e-12),
          "an input of the captured function shares errors with what the function computes or "
          "refers to: refresh it before, or look it up in another table");
    }
    return out;
  }

 private:
  std::shared_ptr<const Source> renewed(const std::shared_ptr<const Source>& source) {
    if (!source->remake) return source;  // not of the recording
    auto& made = made_[source.get()];
    if (made == nullptr) {
      std::vector<History> inputs;
      for (const History& input : source->inputs) inputs.push_back(again(input));
      auto fresh = std::make_shared<Source>();
      fresh->norm2 = source->norm2;
      fresh->origin = source->remake(inputs);
      made = std::move(fresh);
    }
    return made;
  }

  std::map<std::pair<const Source*, std::uint32_t>, std::pair<const History*, std::size_t>> place_;
  std::map<const Source*, std::shared_ptr<const Source>> made_;
};

std::vector<History> History::repeated(std::span<const History* const> results,
                                       std::span<const History* const> recorded,
                                       std::span<const History* const> given) {
  Repeater repeater(recorded, given);
  std::vector<History> out;
  for (const History* result : results) out.push_back(repeater.again(*result));
  return out;
}

}  // namespace jali::tfhe
