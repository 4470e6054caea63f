#include "jali/circuits/ckks/comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/circuits/ckks/domain.h"
#include "jali/circuits/ckks/function.h"
#include "jali/schemes/ckks/auto_evaluator.h"
#include "jali/schemes/ckks/packing.h"

namespace jali::circuits {

namespace {

using ckks::Ciphertext;

ckks::AutoEvaluator automatic(const ckks::Evaluator& evaluator) {
  return ckks::AutoEvaluator({std::shared_ptr<const ckks::Evaluator>(), &evaluator});
}

void check(double bound, double error) {
  require<InvalidArgument>(std::isfinite(bound) && bound > 0,
                           "the bound is the largest modulus that can occur, a positive number");
  require<InvalidArgument>(std::isfinite(error) && error > 0, "an error is a positive number");
}

constexpr double kLargestSignError = 0.5;

// |max - y| = |a - b| |1 - |s|| / 2: at most bound times the sign's error, and half the gap below
// it.
double gap_of(double bound, double error) { return std::min(2 * error, bound); }
double sign_error_of(double bound, double error) {
  return std::min(error / bound, kLargestSignError);
}

approx::Composite sign_of_difference(double bound, double error) {
  check(bound, error);
  return approx::sign(2 * bound, gap_of(bound, error), sign_error_of(bound, error));
}

// Of `count` - 1 factors, each off by half the sign's error, none above 1 by more than that.
double product_error(std::size_t count, double sign_error) {
  return std::expm1(static_cast<double>(count - 1) * std::log1p(sign_error / 2)) * (1 + 0x1p-40);
}

approx::Composite sign_of_games(std::size_t count, std::size_t slots, double bound, double gap,
                                double error) {
  require<InvalidArgument>(
      count >= 2 && std::has_single_bit(slots) && (count == slots || 2 * count <= slots), [&] {
        return "argmax takes from 2 numbers to half as many as there are slots (" +
               std::to_string(slots) + "), or as many, not " + std::to_string(count);
      });
  check(bound, error);
  const double each = 2 * std::expm1(std::log1p(error) / static_cast<double>(count - 1));
  return approx::sign(2 * bound, gap, std::min(each * (1 - 0x1p-20), kLargestSignError));
}

}  // namespace

Maximum::Maximum(double bound, double error, bool minimum)
    : Maximum(bound, error, minimum, sign_of_difference(bound, error)) {}

Maximum::Maximum(double bound, double error, bool minimum, const approx::Composite& sign)
    : bound_(bound),
      max_error_(std::max(bound * sign.error, gap_of(bound, error) / 2)),
      minimum_(minimum),
      half_sign_(sign, minimum ? -0.5 : 0.5, 0) {}

double Maximum::operator()(double a, double b) const {
  return (a + b) / 2 + (a - b) * half_sign_(a - b);
}

Ciphertext Maximum::apply(const ckks::Evaluator& evaluator, const Ciphertext& a,
                          const Ciphertext& b) const {
  const char* name = minimum_ ? "minimum" : "maximum";
  const ckks::Packing packing = ckks::packing_of_sum(a, b);
  const approx::Interval on{-bound_, bound_};
  for (const Ciphertext* x : {&a, &b}) {
    require<InvalidArgument>(x->parts.size() == 2, [&] {
      return std::string(name) + " takes two parts: relinearise first";
    });
    require_depth(evaluator, *x, depth(), name);
  }
  const Ciphertext x = inside(evaluator, a, on, std::nullopt, name),
                   y = inside(evaluator, b, on, std::nullopt, name);
  const auto server = automatic(evaluator);
  Ciphertext difference = server.normalise(server.sub(x, y));
  difference.estimate.bound_peak(2 * bound_);
  const Ciphertext half = half_sign_.apply(evaluator, difference);
  Ciphertext out = server.normalise(
      server.add(server.multiply(difference, half), server.multiply_scalar(server.add(x, y), 0.5)));
  out.estimate.bound_peak(bound_ + max_error_);
  out.estimate.bound_message();
  out.packing = packing;
  if (!ckks::rest_is_zero(packing)) out.packing.rest += max_error_;
  return out;
}

ArgMax::ArgMax(std::size_t count, std::size_t slots, double bound, double gap, double error)
    : ArgMax(count, slots, bound, gap, sign_of_games(count, slots, bound, gap, error)) {}

ArgMax::ArgMax(std::size_t count, std::size_t slots, double bound, double gap,
               const approx::Composite& sign)
    : count_(count),
      slots_(slots),
      bound_(bound),
      gap_(gap),
      max_error_(product_error(count, sign.error)),
      step_(sign, 0.5, 0.5) {}

int ArgMax::depth() const {
  return step_.depth() + static_cast<int>(std::bit_width(count_ - 2));  // ceil(log2(count - 1))
}

std::vector<int> ArgMax::rotations() const {
  std::vector<int> out;
  for (int r = 1; r < static_cast<int>(count_); ++r) out.push_back(r);
  if (count_ < slots_) out.push_back(-static_cast<int>(count_));
  return out;
}

std::vector<double> ArgMax::operator()(const std::vector<double>& x) const {
  std::vector<double> out(x.size(), 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) {
      if (i != j) out[i] *= step_(x[i] - x[j]);
    }
  }
  return out;
}

Ciphertext ArgMax::apply(const ckks::Evaluator& evaluator, const Ciphertext& x) const {
  const std::size_t slots = std::size_t{1} << x.log_slots;
  require<InvalidArgument>(
      slots == slots_ && ckks::length_of(x) == count_ && x.packing.tiling.window == 0 &&
          ckks::rest_is_zero(x.packing),
      [&] {
        return "this argmax is made for " + std::to_string(count_) +
               " numbers with zeros behind them in " + std::to_string(slots_) +
               " slots, and the vector has " + ckks::described(x.packing, x.log_slots) +
               ": make it for that length, encrypt a vector of this one, or bring the numbers into "
               "order first: natural()";
      });
  require<InvalidArgument>(x.parts.size() == 2, "argmax takes two parts: relinearise first");
  require_depth(evaluator, x, depth(), "argmax");
  const auto server = automatic(evaluator);
  Ciphertext twice = inside(evaluator, x, {-bound_, bound_}, std::nullopt, "argmax");
  const double peak = twice.estimate.peak;
  if (count_ < slots) {  // slot i + count is slot i, so that rotations by less than count wrap
                // around within the vector
    twice = server.normalise(server.add(twice, server.rotate(twice, -static_cast<int>(count_))));
    twice.estimate.bound_peak(peak);  // of numbers that do not overlap
  }
  // What games i and i + r play, for all i; and the other way round: 1 less what lies r slots
  // before, which is count - r behind.
  std::deque<Ciphertext> games;
  for (std::size_t r = 1; 2 * r <= count_; ++r) {
    Ciphertext difference =
        server.normalise(server.sub(twice, server.rotate(twice, static_cast<int>(r))));
    difference.estimate.bound_peak(2 * bound_);
    games.push_back(step_.apply(evaluator, difference));
    if (2 * r == count_) break;
    games.push_back(server.add_scalar(
        server.negate(server.rotate(games.back(), static_cast<int>(count_ - r))), 1.0));
    games.back().estimate.bound_peak(games[games.size() - 2].estimate.peak);
  }
  const double largest = 1 + max_error_;
  while (games.size() > 1) {
    std::deque<Ciphertext> next;
    for (std::size_t i = 0; i + 1 < games.size(); i += 2) {
      next.push_back(server.normalise(server.multiply(games[i], games[i + 1])));
      next.back().estimate.bound_peak(largest);
    }
    if (games.size() % 2 == 1) next.push_back(std::move(games.back()));
    games = std::move(next);
  }
  Ciphertext out = std::move(games.front());
  out.packing = ckks::packing_of_each(x.packing, params::kUnbounded);
  return out;
}

}  // namespace jali::circuits
