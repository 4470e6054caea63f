// Locks for long work and locks that are held for a moment: re-entrance, waiting that can be ended,
// and forks.
#include "jali/base/turns.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "jali/base/error.h"

namespace jali {
namespace {

/// The answer of a child process. If the child hangs, its alarm ends it.
template <class Work>
int in_child(Work work) {
  const pid_t id = fork();
  if (id == 0) {
    alarm(20);
    _exit(work());
  }
  int status = 0;
  waitpid(id, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

template <class E, class Work>
std::string thrown(Work work) {
  try {
    work();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Turns, OneAtATimeOrSeveralThatShare) {
  Turns turns("this plan");
  int alone = 0;  // not atomic: the turns keep it
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const auto turn = turns.take();
        ++alone;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(alone, 2000);
  const auto first = turns.share();
  bool second = false;
  std::thread([&] {
    const auto turn = turns.share();
    second = true;
  }).join();
  EXPECT_TRUE(second);
}

TEST(Turns, WhoHasItIsRefusedInsteadOfWaitingForItself) {
  Turns turns("this program");
  {
    const auto turn = turns.take();
    EXPECT_NE(thrown<InvalidArgument>([&] {
                const auto again = turns.take();
              }).find("this program is running in this thread"),
              std::string::npos);
    EXPECT_THROW(const auto again = turns.share(), InvalidArgument);
  }
  const auto turn = turns.take();  // ended with its scope
}

TEST(Turns, WaitingCanBeEnded) {
  std::atomic<bool> asked = false;
  Turns turns("this program", [&] {
    if (asked) throw std::runtime_error("interrupted");
  });
  std::optional<Turns::Turn> turn(turns.take());
  std::string said;
  std::thread waiting([&] { said = thrown<std::runtime_error>([&] { (void)turns.take(); }); });
  asked = true;
  waiting.join();
  EXPECT_EQ(said, "interrupted");
  turn.reset();
  const auto next = turns.take();  // who gave up left nothing
}

TEST(TurnsFork, AChildIsToldOfTurnsThatNeverEnd) {
  Turns turns("this program");
  std::atomic<int> step = 0;
  std::thread other([&] {
    const auto turn = turns.take();
    step = 1;
    while (step != 2) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  EXPECT_EQ(in_child([&] {
              const std::string said = thrown<Unsupported>([&] { (void)turns.take(); });
              return said.find("when this process was forked") == std::string::npos ? 1 : 0;
            }),
            0);
  step = 2;
  other.join();
  // Its own turn, and one that is free, go on.
  EXPECT_EQ(in_child([&] {
              {
                const auto turn = turns.take();
              }
              const auto turn = turns.share();
              return 0;
            }),
            0);
  std::optional<Turns::Turn> mine(turns.take());
  EXPECT_EQ(in_child([&] {
              mine.reset();
              const auto turn = turns.take();
              return 0;
            }),
            0);
}

TEST(ForkSafeFork, AChildFindsItFreeAndWhatItGuardsWhole) {
  struct Guarded {
    ForkSafe<std::mutex> mutex;
    ForkSafe<std::shared_mutex> shared;
    int first = 0, second = 0;
  } x;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k) {
    threads.emplace_back([&] {
      while (!stop) {
        const std::lock_guard lock(x.mutex);
        ++x.first;
        std::this_thread::yield();
        ++x.second;
      }
    });
    threads.emplace_back([&] {
      while (!stop) {
        const std::lock_guard lock(x.shared);
        std::this_thread::yield();
      }
    });
    threads.emplace_back([&] {  // objects come and go meanwhile
      while (!stop) {
        ForkSafe<std::mutex> own;
        const std::lock_guard lock(own);
      }
    });
  }
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(in_child([&] {
                const std::lock_guard lock(x.mutex);
                const std::shared_lock shared(x.shared);
                ForkSafe<std::mutex> own;
                const std::lock_guard another(own);
                return x.first == x.second ? 0 : 1;
              }),
              0);
  }
  stop = true;
  for (auto& t : threads) t.join();
}

}  // namespace
}  // namespace jali
