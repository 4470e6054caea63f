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

/// A block of `batch` polynomials modulo the product of its primes. Residues lie in the order
/// (limb, batch, coefficient). A Poly owns its memory and can only be moved. Ring::copy makes a
/// copy.
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
  /// Residue k of row (limb, b). The polynomial must lie in host memory.
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

/// A set of primes with an engine. It allocates polynomials and offers the operations on them. It
/// is immutable, and threads may share it.
class Ring {
 public:
  /// checkpoint: if given, it is called before each polynomial is made, which happens many times a
  /// second in all long work. If it throws, the work ends, and leaves all objects as if memory had
  /// run out at this point.
  explicit Ring(std::shared_ptr<const backend::Engine> engine, Checkpoint checkpoint = {});

  const backend::Engine& engine() const { return *engine_; }
  /// The operations of the ring; those of other layers are engine().rlwe(), engine().embedding().
  const backend::RingOps& ops() const { return engine_->ring(); }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  std::size_t n() const { return engine_->config().n; }
  Word word() const { return engine_->config().word; }
  std::span<const std::uint64_t> primes() const { return engine_->config().primes; }
  std::uint64_t prime(PrimeIndex i) const { return engine_->config().primes[i]; }

  // A copy of a secret polynomial is secret, too, whichever function makes it.

  /// A polynomial block whose residues are undefined. Throws InvalidArgument if batch is 0.
  Poly make(std::span<const PrimeIndex> primes, std::size_t batch = 1, Form form = Form::ntt) const;
  Poly zero(std::span<const PrimeIndex> primes, std::size_t batch = 1, Form form = Form::ntt) const;
  /// A copy of x, which lies in this ring's memory.
  Poly copy(const Poly& x) const;
  /// A copy in this ring's memory of x, which may lie in any memory.
  Poly import(const Poly& x) const;
  /// Copies the residues of x, which may lie in any memory, to `to` in this ring's memory.
  void place(void* to, const Poly& x) const;
  /// Whether this ring can compute on x where it lies. If the ring computes on the host, any host
  /// memory will do. If it computes on a GPU, x must lie in the memory of this engine's device,
  /// because the work of another device object on the same GPU is not ordered with this one's.
  bool holds(const Poly& x) const {
    return x.buffer().host_accessible() ? memory().host_accessible()
                                        : x.buffer().memory() == &memory();
  }
  /// Whether this ring can compute on the polynomials of the other ring where they lie.
  bool shares_memory(const Ring& other) const {
    return &memory() == &other.memory() ||
           (memory().host_accessible() && other.memory().host_accessible());
  }
  /// A copy of x in host memory. Serialisation and tests read it.
  Poly host_copy(const Poly& x) const;
  /// Fills x, in NTT form, with uniform residues from a seed: see RingOps::sample_uniform.
  void sample_uniform(Poly& x, std::span<const std::uint8_t, 32> seed, std::uint32_t index) const {
    ops().sample_uniform(x.view(), seed, index);
  }
  /// A copy of the limbs of x at `primes`. Throws InternalError if x lacks one of them.
  Poly select(const Poly& x, std::span<const PrimeIndex> primes) const;
  /// A polynomial block with undefined residues whose memory is wiped before it is reused.
  Poly make_secret(std::span<const PrimeIndex> primes, Form form = Form::ntt,
                   std::size_t batch = 1) const;
  device::Buffer scratch(std::size_t bytes) const { return pool_->allocate(bytes); }
  device::Memory& memory() const { return pool_->memory(); }
  /// By which blocks are copied within that memory.
  device::Memory& copies() const { return engine_->copies(); }
  const std::shared_ptr<device::Pool>& pool() const { return pool_; }
  /// Where copies in host memory come from.
  device::Pool& host_pool() const { return *host_pool_; }

  /// Transforms x in place. Throws InternalError if x is already in the form asked for.
  void to_ntt(Poly& x) const;
  void to_coeff(Poly& x) const;

 private:
  /// A block with undefined residues, of the batch and form of x, and secret if x is.
  Poly make_like(const Poly& x, std::span<const PrimeIndex> primes) const;
  std::shared_ptr<const backend::Engine> engine_;
  std::shared_ptr<device::Pool> pool_;
  std::shared_ptr<device::Pool> host_pool_;
  Checkpoint checkpoint_;
};

/// A constant as one residue for each limb: [value]_q for each prime q. value may be negative.
std::vector<std::uint64_t> residues(const Ring& ring, std::span<const PrimeIndex> primes,
                                    std::int64_t value);
/// [round(value)]_q for each prime q. Throws InvalidArgument unless |value| < 2^1000.
std::vector<std::uint64_t> residues(const Ring& ring, std::span<const PrimeIndex> primes,
                                    double value);
/// The product of the primes `factors` modulo each prime in `primes`.
std::vector<std::uint64_t> product_residues(const Ring& ring, std::span<const PrimeIndex> primes,
                                            std::span<const PrimeIndex> factors);

/// v / divisor for every coefficient, where v in [-Q/2, Q/2) is its centred value and Q the product
/// of the primes of x. The result lies in the order (batch, coefficient) and has a relative error
/// of at most 2^-52. Throws InternalError unless x is in coefficient form.
std::vector<double> to_doubles(const Ring& ring, const Poly& x, double divisor);

/// The Galois element of a rotation by `steps` slots to the left: 5^steps mod 2N. steps may be
/// negative.
std::uint64_t galois_element(std::size_t n, int steps);
/// The Galois element of conjugation: 2N - 1.
inline std::uint64_t conjugation_element(std::size_t n) { return 2 * n - 1; }

}  // namespace jali::ring
