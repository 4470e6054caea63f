#include "jali/ring/poly.h"

#include <algorithm>

#include "jali/base/error.h"
#include "jali/base/secret_vector.h"

namespace jali::ring {

namespace {

/// Bytes of a block, which memory of 32 bits may not hold: a size that has wrapped around would be
/// that of a smaller block.
std::size_t block_bytes(std::size_t limbs, std::size_t batch, std::size_t row_bytes) {
  std::size_t bytes = 0;
  const bool fits = !__builtin_mul_overflow(limbs, row_bytes, &bytes) &&
                    !__builtin_mul_overflow(bytes, batch, &bytes);
  require<OutOfMemory>(fits, "a block of polynomials is larger than memory: use smaller batches");
  return bytes;
}

}  // namespace

Ring::Ring(std::shared_ptr<const backend::Engine> engine, Checkpoint checkpoint)
    : engine_(std::move(engine)),
      pool_(engine_->pool()),
      host_pool_(device::Pool::create()),
      checkpoint_(std::move(checkpoint)) {}

Poly Ring::make(std::span<const PrimeIndex> primes, std::size_t batch, Form form) const {
  require<InvalidArgument>(batch > 0, "a polynomial block needs a batch of at least 1");
  if (checkpoint_) checkpoint_();
  const std::size_t bytes = block_bytes(primes.size(), batch, n() * word_bytes(word()));
  return Poly(pool_->allocate(bytes), {primes.begin(), primes.end()}, n(), batch, word(), form);
}

Poly Ring::make_secret(std::span<const PrimeIndex> primes, Form form, std::size_t batch) const {
  if (checkpoint_) checkpoint_();
  const std::size_t bytes = block_bytes(primes.size(), batch, n() * word_bytes(word()));
  return Poly(pool_->allocate(bytes, /*secret=*/true), {primes.begin(), primes.end()}, n(), batch,
              word(), form);
}

Poly Ring::zero(std::span<const PrimeIndex> primes, std::size_t batch, Form form) const {
  Poly x = make(primes, batch, form);
  memory().wipe(x.data(), x.bytes());
  return x;
}

Poly Ring::make_like(const Poly& x, std::span<const PrimeIndex> primes) const {
  return x.buffer().secret() ? make_secret(primes, x.form(), x.batch())
                             : make(primes, x.batch(), x.form());
}

Poly Ring::copy(const Poly& x) const {
  Poly out = make_like(x, x.primes());
  copies().copy(out.data(), x.data(), x.bytes());
  return out;
}

Poly Ring::import(const Poly& x) const {
  Poly out = make_like(x, x.primes());
  place(out.data(), x);
  return out;
}

void Ring::place(void* to, const Poly& x) const {
  if (holds(x)) {
    copies().copy(to, x.data(), x.bytes());
  } else if (x.buffer().host_accessible()) {
    memory().copy_in(to, x.data(), x.bytes());
  } else if (!memory().copy_from(*x.buffer().memory(), to, x.data(), x.bytes())) {
    SecretVector<std::byte> host(x.bytes());
    x.buffer().copy_out(host.data());
    memory().copy_in(to, host.data(), host.size());
  }
}

Poly Ring::host_copy(const Poly& x) const {
  Poly out(host_pool_->allocate(x.bytes(), x.buffer().secret()),
           {x.primes().begin(), x.primes().end()}, x.n(), x.batch(), x.word(), x.form());
  x.buffer().copy_out(out.data());
  return out;
}

Poly Ring::select(const Poly& x, std::span<const PrimeIndex> primes) const {
  Poly out = make_like(x, primes);
  const std::size_t limb_bytes = x.batch() * x.row_bytes();
  const auto has = x.primes();
  for (std::size_t i = 0; i < primes.size();) {  // runs of limbs are copied at once
    const auto first =
        static_cast<std::size_t>(std::ranges::lower_bound(has, primes[i]) - has.begin());
    std::size_t count = 0;
    while (i + count < primes.size() && first + count < has.size() &&
           has[first + count] == primes[i + count]) {
      ++count;
    }
    require<InternalError>(count > 0, "Ring::select: the polynomial lacks a requested limb");
    copies().copy(out.row(i), x.row(first), count * limb_bytes);
    i += count;
  }
  return out;
}

void Ring::to_ntt(Poly& x) const {
  require<InternalError>(x.form() == Form::coeff, "Ring::to_ntt: already in NTT form");
  ops().ntt(x.view());
  x.set_form(Form::ntt);
}

void Ring::to_coeff(Poly& x) const {
  require<InternalError>(x.form() == Form::ntt, "Ring::to_coeff: already in coefficient form");
  ops().intt(x.view());
  x.set_form(Form::coeff);
}

std::uint64_t galois_element(std::size_t n, int steps) {
  // Rotations of the slots are the powers of 5 modulo 2N, a group of order N/2.
  const std::uint64_t mask = 2 * n - 1;
  const auto order = static_cast<std::int64_t>(n / 2);
  std::uint64_t exponent = static_cast<std::uint64_t>(((steps % order) + order) % order);
  std::uint64_t g = 1;
  for (std::uint64_t base = 5; exponent != 0; exponent >>= 1, base = (base * base) & mask) {
    if (exponent & 1) g = (g * base) & mask;
  }
  return g;
}

}  // namespace jali::ring
