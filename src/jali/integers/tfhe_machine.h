// Integers on TFHE: a digit is one ciphertext, a look-up one programmable bootstrapping.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "jali/integers/digits.h"
#include "jali/integers/tfhe_noise.h"
#include "jali/integers/tfhe_programs.h"
#include "jali/integers/tfhe_tables.h"
#include "jali/lwe/blocks.h"
#include "jali/schemes/tfhe/evaluator.h"

namespace jali::integers {

/// Digits as the ciphertexts that users of the parameters hold.
class TfheRows final : public Rows {
 public:
  explicit TfheRows(std::shared_ptr<lwe::LweBlock> block) : block_(std::move(block)) {}
  TfheRows(std::shared_ptr<lwe::LweBlock> block, tfhe::History history)
      : block_(std::move(block)), history_(std::move(history)) {}
  std::size_t count() const override { return block_->count; }
  const std::shared_ptr<lwe::LweBlock>& block() const { return block_; }
  /// From which errors theirs are made. Rows that are on their way through a circuit have none.
  const tfhe::History& history() const;
  void set_history(tfhe::History history) { history_ = std::move(history); }

 private:
  std::shared_ptr<lwe::LweBlock> block_;
  std::optional<tfhe::History> history_;
};

struct TfheMachineOptions {
  /// The bytes that an operation may take for its digits; 0: half of what the device has free, at
  /// most 4 GiB.
  std::size_t memory = 0;
  /// So many bootstrappings take as long as one; 0: as the engine says.
  std::size_t wave = 0;
  /// Whether small circuits are recorded, so that a run is one graph. By default they are on a GPU.
  std::optional<bool> records = {};
  /// Called when a circuit cannot be recorded for want of memory. It runs without, which takes
  /// longer.
  std::function<void()> unrecorded = {};
};

/// Its noise budget is Params::max_norm2(). Before a circuit runs, the noise of each of its
/// look-ups is counted, by the origins of all errors. If operands have errors in common and a
/// look-up would get more than the budget, all digits are looked up first in tables that differ,
/// which makes their errors independent (Apart). So every look-up fails with at most the
/// parameters' probability.
class TfheMachine final : public Machine {
 public:
  /// Throws InvalidArgument, with what to change, for parameters in which integers cannot be
  /// computed.
  explicit TfheMachine(std::shared_ptr<const tfhe::Evaluator> evaluator,
                       const TfheMachineOptions& options = {});

  const tfhe::Evaluator& evaluator() const { return *evaluator_; }

  /// The digits of an encrypted vector, which must be in the engine's memory. Throws RangeExceeded
  /// if a value may be 2^message_bits or more: circuits would compute something else.
  static std::shared_ptr<const Rows> rows_of(const tfhe::Ciphertext& digits);
  /// An encrypted vector of digits. largest: of each digit, in turn.
  tfhe::Ciphertext ciphertext(const Rows& digits, std::span<const int> largest) const;

  const Space& space() const override { return space_; }
  std::size_t available_rows() const override;
  std::size_t most_rows() const override;
  std::unique_ptr<Rows> allocate(std::size_t count) const override;
  void copy(Rows& out, std::size_t out_first, const Rows& in, std::size_t in_first,
            std::size_t count) const override;
  void combine(Rows& out, std::size_t out_first, const Rows& in,
               const RowCombination& combination) const override;
  void look_up(Rows& out, std::size_t out_first, const Rows& in,
               const RowLookUps& look_ups) const override;
  std::unique_ptr<Rows> run(const Circuit& circuit, const Run& run) const override;
  std::unique_ptr<Rows> gather(const Rows& in, std::span<const std::uint32_t> which) const override;
  std::unique_ptr<Rows> concatenate(const Rows& a, const Rows& b) const override;
  std::unique_ptr<Rows> constants(std::span<const std::int64_t> halves) const override;
  /// How many circuits, each for a number of integers, are recorded.
  std::size_t recorded() const { return programs_.recorded(); }

 private:
  class WithTables;

  /// The digits of operands with independent errors.
  std::vector<std::unique_ptr<Rows>> parted(const Apart& parting,
                                            std::span<const Operand> operands) const;
  /// Runs the circuit, whatever its noise.
  std::unique_ptr<Rows> computed(const Circuit& circuit, const Run& run) const;
  std::size_t rotations_at_once() const;
  void look_up_in(const Polynomials& tables, Rows& out, std::size_t out_first, const Rows& in,
                  const RowLookUps& look_ups) const;
  /// One blind rotation of all inputs, and what the shares say of the accumulators.
  struct Share;
  void rotate(lwe::LweBlock& out, backend::ConstLweView in, const backend::TableView& view,
              std::span<const Share> shares) const;

  std::shared_ptr<const tfhe::Evaluator> evaluator_;
  Space space_;
  TfheMachineOptions options_;
  TfheTables tables_;
  mutable TfhePrograms programs_;
};

}  // namespace jali::integers
