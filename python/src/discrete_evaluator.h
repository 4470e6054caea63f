// The evaluator as captured functions see it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "discrete.h"

namespace jali::python {

struct DiscreteEvaluator {
  std::shared_ptr<const DiscreteServer> server;
};

/// The vectors of all, one after the other. They are brought to the lowest level, and to one
/// factor.
discrete::Ciphertext joined(const discrete::Evaluator& evaluator,
                            std::span<const discrete::Ciphertext> parts);
/// The same, each by itself.
std::vector<discrete::Ciphertext> brought_alike(const discrete::Evaluator& evaluator,
                                                std::vector<discrete::Ciphertext> parts);

}  // namespace jali::python
