#include "jali/circuits/arrays.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "jali/base/error.h"
#include "jali/circuits/domain.h"
#include "jali/ckks/packing.h"

namespace jali::circuits {

using ckks::Ciphertext;

std::vector<Ciphertext> apply(const ckks::Evaluator& evaluator, const Shared<MatVec>& plan,
                              std::span<const Ciphertext* const> x) {
  plan.require_same(evaluator);
  const Layout& layout = plan->input_layout();
  require<InvalidArgument>(x.size() == layout.ciphertexts(), [&] {
    return "the product takes " + std::to_string(layout.ciphertexts()) + " ciphertexts, not " +
           std::to_string(x.size());
  });
  std::vector<Ciphertext> inputs;
  for (const Ciphertext* one : x) {
    require<InvalidArgument>(one != nullptr, "an operand is None");
    require<InvalidArgument>(!one->packing.complex_values, "MatVec takes real vectors");
    require<InvalidArgument>(!one->packing.view, "MatVec takes vectors, not arrays");
    // If slots are zero where the layout wants elements, the vector was encrypted as it was, without pack().
    const auto& element = layout.element[inputs.size()];
    const auto last = std::find_if(element.rbegin(), element.rend(),
                                   [](auto index) { return index != kNothing; });
    require<InvalidArgument>(
        !one->packing.padded ||
            ckks::length_of(*one) >= static_cast<std::size_t>(element.rend() - last),
        "the vector does not lie as the plan expects: encrypt what its pack() gives, or make the "
        "plan with layout=\"natural\"");
    inputs.push_back(evaluator.copy(*one));
  }
  auto outputs = plan.apply(evaluator, std::span<const Ciphertext>(inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto rows = plan->blocks()[i].rows;
    const std::size_t slots = std::size_t{1} << outputs[i].log_slots;
    outputs[i].packing.batched = x[0]->packing.batched;
    outputs[i].packing.length = rows == slots ? 0 : static_cast<std::uint32_t>(rows);
  }
  return outputs;
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
  // The coefficients are checked against the level of the input. They may be too large for the result's level, because sums
  // may cancel.
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
  out.packing = ckks::packing_of_moved(x.packing);
  out.packing.complex_values = complex_values;
  return out;
}

}  // namespace jali::circuits
