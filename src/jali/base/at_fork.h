// Forks. A child process has the memory of its parent but only one of its threads. A lock that
// another thread held therefore stays locked in the child for ever, half-done work stays half done,
// and no worker thread answers.
#pragma once

#include <functional>
#include <mutex>
#include <new>

namespace jali {

/// What an object does before its process is forked, and afterwards in the parent and in the child.
/// An AtFork must be the object's last member, so that it is registered when the object is
/// complete. The functions run in the forking thread and throw nothing.
class AtFork {
 public:
  struct Actions {
    std::function<void()> before = {}, in_parent = {}, in_child = {};
  };
  explicit AtFork(Actions actions);
  ~AtFork();  // waits for a fork under way
  AtFork(const AtFork&) = delete;
  AtFork& operator=(const AtFork&) = delete;

 private:
  friend class AtForkList;
  Actions actions_;
  AtFork *before_ = nullptr, *behind_ = nullptr;  // its neighbours in the list
};

/// A mutex that is free in a child, with complete data behind it, because a fork waits for the
/// thread that holds it. Hold it only for a moment, take no other lock meanwhile, and wait for
/// nobody.
template <class Mutex>
class ForkSafe {
 public:
  ForkSafe() = default;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void lock_shared() { mutex_.lock_shared(); }
  void unlock_shared() { mutex_.unlock_shared(); }

 private:
  Mutex mutex_;
  AtFork at_fork_{{[this] { mutex_.lock(); }, [this] { mutex_.unlock(); },
                   // A thread of the parent locked it, and no thread of the child may unlock that:
                   // it is made anew.
                   [this] { new (&mutex_) Mutex; }}};
};

}  // namespace jali
