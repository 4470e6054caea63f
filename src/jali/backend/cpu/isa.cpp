#include "jali/backend/cpu/isa.h"

#include <algorithm>

#include "jali/backend/engines.h"
#include "jali/base/cpu_features.h"
#include "jali/base/error.h"

namespace jali::backend {

std::vector<std::string> cpu_isas() { return cpu::supported_isas(); }

namespace cpu {

std::vector<std::string> supported_isas() {
  std::vector<std::string> isas;
#ifdef JALI_CPU_X86
  const CpuFeatures& has = cpu_features();
  if (has.ifma) isas.emplace_back("ifma");
  if (has.avx512) isas.emplace_back("avx512");
  if (has.avx2 && has.fma) isas.emplace_back("avx2");
#endif
#ifdef __wasm_simd128__
  isas.emplace_back("simd128");
#endif
  isas.emplace_back("portable");
  return isas;
}

RowKernels select_kernels(const std::string& isa, Word word) {
  const std::vector<std::string> isas = supported_isas();
  const std::string chosen = isa.empty() ? isas.front() : isa;
  require<Unsupported>(std::find(isas.begin(), isas.end(), chosen) != isas.end(), [&] {
    std::string known;
    for (const std::string& name : isas) known += (known.empty() ? "" : ", ") + name;
    return "this machine cannot run the instruction set '" + chosen + "': choose one of " + known;
  });
  RowKernels kernels = portable_kernels(word);
#ifdef JALI_CPU_X86
  if (chosen == "avx2") kernels = avx2_kernels(word);
  if (chosen == "avx512") kernels = avx512_kernels(word);
  if (chosen == "ifma") kernels = word == Word::w52 ? ifma_kernels() : avx512_kernels(word);
#endif
#ifdef __wasm_simd128__
  if (chosen == "simd128" && word == Word::w32) kernels = wasm_kernels();
#endif
  return kernels;
}

}  // namespace cpu
}  // namespace jali::backend
