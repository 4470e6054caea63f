// Finds out which keys a computation uses, before there are any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "jali/base/at_fork.h"
#include "jali/rlwe/keys.h"

namespace jali::rlwe {

/// What an evaluator that has no keys writes down (Evaluator's constructor that takes one). May be
/// used from several threads.
class KeyRecorder {
 public:
  void use_galois(std::uint64_t element, int level) {
    const std::lock_guard lock(mutex_);
    int& highest = demand_.galois.emplace(element, level).first->second;
    highest = std::max(highest, level);
  }
  void use_relinearisation(int level) {
    const std::lock_guard lock(mutex_);
    demand_.relinearise = std::max(demand_.relinearise, level);
  }
  void use_encapsulation() {
    const std::lock_guard lock(mutex_);
    demand_.encapsulation = true;
  }
  /// All that was used so far.
  KeyDemand demand() const {
    const std::lock_guard lock(mutex_);
    return demand_;
  }

 private:
  KeyDemand demand_;
  mutable ForkSafe<std::mutex> mutex_;
};

}  // namespace jali::rlwe
