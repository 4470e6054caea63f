#include "jali/schemes/ckks/encoder.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "jali/backend/embedding_ops.h"
#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/base/secret_vector.h"
#include "jali/schemes/ckks/message.h"
#include "jali/schemes/ckks/range.h"
#include "jali/schemes/ckks/scale.h"

namespace jali::ckks {

namespace {

using Complex = std::complex<double>;

double product_bits(const ring::Ring& ring, std::span<const PrimeIndex> primes) {
  double bits = 0;
  for (const PrimeIndex i : primes) bits += std::log2(static_cast<double>(ring.prime(i)));
  return bits;
}

/// A bound on the coefficients of all vectors of a batch, before scaling: the largest, over the
/// vectors, of the sum of magnitudes. It is not finite if some value is not. It has no branch that
/// depends on the values, because they are a message.
double sum_of_magnitudes(std::span<const Complex> values, std::size_t batch) {
  const std::size_t count = values.size() / batch;
  double sum = 0;
  for (std::size_t b = 0; b < batch; ++b) {
    double own = 0;
    for (const Complex z : values.subspan(b * count, count)) {
      own += std::fabs(z.real()) + std::fabs(z.imag());
    }
    sum = sum < own ? own : sum;
    sum += 0 * own;  // not a number if own is not finite
  }
  return sum;
}

}  // namespace

Encoder::Encoder(ParamsPtr params, std::shared_ptr<const ring::Ring> ring)
    : params_(std::move(params)), ring_(std::move(ring)), embedding_(params_->slots()) {}

void Encoder::check(std::span<const Complex> values, std::size_t batch, double scale,
                    int log_slots) const {
  require<InvalidArgument>(log_slots < params_->log_n(), [&] {
    return "log_slots must be below log_n = " + std::to_string(params_->log_n());
  });
  const std::size_t slots = std::size_t{1} << log_slots;
  // Zero values are divisible by every batch, so a batch above 1 needs at least one value.
  require<InvalidArgument>(
      batch > 0 && values.size() % batch == 0 && (batch == 1 || !values.empty()),
      "the values must be `batch` vectors of equal length");
  const std::size_t count = values.size() / batch;
  require<InvalidArgument>(count <= slots, [&] {
    return "a vector of " + std::to_string(count) + " values does not fit " +
           std::to_string(slots) + " slots: split it, or use parameters of a larger log_n";
  });
  require<InvalidArgument>(std::isfinite(scale) && scale > 0, "the scale must be positive");
}

void Encoder::require_level(int level, double scale) const {
  require<InvalidArgument>(level >= 0 && level <= params_->top(), [&] {
    return "level " + std::to_string(level) + " is not in 0.." + std::to_string(params_->top());
  });
  require<InvalidArgument>(is_plausible_scale(scale, params_->level(level)), [&] {
    return "the scale must be positive and fit level " + std::to_string(level) +
           ": its modulus has " + std::to_string(params_->level(level).log_q) + " bits";
  });
}

void Encoder::require_room(double largest, double scale, std::span<const PrimeIndex> primes) const {
  const double capacity = product_bits(*ring_, primes) - 1;
  require<InvalidArgument>(
      largest < 0x1p990 && (largest < 1 || std::log2(largest) < capacity), [&] {
        // How much room they lack would tell the largest of them.
        std::string text = "the values are too large for this level: it holds " +
                           std::to_string(capacity) + " bits, of which the scale takes " +
                           std::to_string(std::log2(scale)) + ": scale the values down";
        if (primes.size() < params_->level(params_->top()).primes.size())
          text += ", or encode at a higher level";
        if (const auto& literal = params_->literal(); !literal.bootstrap) {
          text += ", or make the parameters with as many more integer_bits than " +
                  shown(literal.integer_bits) + " as the largest of them lacks";
        }
        return text;
      });
}

bool Encoder::is_finite(std::span<const Complex> values) {
  return std::ranges::all_of(
      values, [](const Complex z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); });
}

ring::Poly Encoder::encode_over(std::span<const Complex> values, std::size_t batch,
                                std::span<const PrimeIndex> primes, double scale,
                                int log_slots) const {
  const std::size_t n = params_->n();
  if (log_slots < 0) log_slots = params_->log_n() - 1;
  check(values, batch, scale, log_slots);
  const std::size_t slots = std::size_t{1} << log_slots;
  const double factor = scale / static_cast<double>(slots);
  const double capacity = product_bits(*ring_, primes) - 1;
  ring::Poly poly = ring_->make_secret(primes, ring::Form::coeff, batch);
  // No coefficient exceeds the sum of the slots' magnitudes times the factor, plus a rounding. The
  // time of encoding reveals whether that bound fits, and nothing else if it does. If it does not,
  // or if a value is not finite, the other branch checks every value, and its time reveals more.
  const double bound = 1.001 * sum_of_magnitudes(values, batch) * factor + 1;
  const bool fits = bound < std::exp2(std::min(capacity, 62.0));
  declassify(fits);
  if (fits) {
    ring_->engine().embedding().embed(poly.view(), embedding_, values, log_slots, factor);
  } else {
    require<InvalidArgument>(is_finite(values), "values to encode must be finite");
    const auto coefficients = backend::embed(embedding_, values, batch, n, log_slots, factor);
    double largest = 0;
    for (const double c : coefficients) largest = std::max(largest, std::fabs(c));
    require_room(largest, scale, primes);
    ring_->ops().from_double(poly.view(), coefficients);
  }
  ring_->to_ntt(poly);
  return poly;
}

Plaintext Encoder::encode(std::span<const Complex> values, std::size_t batch, int level,
                          double scale, int log_slots) const {
  require_level(level, scale);
  if (log_slots < 0) log_slots = params_->log_n() - 1;
  Plaintext out;
  out.poly = encode_over(values, batch, params_->level(level).primes, scale, log_slots);
  out.params = params_;
  out.level = level;
  out.scale = scale;
  out.log_slots = log_slots;
  out.message = root_mean_square(values, batch, std::size_t{1} << log_slots);
  out.peak = largest_modulus(values);
  return out;
}

Plaintext Encoder::encode(std::span<const double> values, std::size_t batch, int level,
                          double scale, int log_slots) const {
  const SecretVector<Complex> complex(values.begin(), values.end());
  Plaintext out = encode(std::span<const Complex>(complex), batch, level, scale, log_slots);
  out.real = true;
  return out;
}

std::vector<Complex> Encoder::decode(const Plaintext& plaintext) const {
  return decode(Plaintext{{ring_->copy(plaintext.poly), plaintext.level},
                          plaintext.params,
                          plaintext.scale,
                          plaintext.log_slots,
                          plaintext.message,
                          plaintext.peak,
                          plaintext.real});
}

std::vector<Complex> Encoder::decode_all(const Plaintext& plaintext) const {
  Plaintext all;
  all.poly = ring_->copy(plaintext.poly);
  all.scale = plaintext.scale;
  all.log_slots = params_->log_n() - 1;
  return decode(std::move(all));
}

std::vector<Complex> Encoder::decode(Plaintext&& plaintext) const {
  ring::Poly poly = std::move(plaintext.poly);
  ring_->to_coeff(poly);
  std::vector<Complex> out(poly.batch() << plaintext.log_slots);
  ring_->engine().embedding().unembed(out, embedding_, poly.view(), plaintext.log_slots,
                                      plaintext.scale);
  return out;
}

}  // namespace jali::ckks
