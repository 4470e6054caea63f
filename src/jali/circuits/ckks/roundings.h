// How much the roundings of the encoded diagonals of a matrix have in common.
#pragma once

#include <complex>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "jali/backend/embedding.h"

namespace jali::circuits {

/// A product with a matrix multiplies rotations of a vector by encoded diagonals, whose
/// coefficients were rounded. If the vector's numbers are equal, so are its rotations, and their
/// product has the error of the sum of these roundings. It is that of independent roundings unless
/// diagonals share coefficients up to whole numbers, as those of triangles and of smooth matrices
/// do in part. A sample of the diagonals tells.
class Roundings {
 public:
  /// Of diagonals that are encoded in `slots` slots at `scale`. period: the rows that are summed up
  /// afterwards, with distances of `period`; `slots` if none are. Such a sum has only coefficients
  /// whose order is a multiple of slots / period.
  Roundings(std::size_t slots, std::size_t period, double scale);

  void add(std::span<const std::complex<double>> diagonal);

  /// By which factor the variance of the sum of all roundings may be above that of independent
  /// ones: at least 1.
  double alike() const;

 private:
  backend::Embedding embedding_;
  std::size_t slots_, period_;
  double scale_;
  std::size_t count_ = 0;
  std::minstd_rand random_;  // chooses the sample
  std::vector<std::vector<std::complex<double>>>
      sample_;  // roundings of two coefficients in each number
};

}  // namespace jali::circuits
