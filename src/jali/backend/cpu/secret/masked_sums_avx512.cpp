#include "jali/backend/cpu/secret/masked_sums_kernel.h"

namespace jali::backend::cpu {

void masked_sums_avx512(std::uint64_t* out, const std::uint64_t* turned, const std::uint64_t* masks,
                        std::size_t n) {
  masked_sums<64>(out, turned, masks, n);
}

}  // namespace jali::backend::cpu
