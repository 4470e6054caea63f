// Workers of one engine or device: a parallel loop, nothing more.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>

#include "jali/base/at_fork.h"

namespace jali {

class ThreadPool {
 public:
  /// Starts a thread that does work(); may throw.
  using Start = std::function<std::thread(std::function<void()> work)>;

  /// threads >= 1 counts the caller, so that a pool of 1 starts none. If the system gives fewer
  /// threads, the pool has those that it got.
  explicit ThreadPool(
      int threads, const Start& start = [](auto work) { return std::thread(std::move(work)); });
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The threads that work, the caller included: 1 in a child process, which has no workers.
  int threads() const;

  /// body(i) for i in [0, count), in any order; returns when all are done. Rethrows the first
  /// exception. One caller at a time has the workers; a caller that finds them taken works alone.
  template <class Body>
  void parallel(std::size_t count, const Body& body) {
    if (crew_ == nullptr || count < 2) {
      for (std::size_t i = 0; i < count; ++i) body(i);
      return;
    }
    run({count, [](const void* b, std::size_t i) { (*static_cast<const Body*>(b))(i); }, &body});
  }

 private:
  struct Job {
    std::size_t count = 0;
    void (*call)(const void* body, std::size_t i) = nullptr;
    const void* body = nullptr;
  };
  class Crew;

  void run(const Job& job);

  std::unique_ptr<Crew> crew_;  // null without workers
  // A child cannot join what it lacks, nor destroy what its parent's workers sleep on: it forgets
  // them.
  AtFork at_fork_{{{}, {}, [this] { [[maybe_unused]] Crew* left = crew_.release(); }}};
};

}  // namespace jali
