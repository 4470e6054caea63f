#include "jali/backend/cpu/secret/ntt_product.h"

#include "jali/arith/primes.h"
#include "jali/backend/engines.h"
#include "jali/backend/ring_ops.h"
#include "jali/base/error.h"
#include "jali/base/secret_vector.h"

namespace jali::backend::cpu {

namespace {

using uint128 = unsigned __int128;

constexpr Word kWord = Word::w52;
constexpr std::array<PrimeIndex, 2> kPrimes{0, 1};
constexpr std::size_t kMostSecrets = 16;

/// x^(q-2) mod q for a prime q. Of public numbers.
std::uint64_t inverse_mod(std::uint64_t x, std::uint64_t q) {
  std::uint64_t out = 1, power = x % q;
  for (std::uint64_t e = q - 2; e > 0; e >>= 1) {
    if ((e & 1) != 0) out = static_cast<std::uint64_t>(uint128{out} * power % q);
    power = static_cast<std::uint64_t>(uint128{power} * power % q);
  }
  return out;
}

}  // namespace

NttRing::NttRing(std::size_t n) : n_(n) {
  require<InternalError>(n >= kLeastSize, "NttRing: the polynomials are too short");
  std::uint64_t bound = std::uint64_t{1} << word_prime_bits(kWord);
  for (std::uint64_t& q : q_) {
    const auto prime = arith::prime_below(bound, 2 * n, bound / 4);
    require<InternalError>(prime.has_value(), "NttRing: there is no such prime");
    q = bound = *prime;
  }
  inverse_ = inverse_mod(q_[0], q_[1]);
  inverse_scaled_ = static_cast<std::uint64_t>((uint128{inverse_} << 64) / q_[1]);
  Config config;
  config.word = kWord;
  config.n = n;
  config.primes.assign(q_.begin(), q_.end());
  engine_ = make_cpu_engine(config);
}

NttProduct::NttProduct(const NttRing& ring, std::span<const std::uint8_t> plus,
                       std::span<const std::uint8_t> minus)
    : ring_(ring) {
  const std::size_t n = ring.n_;
  require<InternalError>(plus.size() % n == 0 && plus.size() <= kMostSecrets * n &&
                             (minus.empty() || minus.size() == plus.size()),
                         "NttProduct: another number of bits");
  SecretVector<std::int64_t> wide(n);
  for (std::size_t c = 0; c < plus.size() / n; ++c) {
    for (std::size_t i = 0; i < n; ++i) {
      wide[i] = plus[c * n + i] - (minus.empty() ? 0 : minus[c * n + i]);
    }
    device::Buffer s = ring.engine_->pool()->allocate(2 * n * word_bytes(kWord), true);
    ring.engine_->ring().from_int64({s.data(), kPrimes, 1}, wide);
    ring.engine_->ring().ntt({s.data(), kPrimes, 1});
    secrets_.push_back(std::move(s));
  }
}

void NttProduct::add(std::span<std::uint64_t> acc, std::span<const std::uint64_t> a) const {
  const RingOps& ring = ring_.engine_->ring();
  const std::size_t n = acc.size(), bytes = 2 * n * word_bytes(kWord);
  require<InternalError>(a.size() == secrets_.size() * n, "NttProduct: another number of words");
  std::vector<device::Buffer> public_parts;
  std::vector<ConstView> left, right;
  for (std::size_t c = 0; c < secrets_.size(); ++c) {
    public_parts.push_back(ring_.engine_->pool()->allocate(bytes));
    const View part{public_parts.back().data(), kPrimes, 1};
    ring.crt(part, a.subspan(c * n, n), 1, CrtMethod::mod);
    ring.ntt(part);
    left.push_back(part);
    right.push_back({secrets_[c].data(), kPrimes, 1});
  }
  device::Buffer sum = ring_.engine_->pool()->allocate(bytes, true);
  const View product{sum.data(), kPrimes, 1};
  ring.inner_product(product, left, right);
  ring.intt(product);

  // x = r_0 + q_0 h with h = (r_1 - r_0) / q_0 modulo q_1. |x| is far below q_0 q_1 / 2, so x is
  // negative if h is above q_1 / 2.
  const auto* const r0 = static_cast<const std::uint64_t*>(sum.data());
  const auto* const r1 = r0 + n;
  const std::uint64_t q0 = ring_.q_[0], q1 = ring_.q_[1], whole = q0 * q1;  // modulo 2^64
  for (std::size_t t = 0; t < n; ++t) {
    const std::uint64_t d = r1[t] + 2 * q1 - r0[t];  // q_0 < 2 q_1: positive, and below 2^52
    // Shoup: d inverse - floor(d inverse_scaled / 2^64) q_1 is in [0, 2 q_1).
    const auto quotient = static_cast<std::uint64_t>((uint128{d} * ring_.inverse_scaled_) >> 64);
    std::uint64_t h = d * ring_.inverse_ - quotient * q1;
    h -= q1 & (0 - static_cast<std::uint64_t>(h >= q1));
    acc[t] += r0[t] + q0 * h - (whole & (0 - static_cast<std::uint64_t>(h > q1 / 2)));
  }
}

}  // namespace jali::backend::cpu
