// Blind rotation of one ciphertext by a cluster of blocks: for few ciphertexts, whose time is the
// latency of a step, and for polynomials that are too large for one block. The mathematics, the
// messages and the launcher are in cluster_kernel.cuh.
#pragma once

#include "jali/backend/cuda/blind_rotation/any_rotation.cuh"
#include "jali/backend/cuda/blind_rotation/blind_rotation.cuh"

namespace jali::backend::cuda {

/// The order of the key; its `blocks` are 0 if no kernel serves the configuration.
ClusterKey cluster_key(const TfheConfig& config);
/// The largest batch for which it takes less time than the kernel of blind_rotation.cuh, on the
/// stream's GPU.
std::size_t cluster_batch(const Stream& stream, const TfheConfig& config);
/// tree: fft::tree. roots: fft::roots. The call's key is in the order above.
void rotate_in_clusters(const Stream& stream, const TfheConfig& config, const AnyTables& tables,
                        const RotationCall& call);

}  // namespace jali::backend::cuda
