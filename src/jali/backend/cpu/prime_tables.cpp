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

template <class T>
void fill(const std::vector<std::uint64_t>& twiddle, std::size_t lanes, const PrimeTables& prime,
          T* nodes, T* leaves) {
  const std::size_t n = twiddle.size();
  for (std::size_t i = 0; i < n / lanes; ++i) {
    const ShoupConstant w = prime.constant(twiddle[i]);
    nodes[2 * i] = static_cast<T>(w.value);
    nodes[2 * i + 1] = static_cast<T>(w.quotient);
  }
  for (std::size_t block = 0; block < n / (lanes * lanes); ++block) {
    for (std::size_t width = 1; width < lanes; width *= 2) {
      for (std::size_t s = 0; s < width; ++s, leaves += 2 * lanes) {
        for (std::size_t l = 0; l < lanes; ++l) {
          const ShoupConstant w =
              prime.constant(twiddle[(n / lanes + block * lanes + l) * width + s]);
          leaves[l] = static_cast<T>(w.value);
          leaves[lanes + l] = static_cast<T>(w.quotient);
        }
      }
    }
  }
}

}  // namespace

std::size_t PrimeTables::table_bytes(std::size_t n, const RowKernels& kernels) {
  // 2 n / lanes words of nodes, lanes - 1 times as many of leaves.
  return 2 * n * static_cast<std::size_t>(kernels.word_bytes);
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

  const auto word_bytes = static_cast<std::size_t>(kernels.word_bytes);
  const std::size_t lanes = kernels.lanes;
  std::byte* leaves = memory + 2 * (n / lanes) * word_bytes;
  if (word_bytes == 4) {
    fill(twiddle, lanes, *this, reinterpret_cast<std::uint32_t*>(memory),
         reinterpret_cast<std::uint32_t*>(leaves));
  } else {
    fill(twiddle, lanes, *this, reinterpret_cast<std::uint64_t*>(memory),
         reinterpret_cast<std::uint64_t*>(leaves));
  }
  ntt = {n, &row, memory, leaves};
}

InttScale PrimeTables::intt_scale(std::uint64_t c) const {
  const std::uint64_t sum = mod.mul(c, inverse_n_);
  return {constant(sum), constant(mod.mul(sum, root_of_node_1_))};
}

}  // namespace jali::backend::cpu
