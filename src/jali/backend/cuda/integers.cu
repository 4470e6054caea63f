// CRT and its inverse as in GIF-FHE, section V: CRT-MOD (Horner), CRT-MUL (inner product with powers
// of 2^64), ICRT-C (sum of Q/q_i multiples), ICRT-G (Garner's mixed radix).
#include "jali/arith/modulus.h"
#include "jali/backend/cuda/check.cuh"
#include "jali/backend/cuda/integers.cuh"

namespace jali::backend::cuda {

namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kMaxWords = 64;

// x mod q, canonical, for any 64-bit x.
__device__ inline W32::R from_u64(std::uint64_t x, const W32::Prime& p) {
  return W32::total({x}, p);
}
__device__ inline W64::R from_u64(std::uint64_t x, const W64::Prime& p) {
  return W64::total({x, 0}, p);
}
__device__ inline W52::R from_u64(std::uint64_t x, const W52::Prime& p) {
  const double beta = W52::reduce(0x1p32, p);
  const double high = W52::reduce(static_cast<double>(x >> 32), p);
  W52::Sum s = W52::sum_of(W52::reduce(static_cast<double>(x & 0xffffffffu), p));
  W52::add(s, high, beta, p);
  return W52::total(s, p);
}

template <class W>
__device__ typename W::R power_of_two(unsigned e, const typename W::Prime& p) {
  typename W::R result = from_u64(1, p), base = from_u64(2, p);
  for (; e != 0; e >>= 1) {
    if (e & 1) result = mul_mod<W>(result, base, p);
    base = mul_mod<W>(base, base, p);
  }
  return result;
}

template <class W>
__device__ typename W::R negate_if(bool negative, typename W::R x, const typename W::Prime& p) {
  return negative && x != 0 ? p.q - x : x;
}

template <class W>
__global__ void from_int64_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                                  typename W::Stored* out, const std::int64_t* c) {
  const unsigned t = blockIdx.y / s.batch, b = blockIdx.y % s.batch;
  const typename W::Prime prime = primes[limbs.prime[t]];
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::int64_t x = c[(static_cast<std::size_t>(b) << s.log_n) + k];
  const std::uint64_t magnitude = x < 0 ? 0 - static_cast<std::uint64_t>(x) : x;
  const auto r = negate_if<W>(x < 0, from_u64(magnitude, prime), prime);
  out[(static_cast<std::size_t>(blockIdx.y) << s.log_n) + k] = W::store(r, prime);
}

template <class W>
__global__ void from_double_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                                   typename W::Stored* out, const double* c) {
  const unsigned t = blockIdx.y / s.batch, b = blockIdx.y % s.batch;
  const typename W::Prime prime = primes[limbs.prime[t]];
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const double x = c[(static_cast<std::size_t>(b) << s.log_n) + k];
  int exponent = 0;
  const double fraction = frexp(fabs(x), &exponent);
  auto mantissa = static_cast<std::uint64_t>(ldexp(fraction, 53));
  exponent -= 53;
  if (exponent < 0) {
    mantissa = exponent > -64 ? mantissa >> -exponent : 0;
    exponent = 0;
  }
  auto r = from_u64(mantissa, prime);
  if (exponent > 0)
    r = mul_mod<W>(r, power_of_two<W>(static_cast<unsigned>(exponent), prime), prime);
  out[(static_cast<std::size_t>(blockIdx.y) << s.log_n) + k] =
      W::store(negate_if<W>(x < 0, r, prime), prime);
}

template <class W, CrtMethod kMethod>
__global__ void crt_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                           const std::uint64_t* powers, typename W::Stored* out,
                           const std::uint64_t* integers, unsigned words) {
  const unsigned t = blockIdx.y / s.batch, b = blockIdx.y % s.batch;
  const typename W::Prime prime = primes[limbs.prime[t]];
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::size_t at = (static_cast<std::size_t>(b) << s.log_n) + k;
  const std::size_t stride = static_cast<std::size_t>(s.batch) << s.log_n;
  typename W::Sum sum;
  if constexpr (kMethod == CrtMethod::mod) {
    const auto beta = power_of_two<W>(64, prime);
    for (unsigned w = words; w-- > 0;) {
      typename W::Sum step = W::sum_of(from_u64(integers[w * stride + at], prime));
      W::add(step, W::total(sum, prime), beta, prime);
      sum = W::sum_of(W::total(step, prime));
    }
  } else {
    const std::uint64_t* row = powers + static_cast<std::size_t>(t) * words;
    int room = W::kTerms - 1;
    for (unsigned w = 0; w < words; ++w) {
      if (room-- == 0) {
        sum = W::sum_of(W::total(sum, prime));
        room = W::kTerms - 2;
      }
      W::add(sum, from_u64(integers[w * stride + at], prime), from_u64(row[w], prime), prime);
    }
  }
  out[(static_cast<std::size_t>(blockIdx.y) << s.log_n) + k] =
      W::store(W::total(sum, prime), prime);
}

// a += m * x over `words` words.
__device__ inline void multiply_accumulate(std::uint64_t* a, const std::uint64_t* m,
                                           std::uint64_t x, unsigned words) {
  std::uint64_t carry = 0;
#pragma unroll 1
  for (unsigned w = 0; w < words; ++w) {
    const std::uint64_t lo = m[w] * x, hi = __umul64hi(m[w], x);
    const std::uint64_t t = lo + carry;
    const std::uint64_t u = a[w] + t;
    carry = hi + (t < lo) + (u < t);
    a[w] = u;
  }
}

template <class W, IcrtMethod kMethod>
__global__ void icrt_kernel(Shape s, Limbs limbs, const typename W::Prime* primes,
                            const std::uint64_t* inverses, const std::uint64_t* hats,
                            const std::uint64_t* hat_inverses, const std::uint64_t* modulus,
                            const std::uint64_t* values, std::uint64_t* integers, unsigned words,
                            const typename W::Stored* x) {
  const unsigned b = blockIdx.y;
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const std::size_t at = (static_cast<std::size_t>(b) << s.log_n) + k;
  const std::size_t stride = static_cast<std::size_t>(s.batch) << s.log_n;
  const unsigned count = s.limb_count;
  std::uint64_t a[kMaxWords + 1];
#pragma unroll 1
  for (unsigned w = 0; w <= words; ++w) a[w] = 0;
  if constexpr (kMethod == IcrtMethod::garner) {
    // digit_i = (x_i - digit_0 - q_0 (digit_1 + ...)) / (q_0 ... q_{i-1}), one division at a time
    std::uint64_t digit[kMaxLimbs];
#pragma unroll 1
    for (unsigned i = 0; i < count; ++i) {
      const typename W::Prime prime = primes[limbs.prime[i]];
      auto u = W::load(x[i * stride + at]);
#pragma unroll 1
      for (unsigned j = 0; j < i; ++j) {
        u = mul_mod<W>(W::sub_mod(u, from_u64(digit[j], prime), prime),
                       from_u64(inverses[i * count + j], prime), prime);
      }
      digit[i] = static_cast<std::uint64_t>(W::store(u, prime));
    }
    // Horner: a = a q_i + digit_i
#pragma unroll 1
    for (unsigned i = count; i-- > 0;) {
      std::uint64_t carry = digit[i];
#pragma unroll 1
      for (unsigned w = 0; w < words; ++w) {
        const std::uint64_t lo = a[w] * values[i], hi = __umul64hi(a[w], values[i]);
        a[w] = lo + carry;
        carry = hi + (a[w] < lo);
      }
    }
  } else {
#pragma unroll 1
    for (unsigned i = 0; i < count; ++i) {
      const typename W::Prime prime = primes[limbs.prime[i]];
      const auto y =
          mul_mod<W>(W::load(x[i * stride + at]), from_u64(hat_inverses[i], prime), prime);
      multiply_accumulate(a, hats + static_cast<std::size_t>(i) * (words + 1),
                          static_cast<std::uint64_t>(W::store(y, prime)), words + 1);
    }
#pragma unroll 1
    for (;;) {  // at most `count` subtractions of Q
      bool less = false, decided = false;
#pragma unroll 1
      for (unsigned w = words + 1; w-- > 0 && !decided;) {
        if (a[w] != modulus[w]) {
          less = a[w] < modulus[w];
          decided = true;
        }
      }
      if (less) break;
      std::uint64_t borrow = 0;
#pragma unroll 1
      for (unsigned w = 0; w <= words; ++w) {
        const std::uint64_t m = modulus[w], t = a[w] - m, u = t - borrow;
        borrow = (a[w] < m) | (t < borrow);
        a[w] = u;
      }
    }
  }
#pragma unroll 1
  for (unsigned w = 0; w < words; ++w) integers[w * stride + at] = a[w];
}

dim3 grid_of(const Shape& s, unsigned rows) {
  return dim3(((1u << s.log_n) + kThreads - 1) / kThreads, rows);
}

}  // namespace

CrtPlan::CrtPlan(const Stream& stream, const Config& config, std::span<const PrimeIndex> primes,
                 std::size_t words) {
  const std::size_t count = primes.size();
  require<Unsupported>(words <= kMaxWords, "CRT on the GPU holds integers of up to 4096 bits");
  std::vector<std::uint64_t> p, inv(count * count, 0), h, hi, mod_words(words + 1, 0), vals;
  const auto times = [](std::vector<std::uint64_t>& a, std::uint64_t x) {
    std::uint64_t carry = 0;
    for (auto& w : a) {
      const arith::uint128 t = static_cast<arith::uint128>(w) * x + carry;
      w = static_cast<std::uint64_t>(t);
      carry = static_cast<std::uint64_t>(t >> 64);
    }
  };
  mod_words[0] = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t q = config.primes[primes[i]];
    const arith::Modulus mod(q);
    vals.push_back(q);
    times(mod_words, q);
    for (std::size_t j = 0; j < words; ++j) p.push_back(mod.pow(2 % q, 64 * j));
    for (std::size_t j = 0; j < i; ++j) {
      inv[i * count + j] = mod.inverse(mod.reduce(config.primes[primes[j]]));
    }
    std::vector<std::uint64_t> hat(words + 1, 0);
    hat[0] = 1;
    std::uint64_t hat_mod = 1;
    for (std::size_t j = 0; j < count; ++j) {
      if (j == i) continue;
      times(hat, config.primes[primes[j]]);
      hat_mod = mod.mul(hat_mod, mod.reduce(config.primes[primes[j]]));
    }
    h.insert(h.end(), hat.begin(), hat.end());
    hi.push_back(mod.inverse(hat_mod));
  }
  const auto make = [&](const std::vector<std::uint64_t>& v) {
    return Constant(stream, v.data(), v.size() * 8);
  };
  powers = make(p);
  inverses = make(inv);
  hats = make(h);
  hat_inverses = make(hi);
  modulus = make(mod_words);
  values = make(vals);
}

template <class W>
void from_int64(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
                void* out, const std::int64_t* c) {
  from_int64_kernel<W><<<grid_of(s, s.limb_count * s.batch), kThreads, 0, stream.get()>>>(
      s, limbs, t.primes.template as<typename W::Prime>(), static_cast<typename W::Stored*>(out),
      c);
  check_launch(stream, "from_int64");
}

template <class W>
void from_double(const Stream& stream, const Tables<W>& t, const Shape& s, const Limbs& limbs,
                 void* out, const double* c) {
  from_double_kernel<W><<<grid_of(s, s.limb_count * s.batch), kThreads, 0, stream.get()>>>(
      s, limbs, t.primes.template as<typename W::Prime>(), static_cast<typename W::Stored*>(out),
      c);
  check_launch(stream, "from_double");
}

template <class W>
void crt(const Stream& stream, const Tables<W>& t, const CrtPlan& plan, const Shape& s,
         const Limbs& limbs, void* out, const std::uint64_t* integers, unsigned words,
         CrtMethod method) {
  auto* kernel =
      method == CrtMethod::mod ? crt_kernel<W, CrtMethod::mod> : crt_kernel<W, CrtMethod::mul>;
  kernel<<<grid_of(s, s.limb_count * s.batch), kThreads, 0, stream.get()>>>(
      s, limbs, t.primes.template as<typename W::Prime>(), plan.powers.as<std::uint64_t>(),
      static_cast<typename W::Stored*>(out), integers, words);
  check_launch(stream, "crt");
}

template <class W>
void icrt(const Stream& stream, const Tables<W>& t, const CrtPlan& plan, const Shape& s,
          const Limbs& limbs, std::uint64_t* integers, unsigned words, const void* x,
          IcrtMethod method) {
  auto* kernel = method == IcrtMethod::garner ? icrt_kernel<W, IcrtMethod::garner>
                                              : icrt_kernel<W, IcrtMethod::product_sum>;
  kernel<<<grid_of(s, s.batch), kThreads, 0, stream.get()>>>(
      s, limbs, t.primes.template as<typename W::Prime>(), plan.inverses.as<std::uint64_t>(),
      plan.hats.as<std::uint64_t>(), plan.hat_inverses.as<std::uint64_t>(),
      plan.modulus.as<std::uint64_t>(), plan.values.as<std::uint64_t>(), integers, words,
      static_cast<const typename W::Stored*>(x));
  check_launch(stream, "icrt");
}

#define JALI_INSTANTIATE(W)                                                                        \
  template void from_int64<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void*,  \
                              const std::int64_t*);                                                \
  template void from_double<W>(const Stream&, const Tables<W>&, const Shape&, const Limbs&, void*, \
                               const double*);                                                     \
  template void crt<W>(const Stream&, const Tables<W>&, const CrtPlan&, const Shape&,              \
                       const Limbs&, void*, const std::uint64_t*, unsigned, CrtMethod);            \
  template void icrt<W>(const Stream&, const Tables<W>&, const CrtPlan&, const Shape&,             \
                        const Limbs&, std::uint64_t*, unsigned, const void*, IcrtMethod);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
