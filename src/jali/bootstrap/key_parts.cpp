#include "jali/bootstrap/key_parts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/bootstrap/shape.h"

namespace jali::bootstrap {
namespace {

using circuits::LevelCost;
using circuits::Sequence;

/// The diagonals as a sequence has them: shifted to begin at 0, as those of a HomomorphicDft are.
std::vector<int> shifted(const std::vector<int>& diagonals, std::size_t slots) {
  const int n = static_cast<int>(slots);
  const int first = circuits::first_diagonal({diagonals.begin(), diagonals.end()}, slots);
  std::vector<int> out;
  for (int d : diagonals) out.push_back((d - first + n) % n);
  std::ranges::sort(out);
  return out;
}

Part matrix(const ckks::Params& params, const circuits::DftOptions& dft, int level,
            const std::vector<int>& diagonals, std::size_t slots) {
  Part part{params.whole_level(level), {}, {}};
  circuits::BsgsOptions options = dft.bsgs;
  const auto way = [&](const std::vector<int>& indices) {
    const auto plan = circuits::plan_bsgs(params, level, slots, {{indices}}, options);
    return Way{plan.rotations(), plan.cost, options.sequence.value_or(Sequence{}), 1};
  };
  part.all = way(diagonals);
  const std::vector<int> moved = shifted(diagonals, slots);
  for (int babies = 1; babies < 2 * static_cast<int>(moved.size()); babies *= 2) {
    for (int own = 1; own <= babies; own *= 2) {
      options.sequence = Sequence{babies, own};
      part.few.push_back(way(moved));
    }
  }
  return part;
}

// A power of two without a key is composed of the next lower one that has a key.
Part trace(const ckks::Params& params, int level, int log_slots, double launches) {
  Part part{params.whole_level(level), {}, {}};
  const double one = LevelCost(params, level).rotation() + launches;
  for (const int stride : {1, 2, 4}) {
    Way way;
    way.trace = stride;
    for (int k = 0; log_slots + k < params.log_n() - 1; ++k) {
      if (k % stride == 0) way.rotations.push_back(1 << (log_slots + k));
      way.cost += one * (1 << k % stride);
    }
    part.few.push_back(std::move(way));
  }
  part.all = part.few.front();
  return part;
}

}  // namespace

std::vector<Part> parts_of(const ckks::Params& params, int log_slots) {
  const Shape shape = shape_of(params, log_slots);
  const std::size_t slots = std::size_t{1} << (log_slots + (shape.side_by_side ? 1 : 0));
  std::vector<Part> out;
  const auto add = [&](circuits::Dft direction, const circuits::DftOptions& dft) {
    int level = dft.level;
    for (const auto& diagonals :
         circuits::dft_diagonals(direction, log_slots, dft.levels, shape.side_by_side)) {
      out.push_back(matrix(params, dft, level--, diagonals, slots));
    }
  };
  add(circuits::Dft::coefficients_to_slots, shape.to_slots);
  add(circuits::Dft::slots_to_coefficients, shape.to_coefficients);
  out.push_back(trace(params, shape.to_slots.level, log_slots, shape.to_slots.bsgs.launches));
  return out;
}

FewKeys few_of(const ckks::Params& params, int log_slots, std::span<const Way* const> ways) {
  const auto levels = static_cast<std::size_t>(shape_of(params, log_slots).to_slots.levels);
  FewKeys out;
  for (std::size_t k = 0; k + 1 < ways.size(); ++k) {
    (k < levels ? out.to_slots : out.to_coefficients).push_back(ways[k]->sequence);
  }
  out.trace = ways.back()->trace;
  return out;
}

int turn_of(const ckks::Params& params, int log_slots) {
  const Shape shape = shape_of(params, log_slots);
  const std::size_t slots = std::size_t{1} << (log_slots + (shape.side_by_side ? 1 : 0));
  long long shift = 0;
  for (const auto& [direction, levels] :
       {std::pair(circuits::Dft::coefficients_to_slots, shape.to_slots.levels),
        std::pair(circuits::Dft::slots_to_coefficients, shape.to_coefficients.levels)}) {
    for (const auto& d :
         circuits::dft_diagonals(direction, log_slots, levels, shape.side_by_side)) {
      shift += circuits::first_diagonal({d.begin(), d.end()}, slots);
    }
  }
  return circuits::signed_rotation(shift, std::size_t{1} << log_slots);
}

double other_cost(const ckks::Params& params, int log_slots, bool real) {
  const auto& b = *params.bootstrap();
  const Shape shape = shape_of(params, log_slots);
  const int level = shape.to_slots.level - shape.to_slots.levels;
  double total = LevelCost(params, level).rotation() + shape.to_slots.bsgs.launches;
  const auto switches = circuits::ModularReduction(reduction_options(b)).key_switches();
  const double numbers = shape.side_by_side || real ? 1 : 2;
  for (std::size_t k = 0; k < switches.size(); ++k) {
    const LevelCost cost(params, level - static_cast<int>(k));
    const double one = numbers * cost.rotation() + shape.to_slots.bsgs.launches;
    total += static_cast<double>(switches[k]) * one;
  }
  return total;
}

void check_slots(const ckks::Params& params, int log_slots) {
  require<InvalidArgument>(log_slots >= 1 && log_slots < params.log_n(), [&] {
    return "bootstrapping serves 2 to 2^" + std::to_string(params.log_n() - 1) + " slots, not 2^" +
           std::to_string(log_slots);
  });
}

std::map<int, int> rotation_levels(const ckks::Params& params, int log_slots,
                                   const std::optional<FewKeys>& few) {
  if (few && few->log_slots >= 0) log_slots = few->log_slots;
  const Shape shape = shape_of(params, log_slots);
  const std::size_t slots = std::size_t{1} << (log_slots + (shape.side_by_side ? 1 : 0));
  const bool sequences = few && !few->to_slots.empty();
  std::map<int, int> levels;
  const auto add = [&](int steps, int level) {
    const int r = circuits::signed_rotation(steps, params.slots());
    levels[r] = std::max(levels[r], params.whole_level(level));
  };
  const auto add_matrices = [&](circuits::Dft direction, const circuits::DftOptions& dft,
                                std::span<const Sequence> few_of_each) {
    int level = dft.level;
    std::size_t k = 0;
    for (const auto& diagonals :
         circuits::dft_diagonals(direction, log_slots, dft.levels, shape.side_by_side)) {
      circuits::BsgsOptions options = dft.bsgs;
      if (sequences) options.sequence = few_of_each[k++];
      for (const int r :
           circuits::plan_bsgs(params, level, slots,
                               {{sequences ? shifted(diagonals, slots) : diagonals}}, options)
               .rotations()) {
        add(r, level);
      }
      --level;
    }
  };
  add_matrices(circuits::Dft::coefficients_to_slots, shape.to_slots,
               sequences ? few->to_slots : std::span<const Sequence>());
  add_matrices(circuits::Dft::slots_to_coefficients, shape.to_coefficients,
               sequences ? few->to_coefficients : std::span<const Sequence>());
  if (sequences) {
    if (const int turn = turn_of(params, log_slots); turn != 0) add(turn, params.depth());
  }
  // Those of the trace. With few keys, not every one has a key, and the others are composed of the
  // one before it that has.
  const int stride = few ? few->trace : 1;
  int k = 0;
  for (std::size_t r = std::size_t{1} << log_slots; r < params.slots(); r *= 2, ++k) {
    if (k % stride == 0) add(static_cast<int>(r), shape.to_slots.level);
  }
  return levels;
}

int conjugation_level(const ckks::Params& params, int log_slots) {
  const Shape shape = shape_of(params, log_slots);
  return params.whole_level(shape.to_slots.level - shape.to_slots.levels);
}

}  // namespace jali::bootstrap
