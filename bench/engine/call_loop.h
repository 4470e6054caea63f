// Calls of an evaluator's operations from C++, back to back: what the same calls from Python are held against.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "jali/ckks/evaluator.h"

namespace jali::bench {

class CallLoop {
 public:
  /// params: as their bytes. One ciphertext of them, encrypted under a key that is dropped, is the operand.
  CallLoop(std::span<const std::uint8_t> params, const std::string& device);
  CallLoop(const CallLoop&) = delete;
  CallLoop& operator=(const CallLoop&) = delete;

  /// Of one of `count` calls of add or negate.
  double seconds(const std::string& operation, int count) const;

 private:
  std::shared_ptr<const ckks::Evaluator> evaluator_;
  ckks::Ciphertext operand_;
};

}  // namespace jali::bench
