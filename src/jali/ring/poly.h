// Polynomials in RNS form, and the ring that computes on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jali/arith/word.h"
#include "jali/backend/engine.h"
#include "jali/backend/ring_ops.h"
#include "jali/base/checkpoint.h"
#include "jali/device/buffer.h"

namespace jali::ring {

enum class Form : std::uint8_t { ntt = 0, coeff = 1 };

/// A block of `batch` polynomials modulo the product of its primes, rows (limb, batch, coefficient).
/// Owns its memory; moves only: copies are asked for by name (Ring::copy).
class Poly {
 public:
  Poly() = default;
  Poly(device::Buffer buffer, std::vector<PrimeIndex> primes, std::size_t n, std::size_t batch,
       Word word, Form form)
      : buffer_(std::move(buffer)),
        primes_(std::move(primes)),
        n_(n),
        batch_(batch),
        word_(word),
        form_(form) {}

  bool empty() const { return buffer_.data() == nullptr; }
  std::span<const PrimeIndex> primes() const { return primes_; }
  std::size_t limbs() const { return primes_.size(); }
  std::size_t n() const { return n_; }
  std::size_t batch() const { return batch_; }
  Word word() const { return word_; }
  Form form() const { return form_; }
  void set_form(Form form) { form_ = form; }
  std::size_t row_bytes() const { return n_ * word_bytes(word_); }
  std::size_t bytes() const { return limbs() * batch_ * row_bytes(); }

  const device::Buffer& buffer() const { return buffer_; }
  void* data() { return buffer_.data(); }
  const void* data() const { return buffer_.data(); }
  void* row(std::size_t limb, std::size_t b = 0) {
    return static_cast<std::byte*>(data()) + (limb * batch_ + b) * row_bytes();
  }
  const void* row(std::size_t limb, std::size_t b = 0) const {
    return static_cast<const std::byte*>(data()) + (limb * batch_ + b) * row_bytes();
  }
  /// Host memory only.
  std::uint64_t at(std::size_t limb, std::size_t b, std::size_t k) const {
    return word_ == Word::w32 ? static_cast<const std::uint32_t*>(row(limb, b))[k]
                              : static_cast<const std::uint64_t*>(row(limb, b))[k];
  }

  backend::View view() { return {data(), primes_, batch_}; }
  backend::ConstView view() const { return {data(), primes_, batch_}; }
  /// The first `count` limbs.
  backend::View head(std::size_t count) {
    return {data(), std::span<const PrimeIndex>(primes_).first(count), batch_};
  }

 private:
  device::Buffer buffer_;
  std::vector<PrimeIndex> primes_;
  std::size_t n_ = 0;
  std::size_t batch_ = 1;
  Word word_ = Word::w64;
  Form form_ = Form::ntt;
};

/// A set of primes with an engine: allocates polynomials and gives the operations. Immutable and
/// safe to share between threads.
class Ring {
 public:
  /// checkpoint: called, if given, before a polynomial is made, so many times a second in all long work. What it
  /// throws ends the work, and leaves what running out of memory there would leave.
  explicit Ring(std::shared_ptr<const backend::Engine> engine, Checkpoint checkpoint = {});

  const backend::Engine& engine() const { return *engine_; }
  /// The operations of the ring; those of other layers are engine().rlwe(), engine().embedding().
  const backend::RingOps& ops() const { return engine_->ring(); }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  std::size_t n() const { return engine_->config().n; }
  Word word() const { return engine_->config().word; }
  std::span<const std::uint64_t> primes() const { return engine_->config().primes; }
  std::uint64_t prime(PrimeIndex i) const { return engine_->config().primes[i]; }

  // Copies, wherever they are made, are secret where what they are of is.

  /// Uninitialised.
  Poly make(std::span<const PrimeIndex> primes, std::size_t batch = 1, Form form = Form::ntt) const;
  Poly zero(std::span<const PrimeIndex> primes, std::size_t batch = 1, Form form = Form::ntt) const;
  Poly copy(const Poly& x) const;
  /// A copy of x, wherever it lives, in this ring's memory.
  Poly import(const Poly& x) const;
  /// The bytes of x, wherever it lives, to `to` in this ring's memory.
  void place(void* to, const Poly& x) const;
  /// Whether x is where this ring computes: in the host's memory, or in the very memory of its engine
  /// (another engine's work on the same GPU is not ordered with this one's).
  bool holds(const Poly& x) const {
    return x.buffer().host_accessible() ? memory().host_accessible()
                                        : x.buffer().memory() == &memory();
  }
  /// Whether the polynomials of the other ring are where this one computes.
  bool shares_memory(const Ring& other) const {
    return &memory() == &other.memory() ||
           (memory().host_accessible() && other.memory().host_accessible());
  }
  /// A copy of x in host memory, for bytes and tests.
  Poly host_copy(const Poly& x) const;
  /// Uniform polynomials from a seed, NTT form: see RingOps::sample_uniform.
  void sample_uniform(Poly& x, std::span<const std::uint8_t, 32> seed, std::uint32_t index) const {
    ops().sample_uniform(x.view(), seed, index);
  }
  /// The limbs of x at `primes`, which x must have.
  Poly select(const Poly& x, std::span<const PrimeIndex> primes) const;
  /// Memory that is wiped before reuse, for secrets.
  Poly make_secret(std::span<const PrimeIndex> primes, Form form = Form::ntt,
                   std::size_t batch = 1) const;
  device::Buffer scratch(std::size_t bytes) const { return pool_->allocate(bytes); }
  device::Memory& memory() const { return pool_->memory(); }
  const std::shared_ptr<device::Pool>& pool() const { return pool_; }

  void to_ntt(Poly& x) const;
  void to_coeff(Poly& x) const;

 private:
  Poly make_like(const Poly& x, std::span<const PrimeIndex> primes) const;  // uninitialised
  std::shared_ptr<const backend::Engine> engine_;
  std::shared_ptr<device::Pool> pool_;
  std::shared_ptr<device::Pool> host_pool_;
  Checkpoint checkpoint_;
};

/// Small constants as one residue a limb.
/// [value]_q for each prime; value may be negative.
std::vector<std::uint64_t> residues(const Ring& ring, std::span<const PrimeIndex> primes,
                                    std::int64_t value);
/// [round(value)]_q for each prime; |value| < 2^1000.
std::vector<std::uint64_t> residues(const Ring& ring, std::span<const PrimeIndex> primes,
                                    double value);
/// [product of `factors`]_q for each prime in `primes`.
std::vector<std::uint64_t> product_residues(const Ring& ring, std::span<const PrimeIndex> primes,
                                            std::span<const PrimeIndex> factors);

/// Centred value of every coefficient as a double, v / divisor with v in [-Q/2, Q/2): result
/// (batch, N). x is in coefficient form. Exact to 2^-52 relative.
std::vector<double> to_doubles(const Ring& ring, const Poly& x, double divisor);

/// The Galois element of a rotation by k slots to the left, 5^k mod 2N; conjugation is 2N - 1.
std::uint64_t galois_element(std::size_t n, int steps);
inline std::uint64_t conjugation_element(std::size_t n) { return 2 * n - 1; }

}  // namespace jali::ring
