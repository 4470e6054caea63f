// The composition of polynomials that makes a sign, on ciphertexts.
#pragma once

#include <vector>

#include "jali/approx/sign.h"
#include "jali/circuits/ckks/polynomial.h"

namespace jali::circuits {

class Stages {
 public:
  /// factor times the sign, plus a constant: the last polynomial's coefficients take both. factor:
  /// a power of two, so that what is proven of the sign holds.
  Stages(const approx::Composite& sign, double factor, double constant);

  int depth() const;
  int multiplications() const;
  double operator()(double x) const;
  /// x lies in the interval of the first: see domain.h.
  ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x) const;

 private:
  std::vector<PolynomialPlan> plans_;
};

}  // namespace jali::circuits
