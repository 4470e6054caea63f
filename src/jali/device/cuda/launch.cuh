// Launches of kernels that begin while their predecessor in the stream ends (compute capability 9).
//
// Every thread of such a kernel calls after_predecessor(), whatever it does, before it writes
// anything or reads what its predecessor may have written. Data written before the predecessor was
// launched, such as constants and keys, may be read without waiting: a kernel begins when all
// blocks of its predecessor have ended, and they had waited for theirs. It could begin sooner
// (griddepcontrol.launch_dependents), but then its blocks crowd on the SMs that are free first.
#pragma once

#include <utility>

#include "jali/device/cuda/check.cuh"

namespace jali::device::cuda {

__device__ __forceinline__ void after_predecessor() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// How many clusters of `cluster` blocks the current GPU runs at once.
template <class... Parameters>
std::size_t clusters_at_once(void (*kernel)(Parameters...), unsigned threads, std::size_t bytes,
                             unsigned cluster) {
  allow_shared(kernel, bytes);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(cluster);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int count = 0;
  check(cudaOccupancyMaxActiveClusters(&count, kernel, &config), "clusters of a kernel");
  return static_cast<std::size_t>(count);
}
/// what: names the kernel in errors. cluster: blocks of a cluster, along x.
template <class... Parameters, class... Args>
void launch(const Stream& stream, const char* what, void (*kernel)(Parameters...), dim3 grid,
            unsigned threads, std::size_t bytes, unsigned cluster, Args&&... args) {
  allow_shared(kernel, bytes);
  if (cluster > 8) allow_wide_clusters(kernel);
  cudaLaunchAttribute attributes[2]{};
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = bytes;
  config.stream = stream.get();
  config.attrs = attributes;
  if (cluster > 1) {
    auto& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster, 1, 1};
  }
  if (stream.overlaps()) {
    auto& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  stream.launched(what, cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...));
}

}  // namespace jali::device::cuda
