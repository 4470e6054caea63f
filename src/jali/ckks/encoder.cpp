// The canonical embedding. With zeta = exp(i pi / N), slot j of a real polynomial m of degree below N is
// m(zeta^(5^j)). As zeta^(5^j N/2) = i for every j, m folds to w_k = m_k + i m_(k+N/2), a complex
// polynomial modulo X^(N/2) - i, and the slots are its values at the roots of that modulus. Splitting
//   X^len - r = (X^(len/2) - sqrt r)(X^(len/2) + sqrt r)
// down to degree one is one butterfly a split, as in the NTT. The angle of r starts at pi/2 and is
// halved (plus pi) on the way, whatever N is: one table of twiddles serves every number of slots.
#include "jali/ckks/encoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "jali/base/error.h"

namespace jali::ckks {

namespace {

using Complex = std::complex<double>;

// Plain complex product: no special handling of infinities, which inputs are checked against.
inline Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

struct Encoder::Tables {
  // twiddle[m + i]: sqrt of the root of node i among the m nodes of its depth.
  std::vector<Complex> twiddle;
  // leaf[log_slots][j]: position of slot j after the last split.
  std::vector<std::vector<std::uint32_t>> leaf;

  explicit Tables(std::size_t slots) {
    // Angles in units of 2 pi, exact in binary.
    std::vector<double> angle{0.25};
    twiddle.resize(std::max<std::size_t>(slots, 1));
    for (std::size_t m = 1;; m *= 2) {
      // m nodes of degree one: the slots when the ring has 2m coefficients (4m-th roots of unity).
      std::vector<std::uint32_t> position(4 * m, 0);
      for (std::size_t i = 0; i < m; ++i) {
        const auto e =
            static_cast<std::size_t>(std::llround(angle[i] * static_cast<double>(4 * m)));
        position[e % (4 * m)] = static_cast<std::uint32_t>(i);
      }
      std::vector<std::uint32_t> order(m);
      std::size_t power = 1;
      for (std::size_t j = 0; j < m; ++j, power = power * 5 % (4 * m)) order[j] = position[power];
      leaf.push_back(std::move(order));
      if (m >= slots) break;
      std::vector<double> next(2 * m);
      for (std::size_t i = 0; i < m; ++i) {
        const double half = angle[i] / 2;
        twiddle[m + i] = {std::cos(2 * std::numbers::pi * half),
                          std::sin(2 * std::numbers::pi * half)};
        next[2 * i] = half;
        next[2 * i + 1] = half + 0.5;
      }
      angle = std::move(next);
    }
  }

  // Coefficients w -> values in leaf order.
  void forward(Complex* x, std::size_t slots) const {
    for (std::size_t m = 1, half = slots / 2; m < slots; m *= 2, half /= 2) {
      for (std::size_t i = 0; i < m; ++i) {
        const Complex w = twiddle[m + i];
        Complex* lo = x + 2 * i * half;
        Complex* hi = lo + half;
        for (std::size_t j = 0; j < half; ++j) {
          const Complex u = lo[j], v = times(hi[j], w);
          lo[j] = u + v;
          hi[j] = u - v;
        }
      }
    }
  }

  // The inverse, without the factor 1/slots.
  void backward(Complex* x, std::size_t slots) const {
    for (std::size_t m = slots / 2, half = 1; m >= 1; m /= 2, half *= 2) {
      for (std::size_t i = 0; i < m; ++i) {
        const Complex w = std::conj(twiddle[m + i]);
        Complex* lo = x + 2 * i * half;
        Complex* hi = lo + half;
        for (std::size_t j = 0; j < half; ++j) {
          const Complex u = lo[j], v = hi[j];
          lo[j] = u + v;
          hi[j] = times(u - v, w);
        }
      }
    }
  }
};

Encoder::Encoder(CkksParamsPtr params, std::shared_ptr<const ring::Ring> ring)
    : params_(std::move(params)),
      ring_(std::move(ring)),
      tables_(std::make_unique<Tables>(params_->slots())) {}

Encoder::~Encoder() = default;

namespace {

double product_bits(const ring::Ring& ring, std::span<const PrimeIndex> primes) {
  double bits = 0;
  for (const PrimeIndex i : primes) bits += std::log2(static_cast<double>(ring.prime(i)));
  return bits;
}

double root_mean_square(std::span<const Complex> values) {
  double sum = 0;
  for (const Complex& z : values) sum += std::norm(z);
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace

ring::Poly Encoder::encode_over(std::span<const Complex> values, std::size_t batch,
                                std::span<const PrimeIndex> primes, double scale,
                                int log_slots) const {
  const std::size_t n = params_->n();
  if (log_slots < 0) log_slots = params_->log_n() - 1;
  require<InvalidArgument>(log_slots < params_->log_n(), [&] {
    return "log_slots must be below log_n = " + std::to_string(params_->log_n());
  });
  const std::size_t slots = std::size_t{1} << log_slots;
  require<InvalidArgument>(batch > 0 && values.size() % batch == 0,
                           "the values must be `batch` vectors of equal length");
  const std::size_t count = values.size() / batch;
  require<InvalidArgument>(count <= slots, [&] {
    return "a vector of " + std::to_string(count) + " values does not fit " +
           std::to_string(slots) + " slots: split it, or use parameters of a larger log_n";
  });
  require<InvalidArgument>(std::isfinite(scale) && scale > 0, "the scale must be positive");

  const std::size_t gap = n / 2 / slots;
  const auto& leaf = tables_->leaf[static_cast<std::size_t>(log_slots)];
  const double factor = scale / static_cast<double>(slots);
  std::vector<double> coefficients(batch * n, 0.0);
  std::vector<Complex> w(slots);
  double largest = 0;
  for (std::size_t b = 0; b < batch; ++b) {
    std::fill(w.begin(), w.end(), Complex{});
    for (std::size_t j = 0; j < count; ++j) {
      const Complex z = values[b * count + j];
      require<InvalidArgument>(std::isfinite(z.real()) && std::isfinite(z.imag()),
                               "values to encode must be finite");
      w[leaf[j]] = z;
    }
    tables_->backward(w.data(), slots);
    double* out = coefficients.data() + b * n;
    for (std::size_t k = 0; k < slots; ++k) {
      const double re = std::nearbyint(w[k].real() * factor);
      const double im = std::nearbyint(w[k].imag() * factor);
      out[k * gap] = re;
      out[k * gap + n / 2] = im;
      largest = std::max({largest, std::fabs(re), std::fabs(im)});
    }
  }
  const double capacity = product_bits(*ring_, primes) - 1;
  require<InvalidArgument>(
      largest < 0x1p990 && (largest < 1 || std::log2(largest) < capacity), [&] {
        return "the values are too large for this level: scaled by 2^" +
               std::to_string(std::log2(scale)) + " they need " +
               std::to_string(std::log2(largest)) + " bits and the modulus holds " +
               std::to_string(capacity) +
               ": scale the values down, encode at a higher level, or ask for more integer_bits";
      });

  ring::Poly poly = ring_->make(primes, batch, ring::Form::coeff);
  if (largest < 0x1p62) {
    std::vector<std::int64_t> integers(coefficients.begin(), coefficients.end());
    ring_->ops().from_int64(poly.view(), integers);
  } else {
    ring_->ops().from_double(poly.view(), coefficients);
  }
  ring_->to_ntt(poly);
  return poly;
}

Plaintext Encoder::encode(std::span<const Complex> values, std::size_t batch, int level,
                          double scale, int log_slots) const {
  require<InvalidArgument>(level >= 0 && level <= params_->top(), [&] {
    return "level " + std::to_string(level) + " is not in 0.." + std::to_string(params_->top());
  });
  if (log_slots < 0) log_slots = params_->log_n() - 1;
  Plaintext out;
  out.poly = encode_over(values, batch, params_->level(level).primes, scale, log_slots);
  out.params = params_;
  out.level = level;
  out.scale = scale;
  out.log_slots = log_slots;
  // Padding is part of the message: the mean is over all slots.
  const double slots = std::ldexp(1.0, log_slots) * static_cast<double>(batch);
  out.message = root_mean_square(values) * std::sqrt(static_cast<double>(values.size()) / slots);
  return out;
}

Plaintext Encoder::encode(std::span<const double> values, std::size_t batch, int level,
                          double scale, int log_slots) const {
  const std::vector<Complex> complex(values.begin(), values.end());
  return encode(std::span<const Complex>(complex), batch, level, scale, log_slots);
}

std::vector<Complex> Encoder::decode(const Plaintext& plaintext) const {
  const std::size_t n = params_->n();
  const std::size_t batch = plaintext.poly.batch();
  const std::size_t slots = std::size_t{1} << plaintext.log_slots;
  const std::size_t gap = n / 2 / slots;
  const auto& leaf = tables_->leaf[static_cast<std::size_t>(plaintext.log_slots)];

  ring::Poly poly = ring_->copy(plaintext.poly);
  ring_->to_coeff(poly);
  const std::vector<double> coefficients = ring::to_doubles(*ring_, poly, plaintext.scale);
  std::vector<Complex> out(batch * slots), w(slots);
  for (std::size_t b = 0; b < batch; ++b) {
    const double* in = coefficients.data() + b * n;
    for (std::size_t k = 0; k < slots; ++k) w[k] = {in[k * gap], in[k * gap + n / 2]};
    tables_->forward(w.data(), slots);
    for (std::size_t j = 0; j < slots; ++j) out[b * slots + j] = w[leaf[j]];
  }
  return out;
}

}  // namespace jali::ckks
