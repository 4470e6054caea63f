#include "jali/backend/embedding.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace jali::backend {

namespace {

using u128 = unsigned __int128;

// Plain complex product: no special handling of infinities, which inputs are checked against.
inline Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

Embedding::Embedding(std::size_t slots) {
  // Angles in units of 2 pi, exact in binary.
  std::vector<double> angle{0.25};
  twiddle.resize(std::max<std::size_t>(slots, 1));
  for (std::size_t m = 1;; m *= 2) {
    // m nodes of degree one: the slots when the ring has 2m coefficients (4m-th roots of unity).
    std::vector<std::uint32_t> position(4 * m, 0);
    for (std::size_t i = 0; i < m; ++i) {
      const auto e = static_cast<std::size_t>(std::llround(angle[i] * static_cast<double>(4 * m)));
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

void Embedding::forward(Complex* x, std::size_t slots) const {
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

void Embedding::backward(Complex* x, std::size_t slots) const {
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

SecretVector<double> embed(const Embedding& embedding, std::span<const Complex> values,
                           std::size_t batch, std::size_t n, int log_slots, double factor) {
  const std::size_t slots = std::size_t{1} << log_slots, gap = n / 2 / slots;
  const std::size_t count = values.size() / batch;
  const auto& leaf = embedding.leaf[static_cast<std::size_t>(log_slots)];
  SecretVector<double> coefficients(batch * n, 0.0);
  SecretVector<Complex> w(slots);
  for (std::size_t b = 0; b < batch; ++b) {
    std::fill(w.begin(), w.end(), Complex{});
    for (std::size_t j = 0; j < count; ++j) w[leaf[j]] = values[b * count + j];
    embedding.backward(w.data(), slots);
    double* out = coefficients.data() + b * n;
    for (std::size_t k = 0; k < slots; ++k) {
      out[k * gap] = std::nearbyint(w[k].real() * factor);
      out[k * gap + n / 2] = std::nearbyint(w[k].imag() * factor);
    }
  }
  return coefficients;
}

void unembed(const Embedding& embedding, std::span<const double> coefficients, std::size_t batch,
             std::size_t n, int log_slots, std::span<Complex> slots_out) {
  const std::size_t slots = std::size_t{1} << log_slots, gap = n / 2 / slots;
  const auto& leaf = embedding.leaf[static_cast<std::size_t>(log_slots)];
  SecretVector<Complex> w(slots);
  for (std::size_t b = 0; b < batch; ++b) {
    const double* in = coefficients.data() + b * n;
    for (std::size_t k = 0; k < slots; ++k) w[k] = {in[k * gap], in[k * gap + n / 2]};
    embedding.forward(w.data(), slots);
    for (std::size_t j = 0; j < slots; ++j) slots_out[b * slots + j] = w[leaf[j]];
  }
}

std::vector<std::uint64_t> product_words(std::span<const std::uint64_t> primes) {
  std::vector<std::uint64_t> words{1};
  for (const std::uint64_t q : primes) {
    std::uint64_t carry = 0;
    for (auto& w : words) {
      const u128 t = u128{w} * q + carry;
      w = static_cast<std::uint64_t>(t);
      carry = static_cast<std::uint64_t>(t >> 64);
    }
    if (carry != 0) words.push_back(carry);
  }
  return words;
}

SecretVector<double> centred_doubles(std::span<const std::uint64_t> integers, std::size_t count,
                                     std::span<const std::uint64_t> q_words, double divisor) {
  const std::size_t words = q_words.size();
  SecretVector<double> out(count);
  SecretVector<std::uint64_t> v(words), difference(words);
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t w = 0; w < words; ++w) v[w] = integers[w * count + k];
    // Q - value, and whether value is in the upper half of [0, Q).
    std::uint64_t borrow = 0;
    bool upper = false, decided = false;
    for (std::size_t w = 0; w < words; ++w) {
      const u128 t = u128{q_words[w]} - v[w] - borrow;
      difference[w] = static_cast<std::uint64_t>(t);
      borrow = static_cast<std::uint64_t>(t >> 64) & 1;
    }
    for (std::size_t w = words; w-- > 0 && !decided;) {
      if (v[w] != difference[w]) {
        upper = v[w] > difference[w];
        decided = true;
      }
    }
    // Each word is below 2^64; two roundings in the Horner sum stay within 2^-52 of the value.
    double sum = 0;
    for (std::size_t w = words; w-- > 0;) {
      sum = sum * 0x1p64 + static_cast<double>(upper ? difference[w] : v[w]);
    }
    out[k] = (upper ? -sum : sum) / divisor;
  }
  return out;
}

}  // namespace jali::backend
