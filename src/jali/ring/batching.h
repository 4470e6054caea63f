// Finds the batch that suits the machine by measuring the work itself, as the API layer of
// TensorFHE does. The items of a batch share keys, twiddle factors and launches. A larger batch is
// faster until memory or the caches are full.
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

/// Divides many equal items of work into batches. Batches of 1, 2, 4, ... are tried as long as
/// memory allows it and the time of an item falls.
class Batching {
 public:
  /// What was measured of one size of batch: the least time of an item, in seconds, and the memory
  /// of the whole batch at its peak, in bytes.
  struct Point {
    std::size_t batch = 1;
    double seconds = 0;
    std::size_t bytes = 0;
    int runs = 0;
  };
  /// Does the items [first, first + count) in one batch on the ring's device. If it throws, it has
  /// done none of them.
  using Work = std::function<void(std::size_t first, std::size_t count)>;
  /// Called after a batch was refused, with its size and the largest that is tried from then on.
  using Smaller = std::function<void(std::size_t refused, std::size_t largest)>;

  /// name: used in error messages, e.g. "this batcher". max_batch: the largest batch; 0 sets no
  /// limit. memory: bytes that a batch may use; 0 stands for what is free.
  Batching(std::shared_ptr<const Ring> ring, std::string name, std::size_t max_batch,
           std::size_t memory, Smaller smaller = {});

  /// Does `total` items in order. If a batch does not fit into memory (OutOfMemory) or is too large
  /// for the engine (Unsupported), it is halved and tried again. Several threads may call this;
  /// they take turns. Throws InvalidArgument if the work itself calls it.
  void run(std::size_t total, const Work& work);

  /// The batch with the least time of an item; 0 before anything was measured.
  std::size_t batch() const;
  std::vector<Point> curve() const;

 private:
  Point& at(std::size_t batch);
  std::size_t choose(std::size_t waiting) const;
  void run_batch(std::size_t first, std::size_t count, const Work& work);

  const std::shared_ptr<const Ring> ring_;
  const std::size_t memory_;
  const Smaller smaller_;
  std::size_t limit_;  // no batch above it is tried
  std::vector<Point> curve_;  // in the order of batch
  Turns turns_;  // one thread runs at a time
  mutable ForkSafe<std::mutex> mutex_;  // protects curve_, which only run() changes
};

}  // namespace jali::ring
