// The evaluator as captured functions see it.
#pragma once

#include <memory>

#include "discrete.h"

namespace jali::python {

struct DiscreteEvaluator {
  std::shared_ptr<const DiscreteServer> server;
};

}  // namespace jali::python
