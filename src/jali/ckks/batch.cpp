// Puts two ciphertexts into one batch, and takes vectors out of a batch.
#include <algorithm>
#include <cstddef>

#include "jali/base/error.h"
#include "jali/ckks/evaluator_impl.h"

namespace jali::ckks {

namespace {

/// Copies the rows [from, from + count) of every limb of x to the rows [to, to + count) of out.
void copy_rows(const ring::Ring& ring, ring::Poly& out, std::size_t to, const ring::Poly& x,
               std::size_t from, std::size_t count) {
  ring.copies().copy_rows(out.row(0, to), out.batch() * out.row_bytes(), x.row(0, from),
                          x.batch() * x.row_bytes(), count * x.row_bytes(), x.limbs());
}

}  // namespace

Ciphertext Evaluator::stack(const Ciphertext& a, const Ciphertext& b) const {
  impl_->check(a);
  impl_->check(b);
  impl_->check_pair(a.level, a.scale, b.level, b.scale, a.batch(), a.batch(), true);
  require<InvalidArgument>(a.parts.size() == b.parts.size() && a.log_slots == b.log_slots,
                           "ciphertexts of one batch need equal parts and slots");
  Ciphertext out = impl_->shell(a, b);
  for (std::size_t c = 0; c < a.parts.size(); ++c) {
    out.parts.push_back(impl_->ring->make(a.parts[c].primes(), a.batch() + b.batch()));
    copy_rows(*impl_->ring, out.parts[c], 0, a.parts[c], 0, a.batch());
    copy_rows(*impl_->ring, out.parts[c], a.batch(), b.parts[c], 0, b.batch());
  }
  out.estimate.cover(b.estimate);
  return out;
}

Ciphertext Evaluator::vectors(const Ciphertext& a, std::size_t first, std::size_t count) const {
  impl_->check(a);
  require<InvalidArgument>(count >= 1 && first < a.batch() && count <= a.batch() - first,
                           "the range of vectors lies outside the batch: take at least one, and "
                           "none past its end");
  Ciphertext out = impl_->shell(a);
  for (const auto& part : a.parts) {
    out.parts.push_back(impl_->ring->make(part.primes(), count));
    copy_rows(*impl_->ring, out.parts.back(), 0, part, first, count);
  }
  return out;
}

}  // namespace jali::ckks
