// Recorded sequences of operations.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace jali::device {

/// A step of a recorded sequence, e.g. a kernel of a GPU, and the time that it takes by itself.
struct StepTime {
  std::string name;
  double seconds = 0;
};

/// A sequence of operations that can run again on the same blocks. Two threads must not use it at
/// once.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void run() = 0;
  /// Bytes of the device's memory that it keeps.
  virtual std::size_t bytes() const { return 0; }
  /// Measures each step now, with warm caches. What the blocks hold is undefined until the next
  /// run. Empty if the device has no such steps.
  virtual std::vector<StepTime> steps() { return {}; }
};

}  // namespace jali::device
