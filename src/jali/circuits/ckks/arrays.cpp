#include "jali/circuits/ckks/arrays.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "jali/base/error.h"
#include "jali/circuits/ckks/domain.h"
#include "jali/schemes/ckks/packing.h"

namespace jali::circuits {

using ckks::Ciphertext;

namespace {

/// How many elements of the vector ciphertext `index` of the layout holds.
std::size_t elements(const Layout& layout, std::size_t index) {
  std::vector<bool> held(layout.size, false);
  for (const auto e : layout.element[index])
    if (e != kNothing) held[static_cast<std::size_t>(e)] = true;
  return static_cast<std::size_t>(std::ranges::count(held, true));
}

/// lies: of a ciphertext with as many slots as the layout has. A table of one's own says what lies
/// in which slot: it takes slots as they are, which its caller has arranged.
bool lies_so(const Layout& layout, std::size_t index, const ckks::Packing& lies) {
  if (layout.packing.empty()) return ckks::is_in_order(lies);
  const ckks::Packing& wanted = layout.packing[index];
  ckks::Tiling tiling = lies.tiling;
  tiling.first = wanted.tiling.first;
  if (lies.length == wanted.length && tiling == wanted.tiling) return true;
  const std::size_t length = lies.length == 0 ? layout.slots : lies.length;
  return length == elements(layout, index) && layout.agrees(index, lies);
}

/// Throws InvalidArgument, which names both layouts, unless each of x lies as the layout says.
void require_layout(const Layout& layout, std::span<const Ciphertext* const> x) {
  // Vectors that were encrypted on their own all begin with number 0; their order is the caller's
  // word.
  const bool parts =
      std::ranges::any_of(x, [](const Ciphertext* one) { return one->packing.tiling.first != 0; });
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool in_turn = !parts || x.size() == 1 || layout.packing.empty() ||
                         x[i]->packing.tiling.first == layout.packing[i].tiling.first;
    const bool as_many_slots = std::size_t{1} << x[i]->log_slots == layout.slots;
    require<InvalidArgument>(in_turn && as_many_slots && lies_so(layout, i, x[i]->packing), [&] {
      const std::string which = x.size() == 1 ? "" : "ciphertext " + std::to_string(i) + " of ";
      return which + "the vector lies as " + ckks::described(x[i]->packing, x[i]->log_slots) +
             ", and the plan takes " + layout.described() +
             ". Encrypt what the plan's pack() gives, convert the vector with "
             "Evaluator.arrange(plan, x), or make the plan for the layout that the vector has: "
             "layout=x.layout";
    });
  }
}

}  // namespace

std::vector<Ciphertext> apply(const ckks::Evaluator& evaluator, const Shared<MatVec>& plan,
                              std::span<const Ciphertext* const> x) {
  plan.require_same(evaluator);
  const Layout& layout = plan->input_layout();
  require<InvalidArgument>(x.size() == layout.ciphertexts(), [&] {
    return "the product takes " + std::to_string(layout.ciphertexts()) + " ciphertexts, not " +
           std::to_string(x.size());
  });
  for (const Ciphertext* one : x) {
    require<InvalidArgument>(one != nullptr, "an operand is None");
    require<InvalidArgument>(!one->packing.complex_values, "MatVec takes real vectors");
    require<InvalidArgument>(!one->packing.view, "MatVec takes vectors, not arrays");
  }
  require_layout(layout, x);
  std::vector<Ciphertext> inputs;
  for (const Ciphertext* one : x) inputs.push_back(evaluator.copy(*one));
  auto outputs = plan.apply(evaluator, std::span<const Ciphertext>(inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].packing = plan->output_layout().packing[i];
    outputs[i].packing.batched = x[0]->packing.batched;
  }
  return outputs;
}

Arrangement arrangement(const MatVec& plan, const ckks::Packing& from) {
  const Layout& layout = plan.input_layout();
  require<InvalidArgument>(layout.packing.size() == 1, [&] {
    return "the plan takes " + layout.described() +
           ": arrange() brings one ciphertext into one layout; encrypt what the plan's pack() "
           "gives";
  });
  const int log_slots = std::countr_zero(layout.slots);
  if (lies_so(layout, 0, from)) return {from, from, log_slots, false};
  return {from, layout.packing[0], log_slots, false};
}

Ciphertext arrange(const ckks::Evaluator& evaluator, const MatVec& plan, const Ciphertext& x) {
  const std::size_t slots = plan.input_layout().slots;
  require<InvalidArgument>(std::size_t{1} << x.log_slots == slots, [&] {
    return "the plan takes " + std::to_string(slots) + " slots, and the vector has " +
           std::to_string(std::size_t{1} << x.log_slots) + ": encrypt it with as many";
  });
  return arrangement(plan, x.packing).apply(evaluator, x);
}

Arrangement into_order(const ckks::Packing& from, int log_slots) {
  ckks::Packing to = from;
  to.tiling = {};
  return {from, to, log_slots, true};
}

Ciphertext into_order(const ckks::Evaluator& evaluator, const Ciphertext& x) {
  return into_order(x.packing, x.log_slots).apply(evaluator, x);
}

Ciphertext apply(const ckks::Evaluator& evaluator, const Shared<LinearTransform>& plan,
                 bool complex_diagonals, const Ciphertext& x, double peak) {
  Ciphertext out = plan.apply(evaluator, x, peak);
  out.packing.batched = x.packing.batched;
  out.packing.complex_values = x.packing.complex_values || complex_diagonals;
  return out;
}

Ciphertext apply(const ckks::Evaluator& evaluator, const PolynomialPlan& plan, const Ciphertext& x,
                 const std::optional<approx::Interval>& within) {
  const Polynomial& p = plan.polynomial();
  // The coefficients are checked against the level of the input. They may be too large for the
  // result's level, because sums may cancel.
  const rlwe::Level& level = evaluator.params()->level(x.level);
  bool complex_values = x.packing.complex_values;
  for (const auto& c : p.coefficients) {
    require<InvalidArgument>(
        std::log2(std::abs(c)) + std::log2(evaluator.params()->scale(x.level)) < level.log_q - 1,
        "a coefficient is too large for the level of the input: scale it down");
    complex_values = complex_values || c.imag() != 0;
  }
  Ciphertext out =
      p.bounded
          ? evaluate(evaluator, inside(evaluator, x, {p.a, p.b}, within, "the polynomial"), plan)
          : evaluate(evaluator, x, plan);
  const double zero = p.bounded ? filling({p.a, p.b}) : 0;
  out.packing = ckks::packing_of_each(x.packing, std::abs(p(zero)));
  out.packing.complex_values = complex_values;
  return out;
}

}  // namespace jali::circuits
