// Puts two ciphertexts into one batch, and takes vectors out of a batch.
#include "jali/base/error.h"
#include "jali/schemes/ckks/evaluator_impl.h"

namespace jali::ckks {

Ciphertext Evaluator::stack(const Ciphertext& a, const Ciphertext& b) const {
  impl_->check(a);
  impl_->check(b);
  impl_->check_pair(a.level, a.scale, b.level, b.scale, a.batch(), a.batch(), true);
  require<InvalidArgument>(a.parts.size() == b.parts.size() && a.log_slots == b.log_slots,
                           "ciphertexts of one batch need equal parts and slots");
  Ciphertext out = impl_->shell(a, b);
  out.body() = impl_->bodies.stack(a, b);
  out.estimate.cover(b.estimate);
  return out;
}

Ciphertext Evaluator::vectors(const Ciphertext& a, std::size_t first, std::size_t count) const {
  impl_->check(a);
  Ciphertext out = impl_->shell(a);
  out.body() = impl_->bodies.vectors(a, first, count);
  return out;
}

}  // namespace jali::ckks
