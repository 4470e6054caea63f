// What a block does to rotate ciphertexts blindly and exactly, phase by phase; a test also runs
// this on the host.
//
// A phase is what all threads do between two barriers: threads.each(f) calls f(thread) of every
// thread and then waits for all. No word that a thread writes in a phase is read or written by
// another one in the same phase. So the order of the threads within a phase does not matter, which
// the test on the host checks.
//
// A step of torus.h: the digits of all polynomials are cut. For one prime after the other they are
// transformed, multiplied by the key, summed, and transformed back, which gives s_i of residues.h;
// s_i M / q_i is added to the accumulator and s_i / q_i to a sum of fractions. After the last prime
// v M is subtracted. All of it is modulo the torus's word, so that every word is that of the
// oracle. The factors X^e - 1 of multi-bit and block-binary rotations are taken into the key, point
// by point.
//
// The key lies as [step][prime][row][column][unit][point]: row = polynomial * levels + level of a
// GGSW ciphertext.
#pragma once

#include <cmath>
#include <cstddef>
#include <type_traits>

#include "jali/backend/cuda/exact_rotation/residues.h"
#include "jali/backend/cuda/rotation_batch.h"
#include "jali/backend/torus.h"

namespace jali::backend::cuda::exact {

constexpr u32 kMostUnits = 15, kMostThreads = 512;
constexpr u32 kLine = 32;  // words of a line of L2

/// What shapes a kernel's loops. If the compiler knows it, it unrolls the loops, and strides become
/// constants.
struct Sizes {
  u32 log_n, k1, levels;
  bool classic;  // the rotation

  JALI_HD constexpr u32 N() const { return 1u << log_n; }
  JALI_HD constexpr u32 rows() const { return k1 * levels; }
  bool operator==(const Sizes&) const = default;
};
/// The threads of a block: each takes 8 points of a row, if that makes not more than the most.
JALI_HD constexpr u32 threads_of(const Sizes& s) {
  const u32 eighths = s.rows() << (s.log_n - 3);
  return eighths < kMostThreads ? eighths : kMostThreads;
}
struct Shape : Sizes {
  u32 n, steps, group, units;
  u32 base_log;
  int torus;  // bits
  Rotation rotation;
  double mean;  // of a secret bit
  u32 primes;
  Prime prime[kMostPrimes];
  u64 product;  // of the primes, modulo 2^64

  JALI_HD u32 key_polynomials() const { return rows() * k1 * units; }  // of a step and a prime
};

/// Of every prime, N factors of the nodes of the tree, as many of the inverse transform, and the 2N
/// powers of psi.
struct Tables {
  const Factor *forward, *inverse;
  const u32* roots;
};

using Batch = RotationBatch<u32>;

/// The memory of a block.
template <class Acc>
struct Memory {
  u32* sums;  // k1 padded polynomials
  u32* rows;  // k1 levels padded polynomials
  Acc* acc;  // k1 N
  u32* fractions;  // k1 N
  std::int32_t* digits;  // k1 levels N
  u32* exponents;  // kMostUnits
  long long* rounding;
};

/// The modulus switch of a word to 2N (backend/tfhe_ops.h, switched).
struct Switch {
  u32 bits, half, turn;
  int log_many;
  JALI_HD Switch(const Shape& s, int many)
      : bits(32 - (s.log_n + 1) + static_cast<u32>(many)),
        half(1u << (bits - 1)),
        turn(2 * s.N() - 1),
        log_many(many) {}
  JALI_HD u32 operator()(u32 x) const { return ((x + half) >> bits << log_many) & turn; }
  /// What it rounds off, signed.
  JALI_HD long long error(u32 x) const {
    return static_cast<long long>((x + half) & (2 * half - 1)) - static_cast<long long>(half);
  }
};
/// floor(mean sum + 1/2), the product and the sum rounded each by itself.
JALI_HD u32 correction(double mean, long long sum) {
#ifdef __CUDA_ARCH__
  const double x = __dadd_rn(__dmul_rn(mean, static_cast<double>(sum)), 0.5);
#else
  // Two roundings: the library is compiled with -ffp-contract=off.
  const double x = mean * static_cast<double>(sum) + 0.5;
#endif
  return static_cast<u32>(static_cast<long long>(floor(x)));
}

/// Digits j = 1 .. levels of a word (torus.h), to to[(j - 1) stride].
template <class Acc>
JALI_HD void cut(std::int32_t* to, u32 stride, Acc word, u32 levels, u32 base_log) {
  const u32 used = levels * base_log;
  const u32 dropped = 8 * static_cast<u32>(sizeof(Acc)) - used;
  Acc rest = dropped == 0 ? word : static_cast<Acc>(word + (Acc{1} << (dropped - 1))) >> dropped;
  const Acc half = Acc{1} << (base_log - 1), mask = 2 * half - 1;
  for (u32 j = levels; j-- > 0;) {
    const Acc remainder = rest & mask;
    rest >>= base_log;
    const bool negative = remainder > half || (remainder == half && (rest & 1) != 0);
    to[j * stride] = static_cast<std::int32_t>(static_cast<long long>(remainder) -
                                               (negative ? static_cast<long long>(mask) + 1 : 0));
    rest += negative ? 1 : 0;
  }
}

/// Word i of X^(-body) times table `which`, which is polynomial c = i / N of the accumulator before
/// the first step.
template <class Acc>
JALI_HD Acc first_word(const Shape& s, const Batch& b, std::size_t which, u32 i, u32 body) {
  const u32 N = s.N(), c = i >> s.log_n, index = ((i & (N - 1)) + body) & (2 * N - 1);
  if (!b.encrypted && c + 1 != s.k1) return 0;
  const std::size_t polynomial = b.encrypted ? which * s.k1 + c : which;
  const Acc word = static_cast<const Acc*>(b.tables)[(polynomial << s.log_n) + (index & (N - 1))];
  return index >= N ? Acc{0} - word : word;
}

/// The number of a step's unit: exponents of its bits, summed over the set that the unit stands
/// for.
JALI_HD u32 unit_exponent(const Shape& s, const u32* bits, u32 unit, const Switch& switched) {
  if (s.rotation != Rotation::multi_bit) return switched(bits[unit]);
  u32 sum = 0;
  for (u32 j = 0; j < s.group; ++j) {
    if ((unit + 1) >> j & 1) sum += switched(bits[j]);
  }
  return sum & switched.turn;
}

/// The factors of 8 points from p on of a row's bundle: sums of (X^e - 1) times the key of a unit,
/// times 2^-32, canonical. key: of the row, the column, and point p.
JALI_HD void bundle(u32 (&out)[8], const Sizes& z, const Shape& s, const Prime& prime,
                    const u32* key, const u32* roots, const u32* exponents, u32 p) {
  const u32 turn = 2 * z.N() - 1, odd = 2 * reversed(p, z.log_n) + 1;  // point p is psi^odd
  u64 sum[8] = {};  // of at most 15 products, each below q^2
  JALI_NO_UNROLL
  for (u32 u = 0; u < s.units; ++u) {
    u32 words[8];
    load(words, key + (static_cast<std::size_t>(u) << z.log_n));
    JALI_UNROLL
    for (u32 i = 0; i < 8; ++i) {
      const u32 of_point = odd + (reversed(i, 3) << (z.log_n - 2));
      sum[i] += u64{roots[exponents[u] * of_point & turn] - 1} * words[i];
    }
  }
  JALI_UNROLL
  for (u32 i = 0; i < 8; ++i) out[i] = canonical(total(sum[i], prime), prime.q);
}

/// The sums over the rows of 8 points from p on, a multiple of 8, of column c, times 2^-32 (or, of
/// several units, 2^-64), in [0, 2q).
JALI_HD void product(u32 (&out)[8], const Sizes& z, const Shape& s, const Prime& prime,
                     const u32* rows, const u32* key, const u32* roots, const u32* exponents, u32 c,
                     u32 p) {
  const u32 units = z.classic ? 1 : s.units;
  const std::size_t next_row = static_cast<std::size_t>(z.k1 * units) << z.log_n;
  key += (static_cast<std::size_t>(c * units) << z.log_n) + p;
  rows += padded(p);
  u64 sum[8] = {};
  JALI_UNROLL
  for (u32 i = 0; i < 8; ++i) out[i] = 0;
  JALI_UNROLL
  for (u32 row = 0; row < z.rows(); ++row, key += next_row, rows += padded(z.N())) {
    u32 factor[8];
    if (z.classic) {
      load(factor, key);
    } else {
      bundle(factor, z, s, prime, key, roots, exponents, p);
    }
    const bool full = row % kProducts == kProducts - 1 || row + 1 == z.rows();
    JALI_UNROLL
    for (u32 i = 0; i < 8; ++i) {
      sum[i] += u64{rows[i]} * factor[i];
      if (full) {
        out[i] = reduced(out[i] + total(sum[i], prime), prime);  // below 2q + 17q
        sum[i] = 0;
      }
    }
  }
}

/// f of tasks 0 .. tasks - 1, of which each thread takes its part.
template <class Threads, class F>
JALI_HD void share(const Threads& threads, u32 thread, u32 tasks, const F& f) {
  JALI_UNROLL
  for (u32 first = 0; first < tasks; first += threads.count()) {
    if (first + thread < tasks) f(first + thread);
  }
}

/// One step of the accumulator, whose exponents are in place. At its end, when nobody reads them
/// any more, each thread does at_end(thread).
template <class Acc, class Threads, class AtEnd>
JALI_HD void take_step(const Sizes& z, const Shape& s, const Tables& tables, const u32* key,
                       const Memory<Acc>& at, const Threads& threads, const AtEnd& at_end) {
  const u32 N = z.N(), turn = 2 * N - 1, pad = padded(N), first = first_levels(z.log_n);
  const u32 log_tasks = z.log_n - first, log_eighth = z.log_n - 3;
  threads.each([&](u32 thread) {
    share(threads, thread, z.k1 << z.log_n, [&](u32 i) {
      const u32 c = i >> z.log_n, j = i & (N - 1);
      Acc word = at.acc[i];
      if (z.classic) {
        const u32 from = (j - at.exponents[0]) & turn;
        const Acc turned = at.acc[(c << z.log_n) + (from & (N - 1))];
        word = (from >= N ? Acc{0} - turned : turned) - word;
      }
      cut(at.digits + (static_cast<std::size_t>(c * z.levels) << z.log_n) + j, N, word, z.levels,
          s.base_log);
    });
  });
  const std::size_t key_words =
      static_cast<std::size_t>(z.rows() * z.k1 * (z.classic ? 1 : s.units))
      << z.log_n;  // of a prime
  for (u32 i = 0; i < s.primes; ++i, key += key_words) {
    const Prime& prime = s.prime[i];
    const u32 q = prime.q;
    const Factor* const forward = tables.forward + (static_cast<std::size_t>(i) << z.log_n);
    const Factor* const inverse = tables.inverse + (static_cast<std::size_t>(i) << z.log_n);
    const u32* const roots = tables.roots + (static_cast<std::size_t>(2 * i) << z.log_n);

    threads.each([&](u32 thread) {
      share(threads, thread, static_cast<u32>(key_words / kLine),
            [&](u32 line) { threads.prefetch(key + std::size_t{kLine} * line); });
      share(threads, thread, z.rows() << log_tasks, [&](u32 t) {
        const u32 row = t >> log_tasks;
        const std::int32_t* const from = at.digits + (static_cast<std::size_t>(row) << z.log_n);
        u32* const to = at.rows + static_cast<std::size_t>(row) * pad;
        first_pass<false>(
            forward, prime, z.log_n, t & ((1u << log_tasks) - 1),
            [&](u32 j, u32) { return static_cast<u32>(from[j]) + prime.lift; },
            [&](u32, u32 place, u32 x) { to[place] = reduced(x, prime); });
      });
    });
    JALI_UNROLL
    for (u32 depth = first; depth < z.log_n; depth += 3) {  // 15 levels at most, hence below 32 q
      threads.each([&](u32 thread) {
        share(threads, thread, z.rows() << log_eighth, [&](u32 t) {
          u32* const row = at.rows + static_cast<std::size_t>(t >> log_eighth) * pad;
          pass<3, false>(
              forward, prime, z.log_n, depth, t & ((1u << log_eighth) - 1),
              [&](u32, u32 place) { return row[place]; },
              [&](u32, u32 place, u32 x) { row[place] = x; });
        });
      });
    }
    // The products, and the last levels of the tree upwards.
    threads.each([&](u32 thread) {
      share(threads, thread, z.k1 << log_eighth, [&](u32 t) {
        const u32 c = t >> log_eighth, node = t & ((1u << log_eighth) - 1), p = 8 * node;
        u32 x[8];
        product(x, z, s, prime, at.rows, key, roots, at.exponents, c, p);
        levels<3, true>(x, inverse, prime, z.log_n - 3, node);
        u32* const to = at.sums + c * pad + padded(p);
        JALI_UNROLL
        for (u32 j = 0; j < 8; ++j) to[j] = x[j];
      });
    });
    JALI_UNROLL
    for (u32 depth = z.log_n - 3; depth > first; depth -= 3) {
      threads.each([&](u32 thread) {
        share(threads, thread, z.k1 << log_eighth, [&](u32 t) {
          u32* const column = at.sums + (t >> log_eighth) * pad;
          pass<3, true>(
              inverse, prime, z.log_n, depth - 3, t & ((1u << log_eighth) - 1),
              [&](u32, u32 place) { return column[place]; },
              [&](u32, u32 place, u32 x) { column[place] = x; });
        });
      });
    }
    const auto back = [&](u32 t, auto last) {  // the last pass, and its results to words
      const u32 c = t >> log_tasks;
      const u32* const column = at.sums + c * pad;
      Acc* const acc = at.acc + (static_cast<std::size_t>(c) << z.log_n);
      u32* const fractions = at.fractions + (static_cast<std::size_t>(c) << z.log_n);
      first_pass<true>(
          inverse, prime, z.log_n, t & ((1u << log_tasks) - 1),
          [&](u32, u32 place) { return column[place]; },
          [&](u32 j, u32, u32 x) {
            const u32 residue = canonical(x, q);
            const u32 sum = (i == 0 ? 0 : fractions[j]) + fraction(residue, prime);
            Acc word = acc[j] + static_cast<Acc>(residue * prime.others);
            if constexpr (decltype(last)::value) {
              word -= static_cast<Acc>(nearest_integer(sum) * s.product);
            } else {
              fractions[j] = sum;
            }
            acc[j] = word;
          });
    };
    threads.each([&](u32 thread) {
      const u32 tasks = z.k1 << log_tasks;
      if (i + 1 == s.primes) {
        at_end(thread);
        share(threads, thread, tasks, [&](u32 t) { back(t, std::true_type{}); });
      } else {
        share(threads, thread, tasks, [&](u32 t) { back(t, std::false_type{}); });
      }
    });
  }
}

/// Modulus switch, blind rotation and extraction of one ciphertext. z: the sizes of s.
template <class Acc, class Threads>
JALI_HD void rotate(const Sizes& z, const Shape& s, const Tables& tables, const Batch& b,
                    std::size_t ciphertext, const Memory<Acc>& at, const Threads& threads) {
  const u32 N = s.N();
  const Switch switched(s, b.log_many);
  const u32* const in = b.in + ciphertext * (s.n + 1);
  const auto set_exponents = [&](u32 thread, u32 step) {
    if (thread < s.units && step < s.steps) {
      at.exponents[thread] = unit_exponent(s, in + step * s.group, thread, switched);
    }
  };
  threads.each([&](u32 thread) {
    if (thread == 0) *at.rounding = 0;
    set_exponents(thread, 0);
  });
  threads.each([&](u32 thread) {
    long long sum = 0;
    for (u32 i = thread; i < s.n; i += threads.count()) sum += switched.error(in[i]);
    threads.add(at.rounding, sum);
  });
  threads.each([&](u32 thread) {
    const u32 body = switched(in[s.n] - correction(s.mean, *at.rounding));
    const std::size_t which = b.of_input == nullptr ? 0 : b.of_input[ciphertext];
    for (u32 i = thread; i < s.k1 << s.log_n; i += threads.count()) {
      at.acc[i] = first_word<Acc>(s, b, which, i, body);
    }
  });
  const std::size_t step_words = static_cast<std::size_t>(s.primes) * s.key_polynomials()
                                 << s.log_n;
  for (u32 step = 0; step < s.steps; ++step) {
    take_step(z, s, tables, b.key + step * step_words, at, threads,
              [&](u32 thread) { set_exponents(thread, step + 1); });
  }
  Acc* const out = static_cast<Acc*>(b.out);
  const u32 large = (s.k1 - 1) * N;
  threads.each([&](u32 thread) {
    if (b.glwe) {
      for (u32 i = thread; i < s.k1 * N; i += threads.count())
        out[ciphertext * s.k1 * N + i] = at.acc[i];
      return;
    }
    for (u32 j = 0; j < 1u << b.log_many; ++j) {
      Acc* const to = out + ((ciphertext << b.log_many) + j) * (large + 1);
      for (u32 i = thread; i < large; i += threads.count()) {
        const u32 c = i >> s.log_n, h = i & (N - 1);
        const Acc word = at.acc[(c << s.log_n) + ((j - h) & (N - 1))];
        to[i] = h > j ? Acc{0} - word : word;
      }
      if (thread == 0) to[large] = at.acc[large + j];
    }
  });
}

/// One polynomial of the key modulo prime i: words of the torus in standard form to points, times
/// Prime::into_key. points: of a padded polynomial. polynomial: its number in the GGSW ciphertexts
/// of the steps from `first` on; the first word of these is at `ggsws`.
template <class Threads>
JALI_HD void prepare(const Shape& s, const Tables& tables, u32* key, const void* ggsws, u32 first,
                     std::size_t polynomial, u32 i, u32* points, const Threads& threads) {
  const Prime& prime = s.prime[i];
  const Factor* const forward = tables.forward + (static_cast<std::size_t>(i) << s.log_n);
  const u32 first_count = first_levels(s.log_n), log_eighth = s.log_n - 3;
  threads.each([&](u32 thread) {
    for (u32 t = thread; t < 1u << (s.log_n - first_count); t += threads.count()) {
      first_pass<false>(
          forward, prime, s.log_n, t,
          [&](u32 j, u32) {
            const std::size_t at = (polynomial << s.log_n) + j;
            const std::int64_t word = s.torus == 64 ? static_cast<const std::int64_t*>(ggsws)[at]
                                                    : static_cast<const std::int32_t*>(ggsws)[at];
            return times(residue(word, prime.q), prime.into_key, prime.q);
          },
          [&](u32, u32 place, u32 x) { points[place] = reduced(x, prime); });
    }
  });
  // ((step units + unit) rows + row) k1 + column, to [step][prime][row][column][unit]
  const std::size_t column = polynomial % s.k1, row = polynomial / s.k1 % s.rows();
  const std::size_t unit = polynomial / s.k1 / s.rows() % s.units;
  const std::size_t step = first + polynomial / s.k1 / s.rows() / s.units;
  const std::size_t place =
      (((step * s.primes + i) * s.rows() + row) * s.k1 + column) * s.units + unit;
  u32* const to = key + (place << s.log_n);
  for (u32 depth = first_count; depth < s.log_n; depth += 3) {
    const bool last = depth + 3 == s.log_n;
    threads.each([&](u32 thread) {
      for (u32 t = thread; t < 1u << log_eighth; t += threads.count()) {
        pass<3, false>(
            forward, prime, s.log_n, depth, t, [&](u32, u32 place) { return points[place]; },
            [&](u32 j, u32 place, u32 x) {
              if (last) {
                to[j] = canonical(reduced(x, prime), prime.q);
              } else {
                points[place] = x;
              }
            });
      }
    });
  }
}

}  // namespace jali::backend::cuda::exact
