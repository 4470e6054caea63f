#include "jali/backend/cpu/isa.h"
#include "jali/backend/cpu/peak_impl.h"
#include "jali/backend/cpu/row_embedding.h"
#include "jali/backend/cpu/row_kernels_impl.h"
#include "jali/backend/cpu/vec_wasm.h"

#ifdef __wasm_simd128__
namespace jali::backend::cpu {

RowKernels wasm_kernels() { return EmbeddingRows<16>::in(Peak<16>::in(row_kernels<WasmW32>())); }

}  // namespace jali::backend::cpu
#endif
