// The larger of two numbers, and which of several is the largest.
#pragma once

#include <optional>
#include <vector>

#include "jali/circuits/ckks/stages.h"

namespace jali::circuits {

/// max(a, b) = (a + b) / 2 + (a - b) sign(a - b) / 2, slot by slot, and min likewise, of numbers of
/// modulus up to `bound`: off by at most `error` wherever they lie, equal ones included.
class Maximum {
 public:
  /// minimum: of the smaller.
  Maximum(double bound, double error, bool minimum = false);

  double bound() const { return bound_; }
  double max_error() const { return max_error_; }
  int depth() const { return half_sign_.depth() + 1; }
  int multiplications() const { return half_sign_.multiplications() + 1; }
  double operator()(double a, double b) const;

  /// Both at their levels, of two parts and with no rescale owed; depth() levels below the lower of
  /// them. Throws InvalidArgument for numbers that are not known to be within the bound and for
  /// shapes that do not fit, DepthExhausted, KeyMissing.
  ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& a,
                         const ckks::Ciphertext& b) const;

 private:
  Maximum(double bound, double error, bool minimum, const approx::Composite& sign);

  double bound_, max_error_;
  bool minimum_;
  Stages half_sign_;
};

/// Which of the first `count` numbers of a vector is the largest, as a vector that is 1 there and 0
/// elsewhere.
///
/// Every number plays against every other: step(x_i - x_{i+r}) for r up to count / 2, by rotations,
/// and the same the other way round for the rest; number i wins if it wins all count - 1 games,
/// whose results are multiplied. That takes one comparison's levels and log2(count - 1) more, where
/// a knock-out takes a comparison's for every round.
class ArgMax {
 public:
  /// |x_i| <= bound. If the largest number is at least `gap` above all others, the result is off by
  /// at most `error`. slots: of the vectors it is for.
  ArgMax(std::size_t count, std::size_t slots, double bound, double gap, double error);

  std::size_t count() const { return count_; }
  double bound() const { return bound_; }
  double gap() const { return gap_; }
  double max_error() const { return max_error_; }
  int depth() const;
  std::vector<int> rotations() const;  // keys that it needs
  std::vector<double> operator()(const std::vector<double>& x) const;

  /// A vector of count(), with anything behind it. x: of that length, and zeros behind it if there
  /// are at least twice as many slots; or of all slots, if these are count(). Throws
  /// InvalidArgument for other vectors and for numbers that are not known to be within the bound,
  /// DepthExhausted, KeyMissing.
  ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x) const;

 private:
  ArgMax(std::size_t count, std::size_t slots, double bound, double gap,
         const approx::Composite& sign);

  std::size_t count_, slots_;
  double bound_, gap_, max_error_;
  Stages step_;
};

}  // namespace jali::circuits
