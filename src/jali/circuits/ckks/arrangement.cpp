#include "jali/circuits/ckks/arrangement.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/circuits/ckks/function.h"
#include "jali/circuits/common/rotation_plan.h"

namespace jali::circuits {

namespace {

using ckks::Ciphertext;
using ckks::Packing;

std::size_t length(const Packing& a, std::size_t slots) { return a.length == 0 ? slots : a.length; }

/// Of a packing in order: after how many slots the numbers come again.
std::size_t period(const Packing& a, std::size_t slots) {
  return a.tiling.window == 0 ? slots : a.tiling.window;
}

bool same_place(ckks::Tiling a, const ckks::Tiling& b) {
  a.first = b.first;
  return a == b;
}

}  // namespace

Arrangement::Arrangement(const Packing& from, const Packing& to, int log_slots, bool with_zeros)
    : slots_(std::size_t{1} << log_slots), to_(to) {
  require<InvalidArgument>(
      ckks::is_possible(from, log_slots) && ckks::is_possible(to, log_slots),
      [&] { return "a layout is not possible for " + std::to_string(slots_) + " slots"; });
  require<InvalidArgument>(
      !from.view && !to.view,
      "an array of any shape is not brought into the layout of a vector: take a "
      "slice or a reshape of it that is one vector");
  require<InvalidArgument>(length(from, slots_) == length(to, slots_), [&] {
    return "a vector of " + std::to_string(length(from, slots_)) +
           " numbers does not become one of " + std::to_string(length(to, slots_)) +
           ": give it that length first, with_length()";
  });
  if (same_place(from.tiling, to.tiling) && (!with_zeros || ckks::rest_is_zero(from))) {
    to_.rest = from.rest;
    return;
  }
  to_.rest = 0;
  Packing at = from;
  if (!ckks::is_in_order(at)) {
    windows(at, false);
    at.tiling = {};
    at.rest = 0;
  }
  const bool into = !ckks::is_in_order(to);
  const std::size_t every =
      into ? std::size_t{to.tiling.window} * to.tiling.count : period(to, slots_);
  if (period(at, slots_) > every) {
    if (!ckks::rest_is_zero(at)) steps_.emplace_back(Mask{at});
    repeat(period(at, slots_), every);
  } else if (!into && (period(at, slots_) < every || !ckks::rest_is_zero(at))) {
    steps_.emplace_back(Mask{to});
  }
  if (into) windows(to, true);
}

// Numbers repeat every `period` slots and lie in the first down_to of these; zeros follow.
void Arrangement::repeat(std::size_t period, std::size_t down_to) {
  Repeat step;
  for (std::size_t r = down_to; r < period; r *= 2)
    step.rotations.push_back(signed_rotation(static_cast<long long>(slots_ - r), slots_));
  steps_.emplace_back(std::move(step));
}

// Out of windows: number c window + t comes from slot c stride + t, for t below the window. Into
// windows: before, slot s holds number s mod K, K = count window. Slot c stride + t takes number c
// window + t mod K: that of the slot c (window - stride) further on, modulo K.
void Arrangement::windows(const Packing& packing, bool into) {
  const ckks::Tiling& t = packing.tiling;
  const std::size_t k = std::size_t{t.window} * t.count;
  Windows step{packing, into};
  for (std::size_t c = 0; c < t.count; ++c) {
    if (!into && c * t.window >= packing.length) break;
    const std::size_t forward = c * (t.stride - t.window);
    const std::size_t steps = into ? (k - forward % k) % k : forward;
    step.served[signed_rotation(static_cast<long long>(steps), slots_)].push_back(c);
  }
  steps_.emplace_back(std::move(step));
}

Arrangement::Ones Arrangement::ones(const Packing& where) const {
  return ckks::to_slots(Ones(length(where, slots_), 1.0), 1, where, slots_);
}

// Where the numbers of these windows lie afterwards.
Arrangement::Ones Arrangement::ones(const Windows& step,
                                    const std::vector<std::size_t>& served) const {
  const ckks::Tiling& t = step.packing.tiling;
  std::vector<bool> wanted(t.count, false);
  for (std::size_t c : served) wanted[c] = true;
  const auto numbers = ckks::numbers_in_slots(step.packing, slots_);
  Ones out(slots_, 0.0);
  for (std::size_t s = 0; s < slots_; ++s) {
    const bool one = step.into ? numbers[s] != ckks::kNoNumber && wanted[s / t.stride % t.count]
                               : s < step.packing.length && wanted[s / t.window];
    if (one) out[s] = 1;
  }
  return out;
}

int Arrangement::levels() const {
  return static_cast<int>(std::ranges::count_if(
      steps_, [](const auto& step) { return !std::holds_alternative<Repeat>(step); }));
}

std::vector<int> Arrangement::rotations() const {
  std::set<int> all;
  for (const auto& step : steps_) {
    if (const auto* repeated = std::get_if<Repeat>(&step)) {
      all.insert(repeated->rotations.begin(), repeated->rotations.end());
    }
    if (const auto* moved = std::get_if<Windows>(&step)) {
      for (const auto& [rotation, served] : moved->served) all.insert(rotation);
    }
  }
  all.erase(0);
  return {all.begin(), all.end()};
}

Ciphertext Arrangement::apply(const ckks::Evaluator& evaluator, const Ciphertext& x) const {
  const ckks::AutoEvaluator server({std::shared_ptr<const ckks::Evaluator>(), &evaluator});
  Ciphertext y = server.normalise(x);
  require_depth(evaluator, y, levels(), "arranging the vector");
  // The numbers never overlap, so that sums are no larger than they are.
  const auto peak = x.estimate.peak;
  for (const auto& step : steps_) {
    if (const auto* masked = std::get_if<Mask>(&step)) {
      y = server.multiply_vector(y, ones(masked->where));
    } else if (const auto* repeated = std::get_if<Repeat>(&step)) {
      y = server.normalise(y);
      const params::Estimate one = y.estimate;
      for (int r : repeated->rotations) evaluator.add_inplace(y, server.rotate(y, r), peak);
      y.estimate.copies_of(one, std::ldexp(1.0, static_cast<int>(repeated->rotations.size())));
    } else {
      const auto& moved = std::get<Windows>(step);
      y = server.normalise(y);
      Ciphertext sum;
      for (const auto& [rotation, served] : moved.served) {
        Ciphertext one = server.multiply_vector(
            rotation == 0 ? evaluator.copy(y) : server.rotate(y, rotation), ones(moved, served));
        if (sum.parts.empty()) {
          sum = std::move(one);
        } else {
          evaluator.add_inplace(sum, one, peak);
        }
      }
      y = std::move(sum);
    }
  }
  y = server.normalise(y);
  y.estimate.moved(x.estimate);
  y.packing = to_;
  y.packing.batched = x.packing.batched;
  y.packing.complex_values = x.packing.complex_values;
  if (to_.length == 0) y.packing.rest = params::kUnbounded;
  return y;
}

}  // namespace jali::circuits
