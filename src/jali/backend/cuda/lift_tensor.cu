// The lift as a product of bytes on the tensor cores (w32). A residue y of 30 bits is four bytes, so
//   sum_i y_i m_i - v D = sum_{i,a} y_{i,a} [2^(8a) m_i]_p - v D  (mod p),   m_i = D / q_i,
// and each of the constants [..]_p is again four bytes: a matrix of bytes with four columns a target and
// four rows a limb, as a 32-bit word of y lies in the operand of m16n8k32. A sum is below 52 * 255 * p <
// 2^14 p; Montgomery's reduction by 2^32, with constants times 2^32, leaves less than 2 p.
//
// A block holds the columns of a digit in shared memory for all its targets. Threads work in teams; a
// team makes four targets at a time: the product leaves a thread with the sixteen residues of one target
// that its first radix-16 butterfly of the transform's first pass wants. What four targets need of tables
// is fetched to shared memory while their predecessors are made.
#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <vector>

#include "jali/arith/modulus.h"
#include "jali/backend/cuda/conversion.cuh"
#include "jali/backend/cuda/launch.cuh"
#include "jali/backend/cuda/lift_tensor.cuh"

namespace jali::backend::cuda {

namespace {

constexpr int kX = 3;  // log2 of the columns of a tile: 32 bytes of a row

template <int kM>
struct Layout {
  static constexpr unsigned kTile = 1u << (kM + kX);
  static constexpr unsigned kTeam = kTile / 4;  // threads: sixteen residues of four targets
  static constexpr unsigned kLimb = kTile + 8;  // words: four limbs on different banks
  static constexpr unsigned kExchange = kTile + 112 + 8;  // words: four targets on different banks
  // Of four targets: twiddles [node][target], operands of two steps, the targets; three of them, as
  // threads of a team may be a barrier apart.
  static constexpr unsigned kTwiddles = 8u << kM, kOperands = 256,
                            kTables = kTwiddles + kOperands + 16;
  static constexpr unsigned kAhead = 3;
  static std::size_t bytes(unsigned limbs, unsigned teams) {
    return 4 * (limbs * std::size_t{kLimb} + teams * (4 * kExchange + kAhead * kTables));
  }
};

__device__ __forceinline__ void multiply_bytes(int (&d)[4], const std::uint32_t (&a)[4],
                                               std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// From the four byte columns to a residue in [0, 2 p).
__device__ __forceinline__ std::uint32_t recombine(int c0, int c1, int c2, int c3, std::uint32_t p,
                                                   std::uint32_t inverse) {
  const std::uint32_t low = static_cast<std::uint32_t>(c0) + (static_cast<std::uint32_t>(c1) << 8);
  const std::uint32_t high = static_cast<std::uint32_t>(c2) + (static_cast<std::uint32_t>(c3) << 8);
  const std::uint64_t s = (std::uint64_t{high} << 16) + low;
  return static_cast<std::uint32_t>(s >> 32) -
         __umulhi(static_cast<std::uint32_t>(s) * inverse, p) + p;
}

// kSteps: products of 32 bytes, eight slots each: the limbs and v. kTransform: with the first pass.
template <int kM, int kSteps, int kTeams, bool kTransform>
__global__ void __launch_bounds__(kTeams* Layout<kM>::kTeam, 1)
    lift_kernel(int log_n, unsigned rows, unsigned targets, DigitTable table, TensorTable tensor,
                const W32::Twiddle* twiddles, const double* reciprocal, const std::uint32_t* y,
                std::uint32_t* ext) {
  using L = Layout<kM>;
  using T = TilePass<W32, kM, kX, true, static_cast<int>(L::kTeam)>;
  extern __shared__ __align__(16) std::uint32_t words[];
  const unsigned digit = blockIdx.z, row = blockIdx.y / tensor.splits;
  const unsigned split = blockIdx.y % tensor.splits;
  const unsigned begin = table.begin[digit], count = table.count[digit];
  const int stride = log_n - kM;  // log2 of the distance of a column's residues
  const unsigned team = threadIdx.x / L::kTeam, index = threadIdx.x % L::kTeam;
  std::uint32_t* const exchanges = words + (count + 1) * L::kLimb;
  std::uint32_t* const ahead =
      exchanges + kTeams * 4 * L::kExchange + team * L::kAhead * L::kTables;
  const unsigned groups = tensor.groups[digit], step = kTeams * tensor.splits;
  unsigned group = split * kTeams + team;

  // A thread fetches two twiddles of one target, whose prime it must have read before.
  const unsigned fetched = index / (L::kTeam / 4), node = index % (L::kTeam / 4);
  const auto prime_of = [&](unsigned g) -> unsigned {
    return g < groups ? tensor.targets[(tensor.first[digit] + g) * 4 + fetched].prime : 0;
  };
  const auto fetch = [&](unsigned g, std::uint32_t* to, unsigned prime) {
    const unsigned at = tensor.first[digit] + g;
    const auto* from = twiddles + (static_cast<std::size_t>(prime) << log_n);
    if constexpr (kTransform) {
#pragma unroll
      for (unsigned n = node; n < 1u << kM; n += L::kTeam / 4) {
        __pipeline_memcpy_async(to + 8 * n + 2 * fetched, from + n, 8);
      }
    }
    to += L::kTwiddles;
    if (index < 32 * kSteps) {
      __pipeline_memcpy_async(to + 4 * index, tensor.fragments + (at * 32ull * kSteps + index) * 4,
                              16);
    } else if (index >= 64 && index < 68) {
      __pipeline_memcpy_async(to + L::kOperands + 4 * (index - 64),
                              tensor.targets + at * 4 + (index - 64), 16);
    }
  };
  if (group < groups) fetch(group, ahead, prime_of(group));
  after_predecessor();

  // The digit's columns, then v as one more limb.
  constexpr unsigned kThreads = kTeams * L::kTeam, kPieces = L::kTile / 4;
  for (unsigned piece = threadIdx.x; piece < count * kPieces; piece += kThreads) {
    const unsigned i = piece / kPieces, at = piece % kPieces * 4;
    const std::size_t from = ((static_cast<std::size_t>(begin + i) * rows + row) << log_n) +
                             ((at >> kX) << stride) + (blockIdx.x << kX) + (at & 7);
    __pipeline_memcpy_async(words + i * L::kLimb + at, y + from, 16);
  }
  __pipeline_commit();
  unsigned coming = prime_of(group + step);
  __pipeline_wait_prior(0);
  __syncthreads();
  for (unsigned at = threadIdx.x; at < L::kTile; at += kThreads) {
    double s = 0.5;
#pragma unroll 4
    for (unsigned i = 0; i < count; ++i) {
      s = __fma_rn(exact_double(words[i * L::kLimb + at]), reciprocal[begin + i], s);
    }
    words[count * L::kLimb + at] = static_cast<std::uint32_t>(floor_bits(s));
  }
  __syncthreads();

  const unsigned lane = index % 32, of_four = lane % 4, unit = index / 32 * 8 + lane / 4;
  // Slots of this thread; what has no limb meets zeros.
  const std::uint32_t* slot[2 * kSteps];
#pragma unroll
  for (unsigned q = 0; q < 2 * kSteps; ++q) {
    slot[q] =
        words + ::min(of_four + 4 * q, count) * L::kLimb + T::unit(unit, 0, T::size_of(0)).local;
  }
  // Between groups of as many stages a thread writes where it read last, the two ways in turn: nobody else
  // has to have left.
  static_assert(T::kGroups == 2);
  constexpr bool kTurns = T::size_of(0) == T::size_of(1);
  bool turned = false;
  std::uint32_t* now = ahead;
  for (; group < groups; group += step) {
    std::uint32_t* const next =
        now == ahead + (L::kAhead - 1) * L::kTables ? ahead : now + L::kTables;
    if (group + step < groups) fetch(group + step, next, coming);
    __pipeline_commit();
    coming = prime_of(group + 2 * step);
    std::uint32_t b[4 * kSteps];
    const auto* operands = reinterpret_cast<const uint4*>(now + L::kTwiddles) + lane * kSteps;
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const uint4 f = operands[i];
      b[4 * i] = f.x, b[4 * i + 1] = f.y, b[4 * i + 2] = f.z, b[4 * i + 3] = f.w;
    }
    const Target target =
        reinterpret_cast<const Target*>(now + L::kTwiddles + L::kOperands)[of_four];
    const W32::Prime prime{target.q, target.minus_2q, {}, {}};
    std::uint32_t x[16];
#pragma unroll
    for (int e = 0; e < 16; e += 2) {
      int c[4] = {}, d[4] = {};  // bytes 0, 1 and bytes 2, 3 of the rows e and e + 1
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        const std::uint32_t a[4] = {slot[2 * i][T::template offset<0>(e)],
                                    slot[2 * i][T::template offset<0>(e + 1)],
                                    slot[2 * i + 1][T::template offset<0>(e)],
                                    slot[2 * i + 1][T::template offset<0>(e + 1)]};
        multiply_bytes(c, a, b[4 * i], b[4 * i + 1]);
        multiply_bytes(d, a, b[4 * i + 2], b[4 * i + 3]);
      }
      x[e] = recombine(c[0], c[1], d[0], d[1], prime.q, target.inverse);
      x[e + 1] = recombine(c[2], c[3], d[2], d[3], prime.q, target.inverse);
    }
    const T t{exchanges + (team * 4 + of_four) * L::kExchange,      unit,  blockIdx.x, log_n, 0,
              reinterpret_cast<const W32::Twiddle*>(now) + of_four, prime, team};
    auto* out =
        ext + (((static_cast<std::size_t>(digit) * targets + target.row) * rows + row) << log_n);
    if constexpr (kTransform) {
      t.template compute<0>(x);
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
      if (target.row != kSkip) {
        t.template each<T::kLast>([&](int e, unsigned k) { out[k] = W32::store(x[e], prime); });
      }
    } else {
      __pipeline_wait_prior(0);
      t.sync();
      if (target.row != kSkip) {
        t.template each<0>([&](int e, unsigned k) { out[k] = W32::store(x[e], prime); });
      }
    }
    now = next;
  }
}

}  // namespace

TensorPlan::TensorPlan(const Stream& stream, const Config& config, const DigitTable& table,
                       std::span<const PrimeIndex> from, std::span<const PrimeIndex> to) {
  unsigned largest = 0;
  for (unsigned j = 0; j < table.digits; ++j) {
    largest = std::max<unsigned>(largest, table.count[j]);
  }
  if (largest > 15 || table.digits > kMaxTensorDigits) return;
  int shared = 0;  // some GPUs have less than a tile takes
  check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, stream.device()),
        "cudaDeviceGetAttribute");
  teams_ = 2;
  while (teams_ > 0 && Layout<8>::bytes(largest + 1, teams_) > static_cast<std::size_t>(shared)) {
    --teams_;
  }
  if (teams_ == 0) return;
  steps_ = largest < 8 ? 1 : 2;
  std::vector<std::uint32_t> fragments;
  std::vector<Target> targets;
  for (unsigned j = 0; j < table.digits; ++j) {
    const auto digit = from.subspan(table.begin[j], table.count[j]);
    table_.first[j] = static_cast<std::uint16_t>(targets.size() / 4);
    std::vector<Target> list;
    for (std::size_t t = 0; t < to.size(); ++t) {
      if (std::find(digit.begin(), digit.end(), to[t]) != digit.end()) continue;
      // Newton's iteration for the inverse of an odd number modulo 2^32.
      const auto p = static_cast<std::uint32_t>(config.primes[to[t]]);
      std::uint32_t inverse = p;
      for (int i = 0; i < 4; ++i) inverse *= 2 - p * inverse;
      list.push_back({p, 0 - 2 * p, inverse, to[t], static_cast<std::uint16_t>(t)});
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
        if (s > digit.size() || i >= list.size()) return 0;
        const arith::Modulus mod(config.primes[list[i].prime]);
        std::uint64_t m = mod.pow(2, 32);
        for (std::size_t k = 0; k < digit.size(); ++k) {
          if (k != s) m = mod.mul(m, mod.reduce(config.primes[digit[k]]));
        }
        if (s == digit.size()) m = mod.neg(m);
        std::uint32_t result = 0;
        for (unsigned a = 0; a < (s == digit.size() ? 1u : 4u); ++a) {
          result |= static_cast<std::uint32_t>(m >> (8 * (2 * h + n % 2)) & 0xff) << (8 * a);
          m = mod.mul(m, 256 % mod.value());
        }
        return result;
      };
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned step = 0; step < steps_; ++step) {
          for (unsigned h = 0; h < 2; ++h) {
            for (unsigned r = 0; r < 2; ++r) {
              fragments.push_back(word(8 * step + 4 * r + lane % 4, lane / 4, h));
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
  largest_ = largest;
}

void lift_by_bytes(const Engine<W32>& engine, const TensorPlan& plan, const DigitTable& table,
                   const Constant& reciprocal, unsigned targets, unsigned rows, void* ext,
                   const void* y) {
  const auto launch = [&]<int kM, bool kTransform>() {
    using L = Layout<kM>;
    const unsigned tiles = 1u << (engine.log_n - kM - kX);
    const unsigned blocks = std::max(1u, tiles * rows * table.digits);
    const auto with_teams = [&]<int kTeams>() {
      auto* kernel = plan.steps() == 1 ? lift_kernel<kM, 1, kTeams, kTransform>
                                       : lift_kernel<kM, 2, kTeams, kTransform>;
      const std::size_t bytes = L::bytes(plan.largest() + 1, kTeams);
      // As many blocks as there are SMs, when a digit has the targets for it.
      TensorTable tensor = plan.table();
      tensor.splits =
          std::clamp(engine.processors / blocks, 1u, (plan.most_groups() + kTeams - 1) / kTeams);
      cuda::launch(engine.stream, "lift on tensor cores", kernel,
                   dim3(tiles, rows * tensor.splits, table.digits), kTeams * L::kTeam, bytes, 1,
                   engine.log_n, rows, targets, table, tensor,
                   engine.tables.forward.as<W32::Twiddle>(), reciprocal.as<double>(),
                   static_cast<const std::uint32_t*>(y), static_cast<std::uint32_t*>(ext));
    };
    const bool spread = blocks * plan.most_groups() <= engine.processors;  // an SM for each team
    plan.teams() == 1 || spread ? with_teams.template operator()<1>()
                                : with_teams.template operator()<2>();
  };
  with_passes<W32>(engine.log_n, false, [&]<int kM1, int kX1, int kM2, int kX2>() {
    if constexpr (kM1 > 0) {
      launch.template operator()<kM1, true>();
    } else {
      launch.template operator()<7, false>();
    }
  });
}

}  // namespace jali::backend::cuda
