// The exact blind rotation of the GPU (backend/cuda/exact_rotation/), run on the host as the
// threads of its blocks run it, in a random order in every phase.
#include <algorithm>
#include <numeric>

#include "exact_products.h"
#include "jali/backend/cuda/exact_rotation/tables.h"
#include "jali/backend/cuda/tfhe_transform.h"

namespace jali::backend::test {
namespace {

namespace exact = cuda::exact;

/// The threads of a block, one after the other.
class HostThreads {
 public:
  HostThreads(u32 count, u64 seed) : order_(count), rng_(seed) {
    std::iota(order_.begin(), order_.end(), 0);
  }
  u32 count() const { return static_cast<u32>(order_.size()); }
  template <class F>
  void each(const F& f) const {
    std::shuffle(order_.begin(), order_.end(), rng_);
    for (const u32 thread : order_) f(thread);
  }
  static void prefetch(const void*) {}
  static void add(long long* to, long long value) { *to += value; }

 private:
  mutable std::vector<u32> order_;
  mutable std::mt19937 rng_;
};

/// An engine whose blind rotations are those of the GPU's blocks. All else is the CPU engine's.
class HostExact final : public TfheOps {
 public:
  HostExact(const TfheConfig& config, std::size_t shared, u64 seed)
      : TfheOps(device::host_device()),
        others_(make_cpu_tfhe(config)),
        shape_(exact::shape(config)),
        host_(exact::host_tables(shape_)),
        layout_(exact::layout(shape_, shared)),
        seed_(seed) {}

  std::string name() const override { return "the GPU's exact rotation on the host"; }
  const TfheConfig& config() const override { return others_->config(); }

  std::size_t rotation_key_bytes() const override { return exact::key_bytes(shape_); }
  void prepare_rotation_key(void* out, const void* ggsws, std::size_t first,
                            std::size_t count) const override {
    const HostThreads threads(std::min(shape_.N() / 8, exact::kMostThreads), seed_);
    std::vector<u32> points(exact::padded(shape_.N()));
    for (std::size_t i = 0; i < count * shape_.key_polynomials(); ++i) {
      for (u32 prime = 0; prime < shape_.primes; ++prime) {
        exact::prepare(shape_, tables(), static_cast<u32*>(out), ggsws, static_cast<u32>(first), i,
                       prime, points.data(), threads);
      }
    }
  }
  std::size_t switch_key_bytes() const override { return others_->switch_key_bytes(); }
  void prepare_switch_key(void* out, const void* rows) const override {
    others_->prepare_switch_key(out, rows);
  }

  void key_switch(LweView out, ConstLweView in, const void* key) const override {
    others_->key_switch(out, in, key);
  }
  void bootstrap(LweView out, ConstLweView in, const TableView& tables,
                 const void* key) const override {
    run(out.data, false, in, tables, key);
  }
  void switch_bootstrap(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* key) const override {
    TorusBlock small(Torus::t32, in.count, config().n.value + 1);
    key_switch(small.lwe(), in, switch_key);
    bootstrap(out, small.lwe(), tables, key);
  }
  void bootstrap_switch(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* key) const override {
    TorusBlock large(config().torus, out.count, config().large().value + 1);
    bootstrap(large.lwe(), in, tables, key);
    key_switch(out, large.lwe(), switch_key);
  }
  void blind_rotate(GlweView out, ConstLweView in, const TableView& tables,
                    const void* key) const override {
    run(out.data, true, in, tables, key);
  }
  void combine(LweView out, ConstLweView in, const LweCombination& sum) const override {
    others_->combine(out, in, sum);
  }
  void extract(LweView out, ConstGlweView in, std::span<const u32> coefficients,
               std::size_t per) const override {
    others_->extract(out, in, coefficients, per);
  }
  void pack(GlweView out, ConstLweView in, std::span<const u32> coefficients, std::size_t per,
            const void* key) const override {
    others_->pack(out, in, coefficients, per, key);
  }

 private:
  exact::Tables tables() const {
    return {host_.forward.data(), host_.inverse.data(), host_.roots.data()};
  }
  void run(void* out, bool glwe, ConstLweView in, const TableView& view, const void* key) const {
    exact::Batch batch;
    batch.in = static_cast<const u32*>(in.data);
    batch.count = static_cast<u32>(in.count);
    batch.tables = view.data;
    batch.of_input = view.of_input.empty() ? nullptr : view.of_input.data();
    batch.encrypted = view.encrypted;
    batch.log_many = view.log_many;
    batch.out = out;
    batch.glwe = glwe;
    batch.key = static_cast<const u32*>(key);
    with_word(config().torus, [&](auto zero) {
      using Word = decltype(zero);
      // Poisoned, because a GPU's memory holds what others left there.
      std::vector<u64> shared(layout_.shared_bytes / 8, 0xabababababababab),
          scratch(layout_.scratch_bytes / 8, 0xabababababababab);
      const auto place = [&](exact::Layout::Array array) {
        return reinterpret_cast<std::byte*>(layout_.in_shared[array] ? shared.data()
                                                                     : scratch.data()) +
               layout_.offset[array];
      };
      u32 exponents[exact::kMostUnits];
      long long rounding = -1;
      const exact::Memory<Word> at{reinterpret_cast<u32*>(place(exact::Layout::sums)),
                                   reinterpret_cast<u32*>(place(exact::Layout::rows)),
                                   reinterpret_cast<Word*>(place(exact::Layout::acc)),
                                   reinterpret_cast<u32*>(place(exact::Layout::fractions)),
                                   reinterpret_cast<std::int32_t*>(place(exact::Layout::digits)),
                                   exponents,
                                   &rounding};
      const HostThreads threads(exact::threads_of(shape_), seed_);
      for (std::size_t i = 0; i < in.count; ++i) {
        exact::rotate(shape_, shape_, tables(), batch, i, at, threads);
      }
    });
  }

  const std::unique_ptr<TfheOps> others_;
  const exact::Shape shape_;
  const exact::HostTables host_;
  const exact::Layout layout_;
  const u64 seed_;
};

constexpr std::size_t kShared = (227 << 10) - 128;  // of an H100

class ExactRotation : public testing::Test {
 protected:
  const u64 seed_ = jali::test::test_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "JALI_TEST_SEED=" + std::to_string(seed_)};
  std::mt19937_64 rng_{seed_};

  void hold(const TfheConfig& config, const TorusBlock& key, const TorusBlock& accumulators,
            const TorusBlock& in, std::size_t shared = kShared) {
    SCOPED_TRACE(describe(config));
    const HostExact engine(config, shared, rng_());
    EXPECT_TRUE(same(rotated(engine, key, accumulators, in),
                     rotated(*make_ref_tfhe(config), key, accumulators, in)));
  }
};

TEST_F(ExactRotation, GivesTheOraclesBits) {
  const std::vector<TfheConfig> configs = small_configs(rng_);
  for (std::size_t i = rng_() % 3; i < configs.size(); i += 3) {  // of every kind of rotation
    const TfheConfig& config = configs[i];
    compare(HostExact(config, kShared, rng_()), *make_ref_tfhe(config), {.exact = true}, rng_);
  }
}

// Every size, and arrays in shared memory, in the device's, and in both.
TEST_F(ExactRotation, GivesTheOraclesBitsAtEverySize) {
  for (std::size_t N = 1 << 8; N <= 1 << 16; N *= 2) {
    for (const Torus torus : {Torus::t32, Torus::t64}) {
      const TfheConfig config = one_step(torus, 1, N, {8, torus == Torus::t32 ? 2 : 3});
      const TorusBlock key = detail::random_words(rng_, torus, 1, config.ggsw_words());
      TorusBlock accumulators(torus, 2, 2 * N);
      for (std::size_t i = 0; i < accumulators.size(); ++i) {  // sparse, since the oracle is slow
        accumulators.set(i, rng_() % N < 16 ? rng_() : 0);
      }
      const TorusBlock in = detail::random_words(rng_, Torus::t32, 2, 2);
      hold(config, key, accumulators, in, rng_() % 3 * (kShared / 2));
    }
  }
}

TEST_F(ExactRotation, GivesTheOraclesBitsWithEveryKindOfGadget) {
  for (const Gadget gadget : {Gadget{1, 1}, Gadget{31, 1}, Gadget{1, 5}, Gadget{31, 2},
                              Gadget{27, 2}, Gadget{13, 4}, Gadget{16, 4}, Gadget{1, 64}}) {
    for (const Torus torus : {Torus::t32, Torus::t64}) {
      if (gadget.base_log * gadget.levels > torus_bits(torus)) continue;
      for (const std::size_t k : {1, 3, 16}) {
        if (k > 1 && gadget.levels > 5) continue;
        const TfheConfig config = one_step(torus, k, 256, gadget);
        const TorusBlock key = detail::random_words(rng_, torus, 1, config.ggsw_words());
        TorusBlock accumulators = detail::random_words(rng_, torus, 2, (k + 1) * 256);
        for (std::size_t i = 0; i < accumulators.size(); i += 3) {
          accumulators.set(i, detail::edge_word(rng_, torus_bits(torus)));
        }
        hold(config, key, accumulators, detail::random_words(rng_, Torus::t32, 2, 2));
      }
    }
  }
}

TEST_F(ExactRotation, HoldsTheLargestProducts) {
  for (const auto& [config, primes] : largest_products()) {
    const exact::Shape shape = exact::shape(config);
    ASSERT_EQ(shape.primes, primes);
    double product = 1;
    for (u32 i = 0; i < primes; ++i) product *= shape.prime[i].q;
    ASSERT_GT(2 * exact::largest_product(config), 0.93 * product);
    hold_largest(HostExact(config, kShared, rng_()));
  }
}

// All digits are the largest, in the largest ring: sums of the forward transform that nobody
// reduces would leave their words. The oracle would take minutes, so that the CPU's exact engine
// says what is right.
TEST_F(ExactRotation, HoldsTheLargestDigitsInTheLargestRing) {
  TfheConfig config = one_step(Torus::t64, 1, 1 << 16, {31, 1}, Rotation::block_binary, 2);
  config.transform = "ntt";
  const TorusBlock key =
      detail::random_words(rng_, Torus::t64, config.units(), config.ggsw_words());
  TorusBlock accumulators(Torus::t64, 2, 2 << 16);
  for (std::size_t i = 0; i < accumulators.size(); ++i) {
    const u64 digit = u64{1} << 30;  // below the half-way point, so that its digit is positive
    accumulators.set(i, (i < accumulators.size() / 2 ? digit - 1 : 0 - digit) << 33);
  }
  const TorusBlock in = detail::random_words(rng_, Torus::t32, 2, 3);
  EXPECT_TRUE(same(rotated(HostExact(config, kShared, rng_()), key, accumulators, in),
                   rotated(*make_cpu_tfhe(config), key, accumulators, in)));
}

TEST_F(ExactRotation, ItsPrimesHaveEveryTransform) {
  u64 before = u64{1} << 27;
  for (const u32 q : exact::primes()) {
    EXPECT_TRUE(arith::is_prime(q));
    EXPECT_EQ(q % (1u << 17), 1u);
    EXPECT_GT(u64{17} * q, u64{1} << 31);
    // What a sum of products, taken back to a word, may add to a residue below 2q.
    EXPECT_LT((exact::kProducts + 1 + 2) * u64{q}, u64{1} << 32);
    EXPECT_LE(exact::kProducts, (u64{1} << 32) / q);  // so many products hold in 64 bits
    EXPECT_LT(q, before);
    before = q;
  }
}

// The signed integers at the ends of what the primes hold come back, with every number of primes.
TEST_F(ExactRotation, IntegersComeBackFromTheirResidues) {
  const auto all = exact::primes();
  for (u32 count = 1; count <= exact::kMostPrimes; ++count) {
    // Words of 32 bits, the lowest first: twice as many as a product of five primes has.
    using Wide = std::vector<u32>;
    const auto times = [](Wide x, u64 factor) {
      u64 carry = 0;
      for (u32& word : x) carry += word * factor, word = static_cast<u32>(carry), carry >>= 32;
      return x;
    };
    const auto modulo = [](const Wide& x, u64 q) {
      u64 r = 0;
      for (std::size_t i = x.size(); i-- > 0;) r = ((r << 32) + x[i]) % q;
      return r;
    };
    Wide product(10);
    product[0] = 1;
    for (u32 i = 0; i < count; ++i) product = times(product, all[i]);
    Wide half = product;  // rounded down, as M is odd
    for (std::size_t i = 0; i < half.size(); ++i) {
      half[i] = half[i] >> 1 | (i + 1 < half.size() ? half[i + 1] << 31 : 0);
    }
    // |x| = 0, 1, 2, and (1/2 - j 2^-23) M, j = 1, 2
    std::vector<Wide> sizes(3, Wide(10));
    sizes[1][0] = 1, sizes[2][0] = 2;
    for (const u64 j : {1, 2}) {
      Wide size = times(half, (u64{1} << 22) - j);
      for (std::size_t i = 0; i < size.size(); ++i) {
        size[i] = size[i] >> 22 | (i + 1 < size.size() ? size[i + 1] << 10 : 0);
      }
      sizes.push_back(size);
    }
    for (const Wide& size : sizes) {
      for (const bool negative : {false, true}) {
        u32 fractions = 0;
        u64 word = 0, modulus = 1;
        for (u32 i = 0; i < count; ++i) modulus *= all[i];
        for (u32 i = 0; i < count; ++i) {
          const arith::Modulus mod(all[i]);
          exact::Prime p{};
          p.q = all[i];
          p.share = static_cast<u32>((u64{1} << 58) / p.q);
          u64 others = 1, inverse = 1;
          for (u32 j = 0; j < count; ++j) {
            if (j != i) others *= all[j], inverse = mod.mul(inverse, all[j] % p.q);
          }
          const u64 r = modulo(size, p.q);
          const u64 s = mod.mul(negative ? mod.neg(r) : r, mod.inverse(inverse));
          word += s * others;
          fractions += exact::fraction(static_cast<u32>(s), p);
        }
        word -= exact::nearest_integer(fractions) * modulus;
        const u64 want = u64{size[1]} << 32 | size[0];
        EXPECT_EQ(word, negative ? 0 - want : want) << count << " primes";
      }
    }
  }
}

// The ends of every range that a lazy form may have.
TEST_F(ExactRotation, LazyFormsStayInTheirRanges) {
  for (const u32 q : exact::primes()) {
    exact::Prime p{};
    p.q = q;
    p.bound[0] = 2 * q;
    p.unit = static_cast<u32>((u64{1} << 32) / q);
    p.inverse = static_cast<u32>(arith::Modulus(u64{1} << 32).inverse(q));
    EXPECT_EQ(p.inverse * q, 1u);
    const u64 mod = q;
    const u32 inverse_32 = static_cast<u32>(arith::Modulus(q).inverse((u64{1} << 32) % q));
    for (int i = 0; i < 2000; ++i) {
      const auto near = [&](u64 end) {  // in [0, end), one time in two at an end
        const u64 off = rng_() % 3;
        return i % 2 == 0 ? rng_() % end : rng_() % 2 == 0 ? off : end - 1 - off;
      };
      const u32 w = static_cast<u32>(near(q));
      const exact::Factor f{w, static_cast<u32>((u64{w} << 32) / q)};
      const u32 any = static_cast<u32>(near(u64{1} << 32));
      EXPECT_LT(exact::times(any, f, q), 2 * q);
      EXPECT_EQ(exact::times(any, f, q) % mod, u64{any} * w % mod);

      EXPECT_LT(exact::reduced(any, p), 2 * q);
      EXPECT_EQ(exact::reduced(any, p) % mod, any % mod);
      const u32 c = static_cast<u32>(near(2 * mod));
      EXPECT_EQ(exact::canonical(c, q), c % q);

      const u32 a = static_cast<u32>(near(30 * mod));
      u32 x = a, y = any;
      exact::forward_butterfly(x, y, f, p);
      EXPECT_LE(std::max(x, y), u64{a} + 2 * mod);
      EXPECT_EQ(x % mod, (a + any % mod * w) % mod);
      EXPECT_EQ(y % mod, (a + (mod - any % mod * w % mod)) % mod);

      for (const u64 bound : {2 * mod, 4 * mod, 8 * mod, 16 * mod}) {
        const u32 lo = x = static_cast<u32>(near(bound)), hi = y = static_cast<u32>(near(bound));
        exact::inverse_butterfly(x, y, f, q, static_cast<u32>(bound));
        EXPECT_EQ(x, u64{lo} + hi);
        EXPECT_LT(y, 2 * q);
        EXPECT_EQ(y % mod, (lo + bound - hi) % mod * w % mod);
      }

      for (const u64 count : {u64{1}, u64{2}, u64{exact::kProducts}}) {
        const u64 sum = near(count * mod << 32);
        EXPECT_LT(exact::total(sum, p), (count + 1) * mod);
        EXPECT_EQ(exact::total(sum, p) % mod, sum % mod * inverse_32 % mod);
      }
      for (const std::int64_t digit : {-(std::int64_t{1} << 30), std::int64_t{1} << 30}) {
        EXPECT_LT(u64{9} * q + static_cast<u64>(digit), 18 * mod);
      }
    }
    for (const std::int64_t word :
         {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
          std::int64_t{0}, std::int64_t{-1}, -std::int64_t{q}, std::int64_t{q}}) {
      EXPECT_EQ(exact::residue(word, q), arith::Modulus(q).reduce_signed(word));
    }
  }
}

TEST_F(ExactRotation, TakesAsManyPrimesAsItsProductsNeed) {
  TfheConfig config = one_step(Torus::t64, 1, 2048, {23, 1});
  EXPECT_EQ(exact::prime_count(config), 4u);  // message_2_carry_2: 2^98 in all
  config = one_step(Torus::t32, 1, 1024, {8, 3});
  EXPECT_EQ(exact::prime_count(config), 2u);
  // The largest of all configurations: 2^119.994, of which four primes would lose the highest.
  config = one_step(Torus::t64, 16, 1 << 16, {31, 2}, Rotation::multi_bit, 4);
  EXPECT_EQ(exact::prime_count(config), 5u);
  for (const Torus torus : {Torus::t32, Torus::t64}) {
    for (int g = 1; g <= 31; ++g) {
      for (const std::size_t k : {1, 4, 16}) {
        for (const std::size_t N : {256, 65536}) {
          config = one_step(torus, k, N, {g, torus_bits(torus) / g}, Rotation::multi_bit, 4);
          double product = 1;
          for (u32 i = 0; i < exact::prime_count(config); ++i) product *= exact::primes()[i];
          EXPECT_GT(product, 2 * exact::largest_product(config));
        }
      }
    }
  }
}

TEST(TfheTransform, IsOfIntegersIfDoublesAreSlow) {
  const auto chosen = [](const std::string& asked, int generation, int ratio,
                         std::size_t kilobytes = 227) {
    return cuda::tfhe_transform(asked, generation, ratio, kilobytes << 10);
  };
  EXPECT_EQ(chosen("", 9, 2), "fft");  // H100
  EXPECT_EQ(chosen("", 10, 2), "fft");  // B200
  for (const int generation : {8, 12}) {  // of 8.6 and 8.9, 12.0
    for (const int ratio : {32, 64}) EXPECT_EQ(chosen("", generation, ratio), "ntt");
  }
  // Who asks gets it, if the GPU can.
  EXPECT_EQ(chosen("ntt", 9, 2), "ntt");
  EXPECT_EQ(chosen("ntt", 8, 2), "ntt");
  EXPECT_EQ(chosen("fft", 10, 64), "fft");  // B300
  EXPECT_EQ(chosen("ntt", 12, 64, 99), "ntt");
  EXPECT_EQ(chosen("", 12, 64, 99), "ntt");
  EXPECT_THROW(chosen("fft", 12, 64, 99), Unsupported);
  EXPECT_THROW(chosen("fft", 8, 64), Unsupported);
  EXPECT_THROW(chosen("", 8, 2), Unsupported);  // A100
  EXPECT_THROW(chosen("ntt", 7, 2), Unsupported);
  EXPECT_THROW(chosen("", 7, 32), Unsupported);
}

TEST_F(ExactRotation, ArraysOfABlockDoNotOverlap) {
  for (const TfheConfig& config :
       {one_step(Torus::t64, 1, 2048, {23, 1}), one_step(Torus::t32, 4, 512, {8, 3}),
        one_step(Torus::t64, 1, 8192, {15, 2}), one_step(Torus::t64, 16, 1 << 16, {1, 64})}) {
    const exact::Shape s = exact::shape(config);
    const std::size_t sizes[] = {std::size_t{4} * s.k1 * exact::padded(s.N()),
                                 std::size_t{4} * s.rows() * exact::padded(s.N()),
                                 std::size_t{s.k1} * s.N() * torus_bytes(config.torus),
                                 std::size_t{4} * s.k1 * s.N(), std::size_t{4} * s.rows() * s.N()};
    for (const std::size_t shared : {std::size_t{0}, std::size_t{99} << 10, kShared}) {
      const exact::Layout layout = exact::layout(s, shared);
      EXPECT_LE(layout.shared_bytes, shared);
      std::size_t ends[2] = {0, 0}, together = 0;
      for (std::size_t i = 0; i < exact::Layout::kArrays; ++i) {
        EXPECT_EQ(layout.offset[i] % 16, 0u);
        EXPECT_EQ(layout.offset[i], ends[layout.in_shared[i]]);
        ends[layout.in_shared[i]] += sizes[i];
        together += sizes[i];
      }
      EXPECT_EQ(ends[1], layout.shared_bytes);
      EXPECT_EQ(ends[0], layout.scratch_bytes);
      EXPECT_EQ(together, layout.shared_bytes + layout.scratch_bytes);
      EXPECT_EQ(exact::blocks_of(layout, 132, 2, 1), 1u);
      EXPECT_LE(exact::blocks_of(layout, 132, 2, 100000), 264u);
      EXPECT_LE(exact::blocks_of(layout, 132, 2, 100000) * layout.scratch_bytes,
                std::size_t{4} << 30);
    }
  }
  // Two blocks of message_2_carry_2 share a multiprocessor of an H100.
  const exact::Layout layout =
      exact::layout(exact::shape(one_step(Torus::t64, 1, 2048, {23, 1})), kShared);
  EXPECT_EQ(layout.scratch_bytes, 0u);
  EXPECT_LE(2 * (layout.shared_bytes + 1152), std::size_t{228} << 10);
}

}  // namespace
}  // namespace jali::backend::test
