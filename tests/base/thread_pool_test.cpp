// Tests the worker threads of an engine: threads that cannot start, and forks.
#include "jali/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace jali {
namespace {

std::vector<int> all_of(ThreadPool& pool, std::size_t count) {
  std::vector<int> times(count, 0);
  pool.parallel(count, [&](std::size_t i) { ++times[i]; });
  return times;
}

/// Starts `started` threads, then fails like the system does.
ThreadPool::Start failing_after(int started, bool no_memory) {
  return [left = started, no_memory](std::function<void()> work) mutable {
    if (left-- == 0) {
      if (no_memory) throw std::bad_alloc();
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    return std::thread(std::move(work));
  };
}

TEST(ThreadPool, RunsWithTheThreadsThatItGets) {
  constexpr int kAsked = 6;
  for (const bool no_memory : {false, true}) {
    for (int started = 0; started < kAsked; ++started) {
      SCOPED_TRACE(started);
      ThreadPool pool(kAsked, failing_after(started, no_memory));
      EXPECT_EQ(pool.threads(), std::min(started, kAsked - 1) + 1);
      for (const std::size_t count : {0, 1, 2, 7, 1000}) {
        EXPECT_EQ(all_of(pool, count), std::vector<int>(count, 1));
      }
      EXPECT_THROW(pool.parallel(9,
                                 [](std::size_t i) {
                                   if (i == 3) throw std::out_of_range("3");
                                 }),
                   std::out_of_range);
      EXPECT_EQ(all_of(pool, 9), std::vector<int>(9, 1));
    }
  }
}

TEST(ThreadPool, WorkersStayAfterAThrow) {
  ThreadPool pool(3);
  EXPECT_EQ(pool.threads(), 3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THROW(pool.parallel(8, [](std::size_t) { throw std::runtime_error("all"); }),
                 std::runtime_error);
  }
  EXPECT_EQ(all_of(pool, 100), std::vector<int>(100, 1));
}

// Uses the pool in every way in the child. Returns 0 if all went well.
int child(std::unique_ptr<ThreadPool>& pool) {
  if (pool->threads() != 1) return 2;
  for (int i = 0; i < 10; ++i) {
    if (all_of(*pool, 100) != std::vector<int>(100, 1)) return 3;
  }
  pool.reset();
  ThreadPool own(3);
  return own.threads() == 3 && all_of(own, 100) == std::vector<int>(100, 1) ? 0 : 4;
}

// Forks while the workers are asleep, awake or at work. A child that hangs is ended by its alarm.
TEST(ThreadPoolFork, AChildWorksAloneAndEnds) {
  for (const bool busy : {false, true}) {
    for (int round = 0; round < 20; ++round) {
      auto pool = std::make_unique<ThreadPool>(3);
      std::atomic<bool> stop = false;
      std::vector<std::thread> users;
      for (int k = 0; busy && k < 2; ++k) {
        users.emplace_back([&] {
          while (!stop) all_of(*pool, 50);
        });
      }
      if (round % 2 == 1) usleep(3000);
      const pid_t id = fork();
      ASSERT_GE(id, 0);
      if (id == 0) {
        alarm(20);
        _exit(child(pool));
      }
      int status = 0;
      ASSERT_EQ(waitpid(id, &status, 0), id);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
      EXPECT_EQ(pool->threads(), 3);
      EXPECT_EQ(all_of(*pool, 100), std::vector<int>(100, 1));
      stop = true;
      for (std::thread& user : users) user.join();
    }
  }
}

}  // namespace
}  // namespace jali
