// Integers on TFHE: a digit is one ciphertext, a look-up one programmable bootstrapping.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "jali/integers/digits.h"
#include "jali/lwe/blocks.h"
#include "jali/tfhe/evaluator.h"

namespace jali::integers {

/// Digits as the ciphertexts that users of the parameters hold.
class TfheRows final : public Rows {
 public:
  explicit TfheRows(std::shared_ptr<lwe::LweBlock> block) : block_(std::move(block)) {}
  std::size_t count() const override { return block_->count; }
  const std::shared_ptr<lwe::LweBlock>& block() const { return block_; }

 private:
  std::shared_ptr<lwe::LweBlock> block_;
};

/// Its noise budget is Params::max_norm2(), so that every look-up fails with at most the parameters' probability.
class TfheMachine final : public Machine {
 public:
  /// wave: so many bootstrappings take as long as one. memory: the bytes that an operation may take for its digits; 0: half
  /// of what the device says is free, at most 4 GiB. Throws InvalidArgument, with what to change, for parameters in which
  /// integers cannot be computed.
  TfheMachine(std::shared_ptr<const tfhe::Evaluator> evaluator, std::size_t wave,
              std::size_t memory = 0);

  const tfhe::Evaluator& evaluator() const { return *evaluator_; }

  /// The digits of an encrypted vector, which must be in the engine's memory. Throws RangeExceeded if a value may be
  /// 2^message_bits or more: circuits would compute something else.
  static std::shared_ptr<const Rows> rows_of(const tfhe::Ciphertext& digits);
  /// An encrypted vector of digits. largest: of each digit, in turn. noise: of the noisiest.
  tfhe::Ciphertext ciphertext(const Rows& digits, std::span<const int> largest, double noise) const;

  const Space& space() const override { return space_; }
  std::size_t available_rows() const override;
  std::unique_ptr<Rows> allocate(std::size_t count) const override;
  void copy(Rows& out, std::size_t out_first, const Rows& in, std::size_t in_first,
            std::size_t count) const override;
  void combine(Rows& out, std::size_t out_first, const Rows& in,
               const RowCombination& combination) const override;
  void look_up(Rows& out, std::size_t out_first, const Rows& in,
               const RowLookUps& look_ups) const override;

 private:
  std::shared_ptr<const tfhe::Evaluator> evaluator_;
  Space space_;
  std::size_t memory_;
};

}  // namespace jali::integers
