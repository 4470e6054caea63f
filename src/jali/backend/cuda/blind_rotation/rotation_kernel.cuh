// Polynomials of up to 2,048 coefficients. A thread holds 32 complex points of one polynomial, (k +
// 1) N / 64 threads one ciphertext, and a block several ciphertexts, which take the key from the
// same tiles in shared memory. One block an SM rotates its share of the batch in rounds of equal
// size, so that time grows with the batch by one ciphertext an SM.
//
// Accumulator. If levels * base_log <= 28, it keeps the upper 32 bits of each word. Its rounding is
// then below a sixteenth of what the decomposition rounds, per step: the decomposition drops all
// but levels * base_log bits of the same words.
//
// Key. In units of 2^-32 (or 2^-64) of the torus, as doubles, times 2/N, transformed. It lies in
// tiles in the order in which they are read; a tile holds the points 32 g + i, for all g and for
// `P` numbers i, of all rows and columns of one level, and of all or one of its units:
// [unit][row][column][i][g]. If the keys of steps are summed before, each ciphertext has tiles of
// its own, in TileOrder (key_sums.cuh).
#pragma once

#include <algorithm>

#include "jali/backend/cuda/blind_rotation/blind_rotation.cuh"
#include "jali/backend/cuda/blind_rotation/key_ring.cuh"
#include "jali/backend/cuda/blind_rotation/key_sums.cuh"
#include "jali/backend/cuda/blind_rotation/key_tiles.cuh"
#include "jali/backend/cuda/blind_rotation/rotation_shape.cuh"
#include "jali/backend/cuda/blind_rotation/rotation_size.cuh"
#include "jali/backend/cuda/blind_rotation/step.cuh"
#include "jali/backend/cuda/fft/folded_fft.cuh"

namespace jali::backend::cuda {

namespace {

struct RotationArgs {
  RotationCall call;
  RotationTables tables;
  std::uint32_t n, steps, group, units;
  int levels, base_log, torus;
  double mean;
  std::uint32_t tiles;  // of the whole key, or of a ciphertext's sums
  std::uint32_t slots;  // of the ring
  std::uint32_t groups;  // most groups of a block
  Rotation rotation;
};

template <class S>
__device__ __forceinline__ void meet(unsigned group) {
  if constexpr (S::group_threads == 32) {
    __syncwarp();
  } else {
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(S::group_threads) : "memory");
  }
}

// An accumulator's polynomial lies as pairs of its coefficients j and j + M: where coefficient i
// is.
template <class S>
__device__ __forceinline__ int place(int i) {
  return (i & (S::M - 1)) * 2 + (i >> (S::log_n - 1));
}

// Digits of one level of (X^e - 1) acc (rotate), or of acc. As complex numbers c_j + i c_{j+M}, the
// pairs of X^e acc are those of acc, elsewhere and times a power of i.
template <class S, bool rotate>
__device__ __forceinline__ void load_digits(double2 (&x)[kPoints], const std::uint32_t* acc, int g,
                                            unsigned e, const Cut& cut, int shift) {
  constexpr int kUnit = 31 - S::log_n;  // the angle of X, of 2^32 a turn, is 2^kUnit
  const auto* const pairs = reinterpret_cast<const uint2*>(acc);
  const unsigned from = (static_cast<unsigned>(g) - e) << kUnit;
  const auto digit = [&](std::uint32_t v) {
    if constexpr (S::deep) return cut.digit(v, shift);
    return __hiloint2double(0x43300000, static_cast<int>(v >> shift)) - cut.bias;
  };
#pragma unroll
  for (int i = 0; i < kPoints; ++i) {
    uint2 v = pairs[g + S::G * i];
    if constexpr (rotate) {
      const unsigned angle = from + (static_cast<unsigned>(S::G * i) << kUnit);
      uint2 turned = pairs[angle >> kUnit & (S::M - 1)];
      // Quarters of a turn 0 to 3: (a, b), (b, -a), (-a, -b), (-b, a).
      if (angle & 0x40000000u) turned = make_uint2(turned.y, turned.x);
      const auto sign_x = static_cast<unsigned>(static_cast<int>(angle) >> 31);
      const auto sign_y = static_cast<unsigned>(static_cast<int>(angle + 0x40000000u) >> 31);
      v.x = (turned.x ^ sign_x) - v.x + (cut.to(i) - sign_x);
      v.y = (turned.y ^ sign_y) - v.y + (cut.to(i) - sign_y);
    } else {
      v.x += cut.to(i);
      v.y += cut.to(i);
    }
    x[i].x = digit(v.x);
    x[i].y = digit(v.y);
  }
}

// The number that the lowest bits of a point's index contribute to its exponent: point 32 g + i is
// the root exp(i pi / N (E_g + N sum_t i_t 2^-t)), in 32nds of a turn.
__host__ __device__ constexpr unsigned reversed5(unsigned i) {
  return (i & 1) << 4 | (i & 2) << 2 | (i & 4) | (i & 8) >> 2 | (i & 16) >> 4;
}

template <class S>
__global__ void __launch_bounds__(S::most_threads, 1)
    rotate_kernel(const __grid_constant__ RotationArgs args) {
  using Acc = typename S::Word;
  constexpr int G = S::G, K1 = S::k1, N = S::N, P = S::tile_points;
  constexpr int kAccBits = 8 * sizeof(Acc);
  extern __shared__ __align__(128) unsigned char shared[];
  const unsigned tid = threadIdx.x, group = tid / S::group_threads,
                 in_group = tid % S::group_threads;
  const unsigned member = in_group / S::threads;  // ciphertext of the group
  const unsigned mine = group * S::group_ciphertexts + member;  // and of the block
  // Polynomial and thread of the transform. If k = 1, the threads of equal g of both polynomials
  // are in one warp.
  const unsigned in_ciphertext = in_group % S::threads;
  const int c = static_cast<int>(S::paired ? in_ciphertext % 32 / 16 : in_ciphertext / G);
  const int g =
      static_cast<int>(S::paired ? in_ciphertext / 32 * 16 + in_ciphertext % 16 : tid % G);

  // Shared memory.
  auto* at = shared;
  const auto take = [&](std::size_t bytes) {
    auto* taken = at;
    at += (bytes + 127) / 128 * 128;
    return taken;
  };
  const unsigned rings = S::summed ? args.groups : 1, own_ring = S::summed ? group : 0;
  const unsigned full = shared_address(take(8 * kMaxSlots * rings));
  const unsigned left = shared_address(take(4 * kMaxSlots * rings));
  auto* const low = reinterpret_cast<double2*>(take(16 * G * fft::low_entries(G)));
  auto* const twist = reinterpret_cast<double2*>(take(16 * G * kPoints));
  auto* const ring_slots = reinterpret_cast<double2*>(take(16 * args.slots * rings * S::tile));
  const unsigned ciphertexts = args.groups * S::group_ciphertexts;
  auto* const accs = reinterpret_cast<Acc*>(take(sizeof(Acc) * K1 * S::acc_words * ciphertexts));
  auto* const buffers =
      reinterpret_cast<double*>(take(8 * fft::exchange_doubles(G) * K1 * ciphertexts));
  double2 *sums = nullptr, *thetas = nullptr, *fine = nullptr;
  unsigned* exponents = nullptr;
  if constexpr (S::deep) sums = reinterpret_cast<double2*>(take(16 * kPoints * blockDim.x)) + tid;
  if constexpr (S::units) {
    fine = reinterpret_cast<double2*>(take(16 * 32));
    thetas = reinterpret_cast<double2*>(take(16 * args.units * blockDim.x)) + tid;
    exponents =
        reinterpret_cast<unsigned*>(take(8 * args.units * ciphertexts)) + mine * 2 * args.units;
  }

  // The block's share of the batch, and its rounds.
  const unsigned blocks = gridDim.x, count = args.call.count;
  const unsigned share = count / blocks + (blockIdx.x < count % blocks ? 1 : 0);
  unsigned next = count / blocks * blockIdx.x + min(blockIdx.x, count % blocks);
  unsigned rounds = (share + ciphertexts - 1) / ciphertexts, remaining = share;

  for (unsigned i = tid; i < G * fft::low_entries(G); i += blockDim.x) low[i] = args.tables.low[i];
  for (unsigned i = tid; i < G * kPoints; i += blockDim.x) twist[i] = args.tables.twist[i];
  if constexpr (S::units) {
    for (unsigned i = tid; i < 32; i += blockDim.x) fine[i] = args.tables.roots[i * (N / 16)];
  }
  static_assert(!S::summed || S::group_ciphertexts == 1);
  Ring ring{ring_slots + own_ring * args.slots * S::tile,
            full + 8 * kMaxSlots * own_ring,
            left + 4 * kMaxSlots * own_ring,
            args.call.key + (S::summed ? static_cast<std::size_t>(next + min(mine, share - 1)) *
                                             args.tiles * S::tile
                                       : 0),
            S::tile,
            args.tiles,
            args.slots,
            0};
#if __CUDA_ARCH__ >= 900
  if (tid == 0) {
    for (unsigned i = 0; i < kMaxSlots * rings; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full + 8 * i) : "memory");
      asm volatile("st.shared::cta.u32 [%0], 0;" ::"r"(left + 4 * i) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
#endif
  __syncthreads();
  after_predecessor();
  if (S::summed ? in_group == 0 && mine < share : tid == 0) {
    for (unsigned i = 0; i < args.slots; ++i) ring.ask(i, i);
  }

  const auto meet_all = [&] { S::paired ? meet<S>(group) : __syncwarp(); };
  Acc* const own_acc = accs + (mine * K1 + c) * S::acc_words;
  double* const own_buffer = buffers + (mine * K1 + c) * fft::exchange_doubles(G);
  // The other rows, in the order c + 1, c + 2, ... modulo k + 1.
  const double2* others[K1 > 1 ? K1 - 1 : 1];
  unsigned other_tile[K1 > 1 ? K1 - 1 : 1];
#pragma unroll
  for (int t = 0; t < K1 - 1; ++t) {
    const int r = (c + 1 + t) % K1;
    others[t] =
        reinterpret_cast<const double2*>(buffers + (mine * K1 + r) * fft::exchange_doubles(G)) + g;
    other_tile[t] = static_cast<unsigned>((r * K1 + c) * P * G + g);
  }
  const auto own_tile = static_cast<unsigned>((c * K1 + c) * P * G + g);
  // Point p of a tile's row, from the thread's place in it.
  const auto in_tile = [&](unsigned row, int p) {
    return S::summed ? row + static_cast<unsigned>(g) +
                           TileOrder::swapped(static_cast<unsigned>(p), static_cast<unsigned>(g))
                     : row + static_cast<unsigned>(p * G);
  };
  auto* const own_points = reinterpret_cast<double2*>(own_buffer) + g;

  const Cut cut = make_cut(args.levels, args.base_log);
  const Switch switched{32 - (S::log_n + 1) + args.call.log_many, args.call.log_many, 2u * N - 1};

  for (; rounds > 0; --rounds) {
    const unsigned now = (remaining + rounds - 1) / rounds;
    const unsigned groups_now = (now + S::group_ciphertexts - 1) / S::group_ciphertexts;
    if (group >= groups_now) return;
    ring.warps = (S::summed ? 1 : groups_now) * S::group_threads / 32;
    const bool counts = mine < now;
    const unsigned ciphertext = next + min(mine, now - 1);
    next += now;
    remaining -= now;
    const std::uint32_t* const in =
        args.call.in + static_cast<std::size_t>(ciphertext) * (args.n + 1);

    auto* const between =
        static_cast<Acc*>(args.call.between) + (static_cast<std::size_t>(ciphertext) * K1 + c) * N;
    if (S::summed && args.call.first > 0) {
      for (int i = g; i < N; i += G) own_acc[i] = between[i];
      meet_all();
    } else {
      // The exponent of the body: sum of what the switch rounds off the mask.
      std::uint32_t body;
      {
        auto* const partial =
            reinterpret_cast<int*>(buffers + mine * K1 * fft::exchange_doubles(G));
        std::int64_t sum = 0;
        int own = 0;
        for (unsigned i = in_group % S::threads; i < args.n; i += S::threads) {
          own += switched.error(in[i]);
        }
        partial[in_group % S::threads] = own;
        meet<S>(group);
        for (int i = 0; i < S::threads; ++i) sum += partial[i];
        meet<S>(group);
        const double correction =
            floor(__dadd_rn(__dmul_rn(args.mean, static_cast<double>(sum)), 0.5));
        body = switched(in[args.n] -
                        static_cast<std::uint32_t>(static_cast<std::int64_t>(correction)));
      }

      // acc = X^-body table
      {
        const std::size_t words = static_cast<std::size_t>(args.call.encrypted ? K1 : 1) * N;
        std::size_t offset =
            args.call.of_input == nullptr ? 0 : args.call.of_input[ciphertext] * words;
        const bool zero = !args.call.encrypted && c + 1 < K1;
        if (args.call.encrypted) offset += static_cast<std::size_t>(c) * N;
        for (int i = g; i < N; i += G) {
          const unsigned m = (static_cast<unsigned>(i) + body) & (2 * N - 1);
          Acc v = 0;
          if (!zero) {
            const std::size_t from = offset + (m & (N - 1));
            if (args.torus == 64) {
              const std::uint64_t w = static_cast<const std::uint64_t*>(args.call.tables)[from];
              v = kAccBits == 64 ? static_cast<Acc>(w) : static_cast<Acc>((w + 0x80000000u) >> 32);
            } else {
              const std::uint32_t w = static_cast<const std::uint32_t*>(args.call.tables)[from];
              v = kAccBits == 64 ? static_cast<Acc>(w) << (kAccBits - 32) : static_cast<Acc>(w);
            }
            if (m >= N) v = 0 - v;
          }
          own_acc[place<S>(i)] = v;
        }
        meet_all();
      }
    }

    // Exponents of the units of a step, made one step ahead.
    const auto make_exponents = [&](unsigned step) {
      for (unsigned u = in_group % S::threads; u < args.units; u += S::threads) {
        unsigned sum = 0;
        if (args.rotation == Rotation::multi_bit) {
          for (unsigned j = 0; j < args.group; ++j) {
            if ((u + 1) >> j & 1) sum += switched(in[step * args.group + j]);
          }
        } else {
          sum = switched(in[step * args.group + u]);
        }
        exponents[(step & 1) * args.units + u] = sum & (2 * N - 1);
      }
    };
    unsigned mine_exponent = 1;
    if constexpr (S::units) {
#pragma unroll
      for (int t = 5; t < S::log_n - 1; ++t) {
        if (g >> (t - 5) & 1) mine_exponent += static_cast<unsigned>(N) >> t;
      }
      make_exponents(0);
      meet<S>(group);
    }

    double2 x[kPoints];
    std::uint32_t ahead = in[0];
#pragma unroll 1
    for (unsigned step = 0; step < args.steps; ++step) {
      const bool last_step = rounds == 1;
      unsigned e = 0;
      double2 roots[S::fixed];
      if constexpr (S::units) {
        // The roots of this thread's points to the powers of the units, but for the lowest bits of
        // the points. They are on their way while digits are cut.
        const unsigned* const now = exponents + (step & 1) * args.units;
        if constexpr (S::fixed > 1) {
#pragma unroll
          for (int u = 0; u < S::fixed; ++u) {
            roots[u] = __ldg(args.tables.roots + (now[u] * mine_exponent & (2 * N - 1)));
          }
        } else {
          for (unsigned u = 0; u < args.units; ++u) {
            thetas[u * blockDim.x] =
                __ldg(args.tables.roots + (now[u] * mine_exponent & (2 * N - 1)));
          }
        }
      } else if constexpr (!S::summed) {
        e = switched(ahead);
        ahead = in[step + 1];  // the last one is the body
      }
#pragma unroll 1
      for (int level = 0; level < (S::deep ? args.levels : 1); ++level) {
        load_digits<S, !S::units && !S::summed>(x, own_acc, g, e, cut,
                                                kAccBits - (level + 1) * args.base_log);
        fft::forward<G>(x, own_buffer, low, g, meet_all);
        const auto accumulate = [&](int i, double2 sum) {
          if constexpr (S::deep) {  // without branches, across which nothing would be loaded ahead
            double2* const partial = sums + static_cast<unsigned>(i) * blockDim.x;
            const double2 before = *partial;
            sum.x += level > 0 ? before.x : 0.0;
            sum.y += level > 0 ? before.y : 0.0;
            *partial = sum;
          }
          x[i] = sum;
        };
        if constexpr (S::fixed > 1) {
          if (level == 0) {
#pragma unroll
            for (int u = 0; u < S::fixed; ++u) thetas[u * blockDim.x] = roots[u];
          }
        }
        // Point `at` of half h of another row.
        const auto other = [&](int r, int h, int at) {
          if constexpr (S::paired) {
            const double2 own = x[kPoints / 2 * h + at];
            return make_double2(__shfl_xor_sync(~0u, own.x, 16), __shfl_xor_sync(~0u, own.y, 16));
          } else {
            return others[r][at * G];
          }
        };
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          if constexpr (!S::paired) {
            if (h > 0) meet<S>(group);  // the others have read the first half
#pragma unroll
            for (int i = 0; i < kPoints / 2; ++i) own_points[i * G] = x[kPoints / 2 * h + i];
          }
#pragma unroll
          for (int t = 0; t < kPoints / 2 / P; ++t) {
            if constexpr (!S::units) {
              const double2* const tile = ring.wait();
              // What needs no other thread, before the others are waited for.
              double2 sum[P];
#pragma unroll
              for (int p = 0; p < P; ++p) {
                sum[p] = product(x[kPoints / 2 * h + t * P + p], tile[in_tile(own_tile, p)]);
              }
              if (t == 0 && !S::paired) meet<S>(group);
#pragma unroll
              for (int p = 0; p < P; ++p) {
#pragma unroll
                for (int r = 0; r < K1 - 1; ++r) {
                  add_product(sum[p], other(r, h, t * P + p), tile[in_tile(other_tile[r], p)]);
                }
                accumulate(kPoints / 2 * h + t * P + p, sum[p]);
              }
              ring.release(last_step);
            } else {
              double2 bundle[K1][P];
#pragma unroll
              for (int r = 0; r < K1; ++r) {
#pragma unroll
                for (int p = 0; p < P; ++p) bundle[r][p] = make_double2(0, 0);
              }
              const auto add_unit = [&](unsigned u, const double2* part) {
                const unsigned power = exponents[(step & 1) * args.units + u];
                const double2 z = fine[power * reversed5(kPoints / 2 * h + t * P) & 31];
                const double2 root = product(thetas[u * blockDim.x], z);
#pragma unroll
                for (int p = 0; p < P; ++p) {
                  // Times i^power for bit 1 of the point's index, times (-1)^power for bit 0: signs
                  // are flipped by their bits.
                  double2 f = root;
                  const unsigned quarter = (p & 2 ? power : 0) + (p & 1 ? 2 * power : 0);
                  if (p & 2) f = quarter & 1 ? make_double2(-f.y, f.x) : f;
                  if (p > 0) {
                    const auto flip = static_cast<int>((quarter & 2) << 30);
                    f.x = __hiloint2double(__double2hiint(f.x) ^ flip, __double2loint(f.x));
                    f.y = __hiloint2double(__double2hiint(f.y) ^ flip, __double2loint(f.y));
                  }
                  f.x -= 1;
                  add_product(bundle[0][p], f, part[own_tile + p * G]);
#pragma unroll
                  for (int r = 0; r < K1 - 1; ++r) {
                    add_product(bundle[r + 1][p], f, part[other_tile[r] + p * G]);
                  }
                }
              };
              if constexpr (S::fixed > 1) {
                const double2* const tile = ring.wait();
#pragma unroll
                for (int u = 0; u < S::fixed; ++u) add_unit(u, tile + u * S::part);
                ring.release(last_step);
              } else {
#pragma unroll 1
                for (unsigned u = 0; u < args.units; ++u) {
                  add_unit(u, ring.wait());
                  ring.release(last_step);
                }
              }
              if (t == 0 && !S::paired) meet<S>(group);
#pragma unroll
              for (int p = 0; p < P; ++p) {
                const int at_half = t * P + p, i = kPoints / 2 * h + at_half;
                double2 sum = product(x[i], bundle[0][p]);
#pragma unroll
                for (int r = 0; r < K1 - 1; ++r) {
                  add_product(sum, other(r, h, at_half), bundle[r + 1][p]);
                }
                accumulate(i, sum);
              }
            }
          }
        }
        if constexpr (S::units) {
          if (level == 0 && step + 1 < args.steps) make_exponents(step + 1);
        }
        if constexpr (!S::paired) meet<S>(group);
      }
      ring.settle(last_step);
      fft::inverse<G>(x, own_buffer, twist, g, meet_all);
#pragma unroll
      for (int i = 0; i < kPoints; ++i) {
        uint2& pair = reinterpret_cast<uint2*>(own_acc)[g + G * i];
        const uint2 before = pair;
        pair = make_uint2(before.x + nearest(x[i].x), before.y + nearest(x[i].y));
      }
      meet_all();
    }

    // Coefficient j of the accumulators: the mask is A_0[j], A_0[j-1], .., A_0[0], -A_0[N-1], ...
    const auto word = [&](Acc v) {
      return kAccBits == 64 ? static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v) << 32;
    };
    const auto store = [&](std::size_t to, Acc v) {
      if (args.torus == 64) {
        static_cast<std::uint64_t*>(args.call.out)[to] = word(v);
      } else {
        const std::uint64_t w = word(v);
        static_cast<std::uint32_t*>(args.call.out)[to] =
            static_cast<std::uint32_t>((kAccBits == 64 ? w + 0x80000000u : w) >> 32);
      }
    };
    if (S::summed && !args.call.last) {
      for (int i = g; counts && i < N; i += G) between[i] = own_acc[i];
    } else if (counts && args.call.glwe) {
      const std::size_t to = (static_cast<std::size_t>(ciphertext) * K1 + c) * N;
      for (int i = g; i < N; i += G) store(to + i, own_acc[place<S>(i)]);
    } else if (counts) {
      for (int j = 0; j < 1 << args.call.log_many; ++j) {
        const std::size_t row = (static_cast<std::size_t>(ciphertext) << args.call.log_many) + j;
        const std::size_t to = row * ((K1 - 1) * N + 1) + static_cast<std::size_t>(c) * N;
        if (c + 1 < K1) {
          for (int i = g; i < N; i += G) {
            const Acc v = own_acc[place<S>((j - i) & (N - 1))];
            store(to + i, i > j ? 0 - v : v);
          }
        } else if (g == 0) {
          store(to, own_acc[place<S>(j)]);
        }
      }
    }
    meet_all();
  }
}
}  // namespace

template <int LogN, int K1>
bool RotationSize<LogN, K1>::serves(const TfheConfig& config) {
  bool fits = false;
  with_shape<LogN, K1>(
      config, [&](auto shape) { fits = plan<decltype(shape)>(config, 1).bytes <= kSharedBytes; });
  return fits;
}

template <int LogN, int K1>
std::size_t RotationSize<LogN, K1>::key_bytes(const TfheConfig& config) {
  std::size_t bytes = 0;
  with_shape<LogN, K1>(config, [&](auto shape) {
    using S = decltype(shape);
    if (!S::summed) bytes = tiles_of<S>(config, config.steps()) * S::tile * 16;
  });
  return bytes;
}

template <int LogN, int K1>
void RotationSize<LogN, K1>::prepare(const Stream& stream, const TfheConfig& config,
                                     const RotationTables& tables, double2* key, const void* ggsws,
                                     std::size_t first, std::size_t count) {
  with_shape<LogN, K1>(config, [&](auto shape) {
    using S = decltype(shape);
    if constexpr (!S::summed) {
      const auto polynomials =
          static_cast<unsigned>(count * config.units() * config.ggsw_words() / S::N);
      constexpr unsigned kThreads = 128;
      const unsigned per_block = kThreads / S::G;
      prepare_kernel<S><<<(polynomials + per_block - 1) / per_block, kThreads, 0, stream.get()>>>(
          key, ggsws, tables.low, torus_bits(config.torus), static_cast<unsigned>(first),
          static_cast<unsigned>(config.rotation_gadget.levels),
          static_cast<unsigned>(config.units()), polynomials);
      check_launch(stream, "bootstrapping key");
    }
  });
}

template <int LogN, int K1>
std::size_t RotationSize<LogN, K1>::summed_wave(const TfheConfig& config) {
  std::size_t most = 0;
  with_shape<LogN, K1>(config, [&](auto shape) {
    using S = decltype(shape);
    if (S::summed) most = plan<S>(config, S::most_threads).groups * S::group_ciphertexts;
  });
  return most;
}

template <int LogN, int K1>
void RotationSize<LogN, K1>::rotate(const Stream& stream, const TfheConfig& config,
                                    const RotationTables& tables, const RotationCall& call) {
  with_shape<LogN, K1>(config, [&](auto shape) {
    using S = decltype(shape);
    int sms = 0;
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, stream.device()), "device");
    const unsigned blocks = std::min<unsigned>(call.count, static_cast<unsigned>(sms));
    const unsigned share = (call.count + blocks - 1) / blocks;
    const auto most = plan<S>(config, (share + S::group_ciphertexts - 1) / S::group_ciphertexts);
    // Rounds of equal size.
    const unsigned each = static_cast<unsigned>(most.groups) * S::group_ciphertexts;
    const unsigned rounds = (share + each - 1) / each, now = (share + rounds - 1) / rounds;
    const auto p = plan<S>(config, (now + S::group_ciphertexts - 1) / S::group_ciphertexts);
    RotationArgs args{};
    args.call = call;
    args.tables = tables;
    args.n = static_cast<std::uint32_t>(config.n.value);
    args.steps = S::summed ? call.steps : static_cast<std::uint32_t>(config.steps());
    args.group = static_cast<std::uint32_t>(config.group);
    args.units = static_cast<std::uint32_t>(config.units());
    args.levels = config.rotation_gadget.levels;
    args.base_log = config.rotation_gadget.base_log;
    args.torus = torus_bits(config.torus);
    args.mean = config.mean_bit;
    args.tiles = static_cast<std::uint32_t>(tiles_of<S>(config, args.steps));
    args.slots = static_cast<std::uint32_t>(p.slots);
    args.groups = static_cast<std::uint32_t>(p.groups);
    args.rotation = config.rotation;
    launch(stream, "blind rotation", rotate_kernel<S>, dim3(blocks),
           static_cast<unsigned>(p.groups) * S::group_threads, p.bytes, 1, args);
  });
}

}  // namespace jali::backend::cuda
