// CRT and its inverse on the GPU: known integers to the CPU engine's residues and back, in host
// memory and in the engine's own. For integers near multiples of the modulus, a quotient in doubles
// cannot decide.
#include "../seeded.h"
#include "gpu_ops.h"
#include "jali/base/error.h"

namespace jali::testing {
namespace {

using backend::CrtMethod;
using backend::IcrtMethod;
using Natural = std::vector<std::uint64_t>;  // little end first

Natural product(std::span<const std::uint64_t> primes, std::size_t words) {
  Natural out(words, 0);
  out[0] = 1;
  for (const std::uint64_t q : primes) {
    unsigned __int128 carry = 0;
    for (auto& w : out) {
      carry += static_cast<unsigned __int128>(w) * q;
      w = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    EXPECT_EQ(carry, 0U);
  }
  return out;
}
Natural minus(Natural a, std::uint64_t small) {
  for (auto& w : a) {
    const bool borrow = w < small;
    w -= small;
    if (!borrow) break;
    small = 1;
  }
  return a;
}
Natural half(Natural a) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = a[i] >> 1 | (i + 1 < a.size() ? a[i + 1] << 63 : 0);
  }
  return a;
}
bool below(const Natural& a, const Natural& b) {
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

struct IntegerCase {
  Word word;
  int prime_bits;
  std::size_t limbs, batch;
};

class GpuIntegers : public ::testing::TestWithParam<IntegerCase> {};

TEST_P(GpuIntegers, GoToResiduesAndBack) {
  if (backend::cuda_device_count() == 0) {
    GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
  }
  const auto [word, prime_bits, limbs, batch] = GetParam();
  const std::size_t n = 1024;
  backend::Config config{word, n, {}, 2, ""};
  for (std::uint64_t q = (std::uint64_t{1} << prime_bits) - 2 * n + 1; config.primes.size() < limbs;
       q -= 2 * n) {
    if (arith::is_prime(q)) config.primes.push_back(q);
  }
  const auto cpu = backend::make_cpu_engine(config), gpu = backend::make_cuda_engine(config);
  const auto pool = device::Pool::create(false, gpu->memory());
  Primes primes(limbs);
  std::iota(primes.begin(), primes.end(), PrimeIndex{0});
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::size_t least = limbs * static_cast<std::size_t>(prime_bits) / 64 + 1;
  for (const std::size_t words : {least, least + 1}) {
    const Natural q = product(config.primes, words), zero(words, 0), middle = half(q);
    std::vector<Natural> values{zero, minus(q, 1), minus(q, 2), middle, minus(middle, 1)};
    for (std::size_t i = 0; i < words; ++i) {  // small ones, and what is small below Q
      Natural power = zero;
      power[i] = std::uint64_t{1} << random() % 64;
      if (below(power, q)) values.push_back(power);
      values.push_back(minus(q, 3 + random() % 1000));
    }
    while (values.size() < batch * n) {
      Natural x(words);
      for (auto& w : x) w = random();
      for (std::size_t top = words; top-- > 0 && q[top] == 0;) x[top] = 0;
      for (std::size_t top = words; !below(x, q);) {  // halve the top word until it fits
        while (top > 0 && q[top - 1] == 0) --top;
        x[top - 1] /= 2;
      }
      values.push_back(std::move(x));
    }
    std::shuffle(values.begin(), values.end(), random);
    std::vector<std::uint64_t> integers(words * batch * n);
    for (std::size_t k = 0; k < values.size(); ++k) {
      for (std::size_t w = 0; w < words; ++w) integers[w * batch * n + k] = values[k][w];
    }
    std::vector<std::byte> want(limbs * batch * n * word_bytes(word)), got(want.size());
    cpu->ring().crt({want.data(), primes, batch}, integers, words, CrtMethod::mul);
    auto residues = pool->allocate(want.size()), there = pool->allocate(integers.size() * 8);
    const View x{residues.data(), primes, batch};
    const std::span<std::uint64_t> on_device(static_cast<std::uint64_t*>(there.data()),
                                             integers.size());
    for (const auto method : {CrtMethod::mul, CrtMethod::mod}) {
      for (const bool transfer : {true, false}) {
        gpu->memory()->fill(residues.data(), 0x5a, residues.bytes());
        gpu->memory()->copy_in(there.data(), integers.data(), there.bytes());
        gpu->ring().crt(x, transfer ? std::span<const std::uint64_t>(integers) : on_device, words,
                        method);
        gpu->memory()->copy_out(got.data(), residues.data(), got.size());
        ASSERT_TRUE(got == want) << "crt, method " << static_cast<int>(method);
      }
    }
    for (const auto method : {IcrtMethod::automatic, IcrtMethod::product_sum, IcrtMethod::garner}) {
      for (const bool transfer : {true, false}) {
        std::vector<std::uint64_t> back(integers.size(), 0x5a5a);
        gpu->memory()->fill(there.data(), 0x33, there.bytes());
        gpu->ring().icrt(transfer ? std::span<std::uint64_t>(back) : on_device, words, x, method);
        if (!transfer) gpu->memory()->copy_out(back.data(), there.data(), there.bytes());
        ASSERT_TRUE(back == integers) << "icrt, method " << static_cast<int>(method);
      }
    }
  }
  if (least > 1 && product(config.primes, least)[least - 1] != 0) {
    std::vector<std::uint64_t> too_few((least - 1) * batch * n);
    const auto residues = pool->allocate(limbs * batch * n * word_bytes(word));
    const ConstView x{residues.data(), primes, batch};
    const auto call = [&] { gpu->ring().icrt(too_few, least - 1, x, IcrtMethod::product_sum); };
    EXPECT_THROW(call(), InvalidArgument);
  }
}

std::vector<IntegerCase> integer_cases() {
  std::vector<IntegerCase> all;
  for (const auto& [word, bits] :
       {std::pair(Word::w32, 30), std::pair(Word::w32, 28), std::pair(Word::w52, 50),
        std::pair(Word::w52, 28), std::pair(Word::w64, 61), std::pair(Word::w64, 28)}) {
    for (const std::size_t limbs : {1, 2, 7, 16, 33, 60}) {
      for (const std::size_t batch : {1, 3}) all.push_back({word, bits, limbs, batch});
    }
    all.push_back({word, bits, 5, 64});
  }
  all.push_back({Word::w32, 23, 175, 1});  // more shared memory than every kernel has
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, GpuIntegers, ::testing::ValuesIn(integer_cases()),
                         [](const auto& info) {
                           const auto& c = info.param;
                           return std::string(word_name(c.word)) + "_" +
                                  std::to_string(c.prime_bits) + "bits_l" +
                                  std::to_string(c.limbs) + "_b" + std::to_string(c.batch);
                         });

}  // namespace
}  // namespace jali::testing
