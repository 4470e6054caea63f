// The CUDA engine against the CPU engine, bit for bit. Skipped with a message if there is no GPU.
#include "gpu_ops.h"

namespace jali::testing {
namespace {

TEST_P(GpuOps, Transforms) {
  auto x = fresh(range(0, kPrimes));
  cpu->ring().ntt(x.cpu());
  gpu->ring().ntt(x.gpu());
  same(x, "ntt");
  cpu->ring().intt(x.cpu());
  gpu->ring().intt(x.gpu());
  same(x, "intt");
}

TEST_P(GpuOps, ElementWise) {
  const Primes primes{0, 2, 3, 8, 9};
  auto a = fresh(primes), b = fresh(primes), one = fresh(primes, 1), out = poison(primes);
  const auto s = scalars(primes);
  for (auto* y : {&b, &one}) {
    cpu->ring().add(out.cpu(), a.cpu(), y->cpu()), gpu->ring().add(out.gpu(), a.gpu(), y->gpu());
    same(out, "add");
    cpu->ring().sub(out.cpu(), a.cpu(), y->cpu()), gpu->ring().sub(out.gpu(), a.gpu(), y->gpu());
    same(out, "sub");
    cpu->ring().mul(out.cpu(), a.cpu(), y->cpu()), gpu->ring().mul(out.gpu(), a.gpu(), y->gpu());
    same(out, "mul");
  }
  cpu->ring().neg(out.cpu(), a.cpu()), gpu->ring().neg(out.gpu(), a.gpu());
  same(out, "neg");
  cpu->ring().mul_scalar(out.cpu(), a.cpu(), s), gpu->ring().mul_scalar(out.gpu(), a.gpu(), s);
  same(out, "mul_scalar");
  cpu->ring().mul_scalar_add(out.cpu(), a.cpu(), s),
      gpu->ring().mul_scalar_add(out.gpu(), a.gpu(), s);
  same(out, "mul_scalar_add");
  cpu->ring().add_scalar(out.cpu(), a.cpu(), s), gpu->ring().add_scalar(out.gpu(), a.gpu(), s);
  same(out, "add_scalar");
  auto d1 = poison(primes), d2 = poison(primes), c = fresh(primes), d = fresh(primes);
  cpu->rlwe().tensor(out.cpu(), d1.cpu(), d2.cpu(), a.cpu(), b.cpu(), c.cpu(), d.cpu());
  gpu->rlwe().tensor(out.gpu(), d1.gpu(), d2.gpu(), a.gpu(), b.gpu(), c.gpu(), d.gpu());
  same(out, "tensor 0"), same(d1, "tensor 1"), same(d2, "tensor 2");
}

TEST_P(GpuOps, InnerProducts) {
  const Primes primes{0, 1, 9};
  for (const std::size_t terms : {1, 2, 15, 16, 40, 70}) {
    if (terms > 16 && n * batch > (1u << 14)) continue;
    std::vector<Pair> a, b;
    std::vector<ConstView> ca, cb, ga, gb;
    for (std::size_t k = 0; k < terms; ++k) {
      a.push_back(fresh(primes));
      b.push_back(fresh(primes, k % 2 == 0 ? 1 : 0));
    }
    for (std::size_t k = 0; k < terms; ++k) {
      ca.push_back(a[k].cpu()), cb.push_back(b[k].cpu());
      ga.push_back(a[k].gpu()), gb.push_back(b[k].gpu());
    }
    auto out = poison(primes);
    cpu->ring().inner_product(out.cpu(), ca, cb), gpu->ring().inner_product(out.gpu(), ga, gb);
    same(out, "inner_product");
  }
}

TEST_P(GpuOps, WeightedSums) {
  const Primes primes{0, 1, 9};
  std::vector<Pair> a0, a1, b;
  std::vector<ConstView> c0, c1, g0, g1, cb, gb;
  for (int k = 0; k < 4; ++k) {
    a0.push_back(fresh(primes)), a1.push_back(fresh(primes));
    b.push_back(fresh(primes, k % 2 == 0 ? 1 : 0));
  }
  for (int k = 0; k < 4; ++k) {
    c0.push_back(a0[k].cpu()), c1.push_back(a1[k].cpu()), cb.push_back(b[k].cpu());
    g0.push_back(a0[k].gpu()), g1.push_back(a1[k].gpu()), gb.push_back(b[k].gpu());
  }
  const std::vector<std::uint32_t> all{0, 1, 2, 3}, some{3, 1};
  auto p0 = fresh(primes), p1 = fresh(primes), q0 = poison(primes), q1 = poison(primes);
  const std::span<const ConstView> cbs(cb), gbs(gb);
  const std::vector<backend::WeightedSum> on_cpu{{p0.cpu(), p1.cpu(), some, cbs.first(2), true},
                                                 {q0.cpu(), q1.cpu(), all, cbs, false}};
  const std::vector<backend::WeightedSum> on_gpu{{p0.gpu(), p1.gpu(), some, gbs.first(2), true},
                                                 {q0.gpu(), q1.gpu(), all, gbs, false}};
  cpu->rlwe().weighted_sums(c0, c1, on_cpu), gpu->rlwe().weighted_sums(g0, g1, on_gpu);
  same(p0, "weighted_sums 0, accumulated"), same(p1, "weighted_sums 1, accumulated");
  same(q0, "weighted_sums 0"), same(q1, "weighted_sums 1");
}

// More than a thread computes, over the same operands, more than a launch takes.
TEST_P(GpuOps, ManyWeightedSums) {
  if (n * batch > (1u << 14))
    GTEST_SKIP() << "several launches of a kernel that small rows run too";
  const Primes primes{0, 9};
  std::vector<Pair> a0, a1, b;
  std::vector<ConstView> c0, c1, g0, g1;
  std::vector<std::uint32_t> operands;
  for (std::uint32_t k = 0; k < 35; ++k) {
    a0.push_back(fresh(primes)), a1.push_back(fresh(primes)), operands.push_back(34 - k);
  }
  for (std::size_t k = 0; k < 7; ++k) b.push_back(fresh(primes, k % 2 == 0 ? 1 : 0));
  for (std::size_t k = 0; k < a0.size(); ++k) {
    c0.push_back(a0[k].cpu()), c1.push_back(a1[k].cpu());
    g0.push_back(a0[k].gpu()), g1.push_back(a1[k].gpu());
  }
  for (const std::size_t count : {9, 64, 67}) {
    std::vector<Pair> outs;
    std::vector<std::vector<ConstView>> cb(count), gb(count);
    for (std::size_t g = 0; g < count; ++g) {
      for (int half = 0; half < 2; ++half)
        outs.push_back(g % 3 == 0 ? fresh(primes) : poison(primes));
      for (std::size_t k = 0; k < operands.size(); ++k) {
        Pair& weight = b[(3 * g + 5 * k) % b.size()];
        cb[g].push_back(weight.cpu()), gb[g].push_back(weight.gpu());
      }
    }
    std::vector<backend::WeightedSum> on_cpu, on_gpu;
    for (std::size_t g = 0; g < count; ++g) {
      Pair &x = outs[2 * g], &y = outs[2 * g + 1];
      on_cpu.push_back({x.cpu(), y.cpu(), operands, cb[g], g % 3 == 0});
      on_gpu.push_back({x.gpu(), y.gpu(), operands, gb[g], g % 3 == 0});
    }
    cpu->rlwe().weighted_sums(c0, c1, on_cpu), gpu->rlwe().weighted_sums(g0, g1, on_gpu);
    for (Pair& out : outs) same(out, "weighted_sums");
  }
}

TEST_P(GpuOps, Combinations) {
  const Primes primes{0, 2, 3, 9}, wide{0, 1, 2, 3, 5, 9};
  std::vector<Pair> pool;
  for (int i = 0; i < 4; ++i) pool.push_back(fresh(primes)), pool.push_back(fresh(wide));
  std::vector<std::vector<std::uint64_t>> s;
  for (int i = 0; i < 21; ++i) s.push_back(scalars(primes));
  for (const auto& terms : {std::pair{1, 0}, {0, 1}, {1, 1}, {2, 3}, {0, 20}, {9, 17}}) {
    const int p = terms.first, m = terms.second;  // not bound: lambdas name them
    if (p + m > 5 && n * batch > (1u << 14)) continue;
    const auto sum = [&](auto side) {
      std::pair<std::vector<backend::Combination::Product>,
                std::vector<backend::Combination::Multiple>>
          out;
      const auto at = [&](int i) { return side(pool[static_cast<std::size_t>(i) % 8]); };
      for (int j = 0; j < p; ++j) {
        out.first.push_back({at(j), at(j + 2), at(j + 5), at(j + 7), j % 2 == 0});
      }
      for (int k = 0; k < m; ++k) {
        out.second.push_back({at(k), at(k + 4), s[static_cast<std::size_t>(k) + 1]});
      }
      return out;
    };
    const auto on_cpu = sum([](Pair& x) -> ConstView { return x.cpu(); });
    const auto on_gpu = sum([](Pair& x) -> ConstView { return x.gpu(); });
    auto d0 = poison(primes), d1 = poison(primes), d2 = poison(primes);
    cpu->rlwe().combine(d0.cpu(), d1.cpu(), d2.cpu(), {on_cpu.first, on_cpu.second, s[0]});
    gpu->rlwe().combine(d0.gpu(), d1.gpu(), d2.gpu(), {on_gpu.first, on_gpu.second, s[0]});
    same(d0, "combine 0"), same(d1, "combine 1");
    if (p > 0) same(d2, "combine 2");
  }
}

TEST_P(GpuOps, Automorphisms) {
  const Primes primes{0, 9};
  auto a = fresh(primes), out = poison(primes);
  for (const std::uint64_t g : {std::uint64_t{5}, std::uint64_t{2 * n - 1}, std::uint64_t{n + 1}}) {
    cpu->ring().automorphism_ntt(out.cpu(), a.cpu(), g),
        gpu->ring().automorphism_ntt(out.gpu(), a.gpu(), g);
    same(out, "automorphism_ntt");
  }
}

TEST_P(GpuOps, Integers) {
  const Primes primes{0, 3, 8, 9};
  auto out = poison(primes);
  std::vector<std::int64_t> c(batch * n);
  for (auto& v : c) v = static_cast<std::int64_t>(random()) >> (random() % 60);
  c[0] = INT64_MIN, c[1] = INT64_MAX, c[2] = 0, c[3] = -1;
  cpu->ring().from_int64(out.cpu(), c), gpu->ring().from_int64(out.gpu(), c);
  same(out, "from_int64");
  for (std::size_t count = 1; count < n; count *= 2) {
    const auto some = std::span(c).first(batch * count);
    cpu->ring().from_int64(out.cpu(), some), gpu->ring().from_int64(out.gpu(), some);
    same(out, "from_int64 of a polynomial in a power of X");
    auto staged = gpu->pool()->allocate(some.size_bytes());
    gpu->memory()->copy_in(staged.data(), some.data(), some.size_bytes());
    auto again = poison(primes);
    cpu->ring().from_int64(again.cpu(), some);
    gpu->ring().from_int64(again.gpu(),
                           {static_cast<const std::int64_t*>(staged.data()), some.size()});
    same(again, "from_int64 of integers in the GPU's memory");
  }
  std::vector<double> d(batch * n);
  for (std::size_t k = 0; k < d.size(); ++k) {
    d[k] = std::ldexp(static_cast<double>(c[k] >> 11), static_cast<int>(random() % 900));
  }
  cpu->ring().from_double(out.cpu(), d), gpu->ring().from_double(out.gpu(), d);
  same(out, "from_double");

  std::size_t bits = 0;
  for (const auto i : primes) bits += 64 - __builtin_clzll(cpu->config().primes[i]);
  const std::size_t words = bits / 64 + 1;
  auto x = fresh(primes);
  for (const auto method : {backend::IcrtMethod::garner, backend::IcrtMethod::product_sum}) {
    std::vector<std::uint64_t> a(words * batch * n), b(a.size());
    cpu->ring().icrt(a, words, x.cpu(), method), gpu->ring().icrt(b, words, x.gpu(), method);
    ASSERT_EQ(a, b) << "icrt, seed " << seed;
    for (const auto back : {backend::CrtMethod::mod, backend::CrtMethod::mul}) {
      auto y = poison(primes);
      cpu->ring().crt(y.cpu(), a, words, back), gpu->ring().crt(y.gpu(), b, words, back);
      same(y, "crt");
      ASSERT_TRUE(y.host == x.host);
    }
  }
}

TEST_P(GpuOps, SeedsExpandToTheSameResidues) {
  SeedsExpandToTheSame(range(0, kPrimes));
  std::array<std::uint8_t, 32> key{};
  for (auto& b : key) b = static_cast<std::uint8_t>(random());
  for (const auto kind : {backend::Small::ternary, backend::Small::error}) {
    auto small = poison(range(0, kPrimes));
    const std::uint64_t stream = random();
    cpu->ring().sample_small(small.cpu(), kind, key, stream);
    gpu->ring().sample_small(small.gpu(), kind, key, stream);
    same(small, "sample_small");
  }
  for (const std::size_t weight : {std::size_t{0}, std::size_t{192}, n}) {
    auto sparse = poison(range(0, kPrimes));
    const std::uint64_t stream = random();
    cpu->ring().sample_sparse(sparse.cpu(), weight, key, stream);
    gpu->ring().sample_sparse(sparse.gpu(), weight, key, stream);
    same(sparse, "sample_sparse");
  }
}

// For primes just above a power of two, almost half of the stream's words are rejected.
TEST_P(GpuOps, SeedsExpandWithManyRejections) {
  const int log_n = std::countr_zero(n), bits = word_prime_bits(cpu->config().word) - 1;
  const std::uint64_t step = 2 * n;
  std::vector<std::uint64_t> primes;
  for (const int b : {bits, log_n + 4, 32}) {
    if (b > bits) continue;
    std::uint64_t q = (std::uint64_t{1} << b) + 1;
    while (!arith::is_prime(q)) q += step;
    if (std::find(primes.begin(), primes.end(), q) == primes.end()) primes.push_back(q);
  }
  const backend::Config config{cpu->config().word, n, primes, 4, ""};
  cpu = backend::make_cpu_engine(config);
  gpu = backend::make_cuda_engine(config);
  pool = device::Pool::create(false, gpu->memory());
  SeedsExpandToTheSame(range(0, static_cast<PrimeIndex>(primes.size())));
}

INSTANTIATE_TEST_SUITE_P(All, GpuOps, ::testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace jali::testing
