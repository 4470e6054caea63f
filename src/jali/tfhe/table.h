// Look-up tables: the polynomials that a blind rotation begins with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "jali/params/tfhe_params.h"

namespace jali::tfhe {

/// A function of the values 0 to value_modulus() - 1, or several functions that one rotation computes at once.
///
/// With P = value_modulus() and M = 2^log_many functions, the polynomial's coefficient i M + j is f_j of box
/// floor((i M + N/(2P)) P / N): each value has a box of N/P coefficients, shifted by half a box, so that errors to both
/// sides stay in it. The last half box belongs to value 0 with a negative error, and has the sign that X^N = -1 takes away.
class LookUpTable {
 public:
  /// f is called once for each value. Throws InvalidArgument if a result is not below value_modulus().
  LookUpTable(ParamsPtr params, const std::function<std::uint64_t(std::uint64_t)>& f);
  /// From its values, which may be fewer than value_modulus(): what is above them becomes 0 and must not be looked up.
  LookUpTable(ParamsPtr params, std::span<const std::uint64_t> values);
  /// A function of two inputs, x below 2^message_bits and y below 2^carry_bits, of the value y 2^message_bits + x.
  static LookUpTable of_two(ParamsPtr params,
                            const std::function<std::uint64_t(std::uint64_t, std::uint64_t)>& f);
  /// Several tables on one rotation. Their number is a power of two of at most N / (2 value_modulus()); every doubling
  /// costs a bit of the precision with which a rotation sees its input.
  static LookUpTable together(std::span<const LookUpTable> tables);

  const ParamsPtr& params() const { return params_; }
  /// The number of functions, and its logarithm.
  std::size_t count() const { return values_.size(); }
  int log_many() const;
  /// The values of function j. Inputs must be below their number.
  std::span<const std::uint64_t> values(std::size_t j = 0) const { return values_.at(j); }
  /// The largest value of function j at inputs from 0 to `degree`.
  std::uint32_t largest(std::size_t j, std::uint32_t degree) const;
  /// The polynomial, N words of the torus in the lowest bytes.
  std::vector<std::uint8_t> polynomial() const;

 private:
  LookUpTable() = default;
  ParamsPtr params_;
  std::vector<std::vector<std::uint64_t>> values_;
};

}  // namespace jali::tfhe
