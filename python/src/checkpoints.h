// Functions of Python that are called during long work, by the thread that gave them.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "binding.h"
#include "jali/base/checkpoint.h"

namespace jali::python {

/// One function for each thread. An engine's ring calls them, so that they end work that has begun
/// on that engine.
class Checkpoints {
 public:
  Checkpoints() = default;
  Checkpoints(const Checkpoints&) = delete;
  ~Checkpoints();

  /// Sets the calling thread's function, or none if it is None. Returns the one that it had. Needs
  /// the GIL.
  nb::object exchange(nb::object function);
  /// Calls the calling thread's function, if there is one, at most ten times a second. What it
  /// raises is thrown. Called without the GIL.
  void operator()();

 private:
  struct Entry {
    nb::object function;
    std::chrono::steady_clock::time_point due;
  };
  std::atomic<int> count_ = 0;  // of the entries
  ForkSafe<std::mutex> mutex_;
  std::map<std::thread::id, Entry> entries_;
};

}  // namespace jali::python
