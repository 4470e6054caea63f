// Points p of a transform are in the order of the tree of remainders (fft/folded_fft.cuh). A pass
// takes three levels of it: a thread loads 8 points, transforms them in registers, and stores them
// back. The key lies as [step][row and level][column][unit][point].
#include <algorithm>

#include "jali/backend/cuda/blind_rotation/any_rotation.cuh"
#include "jali/backend/cuda/fft/folded_fft.cuh"

namespace jali::backend::cuda {

namespace {

constexpr std::size_t kSharedPoints = 8192;  // of a transform in shared memory
constexpr unsigned kMostThreads = 512, kMostUnits = 15;

// One place in nine is left free, so that strides of 8 meet every bank.
__host__ __device__ constexpr std::size_t padded(std::size_t p) { return p + (p >> 3); }

struct AnyArgs {
  RotationCall call;
  AnyTables tables;
  unsigned log_n, k1, n, steps, group, units;
  int levels, base_log, torus;
  double mean;
  Rotation rotation;
  double2* scratch;
  std::size_t scratch_points;  // of a block
  bool in_shared;
};

template <int Levels, bool inverse>
__device__ void pass(double2* points, const double2* tree, unsigned M, unsigned depth) {
  constexpr int kSize = 1 << Levels;
  const unsigned stride = M >> (depth + Levels);
  for (unsigned t = threadIdx.x; t < M / kSize; t += blockDim.x) {
    const unsigned q = t / stride, base = q * (stride * kSize) + t % stride;
    double2 x[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) x[i] = points[padded(base + i * stride)];
#pragma unroll
    for (int l = 0; l < Levels; ++l) {
      const int s = inverse ? Levels - 1 - l : l;
      const double2* const nodes = tree + (1u << (depth + s)) + (static_cast<std::size_t>(q) << s);
      const int size = kSize >> s, half = size / 2;
#pragma unroll
      for (int b = 0; b < 1 << s; ++b) {
        const double2 w = nodes[b & ~1];
#pragma unroll
        for (int i = 0; i < half; ++i) {
          double2 &lo = x[b * size + i], &hi = x[b * size + half + i];
          if constexpr (inverse) {
            if (b & 1)
              fft::inverse_butterfly<true>(lo, hi, w.x, w.y);
            else
              fft::inverse_butterfly<false>(lo, hi, w.x, w.y);
          } else {
            if (b & 1)
              fft::forward_butterfly<true>(lo, hi, w.x, w.y);
            else
              fft::forward_butterfly<false>(lo, hi, w.x, w.y);
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kSize; ++i) points[padded(base + i * stride)] = x[i];
  }
  __syncthreads();
}

// Of log2(M) levels: one or two first, so that a multiple of three is left.
template <bool inverse>
__device__ void transform(double2* points, const double2* tree, unsigned log_m) {
  const unsigned M = 1u << log_m, first = log_m % 3;
  if constexpr (!inverse) {
    if (first == 1) pass<1, false>(points, tree, M, 0);
    if (first == 2) pass<2, false>(points, tree, M, 0);
    for (unsigned depth = first; depth < log_m; depth += 3) pass<3, false>(points, tree, M, depth);
  } else {
    for (unsigned depth = log_m; depth > first; depth -= 3)
      pass<3, true>(points, tree, M, depth - 3);
    if (first == 1) pass<1, true>(points, tree, M, 0);
    if (first == 2) pass<2, true>(points, tree, M, 0);
  }
}

__device__ __forceinline__ void add_product(double2& sum, const double2& a, const double2& b) {
  sum.x = fma(a.x, b.x, fma(-a.y, b.y, sum.x));
  sum.y = fma(a.x, b.y, fma(a.y, b.x, sum.y));
}

template <class Acc>
__global__ void __launch_bounds__(kMostThreads) rotate_kernel(const __grid_constant__ AnyArgs a) {
  constexpr int kAccBits = 8 * sizeof(Acc);
  extern __shared__ __align__(16) double2 shared_points[];
  __shared__ unsigned exponents[kMostUnits];
  __shared__ long long rounding;
  const unsigned N = 1u << a.log_n, M = N / 2, log_m = a.log_n - 1, turn = 2 * N - 1,
                 tid = threadIdx.x;
  double2* at = a.scratch + blockIdx.x * a.scratch_points;
  double2* const points = a.in_shared ? shared_points : at;
  if (!a.in_shared) at += padded(M);
  double2* const rows = at;  // transformed digits
  auto* const acc = reinterpret_cast<Acc*>(rows + static_cast<std::size_t>(a.k1) * a.levels * M);
  const int switch_bits = 32 - static_cast<int>(a.log_n + 1) + a.call.log_many;
  const std::uint32_t half = 1u << (switch_bits - 1), low_bits = (half << 1) - 1;
  const auto switched = [&](std::uint32_t x) {
    return ((x + half) >> switch_bits << a.call.log_many) & turn;
  };
  Acc added =
      kAccBits > a.levels * a.base_log ? Acc{1} << (kAccBits - a.levels * a.base_log - 1) : 0;
  for (int j = 1; j <= a.levels; ++j)
    added += Acc{1} << (kAccBits - j * a.base_log + a.base_log - 1);
  const Acc mask = (Acc{1} << a.base_log) - 1, half_base = Acc{1} << (a.base_log - 1);
  // Ties of odd coefficients: see Cut.
  const Acc down = kAccBits == 32 && a.levels * a.base_log < 32 ? 1 : 0;
  after_predecessor();

  for (std::size_t ciphertext = blockIdx.x; ciphertext < a.call.count; ciphertext += gridDim.x) {
    const std::uint32_t* const in = a.call.in + ciphertext * (a.n + 1);
    if (tid == 0) rounding = 0;
    __syncthreads();
    long long sum = 0;
    for (unsigned i = tid; i < a.n; i += blockDim.x) {
      sum += static_cast<int>((in[i] + half) & low_bits) - static_cast<long long>(half);
    }
    atomicAdd(reinterpret_cast<unsigned long long*>(&rounding),
              static_cast<unsigned long long>(sum));
    __syncthreads();
    const double correction =
        floor(__dadd_rn(__dmul_rn(a.mean, static_cast<double>(rounding)), 0.5));
    const std::uint32_t body =
        switched(in[a.n] - static_cast<std::uint32_t>(static_cast<long long>(correction)));
    const std::size_t which = a.call.of_input == nullptr ? 0 : a.call.of_input[ciphertext];
    for (unsigned i = tid; i < a.k1 * N; i += blockDim.x) {
      const unsigned c = i >> a.log_n;
      const unsigned index = ((i & (N - 1)) + body) & turn;
      Acc v = 0;
      if (a.call.encrypted || c + 1 == a.k1) {
        const std::size_t from =
            (a.call.encrypted ? (which * a.k1 + c) << a.log_n : which << a.log_n) +
            (index & (N - 1));
        if (a.torus == 64) {
          const std::uint64_t w = static_cast<const std::uint64_t*>(a.call.tables)[from];
          v = kAccBits == 64 ? static_cast<Acc>(w) : static_cast<Acc>((w + 0x80000000u) >> 32);
        } else {
          v = static_cast<Acc>(static_cast<const std::uint32_t*>(a.call.tables)[from]);
        }
        if (index >= N) v = 0 - v;
      }
      acc[i] = v;
    }
    __syncthreads();

    for (unsigned step = 0; step < a.steps; ++step) {
      if (tid < a.units) {
        unsigned e = 0;
        if (a.rotation == Rotation::multi_bit) {
          for (unsigned j = 0; j < a.group; ++j) {
            if ((tid + 1) >> j & 1) e += switched(in[step * a.group + j]);
          }
        } else {
          e = switched(in[step * a.group + tid]);
        }
        exponents[tid] = e & turn;
      }
      __syncthreads();
      const bool classic = a.rotation == Rotation::classic;
      for (unsigned r = 0; r < a.k1; ++r) {
        const Acc* const from = acc + (static_cast<std::size_t>(r) << a.log_n);
        for (int level = 0; level < a.levels; ++level) {
          const int shift = kAccBits - (level + 1) * a.base_log;
          const auto digit = [&](unsigned i) {
            Acc v = from[i];
            if (classic) {
              const unsigned m = (i - exponents[0]) & turn;
              const Acc turned = from[m & (N - 1)];
              v = (m >= N ? 0 - turned : turned) - v;
            }
            const Acc field = ((v + added - (i & down)) >> shift) & mask;
            return static_cast<double>(static_cast<long long>(field) -
                                       static_cast<long long>(half_base));
          };
          for (unsigned i = tid; i < M; i += blockDim.x)
            points[padded(i)] = make_double2(digit(i), digit(i + M));
          __syncthreads();
          transform<false>(points, a.tables.tree, log_m);
          double2* const to = rows + (static_cast<std::size_t>(r) * a.levels + level) * M;
          for (unsigned i = tid; i < M; i += blockDim.x) to[i] = points[padded(i)];
          __syncthreads();
        }
      }
      const unsigned row_count = a.k1 * a.levels;
      for (unsigned c = 0; c < a.k1; ++c) {
        for (unsigned p = tid; p < M; p += blockDim.x) {
          double2 total = make_double2(0, 0);
          const double2* const key =
              a.call.key + p +
              ((static_cast<std::size_t>(step) * row_count * a.k1 + c) * a.units) *
                  static_cast<std::size_t>(M);
          const std::size_t next_row = static_cast<std::size_t>(a.k1) * a.units * M;
          if (classic) {
            for (unsigned row = 0; row < row_count; ++row) {
              add_product(total, rows[static_cast<std::size_t>(row) * M + p], key[row * next_row]);
            }
          } else {
            // The point's root is exp(i pi E / N), E = 1 + N sum_t p_t 2^-t.
            unsigned exponent = 1;
            for (unsigned t = 0; t < log_m; ++t) {
              if (p >> t & 1) exponent += N >> t;
            }
            for (unsigned row = 0; row < row_count; ++row) {
              double2 bundle = make_double2(0, 0);
              for (unsigned u = 0; u < a.units; ++u) {
                double2 f = a.tables.roots[exponents[u] * exponent & turn];
                f.x -= 1;
                add_product(bundle, f, key[row * next_row + static_cast<std::size_t>(u) * M]);
              }
              add_product(total, rows[static_cast<std::size_t>(row) * M + p], bundle);
            }
          }
          points[padded(p)] = total;
        }
        __syncthreads();
        transform<true>(points, a.tables.tree, log_m);
        Acc* const to = acc + (static_cast<std::size_t>(c) << a.log_n);
        const auto nearest = [](double v) {
          if (kAccBits == 64) v = fma(-18446744073709551616.0, rint(v * 5.421010862427522e-20), v);
          return static_cast<Acc>(__double2ll_rn(v));
        };
        for (unsigned i = tid; i < M; i += blockDim.x) {
          const double2 x = points[padded(i)];
          to[i] += nearest(x.x);
          to[i + M] += nearest(x.y);
        }
        __syncthreads();
      }
    }

    const auto store = [&](std::size_t to, Acc v) {
      if (a.torus == 64) {
        static_cast<std::uint64_t*>(a.call.out)[to] =
            kAccBits == 64 ? static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v) << 32;
      } else {
        static_cast<std::uint32_t*>(a.call.out)[to] = static_cast<std::uint32_t>(v);
      }
    };
    const unsigned large = (a.k1 - 1) * N;
    if (a.call.glwe) {
      for (unsigned i = tid; i < a.k1 * N; i += blockDim.x)
        store(ciphertext * a.k1 * N + i, acc[i]);
    } else {
      for (unsigned j = 0; j < 1u << a.call.log_many; ++j) {
        const std::size_t to = ((ciphertext << a.call.log_many) + j) * (large + 1);
        for (unsigned i = tid; i < large; i += blockDim.x) {
          const unsigned c = i >> a.log_n, h = i & (N - 1);
          const Acc v = acc[(static_cast<std::size_t>(c) << a.log_n) + ((j - h) & (N - 1))];
          store(to + i, h > j ? 0 - v : v);
        }
        if (tid == 0) store(to + large, acc[large + j]);
      }
    }
    __syncthreads();
  }
}

// A block transforms one polynomial after the other.
__global__ void __launch_bounds__(kMostThreads)
    prepare_kernel(double2* key, const void* ggsws, AnyTables tables, double2* scratch,
                   bool in_shared, unsigned log_n, unsigned k1, unsigned rows, unsigned units,
                   unsigned first, int torus, double scale, std::size_t polynomials,
                   ClusterKey order) {
  extern __shared__ __align__(16) double2 shared_points[];
  const unsigned N = 1u << log_n, M = N / 2;
  double2* const points = in_shared ? shared_points : scratch + blockIdx.x * padded(M);
  for (std::size_t polynomial = blockIdx.x; polynomial < polynomials; polynomial += gridDim.x) {
    const auto read = [&](unsigned i) {
      const std::size_t from = (polynomial << log_n) + i;
      return scale * (torus == 64 ? static_cast<double>(static_cast<const long long*>(ggsws)[from])
                                  : static_cast<double>(static_cast<const int*>(ggsws)[from]));
    };
    for (unsigned i = threadIdx.x; i < M; i += blockDim.x)
      points[padded(i)] = make_double2(read(i), read(i + M));
    __syncthreads();
    transform<false>(points, tables.tree, log_n - 1);
    // ((step units + unit) rows + row) (k + 1) + column, to [step][row][column][unit]
    const std::size_t column = polynomial % k1, row = polynomial / k1 % rows,
                      unit = polynomial / k1 / rows % units;
    const std::size_t step = first + polynomial / k1 / rows / units;
    double2* const to = key + (((step * rows + row) * k1 + column) * units + unit) * M;
    for (unsigned i = threadIdx.x; i < M; i += blockDim.x) {
      if (order.blocks == 0)
        to[i] = points[padded(i)];
      else
        key[order.place(step, row, unit, column, i)] = points[padded(i)];
    }
    __syncthreads();
  }
}

bool narrow(const TfheConfig& config) {
  return config.rotation_gadget.levels * config.rotation_gadget.base_log <= 28;
}
int acc_bits(const TfheConfig& config) {
  return config.torus == Torus::t32 || narrow(config) ? 32 : 64;
}
bool in_shared(const TfheConfig& config) { return config.N.value / 2 <= kSharedPoints; }
std::size_t shared_bytes(const TfheConfig& config) {
  return in_shared(config) ? padded(config.N.value / 2) * 16 : 0;
}
unsigned threads_of(const TfheConfig& config) {
  return static_cast<unsigned>(std::clamp<std::size_t>(config.N.value / 16, 32, kMostThreads));
}
// A multiple of 64 bytes.
std::size_t scratch_points(const TfheConfig& config) {
  const std::size_t M = config.N.value / 2, k1 = config.k.value + 1;
  return (in_shared(config) ? 0 : padded(M)) +
         k1 * static_cast<std::size_t>(config.rotation_gadget.levels) * M + k1 * config.N.value / 2;
}
constexpr unsigned kPrepareBlocks = 264;

}  // namespace

std::size_t any_rotation_key_bytes(const TfheConfig& config) {
  return config.n.value / static_cast<std::size_t>(config.group) * config.units() *
         config.ggsw_words() * 8;
}

unsigned any_blocks(const Stream& stream, const TfheConfig& config, std::size_t count) {
  int sms = 0;
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, stream.device()), "device");
  const std::size_t of_shared = shared_bytes(config) == 0 ? 4 : (200u << 10) / shared_bytes(config);
  const std::size_t each =
      std::clamp<std::size_t>(std::min<std::size_t>(of_shared, 1024 / threads_of(config)), 1, 8);
  return static_cast<unsigned>(std::min<std::size_t>(count, each * static_cast<std::size_t>(sms)));
}
std::size_t any_scratch_bytes(const TfheConfig& config, unsigned blocks) {
  return std::max<std::size_t>(
             blocks * scratch_points(config),
             in_shared(config) ? 0 : kPrepareBlocks * padded(config.N.value / 2)) *
         16;
}

void prepare_any_rotation_key(const Stream& stream, const TfheConfig& config,
                              const AnyTables& tables, double2* key, const void* ggsws,
                              std::size_t first, std::size_t count, void* scratch,
                              const ClusterKey& order) {
  const std::size_t polynomials = count * config.units() * config.ggsw_words() / config.N.value;
  unsigned log_n = 0;
  while (std::size_t{1} << log_n < config.N.value) ++log_n;
  const double scale = (config.torus == Torus::t64 && acc_bits(config) == 32 ? 0x1p-32 : 1.0) *
                       2.0 / static_cast<double>(config.N.value);
  launch(stream, "bootstrapping key", prepare_kernel,
         dim3(static_cast<unsigned>(std::min<std::size_t>(kPrepareBlocks, polynomials))),
         threads_of(config), shared_bytes(config), 1, key, ggsws, tables,
         static_cast<double2*>(scratch), in_shared(config), log_n,
         static_cast<unsigned>(config.k.value + 1),
         static_cast<unsigned>((config.k.value + 1) *
                               static_cast<std::size_t>(config.rotation_gadget.levels)),
         static_cast<unsigned>(config.units()), static_cast<unsigned>(first),
         torus_bits(config.torus), scale, polynomials, order);
}

void rotate_any(const Stream& stream, const TfheConfig& config, const AnyTables& tables,
                const RotationCall& call, unsigned blocks, void* scratch) {
  AnyArgs args{};
  args.call = call;
  args.tables = tables;
  while (std::size_t{1} << args.log_n < config.N.value) ++args.log_n;
  args.k1 = static_cast<unsigned>(config.k.value + 1);
  args.n = static_cast<unsigned>(config.n.value);
  args.steps = static_cast<unsigned>(config.steps());
  args.group = static_cast<unsigned>(config.group);
  args.units = static_cast<unsigned>(config.units());
  args.levels = config.rotation_gadget.levels;
  args.base_log = config.rotation_gadget.base_log;
  args.torus = torus_bits(config.torus);
  args.mean = config.mean_bit;
  args.rotation = config.rotation;
  args.scratch = static_cast<double2*>(scratch);
  args.scratch_points = scratch_points(config);
  args.in_shared = in_shared(config);
  launch(stream, "blind rotation",
         acc_bits(config) == 64 ? rotate_kernel<std::uint64_t> : rotate_kernel<std::uint32_t>,
         dim3(blocks), threads_of(config), shared_bytes(config), 1, args);
}

}  // namespace jali::backend::cuda
