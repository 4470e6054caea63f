// Look-up tables: the polynomials that a blind rotation begins with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "jali/params/tfhe_params.h"
#include "jali/schemes/tfhe/origin.h"

namespace jali::tfhe {

/// A function of the values 0 to value_modulus() - 1, or several functions that one rotation
/// computes at once.
///
/// With P = value_modulus(), each value has a box of N/P coefficients, shifted by half a box, so
/// that errors to both sides stay in it: coefficient t belongs to value floor((t + N/(2P)) P / N).
/// The last half box belongs to value 0 with a negative error, and has the sign that X^N = -1 takes
/// away.
///
/// M functions lie in one polynomial in one of two ways.
///   Side by side, if each has at most P/M values: function j has the boxes from value j P/M on,
///   and its result is coefficient j N/M of the rotated polynomial. That costs nothing.
///   Interleaved: coefficient i M + j belongs to function j, and is that of i M above. Its result
///   is coefficient j. A rotation then sees its input with log2(M) bits less precision.
class LookUpTable {
 public:
  /// f is called once for each value. Throws InvalidArgument if a result is not below
  /// value_modulus().
  LookUpTable(ParamsPtr params, const std::function<std::uint64_t(std::uint64_t)>& f);
  /// From its values, which may be fewer than value_modulus(): what is above them becomes 0 and
  /// must not be looked up.
  LookUpTable(ParamsPtr params, std::span<const std::uint64_t> values);
  /// A function of two inputs, x below 2^message_bits and y below 2^carry_bits, of the value y
  /// 2^message_bits + x.
  static LookUpTable of_two(ParamsPtr params,
                            const std::function<std::uint64_t(std::uint64_t, std::uint64_t)>& f);
  /// Several tables on one rotation, side by side if all are short enough. Their number is a power
  /// of two, and of at most N / (2 value_modulus()) if they are interleaved.
  static LookUpTable together(std::span<const LookUpTable> tables);

  const ParamsPtr& params() const { return params_; }
  std::size_t count() const { return values_.size(); }  // of functions
  bool side_by_side() const { return side_by_side_; }
  /// log2 of the number of functions that are interleaved: 0 if there is one, or if they lie side
  /// by side.
  int log_many() const;
  /// How many values the shortest function has. Inputs must be below it.
  std::size_t shortest() const;
  /// The values of function j.
  std::span<const std::uint64_t> values(std::size_t j = 0) const { return values_.at(j); }
  /// The largest value of function j at inputs from 0 to `degree`.
  std::uint32_t largest(std::size_t j, std::uint32_t degree) const;
  /// The polynomial, N words of the torus in the lowest bytes.
  std::vector<std::uint8_t> polynomial() const;
  /// The entries from which table_origin tells it from other tables.
  std::vector<std::int64_t> halves() const;
  /// What follows from function j for an input with this constant, in half steps. halves: halves().
  TableOrigin origin(std::span<const std::int64_t> halves, std::size_t j,
                     std::int64_t half_steps) const;

 private:
  LookUpTable() = default;
  ParamsPtr params_;
  std::vector<std::vector<std::uint64_t>> values_;
  bool side_by_side_ = false;
};

}  // namespace jali::tfhe
