#include "jali/backend/cpu/isa.h"
#include "jali/backend/cpu/peak_impl.h"
#include "jali/backend/cpu/row_embedding.h"
#include "jali/backend/cpu/row_kernels_impl.h"
#include "jali/backend/cpu/vec_scalar.h"

namespace jali::backend::cpu {

RowKernels portable_kernels(Word word) {
  return EmbeddingRows<16>::in(
      Peak<16>::in(word == Word::w32 ? row_kernels<ScalarW32>() : row_kernels<ScalarW64>()));
}

}  // namespace jali::backend::cpu
