#include "jali/backend/cpu/isa.h"
#include "jali/backend/cpu/peak_impl.h"
#include "jali/backend/cpu/row_embedding.h"
#include "jali/backend/cpu/row_kernels_impl.h"
#include "jali/backend/cpu/vec_avx512.h"

namespace jali::backend::cpu {

RowKernels ifma_kernels() { return EmbeddingRows<64>::in(Peak<64>::in(row_kernels<IfmaW52>())); }

}  // namespace jali::backend::cpu
