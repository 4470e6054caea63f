// Two passes of butterflies: runs of 2^11 consecutive values in shared memory, and columns of
// values 2^11 apart. Every operation on doubles is named by its rounding, so that none is
// contracted: the bits are those of the host's loops.
#include <algorithm>

#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/embedding/embedding.cuh"

namespace jali::backend::cuda {

namespace {

constexpr int kLogRun = 11;  // 32 KB of shared memory
constexpr unsigned kRun = 1u << kLogRun, kThreads = 512;

__device__ inline double2 times(double2 a, double2 b) {
  return {__dsub_rn(__dmul_rn(a.x, b.x), __dmul_rn(a.y, b.y)),
          __dadd_rn(__dmul_rn(a.x, b.y), __dmul_rn(a.y, b.x))};
}
__device__ inline double2 plus(double2 a, double2 b) {
  return {__dadd_rn(a.x, b.x), __dadd_rn(a.y, b.y)};
}
__device__ inline double2 minus(double2 a, double2 b) {
  return {__dsub_rn(a.x, b.x), __dsub_rn(a.y, b.y)};
}
__device__ inline void forward_butterfly(double2& lo, double2& hi, double2 w) {
  const double2 v = times(hi, w), u = lo;
  lo = plus(u, v);
  hi = minus(u, v);
}
__device__ inline void backward_butterfly(double2& lo, double2& hi, double2 w) {
  const double2 d = minus(lo, hi);
  lo = plus(lo, hi);
  hi = times(d, {w.x, -w.y});
}

/// Levels of half = 1 .. run / 2 (backward) or run / 2 .. 1 (forward) on a run that begins at value
/// `first` of the vector. x: shared memory.
template <bool kBackward>
__device__ void run_levels(double2* x, unsigned run, unsigned first, unsigned slots,
                           const double2* twiddle) {
  for (unsigned level = 1; level < run; level *= 2) {
    const unsigned half = kBackward ? level : run / (2 * level);
    const unsigned m = slots / (2 * half);
    __syncthreads();
    for (unsigned t = threadIdx.x; t < run / 2; t += blockDim.x) {
      const unsigned group = t / half, lo = group * 2 * half + t % half;
      const double2 w = twiddle[m + first / (2 * half) + group];
      if constexpr (kBackward) {
        backward_butterfly(x[lo], x[lo + half], w);
      } else {
        forward_butterfly(x[lo], x[lo + half], w);
      }
    }
  }
  __syncthreads();
}

/// Levels of half = kRun .. slots / 2 on `columns` columns of `rows` = slots / kRun values. x:
/// shared, (row, column).
template <bool kBackward>
__device__ void column_levels(double2* x, unsigned rows, unsigned columns, unsigned slots,
                              const double2* twiddle) {
  for (unsigned level = 1; level < rows; level *= 2) {
    const unsigned half = kBackward ? level : rows / (2 * level);  // in rows
    const unsigned m = rows / (2 * half);
    __syncthreads();
    for (unsigned t = threadIdx.x; t < rows / 2 * columns; t += blockDim.x) {
      const unsigned c = t % columns, r = t / columns, group = r / half;
      const unsigned lo = (group * 2 * half + r % half) * columns + c;
      const double2 w = twiddle[m + group];
      if constexpr (kBackward) {
        backward_butterfly(x[lo], x[lo + half * columns], w);
      } else {
        forward_butterfly(x[lo], x[lo + half * columns], w);
      }
    }
  }
  __syncthreads();
}

/// values -> leaf order, then the levels within runs.
__global__ void embed_runs(int log_slots, const double2* values, unsigned count,
                           const std::uint32_t* slot_of, const double2* twiddle, double2* out) {
  extern __shared__ double2 x[];
  const unsigned slots = 1u << log_slots, run = min(slots, kRun), first = blockIdx.x * run;
  const double2* in = values + static_cast<std::size_t>(blockIdx.y) * count;
  for (unsigned t = threadIdx.x; t < run; t += blockDim.x) {
    const unsigned j = slot_of[first + t];
    x[t] = j < count ? in[j] : double2{0, 0};
  }
  run_levels<true>(x, run, first, slots, twiddle);
  double2* to = out + (static_cast<std::size_t>(blockIdx.y) << log_slots) + first;
  for (unsigned t = threadIdx.x; t < run; t += blockDim.x) to[t] = x[t];
}

/// The levels across runs, then rounding; columns from blockIdx.x * columns on.
__global__ void embed_columns(int log_n, int log_slots, double factor, const double2* twiddle,
                              const double2* in, std::int64_t* out) {
  extern __shared__ double2 x[];
  const unsigned slots = 1u << log_slots, run = min(slots, kRun), rows = slots / run;
  const unsigned columns = run / rows, first = blockIdx.x * columns, n = 1u << log_n;
  const double2* from = in + (static_cast<std::size_t>(blockIdx.y) << log_slots) + first;
  for (unsigned t = threadIdx.x; t < rows * columns; t += blockDim.x) {
    x[t] = from[t / columns * run + t % columns];
  }
  column_levels<true>(x, rows, columns, slots, twiddle);
  const unsigned gap = n / 2 / slots;
  std::int64_t* to = out + (static_cast<std::size_t>(blockIdx.y) << log_n);
  for (unsigned t = threadIdx.x; t < rows * columns; t += blockDim.x) {
    const unsigned k = first + t / columns * run + t % columns;
    to[k * gap] = __double2ll_rn(__dmul_rn(x[t].x, factor));
    to[k * gap + n / 2] = __double2ll_rn(__dmul_rn(x[t].y, factor));
  }
}

/// The centred value of integer k over the divisor.
__device__ double centred(const std::uint64_t* integers, std::size_t stride, std::size_t k,
                          const std::uint64_t* q, unsigned words, double divisor) {
  // Q - v word by word; the upper of the two decides the sign, from the first word that differs on.
  bool upper = false;
  std::uint64_t borrow = 0;
  for (unsigned w = 0; w < words; ++w) {
    const std::uint64_t v = integers[w * stride + k], t = q[w] - v, d = t - borrow;
    borrow = (q[w] < v) | (t < borrow);
    upper = v == d ? upper : v > d;
  }
  // Horner from the most significant word; differences need their borrow, from the least on.
  double sum = 0;
  for (unsigned w = words; w-- > 0;) {
    const std::uint64_t v = integers[w * stride + k];
    std::uint64_t word = v;
    if (upper) {
      std::uint64_t below = 0;  // whether the words below w borrow
      for (unsigned u = w; u-- > 0;) {
        const std::uint64_t other = integers[u * stride + k];
        if (q[u] != other) {
          below = q[u] < other;
          break;
        }
      }
      word = q[w] - v - below;
    }
    sum = __dadd_rn(__dmul_rn(sum, 0x1p64), __ull2double_rn(word));
  }
  return __ddiv_rn(upper ? -sum : sum, divisor);
}

__global__ void unembed_columns(int log_n, int log_slots, double divisor,
                                const std::uint64_t* integers, const std::uint64_t* q_words,
                                unsigned words, const double2* twiddle, double2* out) {
  extern __shared__ double2 x[];
  const unsigned slots = 1u << log_slots, run = min(slots, kRun), rows = slots / run;
  const unsigned columns = run / rows, first = blockIdx.x * columns, n = 1u << log_n;
  const unsigned gap = n / 2 / slots;
  const std::size_t stride = static_cast<std::size_t>(gridDim.y) << log_n;
  const std::size_t base = static_cast<std::size_t>(blockIdx.y) << log_n;
  for (unsigned t = threadIdx.x; t < rows * columns; t += blockDim.x) {
    const std::size_t k = base + (first + t / columns * run + t % columns) * gap;
    x[t] = {centred(integers, stride, k, q_words, words, divisor),
            centred(integers, stride, k + n / 2, q_words, words, divisor)};
  }
  column_levels<false>(x, rows, columns, slots, twiddle);
  double2* to = out + (static_cast<std::size_t>(blockIdx.y) << log_slots) + first;
  for (unsigned t = threadIdx.x; t < rows * columns; t += blockDim.x) {
    to[t / columns * run + t % columns] = x[t];
  }
}

/// The levels within runs, then the slots in order.
__global__ void unembed_runs(int log_slots, const std::uint32_t* slot_of, const double2* twiddle,
                             const double2* in, double2* out) {
  extern __shared__ double2 x[];
  const unsigned slots = 1u << log_slots, run = min(slots, kRun), first = blockIdx.x * run;
  const std::size_t base = static_cast<std::size_t>(blockIdx.y) << log_slots;
  for (unsigned t = threadIdx.x; t < run; t += blockDim.x) x[t] = in[base + first + t];
  run_levels<false>(x, run, first, slots, twiddle);
  for (unsigned t = threadIdx.x; t < run; t += blockDim.x) out[base + slot_of[first + t]] = x[t];
}

struct Launch {
  dim3 grid;
  unsigned threads;
  std::size_t shared;
};
Launch launch_of(int log_slots, unsigned batch) {
  const unsigned slots = 1u << log_slots, run = std::min(slots, kRun);
  return {dim3(slots / run, batch), std::clamp(run / 2, 32u, kThreads), run * sizeof(double2)};
}

}  // namespace

EmbeddingTables::EmbeddingTables(const Stream& stream, const Embedding& embedding) {
  static_assert(sizeof(Complex) == sizeof(double2));
  const std::size_t slots = embedding.twiddle.size();
  twiddle = Constant(stream, embedding.twiddle.data(), slots * sizeof(Complex));
  // The inverse permutation: which slot a value of the vector is.
  std::vector<std::uint32_t> slot_of(2 * slots);
  for (std::size_t log = 0; log < embedding.leaf.size(); ++log) {
    const auto& leaf = embedding.leaf[log];
    for (std::size_t j = 0; j < leaf.size(); ++j) {
      slot_of[leaf.size() + leaf[j]] = static_cast<std::uint32_t>(j);
    }
  }
  this->slot_of = Constant(stream, slot_of.data(), slot_of.size() * sizeof(std::uint32_t));
}

void embed(const Stream& stream, const EmbeddingTables& tables, unsigned batch, int log_n,
           int log_slots, double factor, const void* values, unsigned count, void* w,
           std::int64_t* out) {
  const Launch l = launch_of(log_slots, batch);
  const auto* twiddle = tables.twiddle.as<double2>();
  auto* x = static_cast<double2*>(w);
  embed_runs<<<l.grid, l.threads, l.shared, stream.get()>>>(
      log_slots, static_cast<const double2*>(values), count,
      tables.slot_of.as<std::uint32_t>() + (std::size_t{1} << log_slots), twiddle, x);
  check_launch(stream, "embed");
  embed_columns<<<l.grid, l.threads, l.shared, stream.get()>>>(log_n, log_slots, factor, twiddle, x,
                                                               out);
  check_launch(stream, "embed");
}

void unembed(const Stream& stream, const EmbeddingTables& tables, unsigned batch, int log_n,
             int log_slots, double divisor, const std::uint64_t* integers,
             const std::uint64_t* q_words, unsigned words, void* w, void* out) {
  const Launch l = launch_of(log_slots, batch);
  const auto* twiddle = tables.twiddle.as<double2>();
  auto* x = static_cast<double2*>(w);
  unembed_columns<<<l.grid, l.threads, l.shared, stream.get()>>>(
      log_n, log_slots, divisor, integers, q_words, words, twiddle, x);
  check_launch(stream, "unembed");
  unembed_runs<<<l.grid, l.threads, l.shared, stream.get()>>>(
      log_slots, tables.slot_of.as<std::uint32_t>() + (std::size_t{1} << log_slots), twiddle, x,
      static_cast<double2*>(out));
  check_launch(stream, "unembed");
}

}  // namespace jali::backend::cuda
