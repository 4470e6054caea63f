// ModRaise, whose mathematics is in rlwe/raise.cpp.
#include <string>

#include "jali/base/error.h"
#include "jali/schemes/ckks/evaluator_impl.h"

namespace jali::ckks {

Ciphertext Evaluator::raise(const Ciphertext& a, int level) const {
  impl_->check(a);
  const auto& params = *impl_->params;
  require<InvalidArgument>(a.parts.size() == 2 && a.level == 0,
                           "raise takes ciphertexts of two parts at level 0");
  require<InvalidArgument>(level > params.depth() && level <= params.top(), [&] {
    return "raise leads to levels " + std::to_string(params.depth() + 1) + " to " +
           std::to_string(params.top()) + ", not " + std::to_string(level);
  });
  rlwe::Ciphertext raised = impl_->bodies.raise(a, level);
  Ciphertext out = impl_->shell(a);
  out.body() = std::move(raised);
  out.estimate += impl_->noise.encapsulation();
  return out;
}

}  // namespace jali::ckks
