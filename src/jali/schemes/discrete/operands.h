// Operands of an operation: ciphertexts of the caller, or what they were brought to.
#pragma once

#include <optional>
#include <utility>

#include "jali/schemes/discrete/evaluator.h"

namespace jali::discrete {

class Evaluator::Operand {
 public:
  Operand(const Ciphertext& own) : seen_(&own) {}  // NOLINT: stands for a reference
  Operand(Ciphertext&& made) : made_(std::move(made)) {}  // NOLINT
  const Ciphertext& operator*() const { return made_ ? *made_ : *seen_; }
  const Ciphertext* operator->() const { return &**this; }

 private:
  const Ciphertext* seen_ = nullptr;
  std::optional<Ciphertext> made_;
};

struct Evaluator::Pair {
  Operand a, b;
};

}  // namespace jali::discrete
