// Transforms with a caller's load and store, between different blocks: the load multiplies by a
// factor for each limb, the store adds. They give the bits of the CPU engine's operations one after
// the other.
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include "../seeded.h"
#include "jali/arith/modulus.h"
#include "jali/arith/primes.h"
#include "jali/backend/cuda/ntt/transform.cuh"
#include "jali/backend/engines.h"
#include "jali/backend/ring_ops.h"

namespace jali::testing {
namespace {

using namespace backend::cuda;

template <class W>
struct LoadScaled {
  const typename W::Stored* data;
  const Factor<typename W::R>* factors;  // one for each limb
  template <int V>
  __device__ void operator()(const Row<W>& row, int k, typename W::R (&x)[V]) const {
    read_words<W, V>(data + row.at + k, x);
    for (int i = 0; i < V; ++i) x[i] = W::mul_lazy(x[i], factors[row.limb], row.prime);
  }
};
template <class W>
struct StoreSum {
  typename W::Stored* data;
  const typename W::Stored* addend;
  template <int V>
  __device__ void operator()(const Row<W>& row, int k, const typename W::R (&x)[V]) const {
    typename W::R y[V], sum[V];
    read_words<W, V>(addend + row.at + k, y);
    for (int i = 0; i < V; ++i) {
      sum[i] = W::add_mod(W::load(W::store(x[i], row.prime)), y[i], row.prime);
    }
    write_words<W, V>(data + row.at + k, sum, row.prime);
  }
};

template <class W>
struct WordOf;
template <>
struct WordOf<W32> {
  static constexpr Word value = Word::w32;
};
template <>
struct WordOf<W52> {
  static constexpr Word value = Word::w52;
};
template <>
struct WordOf<W64> {
  static constexpr Word value = Word::w64;
};

// A transform with a load and a store of its own is the operations one after the other.
template <class W>
void compare(std::initializer_list<int> sizes) {
  using Stored = typename W::Stored;
  if (backend::cuda_device_count() == 0) {
    GTEST_SKIP() << "no NVIDIA GPU on this machine: the CUDA engine is not tested";
  }
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random(seed);
  for (const char* variant : {"auto", "two_pass", "cluster", "on_the_fly", "dense"}) {
    for (const int log_n : sizes) {
      SCOPED_TRACE(std::string(variant) + ", log N " + std::to_string(log_n) + ", seed " +
                   std::to_string(seed));
      backend::Config config{WordOf<W>::value, std::size_t{1} << log_n, {}, 2, ""};
      config.variants["ntt"] = variant;
      const std::uint64_t step = 2 * config.n;
      for (auto q = (std::uint64_t{1} << word_prime_bits(config.word)) - step + 1;
           config.primes.size() < 3; q -= step) {
        if (arith::is_prime(q)) config.primes.push_back(q);
      }
      const std::vector<PrimeIndex> limbs{0, 2};
      const std::size_t batch = 2, words = limbs.size() * batch * config.n;
      std::vector<Stored> x(words), addend(words), got(words), result(words);
      std::vector<std::uint64_t> scalars;
      std::vector<Factor<typename W::R>> factors, scales;
      const auto cpu = backend::make_cpu_engine(config);
      for (std::size_t i = 0; i < limbs.size(); ++i) {
        const std::uint64_t q = config.primes[limbs[i]];
        for (std::size_t k = i * batch * config.n; k < (i + 1) * batch * config.n; ++k) {
          x[k] = static_cast<Stored>(random() % q);
          addend[k] = static_cast<Stored>(random() % q);
        }
        scalars.push_back(random() % q);
        const arith::Modulus mod(q);
        factors.push_back(make_factor<W>(scalars[i], q));
        scales.push_back(make_factor<W>(mod.mul(scalars[i], mod.inverse(config.n)), q));
      }
      const Stream stream(0);
      const Tables<W> tables(stream, config);
      const auto upload = [&](const auto& v) {
        return Constant(stream, v.data(), v.size() * sizeof(v[0]));
      };
      const Constant in = upload(x), sum = upload(addend), factor = upload(factors),
                     scale = upload(scales);
      const std::vector<Stored> poison(words, static_cast<Stored>(0x5a5a5a5a));
      Limbs rows{};
      for (std::size_t i = 0; i < limbs.size(); ++i) rows.prime[i] = limbs[i];
      const backend::View result_view{result.data(), limbs, batch};
      const backend::ConstView x_view{x.data(), limbs, batch},
          sum_view{addend.data(), limbs, batch};
      for (const bool inverse : {false, true}) {
        const Constant work = upload(poison), out = upload(poison);
        auto* work_words = const_cast<Stored*>(work.as<Stored>());
        const StoreSum<W> store{const_cast<Stored*>(out.as<Stored>()), sum.as<Stored>()};
        if (inverse) {
          transform<W, true>(stream, tables, ReadBlock<W>{in.as<Stored>()}, store, work_words, rows,
                             2, batch, log_n, scale.as<Factor<typename W::R>>());
        } else {
          transform<W, false>(stream, tables,
                              LoadScaled<W>{in.as<Stored>(), factor.as<Factor<typename W::R>>()},
                              store, work_words, rows, 2, batch, log_n);
        }
        stream.synchronize();
        check(cudaMemcpy(got.data(), out.as<Stored>(), words * sizeof(Stored),
                         cudaMemcpyDeviceToHost),
              "copy");
        cpu->ring().mul_scalar(result_view, x_view, scalars);
        inverse ? cpu->ring().intt(result_view) : cpu->ring().ntt(result_view);
        cpu->ring().add(result_view, result_view, sum_view);
        ASSERT_EQ(got, result) << (inverse ? "inverse" : "forward");
      }
    }
  }
}

template <class W>
class FusedNtt : public ::testing::Test {};
using Words = ::testing::Types<W32, W52, W64>;
TYPED_TEST_SUITE(FusedNtt, Words);

TYPED_TEST(FusedNtt, SmallRows) { compare<TypeParam>({10, 12, 13}); }
TYPED_TEST(FusedNtt, MiddleRows) { compare<TypeParam>({14, 15}); }
TYPED_TEST(FusedNtt, LargeRows) { compare<TypeParam>({16, 17}); }

}  // namespace
}  // namespace jali::testing
