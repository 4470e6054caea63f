// Bringing the numbers of a vector into another layout.
#pragma once

#include <complex>
#include <cstddef>
#include <map>
#include <variant>
#include <vector>

#include "jali/schemes/ckks/auto_evaluator.h"
#include "jali/schemes/ckks/packing.h"

namespace jali::circuits {

/// The steps that bring numbers which lie as `from` says to where `to` says. There are three kinds:
///
/// - A mask of ones makes slots zero that hold no number. It takes one level.
/// - If zeros lie behind the numbers, they are repeated by adding rotations by -w, -2w, -4w .., one
///   for each doubling. This takes no level.
/// - In and out of windows, number by number: the sum of one mask times one rotation for each
///   window. It takes one level.
///
/// If the numbers lie there already, there are no steps. Otherwise the other slots are zero
/// afterwards.
class Arrangement {
 public:
  /// with_zeros: whether `to` is only reached if the other slots are zero. Throws InvalidArgument
  /// if the numbers of the two packings are not equally many, if one of them is not possible for
  /// 2^log_slots slots, or if one has a view.
  Arrangement(const ckks::Packing& from, const ckks::Packing& to, int log_slots, bool with_zeros);

  int levels() const;
  /// The rotations for which keys are needed. Those by powers of two may stand for them
  /// (AutoEvaluator::rotate).
  std::vector<int> rotations() const;
  /// Throws DepthExhausted if x has fewer levels than this takes, and KeyMissing. x lies as `from`
  /// says.
  ckks::Ciphertext apply(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x) const;

 private:
  using Ones = std::vector<std::complex<double>>;
  struct Mask {
    ckks::Packing where;
  };
  struct Repeat {
    std::vector<int> rotations;
  };
  /// Which windows each rotation serves. Masks are made when they are used: there may be as many as
  /// slots.
  struct Windows {
    ckks::Packing packing;
    bool into = false;
    std::map<int, std::vector<std::size_t>> served{};
  };

  void repeat(std::size_t period, std::size_t down_to);
  void windows(const ckks::Packing& packing, bool into);
  Ones ones(const ckks::Packing& where) const;
  Ones ones(const Windows& step, const std::vector<std::size_t>& served) const;

  std::size_t slots_;
  ckks::Packing to_;
  std::vector<std::variant<Mask, Repeat, Windows>> steps_;
};

}  // namespace jali::circuits
