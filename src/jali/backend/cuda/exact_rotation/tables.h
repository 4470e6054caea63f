// Primes, tables and memory of exact rotations (program.h), made on the host.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "jali/arith/modulus.h"
#include "jali/arith/primes.h"
#include "jali/backend/cuda/exact_rotation/program.h"
#include "jali/backend/tfhe_config.h"
#include "jali/base/error.h"

namespace jali::backend::cuda::exact {

/// The primes: the largest below 2^27 that have a transform of every size up to 2^16.
inline std::array<u32, kMostPrimes> primes() {
  std::array<u32, kMostPrimes> out{};
  u64 bound = u64{1} << 27;
  for (u32& q : out) {
    bound = arith::prime_below(bound, u64{1} << 17, u64{1} << 26).value();
    q = static_cast<u32>(bound);
  }
  return out;
}

/// What no coefficient of a step's product exceeds in absolute value: (k + 1) l N products of a
/// digit, of at most 2^(g-1), and a word of the key, of at most 2^(w-1). Of several units, each of
/// which X^e - 1 at most doubles, their sum. At most 2^119.
inline double largest_product(const TfheConfig& config) {
  const double terms = static_cast<double>(config.k.value + 1) * config.rotation_gadget.levels *
                       static_cast<double>(config.N.value);
  const double units =
      config.rotation == Rotation::classic ? 1 : 2 * static_cast<double>(config.units());
  return std::ldexp(terms * units,
                    config.rotation_gadget.base_log - 1 + torus_bits(config.torus) - 1);
}
/// The fewest primes whose product M is above twice that. The margin is more than what residues.h
/// asks for, 14 * 2^-26 M, and the rounding of this computation.
inline u32 prime_count(const TfheConfig& config) {
  const double least = 2 * largest_product(config) * (1 + 0x1p-20);
  double product = 1;
  u32 count = 0;
  for (const u32 q : primes()) {
    product *= q;
    ++count;
    if (product > least) return count;
  }
  throw InternalError("five primes of 27 bits hold every product of TFHE, but not this one");
}

inline Shape shape(const TfheConfig& config) {
  Shape s{};
  while (std::size_t{1} << s.log_n < config.N.value) ++s.log_n;
  s.k1 = static_cast<u32>(config.k.value + 1);
  s.n = static_cast<u32>(config.n.value);
  s.steps = static_cast<u32>(config.steps());
  s.group = static_cast<u32>(config.group);
  s.units = static_cast<u32>(config.units());
  s.levels = static_cast<u32>(config.rotation_gadget.levels);
  s.base_log = static_cast<u32>(config.rotation_gadget.base_log);
  s.torus = torus_bits(config.torus);
  s.rotation = config.rotation;
  s.classic = config.rotation == Rotation::classic;
  s.mean = config.mean_bit;
  s.primes = prime_count(config);
  s.product = 1;
  const auto all = primes();
  for (u32 i = 0; i < s.primes; ++i) s.product *= all[i];
  for (u32 i = 0; i < s.primes; ++i) {
    const arith::Modulus mod(all[i]);
    Prime& p = s.prime[i];
    p.q = all[i];
    for (u32 j = 0; j < 3; ++j) p.bound[j] = (2 * p.q) << j;
    p.inverse = static_cast<u32>(arith::Modulus(u64{1} << 32).inverse(p.q));
    p.share = static_cast<u32>((u64{1} << 58) / p.q);
    p.unit = static_cast<u32>((u64{1} << 32) / p.q);
    p.lift = 9 * p.q;
    p.others = 1;
    // 1 / (N M / q), times the 2^32 of each sum in Montgomery's form
    u64 divisor = config.N.value % p.q;
    for (u32 j = 0; j < s.primes; ++j) {
      if (j == i) continue;
      p.others *= all[j];
      divisor = mod.mul(divisor, all[j] % p.q);
    }
    const u64 forms = mod.pow(2, config.rotation == Rotation::classic ? 32 : 64);
    const u64 factor = mod.mul(mod.inverse(divisor), forms);
    p.into_key = {static_cast<u32>(factor), static_cast<u32>((factor << 32) / p.q)};
  }
  return s;
}

/// The tables of Tables, of all primes.
struct HostTables {
  std::vector<Factor> forward, inverse;
  std::vector<u32> roots;
};
inline HostTables host_tables(const Shape& s) {
  HostTables out;
  const u32 N = s.N();
  for (u32 i = 0; i < s.primes; ++i) {
    const u64 q = s.prime[i].q;
    const arith::Modulus mod(q);
    const u64 psi = arith::primitive_root(q, 2 * u64{N});
    std::vector<u64> power(2 * N, 1);
    for (u32 e = 1; e < 2 * N; ++e) power[e] = mod.mul(power[e - 1], psi);
    const auto factor = [&](u64 w) {
      return Factor{static_cast<u32>(w), static_cast<u32>((w << 32) / q)};
    };
    for (u32 j = 0; j < N; ++j) {
      const u32 e = reversed(j, s.log_n);
      out.forward.push_back(factor(power[e]));
      out.inverse.push_back(factor(power[(2 * N - e) % (2 * N)]));
    }
    for (const u64 w : power) out.roots.push_back(static_cast<u32>(w));
  }
  return out;
}

inline std::size_t key_bytes(const Shape& s) {
  return static_cast<std::size_t>(s.steps) * s.primes * s.key_polynomials() * s.N() * sizeof(u32);
}

/// Where the arrays of a block lie: those that are used most come first, each in shared memory if
/// it still fits, else in the block's part of the device's memory.
struct Layout {
  enum Array : std::uint8_t { sums, rows, acc, fractions, digits };
  static constexpr std::size_t kArrays = 5;
  bool in_shared[kArrays];
  std::size_t offset[kArrays];  // bytes, in multiples of 16
  std::size_t shared_bytes, scratch_bytes;
};
/// shared: bytes that a block may have.
inline Layout layout(const Shape& s, std::size_t shared) {
  const std::size_t N = s.N(), words = s.k1 * N, pad = padded(s.N());
  const std::size_t bytes[Layout::kArrays] = {s.k1 * pad * 4, s.rows() * pad * 4,
                                              words * static_cast<std::size_t>(s.torus) / 8,
                                              words * 4, s.rows() * N * 4};
  Layout out{};
  for (std::size_t i = 0; i < Layout::kArrays; ++i) {
    out.in_shared[i] = out.shared_bytes + bytes[i] <= shared;
    std::size_t& end = out.in_shared[i] ? out.shared_bytes : out.scratch_bytes;
    out.offset[i] = end;
    end += bytes[i];  // a multiple of 128, because N is one of 256
  }
  return out;
}

/// Blocks that rotate at once, each with a part of the scratch memory: `each` on a multiprocessor,
/// but no more than ciphertexts, and no more than fit into 4 GiB of scratch memory, of which one
/// block of the largest configuration takes 0.6.
inline u32 blocks_of(const Layout& layout, u32 multiprocessors, u32 each, std::size_t count) {
  std::size_t blocks = std::min<std::size_t>(std::size_t{multiprocessors} * each, count);
  if (layout.scratch_bytes > 0) {
    blocks = std::min(blocks, (std::size_t{4} << 30) / layout.scratch_bytes);
  }
  return static_cast<u32>(std::max<std::size_t>(blocks, 1));
}

}  // namespace jali::backend::cuda::exact
