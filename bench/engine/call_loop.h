// Calls an evaluator's operations from C++, one after the other. The time is what the same calls
// from Python are compared with.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "jali/schemes/ckks/evaluator.h"

namespace jali::bench {

class CallLoop {
 public:
  /// `params` are serialized parameters. The operand is a ciphertext under a key that is dropped at
  /// once.
  CallLoop(std::span<const std::uint8_t> params, const std::string& device);
  CallLoop(const CallLoop&) = delete;
  CallLoop& operator=(const CallLoop&) = delete;

  /// The mean time of a call, over `count` calls of `operation`: "add", "negate", or "track", which
  /// is the part of "add" that computes and checks bounds and averages, and touches no residue.
  double seconds(const std::string& operation, int count) const;

 private:
  void track() const;

  std::shared_ptr<const ckks::Evaluator> evaluator_;
  ckks::Ciphertext operand_, other_;
};

}  // namespace jali::bench
