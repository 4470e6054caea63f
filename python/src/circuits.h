// The plans of circuits that Python holds.
#pragma once

#include <memory>

#include "binding.h"
#include "jali/circuits/shared.h"

namespace jali::python {

struct MatVec {
  std::shared_ptr<circuits::Shared<circuits::MatVec>> plan;
};
struct LinearTransform {
  std::shared_ptr<circuits::Shared<circuits::LinearTransform>> plan;
  bool complex_values = false;  // whether a diagonal is complex
};
struct Polynomial {
  std::shared_ptr<const circuits::PolynomialPlan> plan;
};

}  // namespace jali::python
