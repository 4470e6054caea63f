#include "jali/lwe/shared_lwe.h"

#include <atomic>

namespace jali::lwe {

/// There is no lock, because a forked child must not find one taken. If several threads are the
/// first at once, each of them expands, and the words of one of them are kept.
struct SharedLwe::Lazy {
  explicit Lazy(SeededLwe given) : rows(std::move(given)) {}
  Lazy(const Lazy&) = delete;
  Lazy& operator=(const Lazy&) = delete;
  ~Lazy() { delete block.load(); }

  const SeededLwe rows;
  mutable std::atomic<const LweBlock*> block{nullptr};
};

SharedLwe::SharedLwe(SeededLwe rows) : lazy_(std::make_shared<const Lazy>(std::move(rows))) {}

const SeededLwe* SharedLwe::seeded() const { return lazy_ == nullptr ? nullptr : &lazy_->rows; }

std::shared_ptr<const LweBlock> SharedLwe::block() const {
  return lazy_ == nullptr ? block_ : std::shared_ptr<const LweBlock>(lazy_, &expanded());
}

const LweBlock& SharedLwe::expanded() const {
  const LweBlock* kept = lazy_->block.load();
  if (kept != nullptr) return *kept;
  auto made = std::make_unique<const LweBlock>(expand(*device::Pool::create(), lazy_->rows));
  return lazy_->block.compare_exchange_strong(kept, made.get()) ? *made.release() : *kept;
}

}  // namespace jali::lwe
