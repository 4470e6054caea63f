// What a bootstrapping with its key switch costs: counts of operations, times what each was
// measured to take.
#pragma once

#include <cstdint>
#include <string>

#include "jali/params/tfhe_params.h"

namespace jali::tfhe {

/// The constants of cost.toml, in seconds, which says how they were fitted.
struct CostModel {
  // A batch on an H100, for one ciphertext. Sizes with kernels of their own: for one level of the
  // gadget, for several; products that sum a step's key.
  double butterfly_one, product_one, butterfly_many, product_many;
  double sum_block_binary, sum_multi_bit;
  double butterfly_cluster;  // large polynomials over clusters of multiprocessors
  double butterfly_other, product_other;  // all other sizes
  double switch_word;
  // One ciphertext alone on an H100, per step of the rotation, and its key switch.
  double step_alone, butterfly_alone, butterfly_alone_other;
  double switch_alone, switch_word_alone;
  // One of eight ciphertexts on one thread of a CPU. Polynomials of more than 2,048 coefficients do
  // not stay in its cache.
  double cpu_butterfly, cpu_butterfly_large, cpu_product;
  double cpu_sum_block_binary, cpu_sum_multi_bit;
  double cpu_key_byte, cpu_switch_word;
  /// The largest relative error of a prediction for what was measured: a batch, one alone, and on
  /// the CPU.
  double batch_error, alone_error, cpu_error;
};
/// Throws InvalidArgument if the file lacks a constant.
CostModel read_cost_model(const std::string& path);

/// Which kernels of the GPU engine rotate these parameters (backend/cuda/blind_rotation/).
enum class Kernel : std::uint8_t { own, cluster, other };
Kernel kernel_of(const Literal& literal);

struct Cost {
  double fma = 0;  // multiply-adds of a rotation
  double throughput_seconds = 0;  // of one bootstrapping with its key switch in a large batch
  double latency_seconds = 0;  // of one alone
  double cpu_seconds = 0;
};
Cost cost(const CostModel& model, const Literal& literal);

}  // namespace jali::tfhe
