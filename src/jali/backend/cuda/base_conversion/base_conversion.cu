// Mathematics. A digit with primes q_i and product D stands for the integer (its centred lift)
//   sum_i y_i (D/q_i) - v D,  y_i = [x_i (D/q_i)^-1]_{q_i},  v = floor(1/2 + sum_i y_i / q_i),
// the sum in double precision as rlwe_ops.h specifies. Modulo a target prime it is an inner product
// of the y_i and v with constants: a matrix product over all targets.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "jali/arith/modulus.h"
#include "jali/backend/cuda/base_conversion/base_conversion.cuh"
#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/common/variants.h"

namespace jali::backend::cuda {

namespace {

// A digit of up to kHeld limbs stays in registers while a thread computes kTargets rows.
template <class W, int kHeld>
__global__ void base_conversion_kernel(int log_n, Targets targets, DigitTable table, unsigned rows,
                                       const typename W::Prime* primes, const double* reciprocal,
                                       const typename W::Stored* matrix, typename W::Stored* out,
                                       const typename W::Stored* y_in) {
  const unsigned group = blockIdx.y / rows, r = blockIdx.y % rows, digit = blockIdx.z;
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::size_t at = (static_cast<std::size_t>(r) << log_n) + k;
  const std::size_t limb = static_cast<std::size_t>(rows) << log_n;
  const unsigned begin = table.begin[digit], count = table.count[digit];
  after_predecessor();
  typename W::R y[kHeld];
  double s = 0.5;
#pragma unroll
  for (unsigned i = 0; i < kHeld; ++i) {
    if (i < count) {
      y[i] = W::load(y_in[(begin + i) * limb + at]);
      s = __fma_rn(exact_double(y[i]), reciprocal[begin + i], s);
    }
  }
  const auto v = W::load(static_cast<typename W::Stored>(floor_bits(s)));
  auto* block = out + static_cast<std::size_t>(digit) * targets.count * limb;
  const unsigned end = ::min(targets.count, (group + 1) * kTargets);
  for (unsigned t = group * kTargets; t < end; ++t) {
    if (is_own(targets, t, table, digit)) continue;
    const typename W::Prime prime = primes[targets.prime.prime[t]];
    const auto* row = matrix + table.matrix[digit] + t * (count + 1);
    typename W::Sum sum;
    W::add(sum, v, W::load(row[count]), prime);
#pragma unroll
    for (unsigned i = 0; i < kHeld; ++i) {
      if (i < count) {
        W::add(sum, y[i], W::load(row[i]), prime);
        if ((i + 2) % W::kFold == 0) sum = W::sum_of(W::total(sum, prime));
      }
    }
    block[t * limb + at] = W::canonical(W::total(sum, prime));
  }
}

// A digit of any size, read again for every row.
template <class W>
__global__ void base_conversion_large_kernel(int log_n, Targets targets, DigitTable table,
                                             unsigned rows, const typename W::Prime* primes,
                                             const double* reciprocal,
                                             const typename W::Stored* matrix,
                                             typename W::Stored* out,
                                             const typename W::Stored* y_in) {
  const unsigned t = blockIdx.y / rows, r = blockIdx.y % rows, digit = blockIdx.z;
  after_predecessor();
  if (is_own(targets, t, table, digit)) return;
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::size_t at = (static_cast<std::size_t>(r) << log_n) + k;
  const std::size_t limb = static_cast<std::size_t>(rows) << log_n;
  const unsigned begin = table.begin[digit], count = table.count[digit];
  const typename W::Prime prime = primes[targets.prime.prime[t]];
  const auto* row = matrix + table.matrix[digit] + static_cast<std::size_t>(t) * (count + 1);
  typename W::Sum sum;
  double s = 0.5;
#pragma unroll 1
  for (unsigned i = 0; i < count; ++i) {
    const auto y = W::load(y_in[(begin + i) * limb + at]);
    s = __fma_rn(exact_double(y), reciprocal[begin + i], s);
    W::add(sum, y, W::load(row[i]), prime);
    if ((i + 1) % W::kFold == 0) sum = W::sum_of(W::total(sum, prime));
  }
  W::add(sum, W::load(static_cast<typename W::Stored>(floor_bits(s))), W::load(row[count]), prime);
  out[(static_cast<std::size_t>(digit) * targets.count + t) * limb + at] =
      W::canonical(W::total(sum, prime));
}

// The first pass of the transform, in place or from y.
template <class W, int kM, int kX, bool kDirect>
__global__ void __launch_bounds__(TilePass<W, kM, kX, true>::kThreads)
    base_conversion_columns_kernel(int log_n, Targets targets, DigitTable table, unsigned rows,
                                   const typename W::Prime* primes,
                                   const typename W::Twiddle* twiddles, DirectConversion<W> direct,
                                   typename W::Stored* ext) {
  using T = TilePass<W, kM, kX, true>;
  extern __shared__ __align__(16) unsigned char memory[];
  // The targets of a tile follow each other, while what they are made of is in L2.
  const unsigned target = blockIdx.x % targets.count, digit = blockIdx.x / targets.count;
  const unsigned tile = blockIdx.y, b = blockIdx.z;
  if (is_own(targets, target, table, digit)) return after_predecessor();
  const unsigned index = targets.prime.prime[target];
  const typename W::Prime prime = primes[index];
  const T t{reinterpret_cast<typename W::R*>(memory),
            threadIdx.x,
            tile,
            log_n,
            0,
            twiddles + (static_cast<std::size_t>(index) << log_n),
            prime};
  auto* row = ext + ((static_cast<std::size_t>(blockIdx.x) * rows + b) << log_n);
  after_predecessor();
  typename W::R x[T::kHeld];
  if constexpr (kDirect) {
    const unsigned first = t.place(t.template base<0>());
    direct.template each<T::kHeld>(
        table, digit, target, rows, b, log_n, prime,
        [&](int e) { return first + t.spread(T::template offset<0>(e)); },
        [&](int e, typename W::R v) { x[e] = v; });
  } else {
    t.template each<0>([&](int e, unsigned at) { x[e] = W::load(row[at]); });
  }
  t.run(x);
  // Words below 4 q serve the second pass as they are.
  t.template each<T::kLast>([&](int e, unsigned at) {
    row[at] = sizeof(typename W::R) == 4 ? W::canonical(x[e]) : W::store(x[e], prime);
  });
}

}  // namespace

template <class W>
BaseConversionPlan<W>::BaseConversionPlan(const Stream& stream, const Config& config,
                                          std::span<const PrimeIndex> from_primes,
                                          std::span<const std::uint32_t> digit_limbs,
                                          std::span<const PrimeIndex> to,
                                          std::span<const PrimeIndex> multiply)
    : from_count(static_cast<unsigned>(from_primes.size())),
      to_count(static_cast<unsigned>(to.size())) {
  require<Unsupported>(digit_limbs.size() <= kMaxDigits && from_count <= kMaxLimbs,
                       "the GPU engine converts up to 128 digits and 256 limbs at once");
  const auto product = [&](std::span<const PrimeIndex> primes, const arith::Modulus& mod,
                           PrimeIndex except = 0xffff) {
    std::uint64_t r = 1 % mod.value();
    for (const PrimeIndex i : primes) {
      if (i != except) r = mod.mul(r, mod.reduce(config.primes[i]));
    }
    return r;
  };
  std::copy(from_primes.begin(), from_primes.end(), from.prime);
  std::vector<F> hats, keeps, divides;
  std::vector<double> reciprocals;
  std::vector<typename W::Stored> m, halves;
  std::size_t begin = 0;
  for (const std::uint32_t count : digit_limbs) {
    const auto digit = from_primes.subspan(begin, count);
    table.begin[table.digits] = static_cast<std::uint16_t>(begin);
    table.count[table.digits] = static_cast<std::uint16_t>(count);
    table.matrix[table.digits++] = static_cast<std::uint32_t>(m.size());
    largest_digit = std::max(largest_digit, count);
    begin += count;
    keeps.clear();
    divides.clear();
    for (const PrimeIndex i : digit) {
      const arith::Modulus mod(config.primes[i]);
      const std::uint64_t hat = mod.mul(product(digit, mod, i), mod.reduce(config.n));
      hats.push_back(
          make_factor<W>(mod.mul(mod.inverse(hat), product(multiply, mod)), mod.value()));
      reciprocals.push_back(1.0 / static_cast<double>(mod.value()));
      halves.push_back(static_cast<typename W::Stored>((mod.value() - 1) / 2));
    }
    for (const PrimeIndex t : to) {
      const arith::Modulus mod(config.primes[t]);
      for (const PrimeIndex i : digit) {
        m.push_back(static_cast<typename W::Stored>(product(digit, mod, i)));
      }
      const std::uint64_t d = product(digit, mod);
      m.push_back(static_cast<typename W::Stored>(mod.neg(d)));
      // 0 if t is a prime of the digit, and not used then.
      const std::uint64_t inverse = mod.inverse(d);
      keeps.push_back(make_factor<W>(mod.mul(inverse, product(multiply, mod)), mod.value()));
      divides.push_back(make_factor<W>(mod.neg(inverse), mod.value()));
    }
  }
  inverse_hat = Constant(stream, hats.data(), hats.size() * sizeof(F));
  reciprocal = Constant(stream, reciprocals.data(), reciprocals.size() * sizeof(double));
  half = Constant(stream, halves.data(), halves.size() * sizeof(typename W::Stored));
  if constexpr (std::is_same_v<W, W32>) {
    const auto variant = static_cast<ConversionVariant>(chosen_variant(config, "conversion"));
    const bool wanted = variant == ConversionVariant::tensor ||
                        (variant == ConversionVariant::automatic &&
                         largest_digit >= tensor_core_limbs(std::countr_zero(config.n)));
    if (wanted) tensor = TensorPlan(stream, config, table, from_primes, to);
  }
  // Digits are not empty: 0 limbs (nothing is dropped) go through memory.
  small_digits = !tensor.usable() && largest_digit <= kDirectLimbs && from_count > 0;
  log_n = std::countr_zero(config.n);
  matrix = Constant(stream, m.data(), m.size() * sizeof(typename W::Stored));
  keep = Constant(stream, keeps.data(), keeps.size() * sizeof(F));
  divide = Constant(stream, divides.data(), divides.size() * sizeof(F));
}

template <class W>
void convert_base(const Context<W>& context, const BaseConversionPlan<W>& plan,
                  const Targets& targets, unsigned rows, void* ext, const void* y, bool stay,
                  bool begin) {
  if constexpr (std::is_same_v<W, W32>) {
    if (plan.tensor.usable()) {
      return convert_on_tensor_cores(context, plan.tensor, plan.table, plan.reciprocal,
                                     targets.count, rows, ext, y, stay, begin);
    }
  }
  using S = typename W::Stored;
  const auto& t = context.tables;
  const auto* primes = t.primes.template as<typename W::Prime>();
  const auto convert = [&](auto* kernel, unsigned groups) {
    const dim3 grid((1u << context.log_n) / kBlockThreads, groups * rows, plan.table.digits);
    launch(context.stream, "base conversion", kernel, grid, kBlockThreads, 0, 1, context.log_n,
           targets, plan.table, rows, primes, plan.reciprocal.template as<double>(),
           plan.matrix.template as<S>(), static_cast<S*>(ext), static_cast<const S*>(y));
  };
  const bool direct = plan.largest_digit <= kDirectLimbs && plan.from_count > 0;
  const unsigned groups = (targets.count + kTargets - 1) / kTargets;
  if (plan.at_use(rows)) return;
  if (direct && context.log_n > kSinglePassUpTo) {
  } else if (plan.largest_digit <= 4) {
    convert(base_conversion_kernel<W, 4>, groups);
  } else if (plan.largest_digit <= 8) {
    convert(base_conversion_kernel<W, 8>, groups);
  } else if (plan.largest_digit <= 12) {
    convert(base_conversion_kernel<W, 12>, groups);
  } else if (plan.largest_digit <= 16) {
    convert(base_conversion_kernel<W, 16>, groups);
  } else {
    convert(base_conversion_large_kernel<W>, targets.count);
  }
  with_passes<W>(context.log_n, false, [&]<int kM1, int kX1, int kM2, int kX2>() {
    if constexpr (kM1 > 0) {
      using T = TileSize<W, kM1, kX1, true>;
      const dim3 grid(plan.table.digits * targets.count, 1u << (context.log_n - T::kLog), rows);
      auto* kernel = direct ? base_conversion_columns_kernel<W, kM1, kX1, true>
                            : base_conversion_columns_kernel<W, kM1, kX1, false>;
      launch(context.stream, "base conversion, first pass", kernel, grid, T::kThreads, T::kBytes, 1,
             context.log_n, targets, plan.table, rows, primes,
             t.forward.template as<typename W::Twiddle>(), direct_conversion(plan, y),
             static_cast<S*>(ext));
    }
  });
}

#define JALI_INSTANTIATE(W)                                                                      \
  template struct BaseConversionPlan<W>;                                                         \
  template void convert_base<W>(const Context<W>&, const BaseConversionPlan<W>&, const Targets&, \
                                unsigned, void*, const void*, bool, bool);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
