// Workers of one Ops instance: a parallel loop over rows, nothing more.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace jali::backend::cpu {

class ThreadPool {
 public:
  /// threads >= 1 counts the caller, so that a pool of 1 starts none.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// body(i) for i in [0, count), in any order; returns when all are done. Rethrows the first
  /// exception. One caller at a time has the workers; a caller that finds them taken works alone.
  template <class Body>
  void parallel(std::size_t count, const Body& body) {
    if (workers_.empty() || count < 2) {
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

  void run(const Job& job);
  void work(const Job& job);
  void worker();

  std::vector<std::thread> workers_;
  std::mutex caller_;  // held by the caller that has the workers
  std::mutex mutex_;   // guards sleeping and waking
  std::condition_variable wake_;
  Job job_;
  std::exception_ptr error_;                 // guarded by mutex_
  std::atomic<std::uint64_t> generation_{0};  // of the job; odd generations tell to stop
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> open_{false};   // the job takes workers
  std::atomic<int> active_{0};      // workers that are, or may be, in the job
  std::atomic<int> sleeping_{0};
};

}  // namespace jali::backend::cpu
