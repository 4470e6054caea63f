#include "jali/backend/cpu/isa.h"
#include "jali/backend/cpu/peak_impl.h"
#include "jali/backend/cpu/row_embedding.h"
#include "jali/backend/cpu/row_kernels_impl.h"
#include "jali/backend/cpu/vec_avx2.h"

namespace jali::backend::cpu {

RowKernels avx2_kernels(Word word) {
  return EmbeddingRows<32>::in(
      Peak<32>::in(word == Word::w32 ? row_kernels<Avx2W32>() : row_kernels<Avx2W64>()));
}

}  // namespace jali::backend::cpu
