// Recorded sequences of operations.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace jali::device {

/// A step of a recorded sequence, e.g. a kernel of a GPU, and the time that it takes alone.
struct StepTime {
  std::string name;
  double seconds = 0;
};

/// A sequence of operations that runs again on the same blocks. Not for use by two threads at once.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void run() = 0;
  /// Memory of the device that it keeps.
  virtual std::size_t bytes() const { return 0; }
  /// Each step of it, measured now with warm caches; what its blocks hold is undefined until the next run. Empty if
  /// the device has no such steps.
  virtual std::vector<StepTime> steps() { return {}; }
};

}  // namespace jali::device
