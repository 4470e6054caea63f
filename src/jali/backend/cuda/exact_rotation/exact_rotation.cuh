// Blind rotation by number-theoretic transforms modulo primes of 27 bits: exact, hence with the
// oracle's bits, for every configuration, on integer units alone. For GPUs with few units for
// double precision, and for who wants exact products.
#pragma once

#include <cstddef>
#include <string>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/exact_rotation/tables.h"

namespace jali::backend::cuda {

class ExactRotation {
 public:
  ExactRotation(const Stream& stream, const TfheConfig& config);

  std::size_t key_bytes() const { return exact::key_bytes(shape_); }
  std::size_t prepare_scratch_bytes() const;
  /// Transforms the GGSW ciphertexts of `count` steps from `first` on. ggsws: standard form, the
  /// device's. scratch: of prepare_scratch_bytes().
  void prepare(const Stream& stream, std::uint32_t* key, const void* ggsws, std::size_t first,
               std::size_t count, void* scratch) const;
  /// Blocks that rotate a batch, each with a part of the scratch memory.
  unsigned blocks(std::size_t count) const;
  std::size_t scratch_bytes(unsigned blocks) const { return blocks * layout_.scratch_bytes; }
  void rotate(const Stream& stream, const exact::Batch& batch, unsigned blocks,
              void* scratch) const;

 private:
  exact::Tables tables() const;

  const exact::Shape shape_;
  Constant forward_, inverse_, roots_;
  exact::Layout layout_{};
  std::size_t most_shared_ = 0;  // bytes of shared memory that a block may have
  unsigned multiprocessors_ = 0, each_ = 0;  // blocks of a multiprocessor
};

}  // namespace jali::backend::cuda
