// Kernels of automorphisms in NTT form, and of their products with keys.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "jali/backend/cpu/ntt_impl.h"
#include "jali/backend/cpu/row_base.h"

namespace jali::backend::cpu {

template <class V>
struct RotationRows : RowBase<V> {
  using typename RowBase<V>::T;
  using typename RowBase<V>::R;
  using typename RowBase<V>::Acc;
  using typename RowBase<V>::Prime;
  using RowBase<V>::W;
  using RowBase<V>::kMaxProducts;
  using RowBase<V>::acc_reduce;
  using RowBase<V>::row;

  /// sigma_g in NTT form. Index k = W u + l holds the value at psi^(2 brv(k) + 1), and brv(k) =
  /// brv(u) + brv_W(l) N / W. The exponent g (2 brv(k) + 1) mod 2N is therefore g (2 brv(u) + 1) +
  /// (2N / W) g brv_W(l): all lanes of a vector come from one vector of the source, its place
  /// given by the low part of g (2 brv(u) + 1) and its permutation by c, the high part.
  struct Automorphism {
    std::uint64_t g;
    std::uint64_t mask;  // 2N - 1
    int shift;  // log2(2N / W)
    const std::uint32_t* rev;
    T lanes[W][W];  // by c: the source lane of each lane

    JALI_INLINE Automorphism(std::uint64_t g_in, const std::uint32_t* rev_in, std::size_t n)
        : g(g_in & (2 * n - 1)), mask(2 * n - 1), rev(rev_in) {
      shift = Ntt<V>::log2(2 * n / W);
      for (std::size_t c = 0; c < W; ++c) {
        for (std::size_t l = 0; l < W; ++l) {
          lanes[c][l] = static_cast<T>(reverse_lane((c + g * reverse_lane(l)) % W));
        }
      }
    }
    JALI_INLINE static std::size_t reverse_lane(std::size_t l) {
      std::size_t r = 0;
      for (int i = 0; i < Ntt<V>::kLogLanes; ++i)
        r |= ((l >> i) & 1) << (Ntt<V>::kLogLanes - 1 - i);
      return r;
    }
    struct Place {
      std::size_t offset;  // of the source vector
      std::size_t c;
    };
    JALI_INLINE Place place(std::size_t u) const {
      const std::uint64_t e = (g * (2 * std::uint64_t{rev[u]} + 1)) & mask;
      const std::uint64_t low = e & ((std::uint64_t{1} << shift) - 1);
      return {W * rev[low >> 1], static_cast<std::size_t>(e >> shift)};
    }
    JALI_INLINE R load(const T* in, Place at) const {
      return V::permute(V::load(in + at.offset), V::load(lanes[at.c]));
    }
  };

  static void automorphism(void* out, const void* in, std::uint64_t g, const std::uint32_t* rev,
                           std::size_t n) {
    const Automorphism sigma(g, rev, n);
    for (std::size_t u = 0; u < n / W; ++u) {
      V::store(row(out) + W * u, sigma.load(row(in), sigma.place(u)));
    }
  }

  template <class Load>
  JALI_INLINE static void key_dot_at(std::size_t k, void* out0, void* out1, const void* const* ext,
                                     const void* const* key0, const void* const* key1,
                                     std::size_t count, bool accumulate, const Prime& p,
                                     const Load& load) {
    Acc r0 = V::acc_set(accumulate ? V::load(row(out0) + k) : V::set1(0));
    Acc r1 = V::acc_set(accumulate ? V::load(row(out1) + k) : V::set1(0));
    for (std::size_t i = 0, left = kMaxProducts; i < count; ++i, --left) {
      if (left == 0) {
        r0 = V::acc_set(acc_reduce(r0, p));
        r1 = V::acc_set(acc_reduce(r1, p));
        left = kMaxProducts;
      }
      const R x = load(row(ext[i]));
      V::acc_mul(r0, x, V::load(row(key0[i]) + k));
      V::acc_mul(r1, x, V::load(row(key1[i]) + k));
    }
    V::store(row(out0) + k, acc_reduce(r0, p));
    V::store(row(out1) + k, acc_reduce(r1, p));
  }

  // A few vectors of every row in turn: whole cache lines one after the other, sums in registers.
  // The x are read once from memory, in more streams than the hardware foresees.
  static void dot_pairs(void* out0, void* out1, const void* const* x, const void* const* y0,
                        const void* const* y1, std::size_t count, bool accumulate, std::size_t n,
                        const Prime& p) {
    constexpr std::size_t kVectors = W * sizeof(T) == 64 ? 4 : 1;
    constexpr std::size_t kAhead = 8;
    for (std::size_t k = 0; k < n; k += kVectors * W) {
      Acc r0[kVectors], r1[kVectors];
      for (std::size_t u = 0; u < kVectors; ++u) {
        const std::size_t at = k + u * W;
        r0[u] = V::acc_set(accumulate ? V::load(row(out0) + at) : V::set1(0));
        r1[u] = V::acc_set(accumulate ? V::load(row(out1) + at) : V::set1(0));
      }
      for (std::size_t i = 0, left = kMaxProducts; i < count; ++i, --left) {
        if (left == 0) {
          for (std::size_t u = 0; u < kVectors; ++u) {
            r0[u] = V::acc_set(acc_reduce(r0[u], p));
            r1[u] = V::acc_set(acc_reduce(r1[u], p));
          }
          left = kMaxProducts;
        }
        const T* xi = row(x[i]) + k;
        const T* y0i = row(y0[i]) + k;
        const T* y1i = row(y1[i]) + k;
        for (std::size_t u = 0; u < kVectors; ++u) {
          __builtin_prefetch(xi + (kAhead * kVectors + u) * W);
          const R v = V::load(xi + u * W);
          V::acc_mul(r0[u], v, V::load(y0i + u * W));
          V::acc_mul(r1[u], v, V::load(y1i + u * W));
        }
      }
      for (std::size_t u = 0; u < kVectors; ++u) {
        V::store(row(out0) + k + u * W, acc_reduce(r0[u], p));
        V::store(row(out1) + k + u * W, acc_reduce(r1[u], p));
      }
    }
  }

  // A few rows at a time, each a run of whole cache lines that the hardware fetches ahead; the sums
  // stay in the first-level cache.
  static void weighted_dot(void* out0, void* out1, const void* const* x, const void* const* y0,
                           const void* const* y1, std::size_t count, bool accumulate, std::size_t n,
                           const PrimeRow& prime) {
    const Prime p(prime);
    constexpr std::size_t kVectors = kWeightedBytes / (W * sizeof(T)), kRows = 4;
    static_assert(kMaxProducts >= kRows);
    const std::size_t vectors = n / W;
    Acc r0[kVectors], r1[kVectors];
    for (std::size_t u = 0; u < vectors; ++u) {
      r0[u] = V::acc_set(accumulate ? V::load(row(out0) + u * W) : V::set1(0));
      r1[u] = V::acc_set(accumulate ? V::load(row(out1) + u * W) : V::set1(0));
    }
    std::size_t left = kMaxProducts;
    for (std::size_t i = 0; i < count; i += kRows) {
      const std::size_t rows = std::min(kRows, count - i);
      if (left < rows) {
        for (std::size_t u = 0; u < vectors; ++u) {
          r0[u] = V::acc_set(acc_reduce(r0[u], p));
          r1[u] = V::acc_set(acc_reduce(r1[u], p));
        }
        left = kMaxProducts;
      }
      left -= rows;
      const auto add = [&](std::size_t u, std::size_t j, Acc& s0, Acc& s1) {
        const R v = V::load(row(x[i + j]) + u * W);
        V::acc_mul(s0, v, V::load(row(y0[i + j]) + u * W));
        V::acc_mul(s1, v, V::load(row(y1[i + j]) + u * W));
      };
      if (rows < kRows) {
        for (std::size_t j = 0; j < rows; ++j) {
          for (std::size_t u = 0; u < vectors; ++u) add(u, j, r0[u], r1[u]);
        }
        continue;
      }
      const bool more = i + 2 * kRows <= count;
      for (std::size_t u = 0; u < vectors; ++u) {
        Acc s0 = r0[u], s1 = r1[u];
        for (std::size_t j = 0; j < kRows; ++j) {
          if (more) __builtin_prefetch(row(x[i + kRows + j]) + u * W);
          add(u, j, s0, s1);
        }
        r0[u] = s0, r1[u] = s1;
      }
    }
    for (std::size_t u = 0; u < vectors; ++u) {
      V::store(row(out0) + u * W, acc_reduce(r0[u], p));
      V::store(row(out1) + u * W, acc_reduce(r1[u], p));
    }
  }

  static void key_dot(void* out0, void* out1, const void* const* ext, const void* const* key0,
                      const void* const* key1, std::size_t count, bool accumulate, std::uint64_t g,
                      const std::uint32_t* rev, std::size_t n, const PrimeRow& prime) {
    const Prime p(prime);
    if (g == 1) {
      dot_pairs(out0, out1, ext, key0, key1, count, accumulate, n, p);
      return;
    }
    const Automorphism sigma(g, rev, n);
    for (std::size_t u = 0; u < n / W; ++u) {
      const auto at = sigma.place(u);
      key_dot_at(W * u, out0, out1, ext, key0, key1, count, accumulate, p,
                 [&](const T* x) { return sigma.load(x, at); });
    }
  }

  static void make_turn(void* turn, std::uint64_t g, const std::uint32_t* rev, std::size_t n) {
    new (turn) Automorphism(g, rev, n);
  }

  /// Words [at, at + piece) of a rotation to out0, out1. The keys of `next`, from next_at on, are
  /// on their way meanwhile: their rows are read once, in more streams than the hardware foresees.
  JALI_INLINE static void rotate_piece(T* out0, T* out1, const RowRotation& r, std::size_t digits,
                                       std::uint64_t factor, std::size_t at, std::size_t piece,
                                       const RowRotation* next, std::size_t next_at,
                                       const Prime& p) {
    const R s = V::set1(factor);
    if (r.ext == nullptr) {
      for (std::size_t k = 0; k < piece; k += W) {
        Acc r0 = V::acc_set(V::set1(0)), r1 = r0;
        if (r.c0 != nullptr) V::acc_mul_broadcast(r0, V::load(row(r.c0) + at + k), s);
        if (r.c1 != nullptr) V::acc_mul_broadcast(r1, V::load(row(r.c1) + at + k), s);
        V::store(out0 + k, acc_reduce(r0, p));
        V::store(out1 + k, acc_reduce(r1, p));
      }
      return;
    }
    const auto& sigma = *static_cast<const Automorphism*>(r.turn);
    const bool ahead = next != nullptr && next->ext != nullptr;
    for (std::size_t k = 0; k < piece; k += W) {
      if (ahead) {
        for (std::size_t j = 0; j < digits; ++j) {
          __builtin_prefetch(row(next->key0[j]) + next_at + k, 0, 2);
          __builtin_prefetch(row(next->key1[j]) + next_at + k, 0, 2);
        }
      }
      const auto from = sigma.place((at + k) / W);
      Acc r0 = V::acc_set(V::set1(0)), r1 = r0;
      if (r.c0 != nullptr) V::acc_mul_broadcast(r0, sigma.load(row(r.c0), from), s);
      for (std::size_t j = 0, left = kMaxProducts - 1; j < digits; ++j, --left) {
        if (left == 0) {
          r0 = V::acc_set(acc_reduce(r0, p));
          r1 = V::acc_set(acc_reduce(r1, p));
          left = kMaxProducts;
        }
        const R x = sigma.load(row(r.ext[j]), from);
        V::acc_mul(r0, x, V::load(row(r.key0[j]) + at + k));
        V::acc_mul(r1, x, V::load(row(r.key1[j]) + at + k));
      }
      V::store(out0 + k, acc_reduce(r0, p));
      V::store(out1 + k, acc_reduce(r1, p));
    }
  }

  static void rotated_sums(const RowRotation* rotations, std::size_t count, std::size_t digits,
                           std::uint64_t factor, const RowSum* sums, std::size_t sum_count,
                           void* temporary, std::size_t piece, std::size_t n,
                           const PrimeRow& prime) {
    constexpr std::size_t kChunk = 60;  // terms whose addresses are at hand
    const void *x[kChunk], *y0[kChunk], *y1[kChunk];
    const Prime p(prime);
    const auto operand = [&](std::size_t k, std::size_t c) {
      return row(temporary) + (2 * k + c) * piece;
    };
    for (std::size_t at = 0; at < n; at += piece) {
      for (std::size_t k = 0; k < count; ++k) {
        const bool last = k + 1 == count;
        const std::size_t next_at = last ? at + piece : at;
        const RowRotation* next = next_at < n ? &rotations[last ? 0 : k + 1] : nullptr;
        rotate_piece(operand(k, 0), operand(k, 1), rotations[k], digits, factor, at, piece, next,
                     next_at, p);
      }
      for (std::size_t g = 0; g < sum_count; ++g) {
        const RowSum& sum = sums[g];
        for (std::size_t done = 0; done < sum.count; done += kChunk) {
          const std::size_t terms = std::min(kChunk, sum.count - done);
          for (std::size_t i = 0; i < terms; ++i) {
            x[i] = row(sum.weights[done + i]) + at;
            y0[i] = operand(sum.operands[done + i], 0);
            y1[i] = operand(sum.operands[done + i], 1);
          }
          dot_pairs(row(sum.out0) + at, row(sum.out1) + at, x, y0, y1, terms,
                    sum.accumulate || done > 0, piece, p);
        }
      }
    }
  }
};

}  // namespace jali::backend::cpu
