#include "jali/backend/cpu/thread_pool.h"

namespace jali::backend::cpu {
namespace {

// About 20 microseconds before a worker sleeps: longer than the gap between the loops of one
// operation, shorter than anyone would notice on an idle machine.
constexpr int kSpins = 1000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { worker(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    generation_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::work(const Job& job) {
  for (std::size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < job.count;) {
    try {
      job.call(job.body, i);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
}

void ThreadPool::run(const Job& job) {
  const std::unique_lock has_workers(caller_, std::try_to_lock);
  if (!has_workers) {
    for (std::size_t i = 0; i < job.count; ++i) job.call(job.body, i);
    return;
  }
  job_ = job;
  next_.store(0, std::memory_order_relaxed);
  open_.store(true);
  generation_.fetch_add(2);
  if (sleeping_.load() != 0) {
    // Passing through the mutex orders this after a worker that is about to sleep.
    {
      const std::lock_guard lock(mutex_);
    }
    wake_.notify_all();
  }
  work(job);
  open_.store(false);
  for (int spins = 0; active_.load() != 0; ++spins) {
    // The workers may need the core that this thread spins on.
    if (spins < kSpins)
      pause();
    else
      std::this_thread::yield();
  }
  std::exception_ptr error;
  std::swap(error, error_);
  if (error) std::rethrow_exception(error);
}

void ThreadPool::worker() {
  std::uint64_t seen = 0;
  while (true) {
    std::uint64_t now = generation_.load(std::memory_order_acquire);
    for (int spins = 0; now == seen && spins < kSpins; ++spins) {
      pause();
      now = generation_.load(std::memory_order_acquire);
    }
    if (now == seen) {
      std::unique_lock lock(mutex_);
      sleeping_.fetch_add(1);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
      sleeping_.fetch_sub(1);
      now = generation_.load();
    }
    if (now & 1) return;
    seen = now;
    // Announced first, then checked: the caller closes first, then looks for announced workers. So
    // a late worker either finds the job closed or is waited for, and a sleeping one delays nobody.
    active_.fetch_add(1);
    if (open_.load()) work(job_);
    active_.fetch_sub(1);
  }
}

}  // namespace jali::backend::cpu
