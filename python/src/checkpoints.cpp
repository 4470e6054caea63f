#include "checkpoints.h"

#include <utility>

namespace jali::python {

namespace {

constexpr auto kPeriod = std::chrono::milliseconds(100);

}  // namespace

Checkpoints::~Checkpoints() {
  if (entries_.empty()) return;  // as whoever sets a function takes it back
  const nb::gil_scoped_acquire gil;
  entries_.clear();
}

nb::object Checkpoints::exchange(nb::object function) {
  nb::object before = nb::none();
  const std::lock_guard lock(mutex_);
  const auto self = std::this_thread::get_id();
  if (const auto known = entries_.find(self); known != entries_.end()) {
    before = std::move(known->second.function);
    entries_.erase(known);
  }
  if (!function.is_none()) entries_[self] = {std::move(function), {}};
  count_ = static_cast<int>(entries_.size());
  return before;
}

void Checkpoints::operator()() {
  if (count_.load(std::memory_order_relaxed) == 0) return;
  const auto now = std::chrono::steady_clock::now();
  const auto due = [&]() -> Entry* {
    const std::lock_guard lock(mutex_);
    const auto known = entries_.find(std::this_thread::get_id());
    return known == entries_.end() || now < known->second.due ? nullptr : &known->second;
  };
  Entry* const entry = due();  // which this thread alone changes
  if (entry == nullptr) return;
  entry->due = now + kPeriod;
  const nb::gil_scoped_acquire gil;
  const nb::object function = entry->function;
  function();
}

}  // namespace jali::python
