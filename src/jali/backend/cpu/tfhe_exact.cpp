// Blind rotations by number-theoretic transforms modulo two primes p below 2^61.
//
// A coefficient of a product is at most P N 2^(g-1) 2^63 in absolute value, with P = (k + 1) l. For
// g <= 31, N <= 2^16 and P < 2^10 that is below 2^119 < p_0 p_1 / 2, so that the signed integer
// comes back from its residues, and with it the word modulo 2^64, bit for bit. (One prime of 64
// bits holds the products of no gadget in use.)
#include <algorithm>
#include <vector>

#include "jali/arith/modulus.h"
#include "jali/arith/primes.h"
#include "jali/backend/cpu/isa.h"
#include "jali/backend/cpu/prime_tables.h"
#include "jali/backend/cpu/tfhe_rotator.h"
#include "jali/base/error.h"

namespace jali::backend::cpu {
namespace {

class ExactRotator final : public Rotator {
 public:
  ExactRotator(const TfheConfig& config, const TfheKernels& kernels)
      : Rotator(config),
        tfhe_(kernels),
        kernels_(select_kernels(kernels.isa, Word::w64)),
        rule_(config.rotation_gadget) {
    const std::size_t bytes = (PrimeTables::table_bytes(N_, kernels_) + 63) / 64 * 64;
    tables_ = AlignedBlock(device::host_memory(), 2 * bytes);
    arith::PrimesNear primes((std::uint64_t{1} << 61) - 1, 2 * N_, std::uint64_t{1} << 60,
                             std::uint64_t{1} << 61);
    for (std::size_t i = 0; i < 2; ++i) {
      primes_[i] = std::make_unique<const PrimeTables>(primes.next().value(), N_, kernels_,
                                                       tables_.data() + i * bytes);
    }
    const std::uint64_t p0 = primes_[0]->row.q, p1 = primes_[1]->row.q;
    inverse_ = primes_[1]->mod.inverse(p0 % p1);
    product_ = static_cast<arith::uint128>(p0) * p1;
  }

  // Of each polynomial, N residues modulo either prime.
  std::size_t step_bytes() const override { return units_ * digits_ * rows_ * 2 * N_ * 8; }
  std::size_t prepare_scratch_bytes() const override { return 0; }
  void prepare(std::byte* step_key, std::size_t u, std::size_t c, std::size_t o,
               const std::uint64_t* words, std::byte*) const override {
    for (std::size_t i = 0; i < 2; ++i) {
      auto* const to = reinterpret_cast<std::uint64_t*>(step_key) + at(u, o, i, c);
      kernels_.from_int64(to, reinterpret_cast<const std::int64_t*>(words), N_, primes_[i]->row);
      kernels_.ntt(to, to, primes_[i]->ntt);
    }
  }

  std::size_t scratch_bytes() const override {
    // Digits of a polynomial, as 32 and as 64 bits; their residues; the products' residues; the
    // difference or the sum.
    return N_ * 8 * (2 * levels() + 2 * digits_ + 2 + rows_);
  }

  void rotate(std::uint64_t* accs, const std::uint32_t* exponents, std::size_t count,
              const std::byte* key, std::byte* scratch) const override {
    std::vector<std::uint32_t> units(units_);
    const std::size_t acc_words = rows_ * acc_stride(N_);
    for (std::size_t i = 0; i < steps_; ++i) {
      const auto* const step = reinterpret_cast<const std::uint64_t*>(key + i * step_bytes());
      for (std::size_t c = 0; c < count; ++c) {
        unit_exponents(units.data(), exponents + c * (n_ + 1) + i * group_);
        take(accs + c * acc_words, units.data(), step, scratch);
      }
    }
  }

 private:
  std::size_t levels() const { return static_cast<std::size_t>(rule_.levels); }
  std::size_t at(std::size_t u, std::size_t o, std::size_t prime, std::size_t c) const {
    return (((u * rows_ + o) * 2 + prime) * digits_ + c) * N_;
  }

  /// out += (X^e - 1) in, or out = it.
  void add_turned(std::uint64_t* out, const std::uint64_t* in, std::size_t e, bool add) const {
    for (std::size_t i = 0; i < N_; ++i) {
      const std::size_t from = (i + 2 * N_ - e) % (2 * N_);
      const std::uint64_t turned = from < N_ ? in[from] : 0 - in[from - N_];
      out[i] = (add ? out[i] : 0) + turned - in[i];
    }
  }

  void take(std::uint64_t* acc, const std::uint32_t* exponents, const std::uint64_t* key,
            std::byte* scratch) const {
    const std::size_t stride = acc_stride(N_), levels = this->levels();
    auto* const digits32 = reinterpret_cast<std::int32_t*>(scratch);
    auto* const digits64 = reinterpret_cast<std::int64_t*>(scratch) + levels * N_;
    auto* const residues = reinterpret_cast<std::uint64_t*>(scratch) + 2 * levels * N_;
    std::uint64_t* const sums = residues + 2 * digits_ * N_;
    std::uint64_t* const words = sums + 2 * N_;
    const bool classic = kind_ == Rotation::classic;
    for (std::size_t row = 0; row < rows_; ++row) {
      const std::uint64_t* from = acc + row * stride;
      if (classic) {
        add_turned(words, from, exponents[0], false);
        from = words;
      }
      tfhe_.digits(digits32, from, N_, rule_);
      for (std::size_t j = 0; j < levels; ++j) {
        for (std::size_t i = 0; i < N_; ++i) digits64[j * N_ + i] = digits32[i * levels + j];
        for (std::size_t prime = 0; prime < 2; ++prime) {
          std::uint64_t* const to = residues + (prime * digits_ + row * levels + j) * N_;
          kernels_.from_int64(to, digits64 + j * N_, N_, primes_[prime]->row);
          kernels_.ntt(to, to, primes_[prime]->ntt);
        }
      }
    }
    std::fill(words, words + rows_ * N_, 0);
    for (std::size_t u = 0; u < units_; ++u) {
      if (exponents[u] == 0) continue;  // X^0 - 1 = 0
      for (std::size_t o = 0; o < rows_; ++o) {
        for (std::size_t prime = 0; prime < 2; ++prime) {
          product(sums + prime * N_, residues + prime * digits_ * N_, key + at(u, o, prime, 0),
                  *primes_[prime]);
        }
        // The word of the signed integer, into the place of its first residue.
        for (std::size_t i = 0; i < N_; ++i) sums[i] = word(sums[i], sums[N_ + i]);
        std::uint64_t* const to = words + o * N_;
        if (classic) {
          std::copy(sums, sums + N_, to);
        } else {
          add_turned(to, sums, exponents[u], true);
        }
      }
    }
    for (std::size_t row = 0; row < rows_; ++row) {
      std::uint64_t* const p = acc + row * stride;
      for (std::size_t i = 0; i < N_; ++i) p[i] += words[row * N_ + i];
      pad(p, N_);
    }
  }

  /// Coefficients of the sum of products modulo a prime.
  void product(std::uint64_t* out, const std::uint64_t* digits, const std::uint64_t* key,
               const PrimeTables& prime) const {
    constexpr std::size_t kAtOnce = 15;
    for (std::size_t first = 0; first < digits_; first += kAtOnce) {
      const std::size_t count = std::min(kAtOnce, digits_ - first);
      const void *a[kAtOnce], *b[kAtOnce];
      for (std::size_t c = 0; c < count; ++c) {
        a[c] = digits + (first + c) * N_;
        b[c] = key + (first + c) * N_;
      }
      kernels_.dot(out, a, b, count, first == 0 ? nullptr : out, N_, prime.row);
    }
    kernels_.intt(out, out, prime.ntt, prime.unscaled);
  }

  /// The integer x in (-p_0 p_1 / 2, p_0 p_1 / 2) of two residues, modulo 2^64: x = r_0 + p_0 ((r_1
  /// - r_0) / p_0 mod p_1).
  std::uint64_t word(std::uint64_t r0, std::uint64_t r1) const {
    const arith::Modulus& mod = primes_[1]->mod;
    const std::uint64_t quotient = mod.mul(mod.sub(r1, mod.reduce(r0)), inverse_);
    const arith::uint128 x = r0 + static_cast<arith::uint128>(primes_[0]->row.q) * quotient;
    return static_cast<std::uint64_t>(x > product_ / 2 ? x - product_ : x);
  }

  const TfheKernels tfhe_;
  const RowKernels kernels_;
  const DigitRule rule_;
  AlignedBlock tables_;
  std::unique_ptr<const PrimeTables> primes_[2];
  std::uint64_t inverse_ = 0;  // of p_0 modulo p_1
  arith::uint128 product_ = 0;
};

}  // namespace

std::unique_ptr<Rotator> make_exact_rotator(const TfheConfig& config, const TfheKernels& kernels) {
  return std::make_unique<ExactRotator>(config, kernels);
}

}  // namespace jali::backend::cpu
