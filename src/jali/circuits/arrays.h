// Circuits on vectors of known length: operands are checked against the plan, results know what decryption
// shall show of them (ckks/packing.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "jali/approx/series.h"
#include "jali/circuits/linear_transform.h"
#include "jali/circuits/matvec.h"
#include "jali/circuits/polynomial.h"
#include "jali/circuits/shared.h"

namespace jali::circuits {

/// The plan's matrix times x, which takes several ciphertexts if the input layout does: one output a block of rows.
/// Throws InvalidArgument for complex vectors, and for those that do not lie as the plan expects.
std::vector<ckks::Ciphertext> apply(const ckks::Evaluator& evaluator, const Shared<MatVec>& plan,
                                    std::span<const ckks::Ciphertext* const> x);

/// The result is of all slots, for the transform mixes them. complex_diagonals: whether a real vector becomes a
/// complex one.
ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const Shared<LinearTransform>& plan,
                       bool complex_diagonals, const ckks::Ciphertext& x);

/// Throws InvalidArgument for coefficients that would wrap around the modulus of x's level unnoticed, and for numbers
/// that are not known to lie in the interval of a bounded polynomial (domain.h). within: the caller's word on that.
ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const PolynomialPlan& plan,
                       const ckks::Ciphertext& x,
                       const std::optional<approx::Interval>& within = std::nullopt);

}  // namespace jali::circuits
