// Which instruction sets there are, and the kernels of each.
#pragma once

#include <string>
#include <vector>

#include "jali/arith/word.h"
#include "jali/backend/cpu/row_kernels.h"

namespace jali::backend::cpu {

RowKernels portable_kernels(Word word);
#ifdef JALI_CPU_X86
RowKernels avx2_kernels(Word word);    // needs AVX2 and FMA
RowKernels avx512_kernels(Word word);  // needs AVX-512 F, DQ, BW, VL
RowKernels ifma_kernels();             // w52 only; needs AVX-512 IFMA as well
#endif
#ifdef __wasm_simd128__
RowKernels wasm_kernels();  // w32 only
#endif

/// Sets this machine can run, best first; "portable" is always the last.
std::vector<std::string> supported_isas();

/// The kernels of a set for a word; "" is the best there is. Throws Unsupported.
RowKernels select_kernels(const std::string& isa, Word word);

}  // namespace jali::backend::cpu
