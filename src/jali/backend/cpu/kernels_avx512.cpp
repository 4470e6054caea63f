#include "jali/backend/cpu/isa.h"
#include "jali/backend/cpu/peak_impl.h"
#include "jali/backend/cpu/row_embedding.h"
#include "jali/backend/cpu/row_kernels_impl.h"
#include "jali/backend/cpu/vec_avx512.h"

namespace jali::backend::cpu {

RowKernels avx512_kernels(Word word) {
  return EmbeddingRows<64>::in(
      Peak<64>::in(word == Word::w32 ? row_kernels<Avx512W32>() : row_kernels<Avx512W64>()));
}

}  // namespace jali::backend::cpu
