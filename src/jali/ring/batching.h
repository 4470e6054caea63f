// The batch that suits the machine, found by measuring the work itself (the API layer of TensorFHE): a batch shares
// keys, twiddles and launches, until memory or the caches are full.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "jali/base/at_fork.h"
#include "jali/base/turns.h"
#include "jali/ring/poly.h"

namespace jali::ring {

/// Divides many equal items of work into batches: 1, 2, 4, ... are tried, as long as memory allows and the time an item
/// takes falls.
class Batching {
 public:
  /// What was measured: the least time an item took in such a batch, and its memory at the peak.
  struct Point {
    std::size_t batch = 1;
    double seconds = 0;
    std::size_t bytes = 0;
    int runs = 0;
  };
  /// Does the items [first, first + count) in one batch on the ring's device. If it throws, it has done none of them.
  using Work = std::function<void(std::size_t first, std::size_t count)>;

  /// name: for sentences, e.g. "this batcher". max_batch: 0 for as large as is good. memory: bytes that it may use; 0 for
  /// what is free.
  Batching(std::shared_ptr<const Ring> ring, std::string name, std::size_t max_batch,
           std::size_t memory);

  /// Does `total` items in order. A batch that does not fit after all (OutOfMemory), or is too large for the engine
  /// (Unsupported), is halved and tried again. Throws InvalidArgument for a call from the work itself. Threads take turns.
  void run(std::size_t total, const Work& work);

  /// The batch in use; 0 before anything was measured.
  std::size_t batch() const;
  std::vector<Point> curve() const;

 private:
  Point& at(std::size_t batch);
  std::size_t choose(std::size_t waiting) const;
  void run_batch(std::size_t first, std::size_t count, const Work& work);

  const std::shared_ptr<const Ring> ring_;
  const std::size_t memory_;
  std::size_t limit_;  // no batch above it is tried
  std::vector<Point> curve_;  // by batch
  Turns turns_;  // at run
  mutable ForkSafe<std::mutex> mutex_;  // of curve_, which only a run changes
};

}  // namespace jali::ring
