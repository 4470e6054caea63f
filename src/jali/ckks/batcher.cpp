#include "jali/ckks/batcher.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::ckks {

namespace {

/// A batch twice as large has to pay: less than this is noise of the clock.
constexpr double kGain = 0.97;
/// The first run of a batch also pays for its memory.
constexpr int kRuns = 2;
/// Of the free memory, so that others have some.
constexpr double kShare = 0.8;

Ciphertext shell(const Ciphertext& a) {
  Ciphertext out;
  out.params = a.params;
  out.level = a.level;
  out.scale = a.scale;
  out.log_slots = a.log_slots;
  out.estimate = a.estimate;
  out.packing = a.packing;
  return out;
}

void check_alike(const Ciphertext& a, const Ciphertext& b, std::size_t index) {
  require<InvalidArgument>(
      a.params->hash() == b.params->hash() && a.level == b.level && a.scale == b.scale &&
          a.parts.size() == b.parts.size() && a.log_slots == b.log_slots &&
          a.packing.length == b.packing.length &&
          a.packing.complex_values == b.packing.complex_values &&
          a.packing.padded == b.packing.padded,
      [&] {
        return "ciphertext " + std::to_string(index) +
               " has another level, scale, number of parts or packing than the first: bring them "
               "to the same ones before batching";
      });
}

}  // namespace

Ciphertext stack(const Evaluator& evaluator, std::span<const Ciphertext* const> inputs) {
  require<InvalidArgument>(!inputs.empty(), "stack needs at least one ciphertext");
  const ring::Ring& ring = *evaluator.ring();
  const Ciphertext& first = *inputs[0];
  require<InvalidArgument>(!first.parts.empty(), "an empty ciphertext cannot be batched");
  std::size_t batch = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_alike(first, *inputs[i], i);
    batch += inputs[i]->batch();
  }
  Ciphertext out = shell(first);
  out.packing.batched = true;
  for (const Ciphertext* input : inputs) {
    out.estimate.cover(input->estimate);
  }
  for (std::size_t part = 0; part < first.parts.size(); ++part) {
    ring::Poly all = ring.make(first.parts[part].primes(), batch);
    const std::size_t row = all.row_bytes(), limbs = all.limbs();
    if (std::ranges::all_of(inputs, [&](const Ciphertext* input) {
          return input->batch() == 1 && ring.holds(input->parts[part]);
        })) {
      std::vector<const void*> blocks;
      for (const Ciphertext* input : inputs) blocks.push_back(input->parts[part].data());
      ring.memory().gather(all.data(), blocks, row, limbs);
      out.parts.push_back(std::move(all));
      continue;
    }
    std::size_t b = 0;
    for (const Ciphertext* input : inputs) {
      const ring::Poly& from = input->parts[part];
      const ring::Poly fetched = ring.holds(from) ? ring::Poly() : ring.import(from);
      const ring::Poly& here = fetched.empty() ? from : fetched;
      ring.memory().copy_rows(all.row(0, b), batch * row, here.data(), here.batch() * row,
                              here.batch() * row, limbs);
      b += here.batch();
    }
    out.parts.push_back(std::move(all));
  }
  return out;
}

std::vector<Ciphertext> split(const Evaluator& evaluator, const Ciphertext& a,
                              std::span<const std::size_t> batches) {
  const ring::Ring& ring = *evaluator.ring();
  require<InvalidArgument>(evaluator.is_here(a), "split takes a ciphertext of its own device");
  require<InvalidArgument>(
      std::accumulate(batches.begin(), batches.end(), std::size_t{0}) == a.batch(),
      "the batches to split into must add up to the ciphertext's");
  std::vector<Ciphertext> out(batches.size());
  for (Ciphertext& one : out) one = shell(a);
  const bool singles = std::ranges::all_of(batches, [](std::size_t n) { return n == 1; });
  for (const ring::Poly& from : a.parts) {
    std::vector<void*> blocks;
    for (std::size_t i = 0, b = 0; i < batches.size(); b += batches[i++]) {
      ring::Poly part = ring.make(from.primes(), batches[i]);
      const std::size_t bytes = batches[i] * part.row_bytes();
      if (singles) {
        blocks.push_back(part.data());
      } else {
        ring.memory().copy_rows(part.data(), bytes, from.row(0, b), from.batch() * part.row_bytes(),
                                bytes, part.limbs());
      }
      out[i].parts.push_back(std::move(part));
    }
    if (singles) ring.memory().scatter(blocks, from.data(), from.row_bytes(), from.limbs());
  }
  return out;
}

Batcher::Batcher(std::shared_ptr<const Evaluator> evaluator, Function function,
                 std::size_t max_batch, std::size_t memory)
    : evaluator_(std::move(evaluator)),
      function_(std::move(function)),
      max_batch_(max_batch == 0 ? std::numeric_limits<std::size_t>::max() : max_batch),
      memory_(memory),
      limit_(max_batch_),
      turns_("this batcher", evaluator_->ring()->checkpoint()) {}

std::size_t Batcher::batch() const {
  std::lock_guard lock(mutex_);
  const auto best = std::ranges::min_element(curve_, {}, &Point::seconds);
  return best == curve_.end() ? 0 : best->batch;
}

std::vector<Batcher::Point> Batcher::curve() const {
  std::lock_guard lock(mutex_);
  return curve_;
}

Batcher::Point& Batcher::at(std::size_t batch) {
  const auto place = std::ranges::lower_bound(curve_, batch, {}, &Point::batch);
  if (place != curve_.end() && place->batch == batch) return *place;
  return *curve_.insert(place, {batch, std::numeric_limits<double>::infinity(), 0, 0});
}

// The best measured batch, or twice the largest measured one while that still gained and would fit.
std::size_t Batcher::choose(std::size_t waiting) const {
  if (curve_.empty()) return 1;
  const Point& last = curve_.back();
  const auto best = std::ranges::min_element(curve_, {}, &Point::seconds);
  if (last.runs < kRuns) return std::min({last.batch, limit_, waiting});
  const std::size_t next = 2 * last.batch;
  const bool gaining =
      curve_.size() < 2 || last.seconds < kGain * curve_[curve_.size() - 2].seconds;
  const auto fits = [&] {
    const std::size_t left = memory_ != 0 ? memory_ : evaluator_->ring()->memory().available();
    return left == device::kUnknown ||
           static_cast<double>(last.bytes) * 2 < kShare * static_cast<double>(left);
  };
  const std::size_t wanted = gaining && next <= limit_ && fits() ? next : best->batch;
  return std::min({wanted, limit_, waiting});
}

void Batcher::run_batch(std::span<const Ciphertext* const> inputs, std::vector<Ciphertext>& out) {
  using Clock = std::chrono::steady_clock;
  const auto& pool = *evaluator_->ring()->pool();
  auto& memory = evaluator_->ring()->memory();
  memory.synchronize();
  evaluator_->ring()->pool()->reset_peak();
  const std::size_t before = pool.bytes_in_use();
  const Clock::time_point start = Clock::now();
  const Ciphertext result = function_(stack(*evaluator_, inputs));
  require<InvalidArgument>(result.batch() == inputs.size(),
                           "a batched function must keep the batch of its operand");
  const std::vector<std::size_t> ones(inputs.size(), 1);
  std::vector<Ciphertext> parts = split(*evaluator_, result, ones);
  memory.synchronize();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::size_t peak = std::max(before, pool.peak_bytes());
  {
    std::lock_guard lock(mutex_);
    Point& point = at(inputs.size());
    point.seconds = std::min(point.seconds, seconds / static_cast<double>(inputs.size()));
    ++point.runs;
    point.bytes = std::max(point.bytes, peak - before);
  }
  for (Ciphertext& part : parts) {
    part.packing.batched = inputs[0]->packing.batched;
    out.push_back(std::move(part));
  }
}

std::vector<Ciphertext> Batcher::run(std::span<const Ciphertext* const> inputs) {
  const Turns::Turn turn = turns_.take();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require<InvalidArgument>(inputs[i]->batch() == 1,
                             "the ciphertexts to batch must have a batch of 1 each");
    check_alike(*inputs[0], *inputs[i], i);
  }
  std::vector<Ciphertext> out;
  while (out.size() < inputs.size()) {
    const std::size_t batch = choose(inputs.size() - out.size());
    const std::size_t kept = out.size();
    try {
      run_batch(inputs.subspan(kept, batch), out);
    } catch (const Error& error) {
      const ErrorCode code = error.code();  // unsupported: more rows than a GPU's launches take
      const bool smaller = code == ErrorCode::out_of_memory || code == ErrorCode::unsupported;
      if (batch == 1 || !smaller) throw;
      limit_ = batch / 2;
      std::lock_guard lock(mutex_);
      std::erase_if(curve_, [&](const Point& p) { return p.batch > limit_; });
    }
  }
  return out;
}

}  // namespace jali::ckks
