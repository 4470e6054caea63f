#include "jali/lwe/secret/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace jali::lwe {

namespace {

/// Threads that are joined when this is destroyed, also by an exception.
struct Joined {
  std::vector<std::thread> threads;
  ~Joined() {
    for (std::thread& thread : threads) thread.join();
  }
};

}  // namespace

void in_parallel(std::size_t total, std::size_t piece, int threads,
                 const std::function<void(std::size_t first, std::size_t count)>& work,
                 const Progress& progress, const Checkpoint& checkpoint) {
  std::atomic<std::size_t> next{0}, done{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  std::mutex mutex;
  const auto run = [&](bool tells) {
    try {
      while (!failed) {
        const std::size_t first = next.fetch_add(piece);
        if (first >= total) return;
        if (tells && checkpoint) checkpoint();
        const std::size_t count = std::min(piece, total - first);
        work(first, count);
        done += count;
        if (tells && progress) progress(done, total);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      failed = true;
    }
  };
  {
    Joined others;
    const std::size_t most = (total + piece - 1) / piece;
    for (std::size_t i = 1; i < std::min<std::size_t>(most, static_cast<std::size_t>(threads));
         ++i) {
      try {
        others.threads.emplace_back(run, false);
      } catch (...) {
        break;  // the system gives no more threads: fewer do the same work
      }
    }
    run(true);
  }
  if (error) std::rethrow_exception(error);
  if (progress && total > 0) progress(total, total);
}

}  // namespace jali::lwe
