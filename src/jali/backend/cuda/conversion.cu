// Mathematics. The centred lift of a digit with primes q_i and product D is
//   sum_i y_i (D/q_i) - v D,  y_i = [x_i (D/q_i)^-1]_{q_i},  v = floor(1/2 + sum_i y_i / q_i),
// the sum in double precision as ops.h specifies. Modulo a target prime it is an inner product of
// the y_i and v with constants: a matrix product over all targets.
#include <algorithm>

#include "jali/arith/modulus.h"
#include "jali/backend/cuda/check.cuh"
#include "jali/backend/cuda/conversion.cuh"

namespace jali::backend::cuda {

namespace {

template <class W>
__global__ void prepare_kernel(DigitTable table, unsigned batch, int log_n,
                               const typename W::Prime* primes, const std::uint16_t* from,
                               const Factor<typename W::R>* inverse_hat, const double* reciprocal,
                               typename W::Stored* x, typename W::Stored* v) {
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y, digit = blockIdx.z;
  const std::size_t at = (static_cast<std::size_t>(b) << log_n) + k;
  const std::size_t limb = static_cast<std::size_t>(batch) << log_n;
  const unsigned begin = table.begin[digit], end = begin + table.count[digit];
  double sum = 0.5;
  for (unsigned i = begin; i < end; ++i) {
    const typename W::Prime prime = primes[from[i]];
    const auto y = W::store(W::mul_lazy(W::load(x[i * limb + at]), inverse_hat[i], prime), prime);
    x[i * limb + at] = y;
    sum = __fma_rn(W::to_double(W::load(y)), reciprocal[i], sum);
  }
  v[digit * limb + at] = static_cast<typename W::Stored>(floor(sum));
}

constexpr unsigned kTargets = 8;  // rows that a thread writes from one reading of the digit

// A digit of up to kHeld limbs stays in registers while a thread computes kTargets rows.
template <class W, int kHeld>
__global__ void convert_kernel(Shape s, Limbs limbs, Limbs position, DigitTable table,
                               const typename W::Prime* primes, const typename W::Stored* matrix,
                               typename W::Stored* out, const typename W::Stored* y_in,
                               const typename W::Stored* v, const typename W::Stored* x) {
  const unsigned group = blockIdx.y / s.batch, b = blockIdx.y % s.batch, digit = blockIdx.z;
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::size_t at = (static_cast<std::size_t>(b) << s.log_n) + k;
  const std::size_t limb = static_cast<std::size_t>(s.batch) << s.log_n;
  const unsigned begin = table.begin[digit], count = table.count[digit];
  typename W::R y[kHeld];
#pragma unroll
  for (unsigned i = 0; i < kHeld; ++i) {
    if (i < count) y[i] = W::load(y_in[(begin + i) * limb + at]);
  }
  const auto overflow = W::load(v[digit * limb + at]);
  auto* block = out + static_cast<std::size_t>(digit) * s.limb_count * limb;
  const unsigned end = ::min(s.limb_count, (group + 1) * kTargets);
  for (unsigned t = group * kTargets; t < end; ++t) {
    const unsigned own = position.prime[t];
    if (own != kSkip && own - begin < count) {
      block[t * limb + at] = x[own * limb + at];
      continue;
    }
    const typename W::Prime prime = primes[limbs.prime[t]];
    const auto* row = matrix + table.matrix[digit] + t * (count + 1);
    typename W::Sum sum;
    W::add(sum, overflow, W::load(row[count]), prime);
#pragma unroll
    for (unsigned i = 0; i < kHeld; ++i) {
      if (i < count) {
        W::add(sum, y[i], W::load(row[i]), prime);
        if ((i + 2) % W::kFold == 0) sum = W::sum_of(W::total(sum, prime));
      }
    }
    block[t * limb + at] = W::store(W::total(sum, prime), prime);
  }
}

// A digit of any size, read again for every row.
template <class W>
__global__ void convert_large_kernel(Shape s, Limbs limbs, Limbs position, DigitTable table,
                                     const typename W::Prime* primes,
                                     const typename W::Stored* matrix, typename W::Stored* out,
                                     const typename W::Stored* y, const typename W::Stored* v,
                                     const typename W::Stored* x) {
  const unsigned t = blockIdx.y / s.batch, b = blockIdx.y % s.batch, digit = blockIdx.z;
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::size_t at = (static_cast<std::size_t>(b) << s.log_n) + k;
  const std::size_t limb = static_cast<std::size_t>(s.batch) << s.log_n;
  const unsigned begin = table.begin[digit], count = table.count[digit];
  auto* to = out + (static_cast<std::size_t>(digit) * s.limb_count + t) * limb + at;
  const unsigned own = position.prime[t];
  if (own != kSkip && own - begin < count) {
    *to = x[own * limb + at];
    return;
  }
  const typename W::Prime prime = primes[limbs.prime[t]];
  const auto* row = matrix + table.matrix[digit] + static_cast<std::size_t>(t) * (count + 1);
  typename W::Sum sum;
  W::add(sum, W::load(v[digit * limb + at]), W::load(row[count]), prime);
#pragma unroll 1
  for (unsigned i = 0; i < count; ++i) {
    W::add(sum, W::load(y[(begin + i) * limb + at]), W::load(row[i]), prime);
    if ((i + 2) % W::kFold == 0) sum = W::sum_of(W::total(sum, prime));
  }
  *to = W::store(W::total(sum, prime), prime);
}

template <class W>
__global__ void combine_kernel(Shape s, Limbs limbs, Limbs source, const typename W::Prime* primes,
                               const Factor<typename W::R>* keep,
                               const Factor<typename W::R>* divide, typename W::Stored* out,
                               const typename W::Stored* x, const typename W::Stored* addend) {
  const unsigned t = blockIdx.y / s.batch, b = blockIdx.y % s.batch;
  const typename W::Prime prime = primes[limbs.prime[t]];
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::size_t limb = static_cast<std::size_t>(s.batch) << s.log_n;
  const std::size_t in_limb = (static_cast<std::size_t>(b) << s.log_n) + k;
  const std::size_t at = t * limb + in_limb;
  auto r = W::load(W::store(W::mul_lazy(W::load(out[at]), divide[t], prime), prime));
  if (source.prime[t] != kSkip) {
    const auto kept = W::mul_lazy(W::load(x[source.prime[t] * limb + in_limb]), keep[t], prime);
    r = W::add_mod(r, W::load(W::store(kept, prime)), prime);
  }
  if (addend != nullptr) r = W::add_mod(r, W::load(addend[at]), prime);
  out[at] = W::store(r, prime);
}

}  // namespace

template <class W>
ConversionPlan<W>::ConversionPlan(const Stream& stream, const Config& config,
                                  std::span<const PrimeIndex> from,
                                  std::span<const std::uint32_t> digit_limbs,
                                  std::span<const PrimeIndex> to,
                                  std::span<const PrimeIndex> multiply)
    : from_count(static_cast<unsigned>(from.size())), to_count(static_cast<unsigned>(to.size())) {
  require<Unsupported>(digit_limbs.size() <= kMaxDigits,
                       "the GPU engine lifts up to 128 digits at once");
  const auto product = [&](std::span<const PrimeIndex> primes, const arith::Modulus& mod,
                           PrimeIndex except = 0xffff) {
    std::uint64_t r = 1 % mod.value();
    for (const PrimeIndex i : primes) {
      if (i != except) r = mod.mul(r, mod.reduce(config.primes[i]));
    }
    return r;
  };
  std::vector<F> hats, keeps, divides;
  std::vector<double> reciprocals;
  std::vector<typename W::Stored> m;
  std::size_t begin = 0;
  for (const std::uint32_t count : digit_limbs) {
    const auto digit = from.subspan(begin, count);
    table.begin[table.digits] = static_cast<std::uint16_t>(begin);
    table.count[table.digits] = static_cast<std::uint16_t>(count);
    table.matrix[table.digits++] = static_cast<std::uint32_t>(m.size());
    largest_digit = std::max(largest_digit, count);
    begin += count;
    keeps.clear();
    divides.clear();
    for (const PrimeIndex i : digit) {
      const arith::Modulus mod(config.primes[i]);
      hats.push_back(make_factor<W>(
          mod.mul(mod.inverse(product(digit, mod, i)), product(multiply, mod)), mod.value()));
      reciprocals.push_back(1.0 / static_cast<double>(mod.value()));
    }
    for (const PrimeIndex t : to) {
      const arith::Modulus mod(config.primes[t]);
      for (const PrimeIndex i : digit) {
        m.push_back(static_cast<typename W::Stored>(product(digit, mod, i)));
      }
      const std::uint64_t d = product(digit, mod);
      m.push_back(static_cast<typename W::Stored>(mod.neg(d)));
      const std::uint64_t inverse = mod.inverse(d);  // 0 where t is one of the digit's: unused
      keeps.push_back(make_factor<W>(mod.mul(inverse, product(multiply, mod)), mod.value()));
      divides.push_back(make_factor<W>(mod.neg(inverse), mod.value()));
    }
  }
  inverse_hat = Constant(stream, hats.data(), hats.size() * sizeof(F));
  reciprocal = Constant(stream, reciprocals.data(), reciprocals.size() * sizeof(double));
  from_limbs = Constant(stream, from.data(), from.size() * sizeof(PrimeIndex));
  matrix = Constant(stream, m.data(), m.size() * sizeof(typename W::Stored));
  keep = Constant(stream, keeps.data(), keeps.size() * sizeof(F));
  divide = Constant(stream, divides.data(), divides.size() * sizeof(F));
}

namespace {
constexpr unsigned kThreads = 256;
unsigned tiles(int log_n) { return ((1u << log_n) + kThreads - 1) / kThreads; }
}  // namespace

template <class W>
void lift_prepare(const Stream& stream, const Tables<W>& t, const ConversionPlan<W>& plan,
                  unsigned batch, int log_n, void* x, void* v) {
  using S = typename W::Stored;
  prepare_kernel<W><<<dim3(tiles(log_n), batch, plan.table.digits), kThreads, 0, stream.get()>>>(
      plan.table, batch, log_n, t.primes.template as<typename W::Prime>(),
      plan.from_limbs.template as<std::uint16_t>(),
      plan.inverse_hat.template as<Factor<typename W::R>>(), plan.reciprocal.template as<double>(),
      static_cast<S*>(x), static_cast<S*>(v));
  check_launch(stream, "lift_prepare");
}

template <class W>
void lift_convert(const Stream& stream, const Tables<W>& t, const ConversionPlan<W>& plan,
                  const Shape& s, const Limbs& limbs, const Limbs& position, void* out,
                  const void* y, const void* v, const void* x) {
  using S = typename W::Stored;
  const auto launch = [&](auto* kernel, unsigned rows) {
    kernel<<<dim3(tiles(s.log_n), rows * s.batch, plan.table.digits), kThreads, 0, stream.get()>>>(
        s, limbs, position, plan.table, t.primes.template as<typename W::Prime>(),
        plan.matrix.template as<S>(), static_cast<S*>(out), static_cast<const S*>(y),
        static_cast<const S*>(v), static_cast<const S*>(x));
  };
  const unsigned groups = (s.limb_count + kTargets - 1) / kTargets;
  if (plan.largest_digit <= 4) {
    launch(convert_kernel<W, 4>, groups);
  } else if (plan.largest_digit <= 8) {
    launch(convert_kernel<W, 8>, groups);
  } else if (plan.largest_digit <= 12) {
    launch(convert_kernel<W, 12>, groups);
  } else if (plan.largest_digit <= 16) {
    launch(convert_kernel<W, 16>, groups);
  } else {
    launch(convert_large_kernel<W>, s.limb_count);
  }
  check_launch(stream, "lift_convert");
}

template <class W>
void divide_combine(const Stream& stream, const Tables<W>& t, const ConversionPlan<W>& plan,
                    const Shape& s, const Limbs& limbs, const Limbs& source, void* out,
                    const void* x, const void* addend) {
  using S = typename W::Stored;
  combine_kernel<W><<<dim3(tiles(s.log_n), s.limb_count * s.batch), kThreads, 0, stream.get()>>>(
      s, limbs, source, t.primes.template as<typename W::Prime>(),
      plan.keep.template as<Factor<typename W::R>>(),
      plan.divide.template as<Factor<typename W::R>>(), static_cast<S*>(out),
      static_cast<const S*>(x), static_cast<const S*>(addend));
  check_launch(stream, "divide_combine");
}

#define JALI_INSTANTIATE(W)                                                                     \
  template struct ConversionPlan<W>;                                                            \
  template void lift_prepare<W>(const Stream&, const Tables<W>&, const ConversionPlan<W>&,      \
                                unsigned, int, void*, void*);                                   \
  template void lift_convert<W>(const Stream&, const Tables<W>&, const ConversionPlan<W>&,      \
                                const Shape&, const Limbs&, const Limbs&, void*, const void*,   \
                                const void*, const void*);                                      \
  template void divide_combine<W>(const Stream&, const Tables<W>&, const ConversionPlan<W>&,    \
                                  const Shape&, const Limbs&, const Limbs&, void*, const void*, \
                                  const void*);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
