#include "jali/base/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace jali {
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

/// The workers, and what they share with whoever calls them.
class ThreadPool::Crew {
 public:
  Crew(int workers, const Start& start);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  std::size_t size() const { return workers_.size(); }
  void run(const Job& job);

 private:
  void work(const Job& job);
  void worker();

  std::vector<std::thread> workers_;
  std::mutex caller_;  // held by the caller that has the workers
  std::mutex mutex_;   // guards sleeping and waking
  std::condition_variable wake_;
  Job job_;
  std::exception_ptr error_;                  // guarded by mutex_
  std::atomic<std::uint64_t> generation_{0};  // of the job; odd generations tell to stop
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> open_{false};  // the job takes workers
  std::atomic<int> active_{0};     // workers that are, or may be, in the job
  std::atomic<int> sleeping_{0};
};

ThreadPool::Crew::Crew(int workers, const Start& start) {
  workers_.reserve(static_cast<std::size_t>(workers));
  for (int i = 0; i < workers; ++i) {
    try {
      workers_.push_back(start([this] { worker(); }));
    } catch (...) {  // a limit on threads, or no memory for a stack
      break;
    }
  }
}

ThreadPool::Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    generation_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Crew::work(const Job& job) {
  for (std::size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < job.count;) {
    try {
      job.call(job.body, i);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
}

void ThreadPool::Crew::run(const Job& job) {
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

void ThreadPool::Crew::worker() {
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

ThreadPool::ThreadPool(int threads, const Start& start) {
  if (threads == 1) return;
  crew_ = std::make_unique<Crew>(threads - 1, start);
  if (crew_->size() == 0) crew_.reset();
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const {
  return crew_ == nullptr ? 1 : static_cast<int>(crew_->size()) + 1;
}

void ThreadPool::run(const Job& job) { crew_->run(job); }

}  // namespace jali
