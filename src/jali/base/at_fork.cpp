#include "jali/base/at_fork.h"

#include <pthread.h>

#include <utility>

namespace jali {

/// The objects of this process that act at a fork. What is given to pthread_atfork cannot be taken
/// back, so it is called once, and this list says which objects there are.
class AtForkList {
 public:
  static AtForkList& get() {
    // The list is never destroyed, because an object may still leave it when the process ends.
    static AtForkList& list = *new AtForkList;
    return list;
  }

  void add(AtFork& x) {
    const std::lock_guard lock(mutex_);
    x.behind_ = first_;
    if (first_ != nullptr) first_->before_ = &x;
    first_ = &x;
  }
  void remove(AtFork& x) {
    const std::lock_guard lock(mutex_);
    (x.before_ != nullptr ? x.before_->behind_ : first_) = x.behind_;
    if (x.behind_ != nullptr) x.behind_->before_ = x.before_;
  }

 private:
  AtForkList() {
    pthread_atfork([] { get().before(); }, [] { get().in_parent(); }, [] { get().in_child(); });
  }
  void each(std::function<void()> AtFork::Actions::* what) {
    for (AtFork* x = first_; x != nullptr; x = x->behind_) {
      if (x->actions_.*what) (x->actions_.*what)();
    }
  }
  void before() {
    mutex_.lock();
    each(&AtFork::Actions::before);
  }
  void in_parent() {
    each(&AtFork::Actions::in_parent);
    mutex_.unlock();
  }
  void in_child() {
    each(&AtFork::Actions::in_child);
    new (&mutex_) std::mutex;
  }

  std::mutex mutex_;
  AtFork* first_ = nullptr;
};

AtFork::AtFork(Actions actions) : actions_(std::move(actions)) { AtForkList::get().add(*this); }
AtFork::~AtFork() { AtForkList::get().remove(*this); }

}  // namespace jali
