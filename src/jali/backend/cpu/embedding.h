// The CKKS embedding on the CPU.
#pragma once

#include <span>

#include "jali/backend/cpu/core.h"
#include "jali/backend/embedding_ops.h"

namespace jali::backend::cpu {

class CpuEmbedding final : public EmbeddingOps, private RowAccess {
 public:
  CpuEmbedding(const Engine& engine, const Core& core) : EmbeddingOps(engine), RowAccess(core) {}

  void embed(View out, const Embedding& embedding, std::span<const Complex> values, int log_slots,
             double factor) const override;
  void unembed(std::span<Complex> slots, const Embedding& embedding, ConstView x, int log_slots,
               double divisor) const override;
};

}  // namespace jali::backend::cpu
