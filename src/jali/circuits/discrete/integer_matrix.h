// Products of a large matrix in the clear with encrypted vectors, at the rate of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "jali/schemes/discrete/evaluator.h"

namespace jali::circuits {

/// y = M x for a matrix M of any number of rows and D columns, a power of two up to N/2.
///
/// N rows make a block. x repeats with the period D in both rows of a ciphertext, so that slot s of
/// x, rotated by r, is x[(s + r) mod D], and with the diagonals P_r[s] = M[b N + s][(s + r) mod D]
///   y[b N + s] = sum_r P_r[s] x[(s + r) mod D] = sum_r (P_r rot_r(x))[s].
/// The vector is rotated by the B `babies` 0 .. B - 1 alone. With r = g B + i,
///   y = sum_g rot_{g B}(sum_i P'_{g, i} rot_i(x)),   P'_{g, i} = rot_{-g B}(P_{g B + i}),
/// where the outer sum is computed by Horner's rule: D/B - 1 rotations by B of every block. So a
/// product takes B - 1 rotations, and D/B - 1 for each block, by 1 + log2 B keys, and reads every
/// P' once. These are kept as products take them, modulo the primes of a level, which is 8 or 4
/// bytes a prime for every number of M.
class IntegerMatrix {
 public:
  using Evaluator = discrete::Evaluator;
  using Ciphertext = discrete::Ciphertext;

  /// level: of the products, whose results lie one level lower, or at level 0 if it is 0.
  /// overflow: wrap if M and M x are meant modulo T.
  /// babies: a power of two up to D; 0 stands for D, which suits D blocks and more.
  IntegerMatrix(std::shared_ptr<const discrete::Engine> engine, std::size_t columns, int level,
                discrete::Overflow overflow = discrete::Overflow::refuse, std::size_t babies = 0);
  IntegerMatrix(const IntegerMatrix&) = delete;
  IntegerMatrix& operator=(const IntegerMatrix&) = delete;
  IntegerMatrix(IntegerMatrix&&) = default;
  IntegerMatrix& operator=(IntegerMatrix&&) = default;

  /// Adds rows below the others, one after the other, and zeros behind the last. At most N at a
  /// time, and fewer only at the last one. Throws InvalidArgument otherwise, and RangeExceeded if T
  /// does not tell the numbers apart. If it throws, the matrix is what it was.
  void append(std::span<const std::int64_t> rows);

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  int level() const { return level_; }
  std::size_t blocks() const { return blocks_.size(); }
  /// The memory that it takes.
  std::size_t bytes() const { return blocks() * block_bytes(*engine_->params(), columns_, level_); }
  static std::size_t block_bytes(const discrete::Params& params, std::size_t columns, int level);
  /// The rotations of rows for which a product needs keys: 1, 2, 4 .. B, below D.
  std::vector<int> rotations() const;

  /// M x: block b of N numbers in vector b. x: one vector that repeats with the period D over its N
  /// numbers, at the matrix's level or above. Throws InvalidArgument if there are no rows or x lies
  /// lower, KeyMissing, which names the missing rotations, RangeExceeded if a number of M x may not
  /// fit T, and DepthExhausted: all of them before it computes.
  Ciphertext multiply(const Evaluator& evaluator, const Ciphertext& x) const;

 private:
  __extension__ using Wide = __int128;

  /// The range of M x.
  discrete::Range range(const discrete::NoiseModel& noise, const discrete::Range& x) const;
  /// What is known of an inner sum, whose numbers are residues, and of M x before it is divided.
  struct Sums {
    discrete::Known inner, all;
  };
  Sums known_sums(const discrete::NoiseModel& noise, const Ciphertext& x) const;
  /// x rotated by every baby.
  std::vector<Ciphertext> rotated(const Evaluator& evaluator, const Ciphertext& x) const;
  /// sum_i P'_{g, i} x[i] for every g, block b in vector b: all in one call, which reads the matrix
  /// at the rate of memory. inner: what is known of each.
  std::vector<Ciphertext> inner(const Evaluator& evaluator, std::span<const Ciphertext> x,
                                const discrete::Known& inner) const;

  std::shared_ptr<const discrete::Engine> engine_;
  std::size_t columns_, babies_, rows_ = 0;
  int level_;
  discrete::Overflow overflow_;
  std::uint64_t factor_;  // of the polynomials
  /// Of every block the polynomials P'_0 .. P'_{D - 1}, one after the other. Such a piece of memory
  /// is large enough for huge pages, without which looking addresses up takes longer than to read.
  std::vector<device::Buffer> blocks_;
  /// Of the sums of the positive numbers of a row, and of the negative ones: those pairs of which
  /// no other is as far from 0 in both.
  std::map<Wide, Wide> extremes_;
};

}  // namespace jali::circuits
