// The CKKS embedding, between complex slots and residues: the doubles of embedding.h joined to the
// ring's integers. See table.h and view.h.
#pragma once

#include <span>

#include "jali/backend/embedding.h"
#include "jali/backend/table.h"
#include "jali/backend/view.h"

namespace jali::backend {

class EmbeddingOps : public Table {
 public:
  using Table::Table;

  /// out (coefficient form) = embed(...) of embedding.h: `out.batch` vectors of values,
  /// |coefficients| below 2^62. The same bits on every engine.
  virtual void embed(View out, const Embedding& embedding, std::span<const Complex> values,
                     int log_slots, double factor) const;
  /// The slots (batch, 2^log_slots) of x (coefficient form), its centred coefficients over divisor.
  virtual void unembed(std::span<Complex> slots, const Embedding& embedding, ConstView x,
                       int log_slots, double divisor) const;
};

}  // namespace jali::backend
