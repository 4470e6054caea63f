// Baby steps and giant steps: y_o = sum over inputs i and indices d of weight_{o,i,d} rot_d(x_i),
// as a BsgsPlan divides them, for the ciphertexts and weights of any scheme.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "jali/circuits/common/evaluator.h"
#include "jali/circuits/common/rotation_keys.h"
#include "jali/circuits/common/rotation_plan.h"

namespace jali::circuits {

/// What a scheme says of its weights, and of sums of their products. `output` is the index of an
/// output, `giant` that of a giant step in BsgsPlan::giants[output], `term` that of a term in it.
/// Weight t of giant step g is the weight of its diagonal, rotated by minus the giant step and the
/// plan's offset: rot_{-g}.
template <class S>
concept WeighsRotations =
    Rotating<typename S::Evaluator> &&
    requires(const S& s, const typename S::Evaluator::Ciphertext& x,
             const typename S::Evaluator::Extended& extended,
             const typename S::Evaluator::Rotation& rotation,
             typename S::Evaluator::Ciphertext& sum, typename S::Evaluator::Extended& extended_sum,
             std::size_t index) {
      /// The primes of the weights: those of the level and, with double hoisting, those of P.
      { s.weight_primes() } -> std::convertible_to<std::vector<PrimeIndex>>;
      /// Whether all weights are ready. Otherwise each is made for one use, a few at a time.
      { s.resident() } -> std::same_as<bool>;
      /// What gives weights, one after the other: see S::Weights.
      { s.weights() } -> std::same_as<typename S::Weights>;
      /// What is known of a sum of products with x, without polynomials.
      { s.like(x) } -> std::same_as<typename S::Evaluator::Ciphertext>;
      { s.like(extended) } -> std::same_as<typename S::Evaluator::Extended>;
      { s.like(rotation) } -> std::same_as<typename S::Evaluator::Extended>;
      /// A product with an input without weights: zero, at the level of the results.
      { s.zero(x, true) } -> std::same_as<typename S::Evaluator::Ciphertext>;
      /// What is known of an inner sum, of the sum of several of them after a rotation, and of all.
      s.inner(index, sum), s.inner(index, extended_sum);
      s.partial(index, extended_sum);
      s.whole(index, sum), s.whole(index, extended_sum);
    };

namespace baby_giant {

// Weights that are made for one use are multiplied a few at a time, while they are in the cache.
constexpr std::size_t kStreamed = 4;
// The number of inner sums that one pass over the baby steps makes. It bounds their memory.
constexpr std::size_t kTogether = 16;

inline const ring::Poly& part(const rlwe::Ciphertext& x, std::size_t c) { return x.parts[c]; }
inline ring::Poly& part(rlwe::Ciphertext& x, std::size_t c) { return x.parts[c]; }
inline const ring::Poly& part(const rlwe::Extended& x, std::size_t c) {
  return c == 0 ? x.c0 : x.c1;
}
inline ring::Poly& part(rlwe::Extended& x, std::size_t c) { return c == 0 ? x.c0 : x.c1; }

// Two uninitialised polynomials over `primes`.
inline void make_parts(const ring::Ring& ring, rlwe::Ciphertext& x,
                       std::span<const PrimeIndex> primes, std::size_t batch) {
  for (std::size_t c = 0; c < 2; ++c) x.parts.push_back(ring.make(primes, batch));
}
inline void make_parts(const ring::Ring& ring, rlwe::Extended& x,
                       std::span<const PrimeIndex> primes, std::size_t batch) {
  x.c0 = ring.make(primes, batch);
  x.c1 = ring.make(primes, batch);
}

}  // namespace baby_giant

/// Scheme is a WeighsRotations. Its Weights have
///   restart()                       before a few weights are made
///   get(output, giant, term)        a weight, valid until the next restart; it has view()
///   add(sum, fresh, x, weight, output)
///                                   what is known of `sum` after weight x was added to it;
///                                   `fresh`: it is the first term
template <WeighsRotations Scheme>
class BabyGiant {
 public:
  using Evaluator = typename Scheme::Evaluator;
  using Ciphertext = typename Evaluator::Ciphertext;
  using Extended = typename Evaluator::Extended;
  using Hoisted = typename Evaluator::Hoisted;
  using Rotation = typename Evaluator::Rotation;
  using Branches = rlwe::Branches<Evaluator>;
  using Inputs = std::span<const Ciphertext* const>;

  /// All must live as long as this. level: of the inputs.
  BabyGiant(const Scheme& scheme, const Evaluator& evaluator, const BsgsPlan& plan, int level)
      : scheme_(scheme), evaluator_(evaluator), plan_(plan), level_(level) {}

  /// inputs: one ciphertext of two parts at the plan's level for each input of the plan, all of one
  /// batch. The results lie one level below or, without `rescale`, at the same level. Throws
  /// KeyMissing, which names the missing rotations. what: the circuit, for the message.
  std::vector<Ciphertext> apply(Inputs inputs, bool rescale) const {
    return plan_.sequence                      ? apply_sequence(inputs, rescale)
           : plan_.hoisting == Hoisting::twice ? apply_twice(inputs, rescale)
                                               : apply_single(inputs, rescale);
  }

 private:
  template <class Operand>
  using Babies = std::vector<std::vector<Operand>>;  // [input][baby]
  template <class Operand>
  using SumOf = std::conditional_t<std::is_same_v<Operand, Rotation>, Extended, Operand>;

  // --- inner sums -------------------------------------------------------------------------------

  static std::size_t batch_of(const Ciphertext& x) { return x.batch(); }
  static std::size_t batch_of(const Extended& x) { return x.c0.batch(); }
  static std::size_t batch_of(const Rotation& x) { return x.source->batch(); }

  template <class Operand>
  void weigh(std::span<const Operand* const> operands,
             std::span<const backend::WeightedSum> sums) const {
    if constexpr (std::is_same_v<Operand, Rotation>) {
      std::vector<Rotation> rotations;
      for (const Rotation* x : operands) rotations.push_back(*x);
      evaluator_.rotated_sums(rotations, sums);
    } else {
      std::vector<backend::ConstView> a0, a1;
      for (const Operand* x : operands) {
        a0.push_back(baby_giant::part(*x, 0).view());
        a1.push_back(baby_giant::part(*x, 1).view());
      }
      evaluator_.ring()->engine().rlwe().weighted_sums(a0, a1, sums);
    }
  }

  // Adds terms to the inner sums of consecutive giant steps of an output, from `first` on: those
  // for which at(term) is the index of an operand, and not -1. A sum is empty before its first
  // term. Resident weights are used all at once, others are made, and used, a few at a time.
  template <class Operand, class At>
  void add_terms(std::size_t output, std::size_t first, std::span<const Operand* const> operands,
                 At at, std::span<std::optional<SumOf<Operand>>> sums) const {
    const ring::Ring& ring = *evaluator_.ring();
    const std::vector<PrimeIndex> primes = scheme_.weight_primes();
    const bool resident = scheme_.resident();
    struct Terms {
      std::vector<std::uint32_t> operands;
      std::vector<backend::ConstView> weights;
    };
    std::vector<std::vector<std::size_t>> chosen(sums.size());
    for (std::size_t g = 0; g < sums.size(); ++g) {
      const auto& terms = plan_.giants[output][first + g].terms;
      for (std::size_t t = 0; t < terms.size(); ++t) {
        if (at(terms[t]) >= 0) chosen[g].push_back(t);
      }
    }
    typename Scheme::Weights weights = scheme_.weights();
    for (std::size_t begin = 0;; begin += baby_giant::kStreamed) {
      weights.restart(sums.size() * baby_giant::kStreamed);
      std::vector<Terms> terms(sums.size());
      std::vector<backend::WeightedSum> weighed_sums;
      for (std::size_t g = 0; g < sums.size(); ++g) {
        const auto& giant = plan_.giants[output][first + g];
        const std::size_t end =
            resident ? chosen[g].size() : std::min(begin + baby_giant::kStreamed, chosen[g].size());
        Terms& list = terms[g];
        const bool more = sums[g].has_value();
        for (std::size_t k = begin; k < end; ++k) {
          const std::size_t t = chosen[g][k];
          const auto& weight = weights.get(output, first + g, t);
          const auto index = static_cast<std::size_t>(at(giant.terms[t]));
          const Operand& x = *operands[index];
          list.operands.push_back(static_cast<std::uint32_t>(index));
          list.weights.push_back(weight.view());
          const bool fresh = !sums[g];
          if (fresh) {
            sums[g] = scheme_.like(x);
            baby_giant::make_parts(ring, *sums[g], primes, batch_of(x));
          }
          weights.add(*sums[g], fresh, x, weight, output);
        }
        if (list.operands.empty()) continue;
        weighed_sums.push_back({baby_giant::part(*sums[g], 0).view(),
                                baby_giant::part(*sums[g], 1).view(), list.operands, list.weights,
                                more});
      }
      if (weighed_sums.empty()) break;
      weigh<Operand>(operands, weighed_sums);
      if (resident) break;
    }
  }

  // The inner sums of the giant steps [first, last) of an output.
  template <class Operand>
  std::vector<SumOf<Operand>> inner_sums(std::size_t output, std::size_t first, std::size_t last,
                                         const Babies<Operand>& babies) const {
    std::vector<const Operand*> operands;
    std::vector<std::size_t> offset;
    for (const auto& row : babies) {
      offset.push_back(operands.size());
      for (const Operand& x : row) operands.push_back(&x);
    }
    std::vector<std::optional<SumOf<Operand>>> sums(last - first);
    add_terms<Operand>(
        output, first, operands,
        [&](const BsgsPlan::Term& term) {
          return static_cast<int>(offset[term.input] + term.baby);
        },
        sums);
    std::vector<SumOf<Operand>> out;
    for (auto& sum : sums) out.push_back(std::move(*sum));
    return out;
  }

  // Calls use(inner sums, their giant steps) for all giant steps of an output, in order, for
  // several of them at a time.
  template <class Operand, class Use>
  void for_inner_sums(std::size_t output, const Babies<Operand>& babies, Use use) const {
    const auto& giants = plan_.giants[output];
    // A Rotation is computed again in every pass, so all giant steps share one pass.
    const std::size_t stride = !scheme_.resident()                 ? 1
                               : std::is_same_v<Operand, Rotation> ? giants.size()
                                                                   : baby_giant::kTogether;
    for (std::size_t first = 0; first < giants.size(); first += stride) {
      const std::size_t last = std::min(first + stride, giants.size());
      use(inner_sums(output, first, last, babies),
          std::span<const BsgsPlan::Giant>(giants).subspan(first, last - first));
    }
  }

  // An input with its lifted digits, if it is rotated at all.
  Hoisted hoisted(Inputs inputs, std::size_t i) const {
    const bool turns = std::ranges::any_of(plan_.babies[i], [](int r) { return r != 0; });
    Hoisted out = turns ? evaluator_.hoist(*inputs[i]) : Hoisted{};
    out.source = inputs[i];
    return out;
  }

  // --- double hoisting --------------------------------------------------------------------------

  std::vector<Ciphertext> apply_twice(Inputs inputs, bool rescale) const {
    // With one output and resident weights there is one pass only, so rotations need not be kept.
    if (scheme_.resident() && plan_.giants.size() == 1) {
      std::deque<Hoisted> kept;
      std::deque<Branches> branches;
      Babies<Rotation> babies(inputs.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto tree = evaluator_.rotation_tree(plan_.babies[i], level_);
        const Hoisted& root = kept.emplace_back(hoisted(inputs, i));
        const Branches& x = branches.emplace_back(evaluator_, root, *tree);
        for (const auto& end : tree->ends) {
          babies[i].push_back(evaluator_.rotation(x.at(end.from), end.steps));
        }
      }
      return turn_sums(inputs, babies, rescale);
    }
    // The lifted digits of one input at a time: they take more memory than its rotations, if it has
    // few.
    Babies<Extended> babies(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Hoisted root = hoisted(inputs, i);
      const auto tree = evaluator_.rotation_tree(plan_.babies[i], level_);
      const Branches x(evaluator_, root, *tree);
      for (const auto& end : tree->ends) {
        babies[i].push_back(evaluator_.rotate_extended(x.at(end.from), end.steps));
      }
    }
    return turn_sums(inputs, babies, rescale);
  }

  // What follows the baby steps: inner sums, giant steps and the final division.
  template <class Operand>
  std::vector<Ciphertext> turn_sums(Inputs inputs, const Babies<Operand>& babies,
                                    bool rescale) const {
    std::vector<Ciphertext> outputs;
    for (std::size_t o = 0; o < plan_.giants.size(); ++o) {
      const auto& giants = plan_.giants[o];
      if (giants.empty()) {
        outputs.push_back(scheme_.zero(*inputs[0], rescale));
        continue;
      }
      std::vector<int> steps;
      for (const auto& giant : giants) steps.push_back(giant.rotation);
      rlwe::RotatedSum<Evaluator> sum(evaluator_, steps, level_);
      std::size_t first = 0;
      for_inner_sums(o, babies,
                     [&](std::vector<Extended> inner, std::span<const BsgsPlan::Giant> made) {
                       std::vector<const Extended*> turned;
                       std::size_t still = 0;
                       for (std::size_t g = 0; g < made.size(); ++g) {
                         scheme_.inner(o, inner[g]);
                         if (first + g == 0 && made[g].rotation == 0) {
                           sum.add_still(std::move(inner[g]));
                           still = 1;
                         } else {
                           turned.push_back(&inner[g]);
                         }
                       }
                       sum.add(first + still, turned);
                       first += made.size();
                     });
      Extended whole = sum.take();
      scheme_.whole(o, whole);
      outputs.push_back(finished(whole, rescale));
    }
    return outputs;
  }

  // --- hoisting ---------------------------------------------------------------------------------

  std::vector<Ciphertext> apply_single(Inputs inputs, bool rescale) const {
    Babies<Ciphertext> babies(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Hoisted root = hoisted(inputs, i);
      const auto tree = evaluator_.rotation_tree(plan_.babies[i], level_);
      const Branches x(evaluator_, root, *tree);
      for (const auto& end : tree->ends) {
        babies[i].push_back(end.steps == 0 ? evaluator_.copy(*inputs[i])
                                           : evaluator_.rotate_hoisted(x.at(end.from), end.steps));
      }
    }
    const auto turned = [&](const Ciphertext& x, int rotation) {
      return rotation == 0
                 ? evaluator_.extend(x)
                 : rlwe::composed_rotate_extended(evaluator_, evaluator_.hoist(x), rotation);
    };
    std::vector<Ciphertext> outputs;
    for (std::size_t o = 0; o < plan_.giants.size(); ++o) {
      const auto& giants = plan_.giants[o];
      if (giants.empty()) {
        outputs.push_back(scheme_.zero(*inputs[0], rescale));
        continue;
      }
      std::optional<Extended> acc;
      for_inner_sums(o, babies,
                     [&](std::vector<Ciphertext> inner, std::span<const BsgsPlan::Giant> made) {
                       for (std::size_t g = 0; g < made.size(); ++g) {
                         scheme_.inner(o, inner[g]);
                         if (giants.size() == 1 && made[g].rotation == 0) {
                           scheme_.whole(o, inner[g]);
                           outputs.push_back(finished(std::move(inner[g]), rescale));
                         } else if (!acc) {
                           acc = turned(inner[g], made[g].rotation);
                         } else {
                           evaluator_.add_inplace(*acc, turned(inner[g], made[g].rotation));
                         }
                       }
                     });
      if (!acc) continue;
      scheme_.whole(o, *acc);
      outputs.push_back(finished(*acc, rescale));
    }
    return outputs;
  }

  Ciphertext finished(Ciphertext x, bool rescale) const {
    return rescale ? evaluator_.rescale(x) : std::move(x);
  }
  Ciphertext finished(const Extended& x, bool rescale) const {
    return rescale ? evaluator_.reduce_rescale(x) : evaluator_.reduce(x);
  }

  // --- few keys: see Sequence -------------------------------------------------------------------

  Extended extended(const Ciphertext& x) const { return evaluator_.extend(x); }
  Extended extended(Extended x) const { return x; }

  Extended turned(const Ciphertext& x, int steps) const {
    return evaluator_.rotate_extended(evaluator_.hoist(x), steps);
  }
  Extended turned(const Extended& x, int steps) const {
    Extended out;
    const Extended* one[] = {&x};
    evaluator_.rotate_accumulate(out, one, {&steps, 1});
    return out;
  }

  // sum_g rot_g(s_g), then the rotation by the offset, by Horner's rule. take(g) gives s_g; it is
  // called once for each, from the last to the first.
  template <class Sum, class Take>
  Ciphertext horner(std::size_t output, Take take, bool rescale) const {
    const auto& giants = plan_.giants[output];
    const auto bounded = [&](Sum sum) {
      scheme_.inner(output, sum);
      return sum;
    };
    Sum first = bounded(take(giants.size() - 1));
    std::optional<Extended> acc;
    // The rotated sum so far, and what it is added to.
    const auto turn = [&](int steps, Extended onto) {
      if (onto.c0.empty()) {
        acc = acc ? turned(*acc, steps) : turned(first, steps);
      } else if (acc) {
        const Extended* one[] = {&*acc};
        evaluator_.rotate_accumulate(onto, one, {&steps, 1});
        acc = std::move(onto);
      } else {
        evaluator_.add_inplace(onto, turned(first, steps));
        acc = std::move(onto);
      }
      scheme_.partial(output, *acc);
    };
    const int step = plan_.giant_step();
    for (std::size_t g = giants.size(); g-- > 0;) {
      const int next = g > 0 ? giants[g - 1].rotation : 0;
      for (int at = giants[g].rotation; at > next; at -= step) {
        const bool meets = g > 0 && at - step == next;
        turn(signed_rotation(step, plan_.slots),
             meets ? extended(bounded(take(g - 1))) : Extended{});
      }
    }
    if (plan_.offset != 0) turn(plan_.offset, {});
    if (acc) {
      scheme_.whole(output, *acc);
      return finished(*acc, rescale);
    }
    scheme_.whole(output, first);
    return finished(std::move(first), rescale);
  }

  // The inner sums of a Sequence, whose baby steps are made and used run by run. They are
  // [output][giant].
  template <class Operand>
  std::vector<std::vector<SumOf<Operand>>> sums_of_runs(Inputs inputs) const {
    const auto own = static_cast<std::size_t>(plan_.sequence->own);
    std::vector<std::vector<std::optional<SumOf<Operand>>>> sums;
    for (const auto& giants : plan_.giants) sums.emplace_back(giants.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::size_t babies = plan_.babies[i].size();
      const Ciphertext* head = inputs[i];
      Ciphertext held;
      for (std::size_t from = 0; from < babies; from += own) {
        const std::size_t count = std::min(own, babies - from);
        const bool last = from + count == babies;
        Hoisted hoisted;
        if (count > 1 || !last) hoisted = evaluator_.hoist(*head);
        hoisted.source = head;
        std::vector<Rotation> rotations;
        std::vector<const Operand*> operands;
        if constexpr (std::is_same_v<Operand, Rotation>) {
          for (std::size_t k = 0; k < count; ++k) {
            rotations.push_back(evaluator_.rotation(hoisted, plan_.babies[i][k]));
          }
          for (const Rotation& x : rotations) operands.push_back(&x);
        } else {
          operands.push_back(head);
        }
        const auto at = [&](const BsgsPlan::Term& term) {
          const bool here = term.input == i && from <= term.baby && term.baby < from + count;
          return here ? static_cast<int>(term.baby - from) : -1;
        };
        for (std::size_t o = 0; o < sums.size(); ++o) {
          add_terms<Operand>(o, 0, operands, at, sums[o]);
        }
        if (last) break;
        Ciphertext next = evaluator_.rotate_hoisted(hoisted, plan_.babies[i][own]);
        held = std::move(next);
        head = &held;
      }
    }
    std::vector<std::vector<SumOf<Operand>>> out;
    for (auto& row : sums) {
      auto& made = out.emplace_back();
      for (auto& sum : row) made.push_back(std::move(*sum));
    }
    return out;
  }

  std::vector<Ciphertext> apply_sequence(Inputs inputs, bool rescale) const {
    std::vector<Ciphertext> outputs;
    const auto each = [&](auto result) {
      for (std::size_t o = 0; o < plan_.giants.size(); ++o) {
        outputs.push_back(plan_.giants[o].empty() ? scheme_.zero(*inputs[0], rescale) : result(o));
      }
    };
    if (plan_.sequence->babies == 1) {
      // There are as many sums as weights, so each is made when it is needed.
      each([&](std::size_t o) {
        const auto take = [&](std::size_t g) {
          std::vector<std::optional<Ciphertext>> sum(1);
          add_terms<Ciphertext>(
              o, g, inputs, [](const BsgsPlan::Term& term) { return static_cast<int>(term.input); },
              sum);
          return std::move(*sum[0]);
        };
        return horner<Ciphertext>(o, take, rescale);
      });
      return outputs;
    }
    const auto with = [&](auto sums) {
      using Sum = std::remove_cvref_t<decltype(sums[0][0])>;
      each([&](std::size_t o) {
        const auto take = [&](std::size_t g) { return std::move(sums[o][g]); };
        return horner<Sum>(o, take, rescale);
      });
    };
    if (plan_.sequence->own == 1) {
      with(sums_of_runs<Ciphertext>(inputs));
    } else {
      with(sums_of_runs<Rotation>(inputs));
    }
    return outputs;
  }

  const Scheme& scheme_;
  const Evaluator& evaluator_;
  const BsgsPlan& plan_;
  const int level_;
};

}  // namespace jali::circuits
