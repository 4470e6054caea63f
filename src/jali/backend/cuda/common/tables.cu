#include <bit>
#include <utility>

#include "jali/arith/bit_reverse.h"
#include "jali/arith/modulus.h"
#include "jali/arith/primes.h"
#include "jali/backend/cuda/common/device.cuh"
#include "jali/backend/cuda/common/tables.cuh"
#include "jali/backend/cuda/common/variants.h"
#include "jali/backend/cuda/ntt/other_transform.cuh"

namespace jali::backend::cuda {

template <>
Factor<W32::R> make_factor<W32>(std::uint64_t w, std::uint64_t q) {
  const auto c = arith::shoup_constant(w, q, 32);
  return {static_cast<std::uint32_t>(c.value), static_cast<std::uint32_t>(c.quotient)};
}
template <>
Factor<W64::R> make_factor<W64>(std::uint64_t w, std::uint64_t q) {
  const auto c = arith::shoup_constant(w, q, 64);
  return {c.value, c.quotient};
}
template <>
Factor<W52::R> make_factor<W52>(std::uint64_t w, std::uint64_t q) {
  return {static_cast<double>(w), static_cast<double>(w) / static_cast<double>(q)};
}

namespace {

template <class W>
typename W::Twiddle make_twiddle(std::uint64_t w, std::uint64_t q) {
  return make_factor<W>(w, q);
}
template <>
double make_twiddle<W52>(std::uint64_t w, std::uint64_t) {
  return static_cast<double>(w);
}

// Where node m + i lies: group-major from stage t on.
std::size_t leaf_major(std::size_t node, int t) {
  if (node >> t == 0) return node;
  const int s = std::bit_width(node) - 1 - t;
  const std::size_t i = node - (std::size_t{1} << (t + s));
  const std::size_t unit = i >> s, group = i & ((std::size_t{1} << s) - 1);
  return (std::size_t{1} << (t + s)) + (group << t) + unit;
}

template <class W>
typename W::Prime make_prime(std::uint64_t q, const arith::Modulus& mod);

template <>
W32::Prime make_prime<W32>(std::uint64_t q, const arith::Modulus&) {
  return {static_cast<std::uint32_t>(q), static_cast<std::uint32_t>(0 - 2 * q),
          make_factor<W32>((std::uint64_t{1} << 32) % q, q), make_factor<W32>(1, q),
          static_cast<std::uint32_t>(~std::uint64_t{0} / q)};  // q is no power of two
}
template <>
W64::Prime make_prime<W64>(std::uint64_t q, const arith::Modulus& mod) {
  return {q, make_factor<W64>(mod.pow(2, 64), q), make_factor<W64>(1, q)};
}
template <>
W52::Prime make_prime<W52>(std::uint64_t q, const arith::Modulus&) {
  return {static_cast<double>(q), 1.0 / static_cast<double>(q)};
}

}  // namespace

namespace {
int compute_capability(int device) {
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "device");
  return major;
}
}  // namespace

template <class W>
Tables<W>::Tables(const Stream& stream, const Config& config, int leaf_stages) {
  const auto chosen = static_cast<NttVariant>(chosen_variant(config, "ntt"));
  // Clusters are in code of generation 9 and later.
  const int capability =
      stream.generation() < 9 ? stream.generation() : compute_capability(stream.device());
  const std::size_t n = config.n;
  const int log_n = std::countr_zero(n);
  ntt_variant = butterflies<W>(chosen, log_n, capability);
  const int leaf =
      log_n - (leaf_stages != 0 ? leaf_stages : cuda::leaf_stages<W>(ntt_variant, log_n));
  std::vector<Prime> p;
  std::vector<typename W::Twiddle> fwd(config.primes.size() * n),
      inv(leaf_stages == 0 ? fwd.size() : 0);
  std::vector<F> ninv;
  for (std::size_t i = 0; i < config.primes.size(); ++i) {
    const std::uint64_t q = config.primes[i];
    const arith::Modulus mod(q);
    p.push_back(make_prime<W>(q, mod));
    ninv.push_back(make_factor<W>(mod.inverse(n), q));
    const std::uint64_t psi = arith::primitive_root(q, 2 * n), ipsi = mod.inverse(psi);
    roots.push_back(psi);
    std::uint64_t power = 1, ipower = 1;
    for (std::uint32_t e = 0; e < n; ++e) {
      const std::size_t at = i * n + leaf_major(arith::bit_reverse(e, log_n), leaf);
      fwd[at] = make_twiddle<W>(power, q);
      if (!inv.empty()) inv[at] = make_twiddle<W>(ipower, q);
      power = mod.mul(power, psi);
      ipower = mod.mul(ipower, ipsi);
    }
  }
  primes = Constant(stream, p.data(), p.size() * sizeof(Prime));
  forward = Constant(stream, fwd.data(), fwd.size() * sizeof(typename W::Twiddle));
  inverse = Constant(stream, inv.data(), inv.size() * sizeof(typename W::Twiddle));
  n_inverse = Constant(stream, ninv.data(), ninv.size() * sizeof(F));
  if (leaf_stages == 0) other = other_transform<W>(stream, chosen, capability, config, roots);
}

template struct Tables<W32>;
template struct Tables<W52>;
template struct Tables<W64>;

}  // namespace jali::backend::cuda
