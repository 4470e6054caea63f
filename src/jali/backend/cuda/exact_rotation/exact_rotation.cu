#include <algorithm>
#include <iterator>

#include "jali/backend/cuda/exact_rotation/exact_rotation.cuh"

namespace jali::backend::cuda {

namespace {

using namespace exact;

/// The threads of a block, as program.h takes them. Count: their number, or 0 if only the launch
/// knows it.
template <u32 Count>
struct BlockThreads {
  template <class F>
  JALI_HD void each(const F& f) const {
#ifdef __CUDA_ARCH__
    if constexpr (Count != 0) __builtin_assume(threadIdx.x < Count);  // comparisons with it go
    f(threadIdx.x);
    __syncthreads();
#endif
  }
  JALI_HD u32 count() const {
#ifdef __CUDA_ARCH__
    return Count != 0 ? Count : blockDim.x;
#else
    return 0;
#endif
  }
  JALI_HD static void prefetch([[maybe_unused]] const void* line) {
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
#endif
  }
  JALI_HD void add(long long* to, long long value) const {
#ifdef __CUDA_ARCH__
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
#endif
  }
};

struct RotateArgs {
  Shape shape;
  Tables tables;
  Batch batch;
  Layout layout;
  std::byte* scratch;
};

/// The sizes of the presets that have one level and not more than 2,048 coefficients: kernels are
/// compiled for them.
constexpr Sizes kUsual[] = {{9, 4, 1, true},  {9, 5, 1, true},   {11, 2, 1, true},
                            {9, 4, 1, false}, {10, 3, 1, false}, {11, 2, 1, false}};
constexpr int kUsuals = std::size(kUsual);

// A block rotates one ciphertext after the other. AllShared: all arrays lie in shared memory, which
// the compiler then knows. Usual: the sizes are those of kUsual, or, if it is kUsuals, any.
template <class Acc, bool AllShared, int Usual>
__global__ void __launch_bounds__(kMostThreads, 2)
    rotate_kernel(const __grid_constant__ RotateArgs a) {
  extern __shared__ __align__(16) std::byte exact_shared[];
  __shared__ u32 exponents[kMostUnits];
  __shared__ long long rounding;
  std::byte* const scratch = a.scratch + blockIdx.x * a.layout.scratch_bytes;
  const auto place = [&](Layout::Array array) {
    if constexpr (AllShared)
      return exact_shared + a.layout.offset[array];
    else
      return (a.layout.in_shared[array] ? exact_shared : scratch) + a.layout.offset[array];
  };
  const Memory<Acc> at{reinterpret_cast<u32*>(place(Layout::sums)),
                       reinterpret_cast<u32*>(place(Layout::rows)),
                       reinterpret_cast<Acc*>(place(Layout::acc)),
                       reinterpret_cast<u32*>(place(Layout::fractions)),
                       reinterpret_cast<std::int32_t*>(place(Layout::digits)),
                       exponents,
                       &rounding};
  constexpr bool kKnown = Usual < kUsuals;
  const Sizes sizes = kKnown ? kUsual[kKnown ? Usual : 0] : Sizes(a.shape);
  constexpr u32 kThreads = kKnown ? threads_of(kUsual[kKnown ? Usual : 0]) : 0;
  after_predecessor();
  for (std::size_t i = blockIdx.x; i < a.batch.count; i += gridDim.x) {
    exact::rotate(sizes, a.shape, a.tables, a.batch, i, at, BlockThreads<kThreads>{});
  }
}

// A block transforms one polynomial after the other, modulo one prime after the other.
__global__ void __launch_bounds__(kMostThreads)
    prepare_kernel(const __grid_constant__ Shape shape, Tables tables, u32* key, const void* ggsws,
                   u32 first, std::size_t polynomials, u32* scratch, bool in_shared) {
  extern __shared__ __align__(16) std::byte exact_shared[];
  u32* const points = in_shared
                          ? reinterpret_cast<u32*>(exact_shared)
                          : scratch + blockIdx.x * static_cast<std::size_t>(padded(shape.N()));
  after_predecessor();
  for (std::size_t i = blockIdx.x; i < polynomials * shape.primes; i += gridDim.x) {
    exact::prepare(shape, tables, key, ggsws, first, i / shape.primes,
                   static_cast<u32>(i % shape.primes), points, BlockThreads<0>{});
  }
}

constexpr std::size_t kPrepareBlocks = 264;
constexpr std::size_t kStaticShared = 128;  // at most, of rotate_kernel

template <class T>
Constant constant(const Stream& stream, const std::vector<T>& table) {
  return Constant(stream, table.data(), table.size() * sizeof(T));
}
std::size_t polynomial_bytes(const Shape& shape) { return padded(shape.N()) * sizeof(u32); }
u32 prepare_threads(const Shape& shape) { return std::min(shape.N() / 8, kMostThreads); }

using Kernel = void (*)(RotateArgs);
template <int Usual = 0>
Kernel usual_kernel(const Sizes& sizes) {  // of words of 64 bits, all in shared memory
  if constexpr (Usual == kUsuals) {
    return rotate_kernel<u64, true, kUsuals>;
  } else {
    return sizes == kUsual[Usual] ? rotate_kernel<u64, true, Usual>
                                  : usual_kernel<Usual + 1>(sizes);
  }
}
Kernel kernel_of(const Shape& shape, const Layout& layout) {
  const bool shared = layout.scratch_bytes == 0;
  if (shape.torus == 64) return shared ? usual_kernel(shape) : rotate_kernel<u64, false, kUsuals>;
  return shared ? rotate_kernel<u32, true, kUsuals> : rotate_kernel<u32, false, kUsuals>;
}
unsigned blocks_of_a_multiprocessor(const Shape& shape, const Layout& layout) {
  int count = 0;
  const auto kernel = kernel_of(shape, layout);
  allow_shared(kernel, layout.shared_bytes);
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &count, kernel, static_cast<int>(threads_of(shape)), layout.shared_bytes),
        "blocks of a kernel");
  return static_cast<unsigned>(std::max(count, 1));
}

}  // namespace

ExactRotation::ExactRotation(const Stream& stream, const TfheConfig& config)
    : shape_(exact::shape(config)) {
  const HostTables host = host_tables(shape_);
  forward_ = constant(stream, host.forward);
  inverse_ = constant(stream, host.inverse);
  roots_ = constant(stream, host.roots);
  int shared = 0, sms = 0;
  check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, stream.device()),
        "device");
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, stream.device()), "device");
  most_shared_ = static_cast<std::size_t>(shared) - kStaticShared;
  multiprocessors_ = static_cast<unsigned>(sms);
  layout_ = exact::layout(shape_, most_shared_);
  each_ = blocks_of_a_multiprocessor(shape_, layout_);
  stream.synchronize();  // the tables have arrived
}

exact::Tables ExactRotation::tables() const {
  return {forward_.as<Factor>(), inverse_.as<Factor>(), roots_.as<u32>()};
}

std::size_t ExactRotation::prepare_scratch_bytes() const {
  const std::size_t bytes = polynomial_bytes(shape_);
  return bytes <= most_shared_ ? 0 : kPrepareBlocks * bytes;
}

void ExactRotation::prepare(const Stream& stream, std::uint32_t* key, const void* ggsws,
                            std::size_t first, std::size_t count, void* scratch) const {
  const bool in_shared = prepare_scratch_bytes() == 0;
  const std::size_t polynomials = count * shape_.key_polynomials();
  launch(stream, "bootstrapping key", prepare_kernel,
         dim3(static_cast<unsigned>(std::min(kPrepareBlocks, polynomials * shape_.primes))),
         prepare_threads(shape_), in_shared ? polynomial_bytes(shape_) : 0, 1, shape_, tables(),
         key, ggsws, static_cast<u32>(first), polynomials, static_cast<u32*>(scratch), in_shared);
}

unsigned ExactRotation::blocks(std::size_t count) const {
  return blocks_of(layout_, multiprocessors_, each_, count);
}

void ExactRotation::rotate(const Stream& stream, const exact::Batch& batch, unsigned blocks,
                           void* scratch) const {
  const RotateArgs args{shape_, tables(), batch, layout_, static_cast<std::byte*>(scratch)};
  launch(stream, "blind rotation", kernel_of(shape_, layout_), dim3(blocks), threads_of(shape_),
         layout_.shared_bytes, 1, args);
}

}  // namespace jali::backend::cuda
