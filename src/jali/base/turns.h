// Threads take turns at long work. Some of this work calls the user's functions.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "jali/base/at_fork.h"
#include "jali/base/checkpoint.h"

namespace jali {

/// A lock for work that takes long: one thread holds it at a time, or several threads share it. A
/// thread that would wait for itself is refused. So is a child process that would wait for a thread
/// of its parent.
class Turns {
 public:
  /// what: a name for error messages, e.g. "this program". wait: a waiting thread calls it ten
  /// times a second. If it throws, the waiting ends.
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
  /// Waits until nobody else has a turn (take), or nobody who does not share (share). Throws
  /// InvalidArgument if this thread has a turn that it does not share, and Unsupported if this is a
  /// child process and another thread of the parent had such a turn at the fork.
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
    bool abandoned = false;  // at the fork it was held by a thread that the child does not have
  };
  const std::string what_;
  const Checkpoint wait_;
  State state_;
  AtFork at_fork_;
};

}  // namespace jali
