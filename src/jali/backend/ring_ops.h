// Operations of the ring Z_Q[X]/(X^N + 1) in RNS form: transforms, element-wise work,
// automorphisms, sampling, and the way between integers and residues. No key, no ciphertext. See
// table.h and view.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/backend/table.h"
#include "jali/backend/view.h"

namespace jali::backend {

/// Distributions of secrets and errors.
enum class Small { ternary, error };

enum class CrtMethod { mod, mul };
/// automatic: the engine's own choice. All methods give the same integers.
enum class IcrtMethod { automatic, product_sum, garner };

class RingOps : public Table {
 public:
  using Table::Table;

  /// psi of a prime: its primitive 2N-th root, arith::primitive_root(q, 2N): the smallest of them.
  virtual std::uint64_t root(PrimeIndex prime) const = 0;

  // --- transforms, in place -----------------------------------------------------------------
  virtual void ntt(View x) const = 0;  // coefficient -> NTT form
  virtual void intt(View x) const = 0;  // NTT -> coefficient form

  // --- element-wise; b may be broadcast ------------------------------------------------------
  virtual void add(View out, ConstView a, ConstView b) const = 0;
  virtual void sub(View out, ConstView a, ConstView b) const = 0;
  virtual void neg(View out, ConstView a) const = 0;
  virtual void mul(View out, ConstView a, ConstView b) const = 0;
  /// out = a * s[i] on limb i; s[i] < q_i, one a limb.
  virtual void mul_scalar(View out, ConstView a, std::span<const std::uint64_t> s) const = 0;
  /// acc += a * s[i] on limb i.
  virtual void mul_scalar_add(View acc, ConstView a, std::span<const std::uint64_t> s) const = 0;
  /// out = a + s[i] on limb i at every index (NTT form: adds the constant polynomial s).
  virtual void add_scalar(View out, ConstView a, std::span<const std::uint64_t> s) const = 0;
  /// out = sum_k a[k] * b[k]; each b[k] may be broadcast; out is none of the inputs.
  virtual void inner_product(View out, std::span<const ConstView> a,
                             std::span<const ConstView> b) const = 0;

  /// The automorphism X -> X^g modulo 2N, g odd, NTT form in and out; out is not in.
  virtual void automorphism_ntt(View out, ConstView in, std::uint64_t g) const = 0;

  // --- random residues ------------------------------------------------------------------------
  /// Uniform residues expanded from a seed: row (i, b) is random::sample_uniform from stream
  /// (index + b) << 16 | primes[i] of the seed. Every engine gives the same: a seed stands for its
  /// residues on the wire.
  virtual void sample_uniform(View out, std::span<const std::uint8_t, 32> seed,
                              std::uint32_t index) const;
  /// Secret integers expanded from a seed, coefficient form: row (i, b) is values b N .. (b + 1) N
  /// of random::sample_ternary or random::sample_error from `stream` of the seed, modulo primes[i].
  virtual void sample_small(View out, Small kind, std::span<const std::uint8_t, 32> seed,
                            std::uint64_t stream) const;
  /// The same: row (i, b) is random::sample_sparse_ternary from stream `stream` + b.
  virtual void sample_sparse(View out, std::size_t weight, std::span<const std::uint8_t, 32> seed,
                             std::uint64_t stream) const;

  // --- between integers and residues ----------------------------------------------------------
  /// out (coefficient form) = polynomials in X^(N/n) with signed 64-bit integers: coefficient k N/n
  /// of vector b is c[b * n + k] mod q, and all others are 0. c holds batch * n integers, for an n
  /// that divides N. It lies in host memory or in the engine's memory().
  virtual void from_int64(View out, std::span<const std::int64_t> c) const = 0;
  /// out (coefficient form) = c[b * N + k] mod q for doubles that hold integers of any size (|c| <
  /// 2^1000).
  virtual void from_double(View out, std::span<const double> c) const = 0;

  /// CRT: out (coefficient form) = integers mod q. The integers are unsigned, of `words` 64-bit
  /// words each, little end first, laid out (word, batch, coefficient). GIF-FHE section V: mod =
  /// Horner with Barrett (CRT-MOD), mul = inner product with precomputed powers of two (CRT-MUL).
  /// The integers, here and in icrt, lie in host memory or in the engine's memory().
  virtual void crt(View out, std::span<const std::uint64_t> integers, std::size_t words,
                   CrtMethod method) const = 0;
  /// Inverse CRT of coefficient form to integers in [0, Q), Q the product of x's primes; layout as
  /// in crt; words must hold Q. product_sum: sum of (Q/q_i) [x_i (Q/q_i)^-1] reduced mod Q
  /// (ICRT-C); garner: mixed radix (ICRT-G); automatic: whichever is faster on this engine.
  virtual void icrt(std::span<std::uint64_t> integers, std::size_t words, ConstView x,
                    IcrtMethod method) const = 0;
};

}  // namespace jali::backend
