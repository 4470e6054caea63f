// BlockTransform with few keys: baby steps that are made one after the other, and giant steps by
// Horner's rule (see Sequence).
#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "jali/circuits/ckks/block_sums.h"
#include "jali/circuits/ckks/block_transform.h"

namespace jali::circuits {
namespace {

using ckks::Ciphertext;
using ckks::Extended;
using ckks::Rotation;

Extended extended(const ckks::Evaluator& e, const Ciphertext& x) { return e.extend(x); }
Extended extended(const ckks::Evaluator&, Extended x) { return x; }

Extended turned(const ckks::Evaluator& e, const Ciphertext& x, int steps) {
  return e.rotate_extended(e.hoist(x), steps);
}
Extended turned(const ckks::Evaluator& e, const Extended& x, int steps) {
  Extended out;
  const Extended* one[] = {&x};
  e.rotate_accumulate(out, one, {&steps, 1});
  return out;
}

Ciphertext finished(const ckks::Evaluator& e, Ciphertext x, bool rescale) {
  return rescale ? e.rescale(x) : std::move(x);
}
Ciphertext finished(const ckks::Evaluator& e, const Extended& x, bool rescale) {
  return rescale ? e.reduce_rescale(x) : e.reduce(x);
}

}  // namespace

template <class Sum, class Take>
Ciphertext BlockTransform::horner(const ckks::Evaluator& evaluator, std::size_t output, Take take,
                                  const Rows& rows, bool rescale) const {
  const auto& giants = plan_.giants[output];
  const auto bounded = [&](Sum sum) {
    rows.narrow(sum.estimate);
    return sum;
  };
  Sum first = bounded(take(giants.size() - 1));
  std::optional<Extended> acc;
  // The rotated sum so far, and what it is added to.
  const auto turn = [&](int steps, Extended onto) {
    if (onto.c0.empty()) {
      acc = acc ? turned(evaluator, *acc, steps) : turned(evaluator, first, steps);
    } else if (acc) {
      evaluator.rotate_accumulate(onto, *acc, steps);
      acc = std::move(onto);
    } else {
      evaluator.add_inplace(onto, turned(evaluator, first, steps));
      acc = std::move(onto);
    }
    acc->estimate.bound_peak(rows.largest);
  };
  const int step = plan_.giant_step();
  for (std::size_t g = giants.size(); g-- > 0;) {
    const int next = g > 0 ? giants[g - 1].rotation : 0;
    for (int at = giants[g].rotation; at > next; at -= step) {
      const bool meets = g > 0 && at - step == next;
      turn(signed_rotation(step, plan_.slots),
           meets ? extended(evaluator, bounded(take(g - 1))) : Extended{});
    }
  }
  if (plan_.offset != 0) turn(plan_.offset, {});
  rows.finish(acc ? acc->estimate : first.estimate);
  return acc ? finished(evaluator, *acc, rescale) : finished(evaluator, std::move(first), rescale);
}

template <class Operand>
std::vector<std::vector<BlockTransform::SumOf<Operand>>> BlockTransform::sums_of_runs(
    const ckks::Evaluator& evaluator, std::span<const Ciphertext* const> inputs) const {
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
      ckks::Hoisted hoisted;
      if (count > 1 || !last) hoisted = evaluator.hoist(*head);
      hoisted.source = head;
      std::vector<Rotation> rotations;
      std::vector<const Operand*> operands;
      if constexpr (std::is_same_v<Operand, Rotation>) {
        for (std::size_t k = 0; k < count; ++k) {
          rotations.push_back(evaluator.rotation(hoisted, plan_.babies[i][k]));
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
        add_terms<Operand>(evaluator, o, 0, operands, at, sums[o]);
      }
      if (last) break;
      Ciphertext next = evaluator.rotate_hoisted(hoisted, plan_.babies[i][own]);
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

std::vector<Ciphertext> BlockTransform::apply_sequence(const ckks::Evaluator& evaluator,
                                                       std::span<const Ciphertext* const> inputs,
                                                       RowsOf rows, bool rescale) const {
  std::vector<Ciphertext> outputs;
  const auto each = [&](auto result) {
    for (std::size_t o = 0; o < plan_.giants.size(); ++o) {
      outputs.push_back(plan_.giants[o].empty() ? zero(evaluator, *inputs[0], rescale) : result(o));
    }
  };
  if (plan_.sequence->babies == 1) {
    // There are as many sums as diagonals, so each is made when it is needed.
    each([&](std::size_t o) {
      const auto take = [&](std::size_t g) {
        std::vector<std::optional<Ciphertext>> sum(1);
        add_terms<Ciphertext>(
            evaluator, o, g, inputs,
            [](const BsgsPlan::Term& term) { return static_cast<int>(term.input); }, sum);
        return std::move(*sum[0]);
      };
      return horner<Ciphertext>(evaluator, o, take, rows[o], rescale);
    });
    return outputs;
  }
  const auto with = [&](auto sums) {
    using Sum = std::remove_cvref_t<decltype(sums[0][0])>;
    each([&](std::size_t o) {
      const auto take = [&](std::size_t g) { return std::move(sums[o][g]); };
      return horner<Sum>(evaluator, o, take, rows[o], rescale);
    });
  };
  if (plan_.sequence->own == 1) {
    with(sums_of_runs<Ciphertext>(evaluator, inputs));
  } else {
    with(sums_of_runs<Rotation>(evaluator, inputs));
  }
  return outputs;
}

}  // namespace jali::circuits
