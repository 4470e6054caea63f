#include "jali/ring/batching.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "jali/base/error.h"

namespace jali::ring {

namespace {

/// A batch twice as large counts as a gain only if an item takes less than this share of its time
/// before. Smaller gains may be noise of the clock.
constexpr double kGain = 0.97;
/// A batch of each size is measured this many times, because its first run also allocates its
/// memory.
constexpr int kRuns = 2;
/// The share of the free memory that a batch may take, so that others have some.
constexpr double kShare = 0.8;

}  // namespace

Batching::Batching(std::shared_ptr<const Ring> ring, std::string name, std::size_t max_batch,
                   std::size_t memory, Smaller smaller)
    : ring_(std::move(ring)),
      memory_(memory),
      smaller_(std::move(smaller)),
      limit_(max_batch == 0 ? std::numeric_limits<std::size_t>::max() : max_batch),
      turns_(std::move(name), ring_->checkpoint()) {}

std::size_t Batching::batch() const {
  std::lock_guard lock(mutex_);
  const auto best = std::ranges::min_element(curve_, {}, &Point::seconds);
  return best == curve_.end() ? 0 : best->batch;
}

std::vector<Batching::Point> Batching::curve() const {
  std::lock_guard lock(mutex_);
  return curve_;
}

Batching::Point& Batching::at(std::size_t batch) {
  const auto place = std::ranges::lower_bound(curve_, batch, {}, &Point::batch);
  if (place != curve_.end() && place->batch == batch) return *place;
  return *curve_.insert(place, {batch, std::numeric_limits<double>::infinity(), 0, 0});
}

// Chooses the best measured batch. If the largest measured one was a gain and one of twice its size
// fits, chooses that.
std::size_t Batching::choose(std::size_t waiting) const {
  if (curve_.empty()) return 1;
  const Point& last = curve_.back();
  const auto best = std::ranges::min_element(curve_, {}, &Point::seconds);
  if (last.runs < kRuns) return std::min({last.batch, limit_, waiting});
  const std::size_t next = 2 * last.batch;
  const bool gaining =
      curve_.size() < 2 || last.seconds < kGain * curve_[curve_.size() - 2].seconds;
  const auto fits = [&] {
    const std::size_t left = memory_ != 0 ? memory_ : ring_->memory().available();
    return left == device::kUnknown ||
           static_cast<double>(last.bytes) * 2 < kShare * static_cast<double>(left);
  };
  const std::size_t wanted = gaining && next <= limit_ && fits() ? next : best->batch;
  return std::min({wanted, limit_, waiting});
}

void Batching::run_batch(std::size_t first, std::size_t count, const Work& work) {
  using Clock = std::chrono::steady_clock;
  auto& pool = *ring_->pool();
  auto& memory = ring_->memory();
  memory.synchronize();
  pool.reset_peak();
  const std::size_t before = pool.bytes_in_use();
  const Clock::time_point start = Clock::now();
  work(first, count);
  memory.synchronize();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::size_t peak = std::max(before, pool.peak_bytes());
  std::lock_guard lock(mutex_);
  Point& point = at(count);
  point.seconds = std::min(point.seconds, seconds / static_cast<double>(count));
  ++point.runs;
  point.bytes = std::max(point.bytes, peak - before);
}

void Batching::run(std::size_t total, const Work& work) {
  const Turns::Turn turn = turns_.take();
  for (std::size_t done = 0; done < total;) {
    const std::size_t batch = choose(total - done);
    try {
      run_batch(done, batch, work);
      done += batch;
    } catch (const Error& error) {
      // Unsupported: the batch has more rows than a launch on a GPU can have.
      const ErrorCode code = error.code();
      const bool smaller = code == ErrorCode::out_of_memory || code == ErrorCode::unsupported;
      if (batch == 1 || !smaller) throw;
      limit_ = batch / 2;
      {
        std::lock_guard lock(mutex_);
        std::erase_if(curve_, [&](const Point& p) { return p.batch > limit_; });
      }
      if (smaller_) smaller_(batch, limit_);
    }
  }
}

}  // namespace jali::ring
