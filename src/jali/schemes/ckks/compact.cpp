// Encoder: compact plaintexts.
#include "jali/schemes/ckks/compact.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "jali/base/error.h"
#include "jali/base/secret_vector.h"
#include "jali/schemes/ckks/encoder.h"
#include "jali/schemes/ckks/message.h"
#include "jali/schemes/ckks/scale.h"

namespace jali::ckks {

namespace {

using Complex = std::complex<double>;

/// After how many slots the numbers of every vector repeat: the smallest power of two.
std::size_t period_of(std::span<const Complex> values, std::size_t batch) {
  const std::size_t count = values.size() / batch;
  std::size_t period = count;
  const auto repeats = [&](std::size_t after) {
    for (std::size_t b = 0; b < batch; ++b) {
      const auto own = values.subspan(b * count, 2 * after);
      if (!std::ranges::equal(own.first(after), own.subspan(after))) return false;
    }
    return true;
  };
  while (period > 1 && period % 2 == 0 && repeats(period / 2)) period /= 2;
  return period;
}

}  // namespace

std::size_t compact_bytes(std::span<const Complex> values) {
  return 2 * period_of(values, 1) * sizeof(std::int64_t);
}

CompactPlaintext Encoder::compact(std::span<const Complex> values, std::size_t batch, double scale,
                                  int log_slots, bool on_host) const {
  if (log_slots < 0) log_slots = params_->log_n() - 1;
  check(values, batch, scale, log_slots);
  const std::size_t slots = std::size_t{1} << log_slots, length = values.size() / batch;
  require<InvalidArgument>(is_finite(values), "values to encode must be finite");
  CompactPlaintext out;
  out.message = root_mean_square(values, batch, slots);
  out.peak = largest_modulus(values);
  // Of numbers that repeat, the inverse embedding adds equal ones and subtracts equal ones until
  // one period is left, and both are exact. So the embedding of one period, with a factor for so
  // many slots, has the same coefficients bit by bit.
  const std::size_t period = length == slots ? period_of(values, batch) : slots;
  const std::size_t kept = std::min(length, period);
  SecretVector<Complex> once(batch * kept);
  for (std::size_t b = 0; b < batch; ++b) {
    std::ranges::copy(values.subspan(b * length, kept),
                      once.begin() + static_cast<std::ptrdiff_t>(b * kept));
  }
  out.count = 2 * period;
  const auto coefficients =
      backend::embed(embedding_, once, batch, out.count, std::countr_zero(period),
                     scale / static_cast<double>(period));
  for (const double c : coefficients) out.largest = std::max(out.largest, std::fabs(c));
  require<InvalidArgument>(out.largest < 0x1p62, [&] {
    return "the values are too large for a compact plaintext: it holds 62 bits, of which the scale "
           "takes " +
           std::to_string(std::log2(scale)) + ": scale the values down, or encode them at a level";
  });
  const SecretVector<std::int64_t> integers(coefficients.begin(), coefficients.end());
  const std::size_t bytes = integers.size() * sizeof(std::int64_t);
  if (on_host) {
    out.integers = ring_->host_pool().allocate(bytes, /*secret=*/true);
    std::ranges::copy(integers, static_cast<std::int64_t*>(out.integers.data()));
  } else {
    out.integers = ring_->pool()->allocate(bytes, /*secret=*/true);
    ring_->memory().copy_secret_in(out.integers.data(), integers.data(), bytes);
  }
  out.params = params_;
  out.batch = batch;
  out.scale = scale;
  out.log_slots = log_slots;
  return out;
}

CompactPlaintext Encoder::compact(std::span<const double> values, std::size_t batch, double scale,
                                  int log_slots, bool on_host) const {
  const SecretVector<Complex> complex(values.begin(), values.end());
  CompactPlaintext out =
      compact(std::span<const Complex>(complex), batch, scale, log_slots, on_host);
  out.real = true;
  return out;
}

ring::Poly Encoder::expand(const CompactPlaintext& x, std::span<const PrimeIndex> primes) const {
  ring::Poly poly = ring_->make_secret(primes, ring::Form::coeff, x.batch);
  expand(x, poly);
  return poly;
}

void Encoder::expand(const CompactPlaintext& x, ring::Poly& out) const {
  require<ParamsMismatch>(x.params != nullptr && x.params->hash() == params_->hash(),
                          "a compact plaintext and the encoder belong to different parameters");
  require<InvalidArgument>(x.integers.host_accessible() || x.integers.memory() == &ring_->memory(),
                           "a compact plaintext is in another device's memory: encode it with the "
                           "evaluator's own encoder");
  require<InvalidArgument>(out.batch() == x.batch,
                           "a compact plaintext is expanded into a polynomial of its batch");
  require_room(x.largest, x.scale, out.primes());
  out.set_form(ring::Form::coeff);
  ring_->ops().from_int64(out.view(),
                          {static_cast<const std::int64_t*>(x.integers.data()), x.batch * x.count});
  ring_->to_ntt(out);
}

Plaintext Encoder::expand(const CompactPlaintext& x, int level) const {
  require_level(level, x.scale);
  Plaintext out;
  out.poly = expand(x, params_->level(level).primes);
  out.params = params_;
  out.level = level;
  out.scale = x.scale;
  out.log_slots = x.log_slots;
  out.message = x.message;
  out.peak = x.peak;
  out.real = x.real;
  return out;
}

}  // namespace jali::ckks
