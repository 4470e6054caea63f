#include "jali/circuits/ckks/stages.h"

#include <algorithm>
#include <cmath>

#include "jali/circuits/ckks/function.h"

namespace jali::circuits {

Stages::Stages(const approx::Composite& sign, double factor, double constant) {
  for (std::size_t i = 0; i < sign.stages.size(); ++i) {
    Polynomial p = bounded_polynomial(sign.stages[i]);
    const bool last = i + 1 == sign.stages.size();
    // What a stage that is not the last gives lies in the interval of the next one: that is how it
    // was made.
    p.largest = last ? std::fabs(factor) * (1 + sign.error) + std::fabs(constant) : 1;
    if (last) {
      for (auto& c : p.coefficients) c *= factor;
      p.coefficients[0] += constant;
    }
    plans_.emplace_back(p);
  }
}

int Stages::depth() const {
  int sum = 0;
  for (const PolynomialPlan& p : plans_) sum += p.depth_needed();
  return sum;
}

int Stages::multiplications() const {
  std::size_t sum = 0;
  for (const PolynomialPlan& p : plans_) sum += p.multiplications();
  return static_cast<int>(sum);
}

double Stages::operator()(double x) const {
  for (const PolynomialPlan& p : plans_) x = p.polynomial()(x).real();
  return x;
}

ckks::Ciphertext Stages::apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x) const {
  ckks::Ciphertext y = evaluator.copy(x);
  for (const PolynomialPlan& p : plans_) y = evaluate(evaluator, std::move(y), p);
  return y;
}

}  // namespace jali::circuits
