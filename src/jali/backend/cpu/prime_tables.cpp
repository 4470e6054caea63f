#include "jali/backend/cpu/prime_tables.h"

#include <bit>
#include <vector>

#include "jali/arith/bit_reverse.h"
#include "jali/arith/primes.h"

namespace jali::backend::cpu {
namespace {

/// Twiddles of all nodes, psi^brv(i), where brv reverses log2(n) bits.
std::vector<std::uint64_t> node_twiddles(const arith::Modulus& mod, std::uint64_t psi,
                                         std::size_t n) {
  const int log_n = std::countr_zero(n);
  std::vector<std::uint64_t> twiddle(n);
  std::uint64_t power = 1;
  const ShoupConstant step = mod.shoup(psi);
  for (std::uint32_t e = 0; e < n; ++e) {
    twiddle[arith::bit_reverse(e, log_n)] = power;
    power = arith::mul_shoup(power, step, mod.value());
  }
  return twiddle;
}

/// What the tables of a prime have, in words: nodes, then omegas and twists of either direction.
struct Sizes {
  Sizes(std::size_t n, std::size_t lanes)
      : nodes(2 * n / lanes),
        omegas(2 * (lanes - 1) * lanes),
        twists(lanes == 1 ? 0 : 2 * n / lanes) {}
  std::size_t all() const { return nodes + 2 * (omegas + twists); }
  std::size_t nodes, omegas, twists;
};

template <class T>
NttTable fill(const std::vector<std::uint64_t>& twiddle, std::size_t lanes,
              const PrimeTables& prime, T* at) {
  const std::size_t n = twiddle.size();
  const Sizes sizes(n, lanes);
  const int log_n = std::countr_zero(n), log_lanes = std::countr_zero(lanes);
  NttTable table;
  table.n = n, table.prime = &prime.row, table.twiddles = at;
  for (std::size_t i = 0; i < n / lanes; ++i) {
    const ShoupConstant w = prime.constant(twiddle[i]);
    *at++ = static_cast<T>(w.value);
    *at++ = static_cast<T>(w.quotient);
  }
  if (lanes == 1) return table;
  const auto psi_to = [&](std::size_t e) {  // psi^n = -1
    const std::uint64_t w = twiddle[arith::bit_reverse(static_cast<std::uint32_t>(e % n), log_n)];
    return e / n % 2 == 0 ? w : prime.mod.neg(w);
  };
  const auto put = [&](const auto& exponent) {
    for (std::size_t l = 0; l < lanes; ++l) {
      const ShoupConstant w = prime.constant(psi_to(exponent(static_cast<std::uint32_t>(l))));
      at[l] = static_cast<T>(w.value);
      at[lanes + l] = static_cast<T>(w.quotient);
    }
    at += 2 * lanes;
  };
  for (const bool inverse : {false, true}) {
    NttTable::Leaves& leaves = inverse ? table.inverse_leaves : table.leaves;
    leaves.omegas = at;
    for (int k = 0; k < log_lanes; ++k) {
      for (std::uint32_t s = 0; s < std::uint32_t{1} << k; ++s) {
        const std::uint32_t mine = inverse ? (1u << k) - 1 - s : s;
        put([&](std::uint32_t l) -> std::size_t {
          const std::size_t e =
              (std::size_t{arith::bit_reverse(l, log_lanes)} << (log_n - k - log_lanes)) +
              (std::size_t{arith::bit_reverse(mine, k)} << (log_n - k));
          return inverse ? n - e : e;
        });
      }
    }
    leaves.twists = at;
    const std::size_t blocks = n / (lanes * lanes);
    for (std::uint32_t b = 0; b < blocks; ++b) {
      const std::size_t t = 1 + 2 * std::size_t{arith::bit_reverse(b, std::countr_zero(blocks))};
      put([&](std::uint32_t l) { return inverse ? 2 * n - l * t : l * t; });
    }
  }
  return table;
}

}  // namespace

std::size_t PrimeTables::table_bytes(std::size_t n, const RowKernels& kernels) {
  return Sizes(n, kernels.lanes).all() * static_cast<std::size_t>(kernels.word_bytes);
}

PrimeTables::PrimeTables(std::uint64_t q, std::size_t n, const RowKernels& kernels,
                         std::byte* memory)
    : mod(q),
      beta_bits(kernels.beta_bits),
      root(arith::primitive_root(q, 2 * n)),
      reciprocal(1.0 / static_cast<double>(q)),
      inverse_n_(mod.inverse(n)) {
  row.q = q;
  row.one = constant(1);
  row.beta =
      constant(static_cast<std::uint64_t>((static_cast<arith::uint128>(1) << beta_bits) % q));
  const std::vector<std::uint64_t> twiddle = node_twiddles(mod, root, n);
  root_of_node_1_ = twiddle[1];
  unscaled = intt_scale(1);

  ntt = kernels.word_bytes == 4
            ? fill(twiddle, kernels.lanes, *this, reinterpret_cast<std::uint32_t*>(memory))
            : fill(twiddle, kernels.lanes, *this, reinterpret_cast<std::uint64_t*>(memory));
}

InttScale PrimeTables::intt_scale(std::uint64_t c) const {
  const std::uint64_t sum = mod.mul(c, inverse_n_);
  return {constant(sum), constant(mod.mul(sum, root_of_node_1_))};
}

}  // namespace jali::backend::cpu
