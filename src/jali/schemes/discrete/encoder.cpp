#include "jali/schemes/discrete/encoder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "jali/arith/bit_reverse.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/base/declassify.h"
#include "jali/base/error.h"

namespace jali::discrete {

namespace {

__extension__ using Wide = __int128;

/// Whether no number is outside. No branch depends on the numbers.
bool all_within(std::span<const std::int64_t> values, const Range& range) {
  int within = 1;
  for (const std::int64_t v : values) {
    within &= static_cast<int>(v >= range.low) & static_cast<int>(v <= range.high);
  }
  declassify(within);
  return within != 0;
}

/// Where in NTT form the slots of a prime lie: index k is the value at psi^(2 brv(k) + 1) (view.h).
std::vector<std::uint32_t> slot_index(std::size_t n, int log_n) {
  std::vector<std::uint32_t> out(n);
  const std::uint64_t mask = 2 * n - 1;
  std::uint64_t exponent = 1;  // 5^i
  for (std::size_t i = 0; i < n / 2; ++i, exponent = (5 * exponent) & mask) {
    const std::uint64_t rows[] = {exponent, 2 * n - exponent};
    for (std::size_t row = 0; row < 2; ++row) {
      out[row * n / 2 + i] = static_cast<std::uint32_t>(
          arith::bit_reverse(static_cast<std::uint32_t>((rows[row] - 1) / 2), log_n));
    }
  }
  return out;
}

template <class T>
void put_row(T* row, std::span<const std::int64_t> values, std::span<const std::uint32_t> index,
             const PlainModulus& t) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    row[index[i]] = static_cast<T>(t.reduce_signed(values[i]));
  }
}

}  // namespace

Encoder::Encoder(ParamsPtr params, std::shared_ptr<const ring::Ring> ring)
    : params_(std::move(params)), ring_(std::move(ring)) {
  require<ParamsMismatch>(std::ranges::equal(ring_->primes(), params_->ring_primes()),
                          "the ring was made for other parameters: make_ring(*params)");
  if (params_->packing() == Packing::slots) index_ = slot_index(params_->n(), params_->log_n());
}

Plaintext Encoder::encode(std::span<const std::int64_t> values, std::size_t batch,
                          const Range& range) const {
  require<InvalidArgument>(batch > 0 && batch <= values.size() && values.size() % batch == 0,
                           "encode takes `batch` vectors of equal length, one after the other, "
                           "each of at least one number");
  const std::size_t n = params_->n(), length = values.size() / batch;
  require<InvalidArgument>(length <= n, [&] {
    return "a vector of " + std::to_string(length) + " numbers does not fit the " +
           std::to_string(n) + " of a ciphertext: use several";
  });
  const PlainModulus& modulus = params_->modulus();
  const bool has_zeros = length < n;
  require<InvalidArgument>(
      range.wraps ? range.low == modulus.low() && range.high == modulus.high()
                  : range.low <= range.high &&
                        Wide{range.high} - range.low <= static_cast<Wide>(modulus.largest()),
      "the range of the numbers must come from NoiseModel::range or residues()");
  require<InvalidArgument>(!has_zeros || (range.low <= 0 && range.high >= 0), [&] {
    return "a vector of fewer than " + std::to_string(n) +
           " numbers is filled up with zeros: declare a range that has 0 in it";
  });
  require<InvalidArgument>(range.wraps || all_within(values, range), [&] {
    return "a number is outside the range that was declared, from " + std::to_string(range.low) +
           " to " + std::to_string(range.high) +
           ": declare the range of this kind of numbers, or pass wrap=True if they are meant "
           "modulo "
           "the modulus";
  });

  Plaintext out;
  out.params = params_;
  out.batch = batch;
  out.range = range;
  if (params_->packing() == Packing::coefficients) {
    out.coefficients.assign(batch * n, 0);
    for (std::size_t b = 0; b < batch; ++b) {
      for (std::size_t i = 0; i < length; ++i) {
        out.coefficients[b * n + i] =
            modulus.centred(modulus.reduce_signed(values[b * length + i]));
      }
    }
    return out;
  }
  const auto primes = params_->modulus_primes();
  ring::Poly host(
      ring_->host_pool().allocate(primes.size() * batch * n * word_bytes(ring_->word()), true),
      {primes.begin(), primes.end()}, n, batch, ring_->word(), ring::Form::ntt);
  std::fill_n(static_cast<std::byte*>(host.data()), host.bytes(), std::byte{0});
  for (std::size_t j = 0; j < primes.size(); ++j) {
    const PlainModulus t(ring_->prime(primes[j]));
    for (std::size_t b = 0; b < batch; ++b) {
      const auto vector = values.subspan(b * length, length);
      if (ring_->word() == Word::w32) {
        put_row(static_cast<std::uint32_t*>(host.row(j, b)), vector, index_, t);
      } else {
        put_row(static_cast<std::uint64_t*>(host.row(j, b)), vector, index_, t);
      }
    }
  }
  out.poly = ring_->holds(host) ? std::move(host) : ring_->import(host);
  return out;
}

Plaintext Encoder::encode_clear(std::span<const std::int64_t> values, std::size_t batch,
                                Overflow overflow) const {
  const bool full = batch > 0 && values.size() == batch * params_->n() && !values.empty();
  std::int64_t low = full ? values[0] : 0, high = low;  // of the zeros that fill vectors up
  for (const std::int64_t v : values) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  return encode(values, batch, NoiseModel(*params_).range(low, high, overflow));
}

std::vector<std::uint64_t> Encoder::factors(std::uint64_t factor) const {
  std::vector<std::uint64_t> out;
  for (const PrimeIndex i : params_->modulus_primes()) out.push_back(factor % ring_->prime(i));
  return out;
}

// scale_down from the primes of T to those of the level divides x Q by T: the result is
// -[x Q]_T / T modulo Q, so that its w is -[x Q]_T. So x is -factor m / Q.
ring::Poly Encoder::scaled(const Plaintext& plaintext, int level, std::uint64_t factor) const {
  const PlainModulus& t = params_->modulus();
  const auto& primes = params_->level(level).primes;
  if (params_->packing() == Packing::coefficients) {
    SecretVector<std::int64_t> w(plaintext.coefficients.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] = t.centred(t.mul(factor, t.reduce_signed(plaintext.coefficients[i])));
    }
    ring::Poly out = ring_->make_secret(primes, ring::Form::coeff, plaintext.batch);
    ring_->ops().from_int64(out.view(), w);
    std::vector<std::uint64_t> inverse;
    for (const PrimeIndex i : primes) {
      const arith::Modulus q(ring_->prime(i));
      const std::uint64_t t_mod_q = q.add(q.reduce(t.largest()), 1);
      inverse.push_back(q.inverse(t_mod_q));
    }
    ring_->ops().mul_scalar(out.view(), out.view(), inverse);
    ring_->to_ntt(out);
    return out;
  }
  const std::uint64_t s = t.neg(t.mul(factor, t.inverse(params_->q_mod_t(level))));
  ring::Poly x = ring_->make_secret(params_->modulus_primes(), ring::Form::ntt, plaintext.batch);
  ring_->ops().mul_scalar(x.view(), plaintext.poly.view(), factors(s));
  ring::Poly out = ring_->make_secret(primes, ring::Form::ntt, plaintext.batch);
  ring_->engine().rlwe().scale_down(out.view(), x.view(), nullptr);
  return out;
}

ring::Poly Encoder::lifted(const Plaintext& plaintext, int level, std::uint64_t factor) const {
  require<InvalidArgument>(params_->packing() == Packing::slots,
                           "products of plaintexts are for numbers in slots");
  ring::Poly x = ring_->make_secret(params_->modulus_primes(), ring::Form::ntt, plaintext.batch);
  ring_->ops().mul_scalar(x.view(), plaintext.poly.view(), factors(factor));
  const auto& primes = params_->level(level).primes;
  std::vector<PrimeIndex> both = primes;
  both.insert(both.end(), x.primes().begin(), x.primes().end());
  ring::Poly ext = ring_->make_secret(both, ring::Form::ntt, plaintext.batch);
  const std::uint32_t digit = static_cast<std::uint32_t>(x.limbs());
  ring_->engine().rlwe().mod_up(ext.view(), x.view(), {&digit, 1});
  return ring_->select(ext, primes);
}

// The number of the range is low + d with d = (r - low) mod T, if d <= high - low.
SecretVector<std::int64_t> Encoder::read(std::span<const std::uint64_t> residues,
                                         const Range& range, bool& within) const {
  const PlainModulus& t = params_->modulus();
  const std::uint64_t low = t.reduce_signed(range.low);
  const std::uint64_t most =
      static_cast<std::uint64_t>(range.high) - static_cast<std::uint64_t>(range.low);
  SecretVector<std::int64_t> out(residues.size());
  int inside = 1;
  for (std::size_t i = 0; i < residues.size(); ++i) {
    const std::uint64_t d = t.sub(residues[i], low);
    inside &= static_cast<int>(d <= most);
    out[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(range.low) + d);
  }
  declassify(inside);  // one bit is told: whether the decryption is what the ciphertext says
  within = inside != 0;
  return out;
}

// By the Chinese remainder theorem, m = sum_j [r_j (T / t_j)^-1]_{t_j} T / t_j modulo T.
SecretVector<std::uint64_t> Encoder::residues(const ring::Poly& poly) const {
  const ring::Poly fetched =
      poly.buffer().host_accessible() ? ring::Poly() : ring_->host_copy(poly);
  const ring::Poly& x = fetched.empty() ? poly : fetched;
  const PlainModulus& t = params_->modulus();
  const std::size_t n = params_->n();
  SecretVector<std::uint64_t> out(x.batch() * n, 0);
  for (std::size_t j = 0; j < x.limbs(); ++j) {
    const std::uint64_t prime = ring_->prime(x.primes()[j]), rest = t.value() / prime;
    const arith::Modulus mod(prime);
    const std::uint64_t inverse = mod.inverse(mod.reduce(rest));
    for (std::size_t b = 0; b < x.batch(); ++b) {
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t r = mod.mul(x.at(j, b, index_[i]), inverse);
        std::uint64_t& sum = out[b * n + i];
        sum = t.sub(sum, t.neg(t.mul(t.reduce(r), t.reduce(rest))));
      }
    }
  }
  return out;
}

}  // namespace jali::discrete
