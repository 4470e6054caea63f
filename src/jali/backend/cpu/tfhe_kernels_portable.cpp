#include "jali/backend/cpu/tfhe_rotation_impl.h"
#include "jali/backend/cpu/tfhe_switch_impl.h"

namespace jali::backend::cpu {

TfheKernels portable_tfhe_kernels() {
  return tfhe_kernels<PortableVec<2>, SwitchRows<16, 1, 4>, RotationRows<PortableVec<2>>>();
}

}  // namespace jali::backend::cpu
