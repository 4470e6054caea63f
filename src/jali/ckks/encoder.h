// Encoding: vectors of numbers to and from integer polynomials through the canonical embedding.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "jali/backend/embedding.h"
#include "jali/ckks/types.h"

namespace jali::ckks {

class Encoder {
 public:
  Encoder(ParamsPtr params, std::shared_ptr<const ring::Ring> ring);

  /// values: batch vectors of `count` numbers, one after the other. count <= N/2; the vector is padded
  /// with zeros to 2^log_slots (log_slots < 0: the full N/2). Fewer slots than N/2 are packed
  /// sparsely: the polynomial lies in X^(N/2/slots).
  /// Throws InvalidArgument for sizes, non-finite values, or values too large for the level.
  Plaintext encode(std::span<const std::complex<double>> values, std::size_t batch, int level,
                   double scale, int log_slots = -1) const;
  Plaintext encode(std::span<const double> values, std::size_t batch, int level, double scale,
                   int log_slots = -1) const;
  /// The same over any primes of the ring (for diagonals kept over Q and P).
  ring::Poly encode_over(std::span<const std::complex<double>> values, std::size_t batch,
                         std::span<const PrimeIndex> primes, double scale, int log_slots) const;

  /// (batch, 2^log_slots). Neither the time that this takes nor the memory that it leaves tells what is decoded;
  /// what it returns is the caller's to wipe (base/wipe.h).
  std::vector<std::complex<double>> decode(const Plaintext& plaintext) const;
  std::vector<std::complex<double>> decode(Plaintext&& plaintext) const;

 private:
  ParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  backend::Embedding embedding_;
};

}  // namespace jali::ckks
