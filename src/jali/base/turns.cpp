#include "jali/base/turns.h"

#include <chrono>
#include <new>

#include "jali/base/error.h"

namespace jali {

Turns::Turns(std::string what, Checkpoint wait)
    : what_(std::move(what)),
      wait_(std::move(wait)),
      at_fork_({[this] { state_.mutex.lock(); }, [this] { state_.mutex.unlock(); },
                [this] {
                  const std::thread::id holder = state_.holder, self = std::this_thread::get_id();
                  const bool abandoned =
                      state_.abandoned || (holder != std::thread::id() && holder != self);
                  // Mutex and condition are made anew, because the old ones belong to threads of
                  // the parent.
                  new (&state_) State;
                  state_.abandoned = abandoned;
                  if (holder == self) state_.holder = self;
                }}) {}

Turns::Turn Turns::take(bool shared) {
  const std::thread::id self = std::this_thread::get_id();
  std::unique_lock lock(state_.mutex);
  while (true) {
    require<Unsupported>(!state_.abandoned, [&] {
      return what_ +
             " was in use by another thread when this process was forked, and stays so here: make "
             "another in this process, or start processes by \"spawn\"";
    });
    require<InvalidArgument>(state_.holder != self, [&] {
      return what_ +
             " is running in this thread, and the function that it runs has called it again: let "
             "that function call plain functions only";
    });
    if (state_.holder == std::thread::id() && (shared || state_.sharing == 0)) break;
    state_.ended.wait_for(lock, std::chrono::milliseconds(100));
    if (wait_) {
      lock.unlock();
      wait_();
      lock.lock();
    }
  }
  if (shared) {
    ++state_.sharing;
  } else {
    state_.holder = self;
  }
  return {*this, shared};
}

void Turns::end(bool shared) noexcept {
  {
    const std::lock_guard lock(state_.mutex);
    if (!shared) {
      state_.holder = std::thread::id();
    } else if (state_.sharing > 0) {  // it is 0 in a child, whatever the parent shared
      --state_.sharing;
    }
  }
  state_.ended.notify_all();
}

}  // namespace jali
