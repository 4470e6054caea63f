// What one thread of this machine does at most.
#include "jali/backend/peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "jali/arith/shoup.h"
#include "jali/backend/cpu/isa.h"
#include "jali/backend/engines.h"
#include "jali/device/buffer.h"
#include "jali/random/prng.h"

namespace jali::backend {

namespace {

/// Seconds of one of `rounds` calls of body, the least of some tries.
template <class Body>
double least(std::size_t rounds, const Body& body) {
  using Clock = std::chrono::steady_clock;
  double best = 1e300;
  for (int repeat = 0; repeat < 15; ++repeat) {
    const auto start = Clock::now();
    body(rounds);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best / static_cast<double>(rounds);
}

/// A block like those of operands: aligned, and on large pages if it is large.
device::Buffer zeros(std::size_t bytes) {
  device::Buffer block = device::Pool::create(/*wipe=*/false)->allocate(bytes);
  std::memset(block.data(), 0, bytes);
  return block;
}

}  // namespace

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

  const double seconds = least(
      100'000, [&](std::size_t rounds) { kernels.butterflies(values.data(), rounds, prime); });
  return static_cast<double>(kernels.butterfly_pairs * kernels.lanes) / seconds;
}

double cpu_complex_butterfly_rate(const std::string& isa) {
  const cpu::RowKernels kernels = cpu::select_kernels(isa, Word::w64);
  device::Buffer values = zeros(kernels.complex_doubles * sizeof(double));
  auto* const at = static_cast<double*>(values.data());
  const double seconds =
      least(100'000, [&](std::size_t rounds) { kernels.complex_butterflies(at, rounds); });
  return static_cast<double>(kernels.complex_pairs) / seconds;
}

double cpu_read_rate(const std::string& isa, std::size_t bytes) {
  constexpr std::size_t kStep = 512;
  const std::size_t whole = std::max(bytes / kStep, std::size_t{1}) * kStep;
  const cpu::RowKernels kernels = cpu::select_kernels(isa, Word::w64);
  const device::Buffer block = zeros(whole);
  const std::size_t rounds = std::max(std::size_t{1} << 27, whole) / whole;
  volatile std::uint64_t sink = 0;  // so that the compiler leaves nothing out
  const double seconds = least(rounds, [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) sink = sink | kernels.read(block.data(), whole);
  });
  return static_cast<double>(whole) / seconds;
}

double cpu_stream_rate() {
  random::Prng prng(random::Seed{}, 0);
  std::vector<std::uint8_t> block(16384);
  const double seconds = least(64, [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) prng.fill(block);
  });
  return static_cast<double>(block.size()) / seconds;
}

}  // namespace jali::backend
