// Threads that take turns at long work, some of which calls the user's functions.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "jali/base/at_fork.h"
#include "jali/base/checkpoint.h"

namespace jali {

/// A lock for work that takes long: one thread holds it at a time, or several threads share it. A thread that
/// would wait for itself is refused. So is a child process that would wait for a thread of its parent.
class Turns {
 public:
  /// what: a name for error messages, e.g. "this program". wait: a waiting thread calls it ten times a second; if it
  /// throws, the waiting ends.
  explicit Turns(std::string what, Checkpoint wait = {});

  class Turn {
   public:
    Turn(Turn&& other) noexcept : of_(std::exchange(other.of_, nullptr)), shared_(other.shared_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (of_ != nullptr) of_->end(shared_);
    }

   private:
    friend class Turns;
    Turn(Turns& of, bool shared) : of_(&of), shared_(shared) {}
    Turns* of_;
    bool shared_;
  };
  /// Waits for its turn. Throws InvalidArgument if this thread has it already, Unsupported in a child process
  /// if the parent had it at the fork.
  [[nodiscard]] Turn take() { return take(false); }
  [[nodiscard]] Turn share() { return take(true); }

 private:
  Turn take(bool shared);
  void end(bool shared) noexcept;

  struct State {
    std::mutex mutex;
    std::condition_variable ended;
    std::thread::id holder;  // the one that does not share
    int sharing = 0;
    bool abandoned = false;  // held, when the process was forked, by a thread that the child lacks
  };
  const std::string what_;
  const Checkpoint wait_;
  State state_;
  AtFork at_fork_;
};

}  // namespace jali
