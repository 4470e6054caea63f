// The oracle refuses every call that the contracts of the operations forbid.
#include <limits>

#include "jali/base/error.h"
#include "support.h"

namespace jali::backend::test {
namespace {

constexpr std::size_t kN = 8;

Config config_with(std::vector<u64> primes, std::size_t n = kN, Word word = Word::w32,
                   int threads = 1) {
  return {word, n, std::move(primes), threads, ""};
}

TEST(RefConfig, Refused) {
  EXPECT_NO_THROW(make_ref_engine(config_with({17, 97, 113})));
  EXPECT_THROW(make_ref_engine(config_with({})), InvalidArgument);
  EXPECT_THROW(make_ref_engine(config_with({17, 17})), InvalidArgument);
  EXPECT_THROW(make_ref_engine(config_with({19})), InvalidArgument);  // not 1 modulo 16
  EXPECT_THROW(make_ref_engine(config_with({33})), InvalidArgument);  // not a prime
  EXPECT_THROW(make_ref_engine(config_with({1})), InvalidArgument);
  EXPECT_THROW(make_ref_engine(config_with({17}, 2)), InvalidArgument);  // too small a ring
  EXPECT_THROW(make_ref_engine(config_with({17}, 6)), InvalidArgument);  // not a power of two
  EXPECT_THROW(make_ref_engine(config_with({17}, kN, Word::w32, 0)), InvalidArgument);
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    const u64 limit = u64{1} << word_prime_bits(word);
    const u64 large = primes_below(limit, kN, 1)[0];
    EXPECT_NO_THROW(make_ref_engine(config_with({large}, kN, word)));
    u64 above = limit + 1;
    while (!ref::is_prime(above)) above += 2 * kN;
    EXPECT_THROW(make_ref_engine(config_with({above}, kN, word)), InvalidArgument);
  }
}

class RefContract : public testing::Test {
 protected:
  RefContract() : rng_(1) {}
  Block block(PrimeList primes, std::size_t batch = 1, std::size_t blocks = 1) {
    Block b(config_, std::move(primes), batch, blocks);
    b.random(rng_);
    return b;
  }

  std::unique_ptr<Engine> engine_ =
      make_ref_engine({Word::w64, kN, primes_for(Word::w64, kN, 4), 1, ""});
  const Config& config_ = engine_->config();
  std::mt19937_64 rng_;
};

TEST_F(RefContract, Views) {
  Block x = block({0, 1});
  const PrimeList unknown = {0, 4}, falling = {1, 0}, twice = {1, 1}, none;
  for (const PrimeList& primes : {unknown, falling, twice, none}) {
    EXPECT_THROW(engine_->ring().ntt({x.view().data, primes, 1}), InvalidArgument);
  }
  EXPECT_THROW(engine_->ring().ntt({nullptr, x.primes(), 1}), InvalidArgument);
  EXPECT_THROW(engine_->ring().ntt({x.view().data, x.primes(), 0}), InvalidArgument);
  EXPECT_THROW(engine_->ring().ntt({static_cast<char*>(x.view().data) + 1, x.primes(), 1}),
               InvalidArgument);
  EXPECT_THROW(engine_->ring().root(4), InvalidArgument);
}

TEST_F(RefContract, ResiduesBelowTheirPrime) {
  Block x = block({0, 1}), y = block({0, 1}), key = block({0, 1, 2, 3}, 1, 2);
  Block ext = block({0, 1, 2}), acc0 = ext, acc1 = ext;
  const u32 one[] = {2}, id[] = {0};
  EXPECT_NO_THROW(
      engine_->rlwe().key_switch(acc0, acc1, x, one, {key.data(), 1, key.primes()}, id));
  x.set(1, 0, 3, config_.primes[1]);
  EXPECT_THROW(engine_->ring().ntt(Block(x)), InternalError);
  EXPECT_THROW(engine_->ring().intt(Block(x)), InternalError);
  EXPECT_THROW(engine_->ring().add(y, y, x), InternalError);
  EXPECT_THROW(engine_->ring().neg(y, x), InternalError);
  EXPECT_THROW(engine_->rlwe().mod_up(ext, x, one), InternalError);
  EXPECT_THROW(engine_->rlwe().key_switch(acc0, acc1, x, one, {key.data(), 1, key.primes()}, id),
               InternalError);
  const std::vector<u64> s = {1, 2};
  EXPECT_THROW(engine_->ring().mul_scalar_add(x, y, s), InternalError);
  Block small = block({0});
  EXPECT_THROW(engine_->rlwe().scale_down(small, x, nullptr), InternalError);
  x.set(1, 0, 3, config_.primes[1] - 1);
  key.set(0, config_.primes[0]);
  EXPECT_THROW(engine_->rlwe().key_switch(acc0, acc1, x, one, {key.data(), 1, key.primes()}, id),
               InternalError);
}

TEST_F(RefContract, ElementWise) {
  Block out = block({0, 1}, 3), a = block({0, 1}, 3), b = block({0, 1}, 1), c = block({0, 2}, 3);
  EXPECT_NO_THROW(engine_->ring().add(out, a, b));
  EXPECT_THROW(engine_->ring().add(out, b, a), InvalidArgument);  // only b is broadcast
  EXPECT_THROW(engine_->ring().add(out, a, c), InvalidArgument);
  EXPECT_THROW(engine_->ring().mul(out, c, a), InvalidArgument);
  EXPECT_THROW(engine_->ring().neg(out, b), InvalidArgument);
  EXPECT_THROW(engine_->ring().add(out, a, block({0, 1}, 2)), InvalidArgument);
  const std::vector<u64> ok = {1, 2}, big = {1, config_.primes[1]}, few = {1};
  EXPECT_NO_THROW(engine_->ring().mul_scalar(out, a, ok));
  for (const auto op : {&RingOps::mul_scalar, &RingOps::mul_scalar_add, &RingOps::add_scalar}) {
    EXPECT_THROW((engine_->ring().*op)(out, a, big), InvalidArgument);
    EXPECT_THROW((engine_->ring().*op)(out, a, few), InvalidArgument);
  }
  EXPECT_THROW(engine_->ring().automorphism_ntt(out, a, 2), InvalidArgument);
  EXPECT_THROW(engine_->ring().automorphism_ntt(out, out, 3), InvalidArgument);
  const ConstView as[] = {a, a}, bs[] = {b, a};
  EXPECT_NO_THROW(engine_->ring().inner_product(out, as, bs));
  EXPECT_THROW(engine_->ring().inner_product(a, as, bs), InvalidArgument);
  EXPECT_THROW(engine_->ring().inner_product(out, as, std::span(bs).first(1)), InvalidArgument);
  EXPECT_THROW(engine_->ring().inner_product(out, {}, {}), InvalidArgument);
  Block d1 = out, d2 = out;
  EXPECT_NO_THROW(engine_->rlwe().tensor(out, d1, d2, a, a, a, a));
  EXPECT_THROW(engine_->rlwe().tensor(out, out, d2, a, a, a, a), InvalidArgument);
  EXPECT_THROW(engine_->rlwe().tensor(out, d1, d2, a, d1, a, a), InvalidArgument);
}

TEST_F(RefContract, Combinations) {
  Block d0 = block({0, 2}, 2), d1 = d0, d2 = d0;
  const Block a = block({0, 1, 2}, 2), b = block({0, 2}, 2), lacks = block({0, 1}, 2),
              single = block({0, 2}, 1);
  const std::vector<u64> s = {1, 2}, big = {config_.primes[0], 1}, few = {1};
  const auto run = [&](const Block& x, const Block& y, const std::vector<u64>& factor,
                       const std::vector<u64>& constant, bool any = true) {
    const Combination::Product product{x, x, b, b};
    const Combination::Multiple multiple{y, y, factor};
    engine_->rlwe().combine(d0, d1, d2,
                            {{&product, any ? 1u : 0u}, {&multiple, any ? 1u : 0u}, constant});
  };
  EXPECT_NO_THROW(run(a, b, s, s));
  EXPECT_NO_THROW(run(a, a, s, {}));
  EXPECT_THROW(run(a, b, s, s, false), InvalidArgument);  // no term
  EXPECT_THROW(run(lacks, b, s, s), InvalidArgument);
  EXPECT_THROW(run(a, lacks, s, s), InvalidArgument);
  EXPECT_THROW(run(single, b, s, s), InvalidArgument);
  EXPECT_THROW(run(a, b, big, s), InvalidArgument);
  EXPECT_THROW(run(a, b, s, few), InvalidArgument);
  EXPECT_THROW(run(d2, b, s, s), InvalidArgument);  // an output
  EXPECT_THROW(run(a, d0, s, s), InvalidArgument);
}

TEST_F(RefContract, Overlap) {
  Block memory = block({0, 1, 2}, 1);
  std::byte* start = static_cast<std::byte*>(memory.view().data);
  const PrimeList two = {0, 1};
  const View whole{start, two, 1}, shifted{start + kN * 8, two, 1};
  memory.fill(Fill::zero, rng_);
  EXPECT_NO_THROW(engine_->ring().neg(whole, whole));
  EXPECT_THROW(engine_->ring().neg(whole, shifted), InvalidArgument);
  EXPECT_THROW(engine_->ring().add(whole, whole, shifted), InvalidArgument);
  EXPECT_THROW(engine_->rlwe().scale_down(whole, whole, nullptr), InvalidArgument);
}

TEST_F(RefContract, BasisChanges) {
  Block x = block({0, 1}), ext = block({0, 1, 2}, 1, 2), other = block({0, 2, 3}, 1, 2);
  const u32 digits[] = {1, 1}, sum3[] = {1, 2}, with0[] = {0, 2};
  EXPECT_NO_THROW(engine_->rlwe().mod_up(ext, x, digits));
  EXPECT_THROW(engine_->rlwe().mod_up(ext, x, sum3), InvalidArgument);
  EXPECT_THROW(engine_->rlwe().mod_up(ext, x, with0), InvalidArgument);
  EXPECT_THROW(engine_->rlwe().mod_up(ext, x, {}), InvalidArgument);
  EXPECT_THROW(engine_->rlwe().mod_up(other, x, digits), InvalidArgument);  // prime 1 is missing
  EXPECT_THROW(engine_->rlwe().mod_up(block({0, 1, 2}, 2, 2), x, digits), InvalidArgument);

  const Key key(config_, 2, rng_);
  const u32 ids[] = {0, 1}, unknown[] = {0, 2}, single[] = {0};
  Block acc0 = block({0, 1, 2}), acc1 = acc0;
  EXPECT_NO_THROW(engine_->rlwe().key_product(acc0, acc1, ext, key.view(), ids, 1, false));
  EXPECT_THROW(engine_->rlwe().key_product(acc0, acc1, ext, key.view(), unknown, 1, false),
               InvalidArgument);
  EXPECT_THROW(engine_->rlwe().key_product(acc0, acc1, ext, key.view(), ids, 4, false),
               InvalidArgument);
  EXPECT_THROW(engine_->rlwe().key_product(acc0, acc0, ext, key.view(), ids, 1, false),
               InvalidArgument);
  const Key cut(config_, key, {0, 1, 2});
  const PrimeList falling = {0, 2, 1}, unlike = {0, 1, 3};
  const auto over = [&](const PrimeList& list) { return KeyView{key.view().data, 2, list}; };
  EXPECT_NO_THROW(engine_->rlwe().key_product(acc0, acc1, ext, cut.view(), ids, 1, false));
  EXPECT_THROW(engine_->rlwe().key_product(acc0, acc1, ext, over(falling), ids, 1, false),
               InvalidArgument);
  EXPECT_THROW(engine_->rlwe().key_product(acc0, acc1, ext, over(unlike), ids, 1, false),
               InvalidArgument);
  EXPECT_THROW(engine_->rlwe().key_switch(acc0, acc1, x, digits, over(unlike), ids),
               InvalidArgument);
  EXPECT_THROW(engine_->rlwe().key_product(acc0, acc1, ext, over({}), ids, 1, false),
               InvalidArgument);
  EXPECT_THROW(
      engine_->rlwe().key_product(acc0, acc1, ext, {nullptr, 2, cut.view().primes}, ids, 1, false),
      InvalidArgument);
  EXPECT_THROW(engine_->rlwe().key_switch(acc0, acc1, x, digits, key.view(), single),
               InvalidArgument);
  EXPECT_THROW(engine_->rlwe().key_switch(x, acc1, x, digits, key.view(), ids), InvalidArgument);

  Block out = block({0}), addend = block({1});
  const ConstView view = addend;
  EXPECT_NO_THROW(engine_->rlwe().scale_down(out, x, nullptr));
  EXPECT_THROW(engine_->rlwe().scale_down(out, x, &view), InvalidArgument);
  EXPECT_THROW(engine_->rlwe().scale_down(block({0}, 2), x, nullptr), InvalidArgument);
}

TEST_F(RefContract, Integers) {
  Block x = block({0, 1}, 2);
  std::vector<std::int64_t> c(2 * kN, 1);
  std::vector<double> d(2 * kN, 1.0);
  EXPECT_NO_THROW(engine_->ring().from_int64(x, c));
  EXPECT_NO_THROW(engine_->ring().from_int64(x, std::span(c).first(kN)));
  for (const std::size_t bad : {std::size_t{0}, std::size_t{1}, kN - 1, kN - 2, kN + 2}) {
    EXPECT_THROW(engine_->ring().from_int64(x, std::span(c).first(bad)), InvalidArgument) << bad;
  }
  c.resize(4 * kN);
  EXPECT_THROW(engine_->ring().from_int64(x, c), InvalidArgument);
  EXPECT_NO_THROW(engine_->ring().from_double(x, d));
  for (const double bad : {0.5, 0x1p1000, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    d[3] = bad;
    EXPECT_THROW(engine_->ring().from_double(x, d), InvalidArgument);
  }
  std::vector<u64> w(2 * 2 * kN);
  EXPECT_NO_THROW(engine_->ring().icrt(w, 2, x, IcrtMethod::garner));
  EXPECT_THROW(engine_->ring().icrt(w, 1, x, IcrtMethod::garner), InvalidArgument);
  EXPECT_THROW(engine_->ring().icrt(std::span(w).first(2 * kN), 1, x, IcrtMethod::garner),
               InvalidArgument);
  EXPECT_THROW(engine_->ring().crt(x, w, 1, CrtMethod::mod), InvalidArgument);
}

}  // namespace
}  // namespace jali::backend::test
