#include "jali/backend/cpu/tfhe_kernels.h"

#include <algorithm>
#include <vector>

#include "jali/base/cpu_features.h"
#include "jali/base/error.h"

namespace jali::backend::cpu {

DigitRule::DigitRule(Gadget gadget)
    : base_log(gadget.base_log), levels(gadget.levels), shift(64 - base_log * levels) {
  half_unit = shift == 0 ? 0 : std::uint64_t{1} << (shift - 1);
  addend = offset = 0;
  if (!in_doubles()) return;
  // The largest u whose digit 1 is at most 2^(g-1): what rounds to the largest one of a level less.
  const std::uint64_t base = std::uint64_t{1} << base_log;
  std::uint64_t most = base / 2;
  for (int j = 1; j < levels; ++j) most = most * base + base / 2 - most % 2;
  offset = (std::uint64_t{1} << (base_log * levels)) - 1 - most;
  addend = half_unit + (offset << shift);
}

TfheKernels select_tfhe_kernels(const std::string& isa) {
  std::vector<std::string> isas;
#ifdef JALI_CPU_X86
  const CpuFeatures& has = cpu_features();
  if (has.avx512) isas.emplace_back("avx512");
  if (has.avx2 && has.fma) isas.emplace_back("avx2");
#endif
  isas.emplace_back("portable");
  const std::string chosen = isa.empty() ? isas.front() : isa;
  require<Unsupported>(std::find(isas.begin(), isas.end(), chosen) != isas.end(), [&] {
    std::string known;
    for (const std::string& name : isas) known += (known.empty() ? "" : ", ") + name;
    return "this machine cannot run the instruction set '" + chosen + "': choose one of " + known;
  });
#ifdef JALI_CPU_X86
  if (chosen == "avx512") return avx512_tfhe_kernels();
  if (chosen == "avx2") return avx2_tfhe_kernels();
#endif
  return portable_tfhe_kernels();
}

}  // namespace jali::backend::cpu
