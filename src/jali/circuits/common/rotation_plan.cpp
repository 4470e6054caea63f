#include "jali/circuits/common/rotation_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::circuits {
namespace {

// Times in units of the NTT of one limb, measured at N = 2^14 (AVX-512 IFMA, one thread; bench:
// matvec). kKeyLimb and kDiagonalLimb: a multiply-accumulate with a limb of a key, and of a
// diagonal, read from memory in the order of use. kModUp and kModDown: the factor by which a base
// conversion takes longer than its transforms. kEmbedding: the floating-point part of an encoding.
constexpr double kKeyLimb = 0.65;
constexpr double kDiagonalLimb = 0.33;
constexpr double kModUp = 1.35;
constexpr double kModDown = 1.5;
constexpr double kEmbedding = 15;

struct Split {
  int giant = 0;  // in [0, slots)
  int baby = 0;   // in (-slots/2, slots/2]
};

// d = giant + baby, where giant is a multiple of step, and baby lies in [-shift, step - shift).
Split split(int d, int step, int shift, std::size_t slots) {
  const auto s = static_cast<int>(slots);
  const int giant = (d + shift) / step * step;
  return {giant % s, signed_rotation(d - giant, slots)};
}

struct Counts {
  std::size_t hoists = 0, babies = 0, giants = 0, zero_giants = 0, diagonals = 0, outputs = 0;
};

Counts count(const BlockDiagonals& diagonals, int step, int shift, std::size_t slots) {
  Counts c;
  const std::size_t inputs = diagonals.empty() ? 0 : diagonals[0].size();
  std::vector<std::set<int>> babies(inputs);
  for (const auto& row : diagonals) {
    std::set<int> giants;
    for (std::size_t i = 0; i < inputs; ++i) {
      for (int d : row[i]) {
        const Split s = split(d, step, shift, slots);
        giants.insert(s.giant);
        babies[i].insert(s.baby);
        ++c.diagonals;
      }
    }
    c.zero_giants += giants.count(0);
    c.giants += giants.size() - giants.count(0);
    c.outputs += !giants.empty();
  }
  for (const auto& b : babies) {
    const std::size_t turned = b.size() - b.count(0);
    c.babies += turned;
    c.hoists += turned > 0;
  }
  return c;
}

double cost_of(const Counts& c, const LevelCost& cost, Hoisting hoisting, bool streaming) {
  double total = static_cast<double>(c.hoists) * cost.hoist;
  const auto babies = static_cast<double>(c.babies), giants = static_cast<double>(c.giants);
  const auto diagonals = static_cast<double>(c.diagonals);
  if (hoisting == Hoisting::single) {
    total += babies * (cost.product + 2 * cost.mod_down);
    total += diagonals * (cost.multiply_q + (streaming ? cost.encode_q : 0));
    total += giants * (cost.hoist + cost.product);
    if (c.giants > 0) total += static_cast<double>(c.outputs) * 2 * cost.mod_down;
  } else {
    total += babies * cost.product;
    total += diagonals * (cost.multiply_qp + (streaming ? cost.encode_qp : 0));
    total += giants * (cost.mod_down + cost.hoist + cost.product);
    total += static_cast<double>(c.outputs) * 2 * cost.mod_down;
  }
  return total;
}

struct Choice {
  int step = 1, shift = 0;
  Hoisting hoisting = Hoisting::twice;
  double cost = std::numeric_limits<double>::infinity();
};

Choice choose(const rlwe::Params& params, int level, std::size_t slots,
              const BlockDiagonals& diagonals, const BsgsOptions& options) {
  const LevelCost cost(params, level);
  Choice best;
  const auto consider = [&](int step, int shift) {
    const Counts c = count(diagonals, step, shift, slots);
    for (Hoisting h : {Hoisting::twice, Hoisting::single}) {
      if (options.hoisting != Hoisting::automatic && options.hoisting != h) continue;
      const double total =
          cost_of(c, cost, h, options.streaming) + options.launches * static_cast<double>(c.giants);
      if (total < best.cost) best = {step, shift, h, total};
    }
  };
  if (options.baby_step) {
    require<InvalidArgument>(
        *options.baby_step >= 1 && static_cast<std::size_t>(*options.baby_step) <= slots, [&] {
          return "baby_step must be in [1, " + std::to_string(slots) + "], got " +
                 std::to_string(*options.baby_step);
        });
    consider(*options.baby_step, 0);
    return best;
  }
  // Steps are powers of two. Baby steps begin at 0, which suits dense blocks, or are centred on 0,
  // which suits bands around the main diagonal.
  for (std::size_t step = 1; step <= slots; step *= 2) {
    consider(static_cast<int>(step), 0);
    if (step > 1) consider(static_cast<int>(step), static_cast<int>(step / 2));
  }
  return best;
}

}  // namespace

LevelCost::LevelCost(const rlwe::Params& params, int level) {
  // The level is taken in the whole parameters, so that a plan for a part of them needs the same
  // keys.
  const auto& l = params.whole().level(params.whole_level(level));
  const auto q = static_cast<double>(l.primes.size());
  const auto p = static_cast<double>(params.p_count());
  const auto digits = static_cast<double>(l.digit_limbs.size());
  // q inverse transforms, and for every digit the transforms over all primes but its own: digits (q
  // + p) in all.
  hoist = kModUp * digits * (q + p);
  product = kKeyLimb * 2 * digits * (q + p);
  mod_down = kModDown * (q + p);
  multiply_q = kDiagonalLimb * 2 * q;
  multiply_qp = kDiagonalLimb * 2 * (q + p);
  encode_q = q + kEmbedding;
  encode_qp = q + p + kEmbedding;
}

int signed_rotation(long long steps, std::size_t slots) {
  const auto s = static_cast<long long>(slots);
  long long r = ((steps % s) + s) % s;
  if (r > s / 2) r -= s;
  return static_cast<int>(r);
}

std::vector<int> BsgsPlan::rotations() const {
  std::set<int> all;
  if (sequence) {
    all.insert(offset);
    for (const auto& output : giants) {
      if (!output.empty() && output.back().rotation > 0)
        all.insert(signed_rotation(giant_step(), slots));
    }
    for (const auto& b : babies) {
      for (std::size_t k = 1; k < b.size(); ++k) {
        const auto own = static_cast<std::size_t>(sequence->own);
        all.insert(signed_rotation(b[k % own == 0 ? own : k % own], slots));
      }
    }
    all.erase(0);
    return {all.begin(), all.end()};
  }
  for (const auto& b : babies) all.insert(b.begin(), b.end());
  for (const auto& output : giants)
    for (const Giant& g : output) all.insert(g.rotation);
  all.erase(0);
  return {all.begin(), all.end()};
}

std::size_t BsgsPlan::diagonal_count() const {
  std::size_t total = 0;
  for (const auto& output : giants)
    for (const Giant& g : output) total += g.terms.size();
  return total;
}

std::size_t BsgsPlan::hoisted_key_switches() const {
  std::size_t total = 0;
  if (sequence && sequence->own == 1) return total;
  for (const auto& b : babies)
    for (int r : b) total += r != 0;
  return total;
}

std::size_t BsgsPlan::full_key_switches() const {
  std::size_t total = 0;
  if (sequence) {
    for (const auto& output : giants) {
      if (output.empty()) continue;
      if (giant_step() > 0)
        total += static_cast<std::size_t>(output.back().rotation / giant_step());
      total += offset != 0;
    }
    if (sequence->own > 1) return total;
    for (const auto& b : babies) total += b.size() - 1;
    return total;
  }
  for (const auto& output : giants)
    for (const Giant& g : output) total += g.rotation != 0;
  return total;
}

int first_diagonal(const std::set<int>& indices, std::size_t slots) {
  if (indices.empty()) return 0;
  int first = *indices.begin(), before = *indices.rbegin() - static_cast<int>(slots);
  int widest = first - before;
  for (int d : indices) {
    if (d - before > widest) {
      widest = d - before;
      first = d;
    }
    before = d;
  }
  return first;
}

namespace {

/// With own = 1 the operands are ciphertexts, and diagonals lie over Q; otherwise they lie over Q
/// and P.
double sequence_cost(const BsgsPlan& plan, const LevelCost& cost, double launches) {
  const auto own = static_cast<std::size_t>(plan.sequence->own);
  const bool over_q = own == 1;
  double total =
      static_cast<double>(plan.diagonal_count()) * (over_q ? cost.multiply_q : cost.multiply_qp);
  for (const auto& babies : plan.babies) {
    const std::size_t runs = (babies.size() + own - 1) / own;
    // The first of the next run is divided by P, and hoisted if it is rotated.
    total += static_cast<double>(babies.size() - 1) * cost.product;
    total += static_cast<double>(runs - 1) * (2 * cost.mod_down + launches);
    const std::size_t hoists = runs - (babies.size() == (runs - 1) * own + 1 ? 1 : 0);
    total += static_cast<double>(hoists) * cost.hoist;
  }
  for (const auto& giants : plan.giants) {
    if (giants.empty()) continue;
    const int steps = plan.giant_step() > 0 ? giants.back().rotation / plan.giant_step() : 0;
    const auto turns = static_cast<double>(steps + (plan.offset != 0 ? 1 : 0));
    total += turns * (cost.hoist + cost.product + cost.mod_down + launches);
    // Sums over Q have no P to divide by at first, and at the end only if they were rotated.
    if (over_q) total -= turns > 0 ? cost.mod_down : 2 * cost.mod_down;
    total += 2 * cost.mod_down;
  }
  return total;
}

BsgsPlan plan_sequence(const rlwe::Params& params, int level, std::size_t slots,
                       const BlockDiagonals& diagonals, std::size_t inputs,
                       const BsgsOptions& options) {
  const Sequence steps = *options.sequence;
  require<InvalidArgument>(steps.own >= 1 && steps.own <= steps.babies, [&] {
    return "a run has 1 to " + std::to_string(steps.babies) + " of the baby steps, not " +
           std::to_string(steps.own);
  });
  std::set<int> all;
  for (const auto& row : diagonals)
    for (const auto& block : row) all.insert(block.begin(), block.end());
  const int first = first_diagonal(all, slots);
  const auto from_first = [&](int d) {
    const auto s = static_cast<int>(slots);
    return (d - first + s) % s;
  };
  BsgsPlan plan;
  plan.slots = slots;
  plan.sequence = steps;
  plan.hoisting = steps.own == 1 ? Hoisting::single : Hoisting::twice;
  plan.offset = signed_rotation(first, slots);
  for (int d : all) plan.unit = std::gcd(plan.unit, from_first(d));
  const int unit = std::max(plan.unit, 1);
  plan.babies.assign(inputs, {0});
  for (const auto& row : diagonals) {
    std::map<int, std::vector<BsgsPlan::Term>> giants;
    for (std::size_t i = 0; i < inputs; ++i) {
      for (int d : row[i]) {
        const int place = from_first(d) / unit, baby = place % steps.babies;
        while (plan.babies[i].size() <= static_cast<std::size_t>(baby)) {
          const auto next = static_cast<long long>(plan.babies[i].size()) * unit;
          plan.babies[i].push_back(signed_rotation(next, slots));
        }
        giants[(place - baby) * unit].push_back({i, static_cast<std::size_t>(baby), d});
      }
    }
    auto& out = plan.giants.emplace_back();
    for (auto& [giant, terms] : giants) {
      std::ranges::sort(terms, {}, [](const auto& t) { return std::pair(t.input, t.baby); });
      out.push_back({giant, std::move(terms)});
    }
  }
  plan.cost = sequence_cost(plan, LevelCost(params, level), options.launches);
  return plan;
}

}  // namespace

BsgsPlan plan_bsgs(const rlwe::Params& params, int level, std::size_t slots,
                   const BlockDiagonals& diagonals, const BsgsOptions& options) {
  const std::size_t inputs = diagonals.empty() ? 0 : diagonals[0].size();
  require<InvalidArgument>(inputs > 0, "a transform needs at least one input and one output");
  for (const auto& row : diagonals) {
    require<InvalidArgument>(row.size() == inputs, "every output needs a block for every input");
    for (const auto& block : row)
      for (int d : block)
        require<InvalidArgument>(d >= 0 && static_cast<std::size_t>(d) < slots, [&] {
          return "diagonal " + std::to_string(d) + " is outside [0, " + std::to_string(slots) + ")";
        });
  }
  if (options.sequence) return plan_sequence(params, level, slots, diagonals, inputs, options);
  const Choice choice = choose(params, level, slots, diagonals, options);
  BsgsPlan plan;
  plan.slots = slots;
  plan.hoisting = choice.hoisting;
  plan.cost = choice.cost;
  plan.babies.resize(inputs);
  std::vector<std::map<int, std::size_t>> index(inputs);
  for (const auto& row : diagonals) {
    std::map<int, std::vector<BsgsPlan::Term>> giants;
    for (std::size_t i = 0; i < inputs; ++i) {
      for (int d : row[i]) {
        const Split s = split(d, choice.step, choice.shift, slots);
        const auto [at, fresh] = index[i].try_emplace(s.baby, plan.babies[i].size());
        if (fresh) plan.babies[i].push_back(s.baby);
        giants[s.giant].push_back({i, at->second, d});
      }
    }
    auto& out = plan.giants.emplace_back();
    for (auto& [giant, terms] : giants)  // ascending: 0 comes first
      out.push_back({signed_rotation(giant, slots), std::move(terms)});
  }
  return plan;
}

}  // namespace jali::circuits
