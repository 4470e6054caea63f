// Encoding of vectors of numbers as integer polynomials, and back, through the canonical embedding.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "jali/backend/embedding.h"
#include "jali/schemes/ckks/compact.h"
#include "jali/schemes/ckks/types.h"

namespace jali::ckks {

class Encoder {
 public:
  Encoder(ParamsPtr params, std::shared_ptr<const ring::Ring> ring);

  /// values: `batch` vectors of equal length, one after the other. Each is padded with zeros to
  /// 2^log_slots slots, or to N/2 if log_slots < 0. If there are fewer slots than N/2, they are
  /// packed sparsely: the polynomial is one in X^(N/2/slots). Throws InvalidArgument if a vector is
  /// longer than its slots, or if a value is not finite or too large for the level.
  Plaintext encode(std::span<const std::complex<double>> values, std::size_t batch, int level,
                   double scale, int log_slots = -1) const;
  Plaintext encode(std::span<const double> values, std::size_t batch, int level, double scale,
                   int log_slots = -1) const;
  /// encode over any primes of the ring, for example those of Q and P, over which linear transforms
  /// keep their diagonals.
  ring::Poly encode_over(std::span<const std::complex<double>> values, std::size_t batch,
                         std::span<const PrimeIndex> primes, double scale, int log_slots) const;

  /// The slots, in the shape (batch, 2^log_slots). Neither the time that this takes nor the memory
  /// that it frees tells anything of the values. The caller must wipe the result (base/wipe.h).
  std::vector<std::complex<double>> decode(const Plaintext& plaintext) const;
  std::vector<std::complex<double>> decode(Plaintext&& plaintext) const;
  /// All (batch, N/2) slots of the polynomial. If log_slots is smaller, they are the message,
  /// repeated, with the error of all coefficients.
  std::vector<std::complex<double>> decode_all(const Plaintext& plaintext) const;

  /// encode as integer coefficients, for numbers that are no secret of their owner's device, such
  /// as weights: its time depends on them. on_host: whether they stay in the host's memory. Throws
  /// what encode does; it holds coefficients below 2^62.
  CompactPlaintext compact(std::span<const std::complex<double>> values, std::size_t batch,
                           double scale, int log_slots = -1, bool on_host = false) const;
  CompactPlaintext compact(std::span<const double> values, std::size_t batch, double scale,
                           int log_slots = -1, bool on_host = false) const;
  /// What encode, and encode_over, make of the same numbers, bit by bit. Throws ParamsMismatch, and
  /// InvalidArgument for a level that does not hold the coefficients.
  Plaintext expand(const CompactPlaintext& x, int level) const;
  ring::Poly expand(const CompactPlaintext& x, std::span<const PrimeIndex> primes) const;
  /// The same in a polynomial of the same batch, whatever it holds, so that one block of memory
  /// serves many.
  void expand(const CompactPlaintext& x, ring::Poly& out) const;

 private:
  void check(std::span<const std::complex<double>> values, std::size_t batch, double scale,
             int log_slots) const;
  void require_level(int level, double scale) const;
  /// largest: of the coefficients.
  void require_room(double largest, double scale, std::span<const PrimeIndex> primes) const;
  static bool is_finite(std::span<const std::complex<double>> values);

  ParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  backend::Embedding embedding_;
};

/// The bytes of the compact plaintext of a vector that fills all its slots.
std::size_t compact_bytes(std::span<const std::complex<double>> values);

}  // namespace jali::ckks
