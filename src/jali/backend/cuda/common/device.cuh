// What kernels and launchers use of the device (device/cuda/).
#pragma once

#include "jali/device/cuda/check.cuh"
#include "jali/device/cuda/constant.cuh"
#include "jali/device/cuda/launch.cuh"
#include "jali/device/cuda/stream.cuh"

namespace jali::backend::cuda {

using device::cuda::after_predecessor;
using device::cuda::allow_shared;
using device::cuda::check;
using device::cuda::check_launch;
using device::cuda::clusters_at_once;
using device::cuda::Constant;
using device::cuda::launch;
using device::cuda::Stream;

}  // namespace jali::backend::cuda
