// The rate of butterflies on registers.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "jali/arith/shoup.h"
#include "jali/backend/cpu/isa.h"
#include "jali/backend/ops.h"

namespace jali::backend {

double cpu_butterfly_rate(Word word, const std::string& isa) {
  const cpu::RowKernels kernels = cpu::select_kernels(isa, word);
  cpu::PrimeRow prime;
  prime.q = (std::uint64_t{1} << (word_prime_bits(word) - 1)) + 1;  // any odd number does here
  const auto constant = [&](std::uint64_t w) {
    return arith::shoup_constant(w, prime.q, kernels.beta_bits);
  };
  prime.one = constant(1);
  prime.beta = constant(prime.q / 3);
  std::vector<std::uint64_t> values(2 * kernels.butterfly_pairs * kernels.lanes, 0);

  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kRounds = 100'000;
  double best = 1e300;
  for (int repeat = 0; repeat < 15; ++repeat) {
    const auto start = Clock::now();
    kernels.butterflies(values.data(), kRounds, prime);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return static_cast<double>(kRounds * kernels.butterfly_pairs * kernels.lanes) / best;
}

}  // namespace jali::backend
