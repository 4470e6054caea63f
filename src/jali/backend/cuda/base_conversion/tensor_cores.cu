// Base conversion as a product of bytes on the tensor cores (w32). A residue y of 30 bits is four
// bytes, so
//   sum_i y_i m_i - v D = sum_{i,a} y_{i,a} [2^(8a) m_i]_p - v D  (mod p),   m_i = D / q_i,
// and each of the constants [..]_p is again four bytes: a matrix of bytes with four columns a
// target and four rows a limb, as a 32-bit word of y lies in the operand of m16n8k32. A limb adds
// less than 211,140 = 255 (3 * 255 + 63) to a column, 31 limbs and v less than 2^23.
//
// A block holds the columns of a digit in shared memory for all its targets. Threads work in teams;
// a team makes four targets at a time: the product leaves a thread with the sixteen residues of one
// target that its first radix-16 butterfly of the transform's first pass wants. What four targets
// need of tables is fetched to shared memory while their predecessors are made.
#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <vector>

#include "jali/arith/modulus.h"
#include "jali/backend/cuda/base_conversion/base_conversion.cuh"
#include "jali/backend/cuda/base_conversion/tensor_columns.cuh"
#include "jali/backend/cuda/base_conversion/tensor_cores.cuh"
#include "jali/backend/cuda/common/device.cuh"

namespace jali::backend::cuda {

namespace {

// d += a b, of 32 and of 16 bytes.
__device__ __forceinline__ void multiply_bytes(int (&d)[4], uint4 a, std::uint32_t b0,
                                               std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply_bytes(int (&d)[4], uint2 a, std::uint32_t b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a.x), "r"(a.y), "r"(b));
}

// From the four byte columns, below 2^23, to a residue in [0, 2 p): with t = floor(sum / 2^16) <
// 2^31 and ratio = floor(2^48 / p), the quotient t ratio / 2^32 is less than 1.5 below t 2^16 / p;
// p > 2^17.
__device__ __forceinline__ std::uint32_t recombine(int c0, int c1, int c2, int c3,
                                                   std::uint32_t minus_p, std::uint32_t ratio) {
  const std::uint32_t low = static_cast<std::uint32_t>(c0) + (static_cast<std::uint32_t>(c1) << 8);
  const std::uint32_t high = static_cast<std::uint32_t>(c2) + (static_cast<std::uint32_t>(c3) << 8);
  const std::uint32_t t = high + (low >> 16);
  return low + (high << 16) + __umulhi(t, ratio) * minus_p;
}

// What L2 does with what is stored: it gives everything else up first, or not.
__device__ __forceinline__ std::uint64_t storing_policy(bool stays) {
  std::uint64_t policy;
  if (stays) {
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  } else {
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  }
  return policy;
}
__device__ __forceinline__ void store_hinted(std::uint32_t* to, std::uint32_t x,
                                             std::uint64_t policy) {
  asm volatile("st.global.L2::cache_hint.u32 [%0], %1, %2;" ::"l"(to), "r"(x), "l"(policy)
               : "memory");
}

/// Two teams of kThreads threads together, one at a time; named barriers `first`, `first` + 1.
template <unsigned kThreads>
struct Turns {
  unsigned first, team;
  __device__ __forceinline__ void take() const {
    asm volatile("bar.sync %0, %1;" ::"r"(first + team), "n"(kThreads) : "memory");
  }
  __device__ __forceinline__ void pass() const {
    asm volatile("bar.arrive %0, %1;" ::"r"(first + 1 - team), "n"(kThreads) : "memory");
  }
};

// kTransform: with the first pass; kLogN: 0 without.
template <int kLogN, int kM, int kX, int kQuads, int kTeams>
__global__ void __launch_bounds__(kTeams* Layout<kM, kX, kQuads>::kTeam, 1)
    base_conversion_tensor_kernel(int runtime_log_n, unsigned rows, unsigned targets,
                                  unsigned planes, DigitTable table, TensorTable tensor,
                                  const W32::Twiddle* twiddles, const double* reciprocal,
                                  const std::uint32_t* y, std::uint32_t* ext, bool stay) {
  constexpr bool kTransform = kLogN > 0;
  using L = Layout<kM, kX, kQuads>;
  using T = TilePass<W32, kM, kX, true, static_cast<int>(L::kTeam)>;
  static_assert(T::kHeld == 16 && kTeams <= 2);
  extern __shared__ __align__(16) std::uint32_t words[];
  const int log_n = kTransform ? kLogN : runtime_log_n;
  const unsigned digit = blockIdx.z, row = blockIdx.y / tensor.splits;
  const unsigned split = blockIdx.y % tensor.splits;
  const unsigned begin = table.begin[digit], count = table.count[digit];
  const unsigned team = threadIdx.x / L::kTeam, index = threadIdx.x % L::kTeam;
  std::uint32_t* const exchange = words + L::columns(planes) + team * 4 * L::kExchange;
  std::uint32_t* const ahead =
      words + L::columns(planes) + kTeams * 4 * L::kExchange + team * L::kAhead * L::kTables;
  const unsigned groups = tensor.groups[digit], step = kTeams * tensor.splits;
  unsigned group = split * kTeams + team;

  // A thread fetches two twiddles of one target, whose prime it must have read before.
  const unsigned fetched = index / (L::kTeam / 4), pair = index % (L::kTeam / 4);
  const auto prime_of = [&](unsigned g) -> unsigned {
    return g < groups ? tensor.targets[(tensor.first[digit] + g) * 4 + fetched].prime : 0;
  };
  const auto fetch = [&](unsigned g, std::uint32_t* to, unsigned prime) {
    const unsigned at = tensor.first[digit] + g;
    if constexpr (kTransform) {
      const auto* from = twiddles + (static_cast<std::size_t>(prime) << log_n);
#pragma unroll
      for (unsigned n = 2 * pair; n < 1u << kM; n += L::kTeam / 2) {
        __pipeline_memcpy_async(to + fetched * L::kRow + 2 * n, from + n, 16);
      }
    }
    constexpr unsigned kPieces = 16 * kQuads;
#pragma unroll
    for (unsigned piece = index; piece < kPieces + 4; piece += L::kTeam) {
      if (piece < kPieces) {
        __pipeline_memcpy_async(to + L::kOperands + 4 * piece,
                                tensor.fragments + (at * std::size_t{kPieces} + piece) * 4, 16);
      } else {
        __pipeline_memcpy_async(to + L::kTargets + 4 * (piece - kPieces),
                                tensor.targets + at * 4 + (piece - kPieces), 16);
      }
    }
  };
  if (group < groups) fetch(group, ahead, prime_of(group));
  // Until the first exchange.
  auto* const inverse = reinterpret_cast<double*>(words + L::columns(planes));
  if (threadIdx.x < count) inverse[threadIdx.x] = reciprocal[begin + threadIdx.x];
  after_predecessor();
  const std::uint64_t policy = storing_policy(stay);

  constexpr unsigned kThreads = kTeams * L::kTeam;
  load_columns<L, T, kThreads>(words, count, [&](unsigned limb, unsigned local) {
    const std::size_t at = ((static_cast<std::size_t>(begin + limb) * rows + row) << log_n) +
                           ((local >> kX) << (log_n - kM)) + (blockIdx.x << kX) +
                           (local & ((1u << kX) - 1));
    return *reinterpret_cast<const uint4*>(y + at);
  });
  unsigned coming = prime_of(group + step);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  add_quotients<L, kThreads>(words, count, planes - 1, inverse);
  __syncthreads();

  const unsigned lane = index % 32, of_four = lane % 4, unit = index / 32 * 8 + lane / 4;
  // This thread's words of the first and the last four pairs. What has no limb meets zeros,
  // whatever lies there.
  const auto* const eights = words + of_four * L::kPair + unit * 32;
  const int aside = static_cast<int>(unit & 1) * 16, aside_single = static_cast<int>(unit & 2) * 4;
  const auto single = [&](unsigned plane) {
    return words + L::kSingles + plane * L::kSingle + unit * 16;
  };
  const auto* const first_tail = single(of_four);
  const auto* const last_tail =
      single(::min(of_four + 4 * (L::kTail - 1), planes - 8 * L::kEights - 1));
  // A team alone in its block exchanges in both directions in turn, if both groups have as many
  // stages: it writes to the places that it read last, so that no thread has to wait until others
  // have read theirs.
  static_assert(T::kGroups == 2);
  constexpr bool kTurns = kTeams == 1 && T::size_of(0) == T::size_of(1);
  bool turned = false;
  // Two teams take turns at the product, which shared memory bounds.
  Turns<2 * L::kTeam> product{kTeams + 1, team};
  if (kTeams == 2 && team == 1) product.pass();
  std::uint32_t* now = ahead;
  for (; group < groups; group += step) {
    std::uint32_t* const next =
        now == ahead + (L::kAhead - 1) * L::kTables ? ahead : now + L::kTables;
    if (group + step < groups) fetch(group + step, next, coming);
    __pipeline_commit();
    coming = prime_of(group + 2 * step);
    std::uint32_t b[2 * kQuads];
#pragma unroll
    for (int i = 0; i < kQuads / 2; ++i) {
      const uint4 f = reinterpret_cast<const uint4*>(now + L::kOperands)[i * 32 + lane];
      b[4 * i] = f.x, b[4 * i + 1] = f.y, b[4 * i + 2] = f.z, b[4 * i + 3] = f.w;
    }
    if constexpr (kQuads % 2 != 0) {
      const uint2 f = reinterpret_cast<const uint2*>(now + L::kOperands + 128 * (kQuads / 2))[lane];
      b[2 * kQuads - 2] = f.x, b[2 * kQuads - 1] = f.y;
    }
    const Target target = reinterpret_cast<const Target*>(now + L::kTargets)[of_four];
    const W32::Prime prime{target.q, target.minus_2q, {}, {}, 0};
    std::uint32_t x[16];
    if (kTeams == 2) product.take();
#pragma unroll
    for (int p = 0; p < 8; ++p) {
      const int off = p < 4 ? aside : -aside, off_single = p < 4 ? aside_single : -aside_single;
      int c[4] = {}, d[4] = {};  // bytes 0, 1 and bytes 2, 3 of residues 2 p and 2 p + 1
#pragma unroll
      for (int i = 0; i < static_cast<int>(L::kEights); ++i) {
        const uint4 a = *reinterpret_cast<const uint4*>(eights + off + i * 4 * L::kPair + 4 * p);
        multiply_bytes(c, a, b[4 * i], b[4 * i + 1]);
        multiply_bytes(d, a, b[4 * i + 2], b[4 * i + 3]);
      }
      const uint2 tail = *reinterpret_cast<const uint2*>(last_tail + off_single + 2 * p);
      if constexpr (L::kTail == 2) {
        const uint2 a = *reinterpret_cast<const uint2*>(first_tail + off_single + 2 * p);
        multiply_bytes(c, {a.x, a.y, tail.x, tail.y}, b[2 * kQuads - 4], b[2 * kQuads - 3]);
        multiply_bytes(d, {a.x, a.y, tail.x, tail.y}, b[2 * kQuads - 2], b[2 * kQuads - 1]);
      } else {
        multiply_bytes(c, tail, b[2 * kQuads - 2]);
        multiply_bytes(d, tail, b[2 * kQuads - 1]);
      }
      x[2 * p] = recombine(c[0], c[1], d[0], d[1], 0 - prime.q, target.ratio);
      x[2 * p + 1] = recombine(c[2], c[3], d[2], d[3], 0 - prime.q, target.ratio);
    }
    if (kTeams == 2) product.pass();
    const T t{exchange + of_four * L::kExchange,
              unit,
              blockIdx.x,
              log_n,
              0,
              reinterpret_cast<const W32::Twiddle*>(now + of_four * L::kRow),
              prime,
              team};
    constexpr int kOut = kTransform ? T::kLast : 0;
    auto* out = ext +
                (((static_cast<std::size_t>(digit) * targets + target.row) * rows + row) << log_n) +
                t.place(t.template base<kOut>());
    if constexpr (kTransform) {
      t.template compute<0, 0, true>(x);
      __pipeline_wait_prior(0);  // seen by all after the exchange
      if constexpr (kTurns) {
        if (turned) {
          t.template exchange<1, 0>(x);
        } else {
          t.template exchange<0, 1>(x);
        }
        turned = !turned;
      } else {
        t.sync();  // the last four targets have left the exchange
        t.template exchange<0, 1>(x);
      }
      t.template compute<1>(x);
      // In [0, 4 p), as the second pass may start from.
      if (target.row != kSkip) {
#pragma unroll
        for (int e = 0; e < 16; ++e) {
          store_hinted(out + t.spread(T::template offset<kOut>(e)), x[e], policy);
        }
      }
    } else {
      __pipeline_wait_prior(0);
      t.sync();
      if (target.row != kSkip) {
#pragma unroll
        for (int e = 0; e < 16; ++e) {
          out[t.spread(T::template offset<kOut>(e))] = W32::store(x[e], prime);
        }
      }
    }
    now = next;
  }
  if constexpr (kTeams == 2) {  // what the other team passed last
    const auto steps = [&](unsigned t) {
      const unsigned from = split * kTeams + t;
      return from < groups ? (groups - from + step - 1) / step : 0;
    };
    if ((steps(0) == steps(1)) == (team == 0)) product.take();
  }
}

// Shapes that the kernel is made in: f.operator()<kX, kQuads>() of the smallest that holds so many
// slots.
constexpr unsigned kMostSlots = 36;
template <class F>
auto with_shape(unsigned slots, F&& f) {
  if (slots <= 8) return f.template operator()<3, 2>();
  if (slots <= 12) return f.template operator()<3, 3>();
  if (slots <= 16) return f.template operator()<3, 4>();
  if (slots <= 18) return f.template operator()<3, 5>();
  if (slots <= 24) return f.template operator()<2, 6>();  // half the columns, or they do not fit
  if (slots <= 32) return f.template operator()<2, 8>();
  return f.template operator()<2, 9>();
}

}  // namespace

TensorPlan::TensorPlan(const Stream& stream, const Config& config, const DigitTable& table,
                       std::span<const PrimeIndex> from, std::span<const PrimeIndex> to) {
  unsigned largest = 0;
  for (unsigned j = 0; j < table.digits; ++j) {
    largest = std::max<unsigned>(largest, table.count[j]);
  }
  if (largest + 1 > kMostSlots || table.digits > kMaxTensorDigits) return;
  if (std::ranges::any_of(to, [&](PrimeIndex p) { return config.primes[p] <= 1u << 17; })) return;
  int shared = 0;  // some GPUs have less than a tile takes
  check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, stream.device()),
        "cudaDeviceGetAttribute");
  unsigned quads = 0, planes = 0;
  with_shape(largest + 1, [&]<int kX, int kQuads>() {
    quads = kQuads;
    planes = std::max<unsigned>(largest + 1, 4 * (kQuads - 1) + 1);  // all but the last are whole
    const auto fits = [&](std::size_t bytes) { return bytes <= static_cast<std::size_t>(shared); };
    if (fits(Layout<8, kX, kQuads>::bytes(planes, 1))) teams_ = 1;
    if (fits(Layout<8, kX, kQuads>::bytes(planes, 2))) teams_ = 2;
  });
  if (teams_ == 0) return;
  const unsigned v_slot = planes - 1;
  std::vector<std::uint32_t> fragments;
  std::vector<Target> targets;
  for (unsigned j = 0; j < table.digits; ++j) {
    const auto digit = from.subspan(table.begin[j], table.count[j]);
    table_.first[j] = static_cast<std::uint16_t>(targets.size() / 4);
    std::vector<Target> list;
    for (std::size_t t = 0; t < to.size(); ++t) {
      if (std::find(digit.begin(), digit.end(), to[t]) != digit.end()) continue;
      const auto p = static_cast<std::uint32_t>(config.primes[to[t]]);
      const auto ratio = static_cast<std::uint32_t>((std::uint64_t{1} << 48) / p);
      list.push_back({p, 0 - 2 * p, ratio, to[t], static_cast<std::uint16_t>(t)});
    }
    table_.groups[j] = static_cast<std::uint16_t>((list.size() + 3) / 4);
    most_groups_ = std::max<unsigned>(most_groups_, table_.groups[j]);
    for (std::size_t first = 0; first < list.size(); first += 4) {
      for (std::size_t i = first; i < first + 4; ++i) {
        targets.push_back(i < list.size() ? list[i]
                                          : Target{list[first].q, 0, 0, list[first].prime, kSkip});
      }
      // Word of slot s, column n of tile h: byte a is byte 2h + n % 2 of the constant of byte a.
      const auto word = [&](unsigned s, unsigned n, unsigned h) -> std::uint32_t {
        const std::size_t i = first + n / 2;
        if ((s >= digit.size() && s != v_slot) || i >= list.size()) return 0;
        const arith::Modulus mod(config.primes[list[i].prime]);
        std::uint64_t m = 1;
        for (std::size_t k = 0; k < digit.size(); ++k) {
          if (k != s) m = mod.mul(m, mod.reduce(config.primes[digit[k]]));
        }
        if (s == v_slot) m = mod.neg(m);
        std::uint32_t result = 0;
        for (unsigned a = 0; a < (s == v_slot ? 1u : 4u); ++a) {
          result |= static_cast<std::uint32_t>(m >> (8 * (2 * h + n % 2)) & 0xff) << (8 * a);
          m = mod.mul(m, 256 % mod.value());
        }
        return result;
      };
      for (unsigned quad = 0; quad < quads; quad += 2) {
        const unsigned both = std::min(2u, quads - quad);
        for (unsigned lane = 0; lane < 32; ++lane) {
          for (unsigned h = 0; h < 2; ++h) {
            for (unsigned r = 0; r < both; ++r) {
              fragments.push_back(word(4 * (quad + r) + lane % 4, lane / 4, h));
            }
          }
        }
      }
    }
  }
  fragments_ = Constant(stream, fragments.data(), fragments.size() * sizeof(std::uint32_t));
  targets_ = Constant(stream, targets.data(), targets.size() * sizeof(Target));
  table_.fragments = fragments_.as<std::uint32_t>();
  table_.targets = targets_.as<Target>();
  planes_ = planes;
}

void convert_on_tensor_cores(const Context<W32>& context, const TensorPlan& plan,
                             const DigitTable& table, const Constant& reciprocal, unsigned targets,
                             unsigned rows, void* ext, const void* y, bool stay, bool begin) {
  const auto launch = [&]<int kLogN, int kM, int kX, int kQuads, int kTeams>() {
    using L = Layout<kM, kX, kQuads>;
    const unsigned tiles = 1u << (context.log_n - kM - kX);
    const unsigned blocks = std::max(1u, tiles * rows * table.digits);
    // As many blocks as there are SMs, when a digit has the targets for it.
    TensorTable tensor = plan.table();
    tensor.splits =
        std::clamp(context.processors / blocks, 1u, (plan.most_groups() + kTeams - 1) / kTeams);
    cuda::launch(context.stream, "base conversion on tensor cores",
                 base_conversion_tensor_kernel<kLogN, kM, kX, kQuads, kTeams>,
                 dim3(tiles, rows * tensor.splits, table.digits), kTeams * L::kTeam,
                 L::bytes(plan.planes(), kTeams), 1, context.log_n, rows, targets, plan.planes(),
                 table, tensor, context.tables.forward.as<W32::Twiddle>(), reciprocal.as<double>(),
                 static_cast<const std::uint32_t*>(y), static_cast<std::uint32_t*>(ext), stay);
  };
  with_passes<W32>(context.log_n, false, [&]<int kM1, int kX1, int kM2, int kX2>() {
    const auto choose = [&]<int kLogN, int kM>() {
      with_shape(plan.planes(), [&]<int kX, int kQuads>() {
        const unsigned tiles = 1u << (context.log_n - kM - kX);
        const bool spread = tiles * rows * table.digits * plan.most_groups() <=
                            context.processors;  // an SM for each team
        plan.teams() == 1 || spread ? launch.template operator()<kLogN, kM, kX, kQuads, 1>()
                                    : launch.template operator()<kLogN, kM, kX, kQuads, 2>();
      });
    };
    if constexpr (kM1 > 0) {
      if (begin) return choose.template operator()<kM1 + kM2, kM1>();
    }
    choose.template operator()<0, 7>();
  });
}

}  // namespace jali::backend::cuda
