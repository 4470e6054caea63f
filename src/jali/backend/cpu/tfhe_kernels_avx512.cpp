#include "jali/backend/cpu/tfhe_rotation_impl.h"
#include "jali/backend/cpu/tfhe_switch_impl.h"

namespace jali::backend::cpu {

TfheKernels avx512_tfhe_kernels() {
  return tfhe_kernels<Avx512Vec, SwitchRows<64, 4, 4>, RotationRows<Avx512Vec>>();
}

}  // namespace jali::backend::cpu
