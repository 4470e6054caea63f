#include "jali/backend/cpu/tfhe_rotation_impl.h"
#include "jali/backend/cpu/tfhe_switch_impl.h"

namespace jali::backend::cpu {

TfheKernels avx2_tfhe_kernels() {
  return tfhe_kernels<Avx2Vec, SwitchRows<32, 2, 4>, RotationRows<Avx2Vec>>();
}

}  // namespace jali::backend::cpu
