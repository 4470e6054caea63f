// Circuits on vectors of known length. They check their operands against the plan, and their
// results carry a packing: what decryption shows of them (ckks/packing.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "jali/approx/series.h"
#include "jali/circuits/ckks/arrangement.h"
#include "jali/circuits/ckks/linear_transform.h"
#include "jali/circuits/ckks/matvec.h"
#include "jali/circuits/ckks/polynomial.h"
#include "jali/circuits/common/shared.h"

namespace jali::circuits {

/// The plan's matrix times x. x is as many ciphertexts as the input layout has; the result has one
/// for each block of rows. Throws InvalidArgument for complex vectors, and for vectors that do not
/// lie as the plan's input layout says; the sentence names both layouts.
std::vector<ckks::Ciphertext> apply(const ckks::Evaluator& evaluator, const Shared<MatVec>& plan,
                                    std::span<const ckks::Ciphertext* const> x);

/// The steps that bring vectors which lie as `from` says to where the plan takes them. Throws
/// InvalidArgument for another number of numbers, and for plans that take several ciphertexts or a
/// table of one's own.
Arrangement arrangement(const MatVec& plan, const ckks::Packing& from);
/// x as the plan takes it. Throws what arrangement and Arrangement::apply throw.
ckks::Ciphertext arrange(const ckks::Evaluator& evaluator, const MatVec& plan,
                         const ckks::Ciphertext& x);
/// The same numbers in the first slots, with zeros behind them.
Arrangement into_order(const ckks::Packing& from, int log_slots);
ckks::Ciphertext into_order(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x);

/// The plan's transform of x. The length of the result is all slots, because the transform mixes
/// them. complex_diagonals: whether the transform makes complex vectors of real ones. peak: as
/// LinearTransform::apply takes it.
ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const Shared<LinearTransform>& plan,
                       bool complex_diagonals, const ckks::Ciphertext& x,
                       double peak = params::kUnbounded);

/// The plan's polynomial of every slot of x. Throws InvalidArgument for coefficients so large that
/// they would wrap around the modulus of x's level unnoticed, and for numbers that are not known to
/// lie in the interval of a bounded polynomial (domain.h). within: the caller's word on that.
ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const PolynomialPlan& plan,
                       const ckks::Ciphertext& x,
                       const std::optional<approx::Interval>& within = std::nullopt);

}  // namespace jali::circuits
