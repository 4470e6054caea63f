// How much a block of a matrix may enlarge the norm of a vector.
#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace jali::circuits {

/// Of a square matrix M that is given by its diagonals: entry s of diagonal d is M[s][s + d], with
/// columns modulo the slots.
class BlockNorm {
 public:
  explicit BlockNorm(std::size_t slots);

  void add(int diagonal, std::span<const std::complex<double>> entries);

  /// The sum of the squares of all entries, which is that of the squares of all singular values.
  double squares() const { return squares_; }
  /// An upper bound on the square of the largest singular value. The bounds by row sums and column
  /// sums and by squares() hold always. For up to 2^22 entries power iteration finds a smaller one,
  /// which holds unless the singular vector is, by chance, all but orthogonal to the vector that
  /// the iteration begins with.
  double largest() const;

 private:
  double found() const;  // by power iteration

  std::vector<std::pair<std::size_t, std::vector<std::complex<double>>>> diagonals_;
  std::vector<double> rows_, columns_;  // sums of moduli
  double squares_ = 0;
  bool kept_ = true;  // whether diagonals_ has all of them
};

}  // namespace jali::circuits
