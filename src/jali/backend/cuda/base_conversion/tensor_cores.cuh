// Base conversion (base_conversion.cuh) on tensor cores, for 32-bit words and digits of up to 35
// limbs.
#pragma once

#include <cstdint>
#include <span>

#include "jali/backend/cuda/base_conversion/digit_table.cuh"
#include "jali/backend/cuda/common/context.cuh"

namespace jali::backend::cuda {

constexpr unsigned kMaxTensorDigits = 64;

/// A row that a digit is converted to; ratio: floor(2^48 / q). row kSkip: none.
struct alignas(16) Target {
  std::uint32_t q, minus_2q, ratio;
  std::uint16_t prime, row;
};

/// Groups of four targets of each digit and the matrix of bytes, by value and on the device.
struct TensorTable {
  /// [group][two quads][lane][2 x 2] words of the operands.
  const std::uint32_t* fragments = nullptr;
  const Target* targets = nullptr;  // [group][4]
  unsigned splits = 1;  // blocks among which the groups of a digit are shared
  std::uint16_t first[kMaxTensorDigits] = {}, groups[kMaxTensorDigits] = {};
};

class TensorPlan {
 public:
  TensorPlan() = default;
  /// Without effect for digits beyond what the kernel takes.
  TensorPlan(const Stream&, const Config&, const DigitTable&, std::span<const PrimeIndex> from,
             std::span<const PrimeIndex> to);
  bool usable() const { return planes_ > 0; }
  /// Columns in shared memory: of the limbs of the largest digit, and v.
  unsigned planes() const { return planes_; }
  unsigned teams() const { return teams_; }
  unsigned most_groups() const { return most_groups_; }
  const TensorTable& table() const { return table_; }

 private:
  unsigned planes_ = 0, teams_ = 0, most_groups_ = 0;
  Constant fragments_, targets_;
  TensorTable table_;
};

/// stay, begin: as for convert_base.
void convert_on_tensor_cores(const Context<W32>&, const TensorPlan&, const DigitTable&,
                             const Constant& reciprocal, unsigned targets, unsigned rows, void* ext,
                             const void* y, bool stay, bool begin);

}  // namespace jali::backend::cuda
