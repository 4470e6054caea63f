// trace/ passes operations on unchanged and records them.
#include "jali/backend/trace/trace.h"

#include <array>
#include <bit>
#include <map>
#include <thread>

#include "jali/backend/embedding.h"
#include "jali/backend/trace/cost.h"
#include "jali/base/error.h"
#include "keep_trace.h"
#include "support.h"

namespace jali::backend::test {
namespace {

constexpr std::size_t kN = 16;

class TraceTest : public testing::Test {
 protected:
  std::shared_ptr<const Engine> ref_ =
      make_ref_engine({Word::w64, kN, primes_for(Word::w64, kN, 5), 1, ""});
  std::shared_ptr<Trace> trace_ = std::make_shared<Trace>();
  std::unique_ptr<Engine> engine_ = make_trace_engine(ref_, trace_);
  const Config& config_ = ref_->config();

  Record last() { return trace_->records().back(); }
};

/// Runs every operation once, on inputs that depend on the seed alone, and returns all outputs.
std::vector<Block> run_all(const Engine& engine, u64 seed) {
  std::mt19937_64 rng(seed);
  const Config& config = engine.config();
  const auto block = [&](PrimeList primes, std::size_t batch = 2, std::size_t blocks = 1) {
    Block b(config, std::move(primes), batch, blocks);
    return std::move(b.random(rng));
  };
  std::vector<Block> out;
  const Block a = block({0, 1, 2}), b = block({0, 1, 2}), single = block({0, 1, 2}, 1);
  const auto into = [&](auto call) {
    out.push_back(block({0, 1, 2}));
    call(out.back().view());
  };
  const u64 s[] = {3, 4, 5};
  into([&](View o) { engine.ring().ntt(o); });
  into([&](View o) { engine.ring().intt(o); });
  into([&](View o) { engine.ring().add(o, a, single); });
  into([&](View o) { engine.ring().sub(o, a, b); });
  into([&](View o) { engine.ring().neg(o, a); });
  into([&](View o) { engine.ring().mul(o, a, b); });
  into([&](View o) { engine.ring().mul_scalar(o, a, s); });
  into([&](View o) { engine.ring().mul_scalar_add(o, a, s); });
  into([&](View o) { engine.ring().add_scalar(o, a, s); });
  const ConstView as[] = {a, b}, bs[] = {b, single};
  into([&](View o) { engine.ring().inner_product(o, as, bs); });
  Block weighted = a;
  const u32 operands[] = {1, 0};
  into([&](View o) {
    const WeightedSum sum{o, weighted, operands, bs, true};
    engine.rlwe().weighted_sums(as, as, {&sum, 1});
  });
  out.push_back(weighted);
  Block d1 = a, d2 = a;
  into([&](View o) { engine.rlwe().tensor(o, d1, d2, a, b, b, a); });
  out.push_back(d1);
  out.push_back(d2);
  const Combination::Product product{a, b, b, a, true};
  const Combination::Multiple multiple{b, a, s};
  const Combination sum{{&product, 1}, {&multiple, 1}, s};
  into([&](View o) { engine.rlwe().combine(o, d1, d2, sum); });
  out.push_back(d1);
  out.push_back(d2);
  into([&](View o) { engine.ring().automorphism_ntt(o, a, 5); });
  const u32 digits[] = {2, 1}, ids[] = {1, 0};
  const Key key(config, 2, rng);
  Block ext = block({0, 1, 2, 4}, 2, 2), acc0 = block({0, 1, 2, 4}), acc1 = block({0, 1, 2, 4});
  engine.rlwe().mod_up(ext, a, digits);
  engine.rlwe().key_product(acc0, acc1, ext, key.view(), ids, 3, true);
  out.push_back(ext);
  out.push_back(acc0);
  out.push_back(acc1);
  const Rotated rotated[] = {{ext, a, b, 5, key.view()}, {{}, a, b, 1, {}}};
  const ConstView weights[] = {acc0, acc1};
  Block sum0 = acc0, sum1 = acc1;
  const WeightedSum inner{sum0, sum1, operands, weights, true};
  engine.rlwe().rotated_sums(rotated, ids, s, {&inner, 1});
  out.push_back(sum0);
  out.push_back(sum1);
  engine.rlwe().key_switch(acc0, acc1, a, digits, key.view(), ids);
  out.push_back(acc0);
  out.push_back(acc1);
  engine.rlwe().key_switch_add(acc0, acc1, a, digits, key.view(), ids, {a, b, s});
  out.push_back(acc0);
  out.push_back(acc1);
  engine.rlwe().combine_key_switch(acc0, acc1, sum, s, digits, key.view(), ids);
  out.push_back(acc0);
  out.push_back(acc1);
  Block down = block({0, 1, 3});
  const ConstView addend = out.emplace_back(block({0, 1, 3}));
  engine.rlwe().scale_down(down, a, &addend);
  out.push_back(down);
  Block down1 = down;
  engine.rlwe().scale_down_pair(down, down1, a, b, nullptr, &addend);
  out.push_back(down);
  out.push_back(down1);
  const Block x0 = block({0, 1, 2, 4}), x1 = block({0, 1, 2, 4});
  const Turned turns[] = {{x0, x1, 5, key.view()}, {x1, x0, 3, key.view()}};
  engine.rlwe().outer_sum(acc0, acc1, turns, digits, ids, true);
  out.push_back(acc0);
  out.push_back(acc1);
  Block turned = a, turned1 = a;
  engine.rlwe().rotate(turned, turned1, acc0, acc1, a, b, 5, digits, key.view(), ids);
  out.push_back(turned);
  out.push_back(turned1);
  out.push_back(acc0);
  out.push_back(acc1);
  const std::vector<std::int64_t> small(2 * kN, -7);
  const std::vector<double> real(2 * kN, -7e20);
  std::vector<u64> wide(2 * kN * 3, 11);
  into([&](View o) { engine.ring().from_int64(o, small); });
  into([&](View o) { engine.ring().from_double(o, real); });
  const std::array<std::uint8_t, 32> bytes = {1, 2, 3};
  into([&](View o) { engine.ring().sample_uniform(o, bytes, 9); });
  into([&](View o) { engine.ring().sample_small(o, Small::ternary, bytes, 9); });
  into([&](View o) { engine.ring().sample_sparse(o, 5, bytes, 9); });
  into([&](View o) { engine.ring().crt(o, wide, 3, CrtMethod::mul); });
  const Embedding embedding(kN / 2);
  std::vector<Complex> slots(kN, {0.5, -1});
  into([&](View o) { engine.embedding().embed(o, embedding, slots, 3, 0x1p20); });
  engine.embedding().unembed(slots, embedding, a, 3, 0x1p20);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    wide[i] = std::bit_cast<u64>(i % 2 == 0 ? slots[i / 2 % kN].real() : slots[i / 2 % kN].imag());
  }
  out.push_back(block({0}, 2, 3));
  for (std::size_t i = 0; i < wide.size(); ++i) out.back().set(i, wide[i]);
  engine.ring().icrt(wide, 3, a, IcrtMethod::garner);
  out.push_back(block({0}, 2, 3));
  for (std::size_t i = 0; i < wide.size(); ++i) out.back().set(i, wide[i]);
  return out;
}

TEST_F(TraceTest, HandsEveryOperationOnAndRecordsIt) {
  JALI_SEEDED(rng);
  const std::vector<Block> want = run_all(*ref_, rng_seed), have = run_all(*engine_, rng_seed);
  ASSERT_EQ(have.size(), want.size());
  for (std::size_t i = 0; i < have.size(); ++i) EXPECT_TRUE(same(have[i], want[i])) << i;

  const std::vector<std::string> names = {"ntt",
                                          "intt",
                                          "add",
                                          "sub",
                                          "neg",
                                          "mul",
                                          "mul_scalar",
                                          "mul_scalar_add",
                                          "add_scalar",
                                          "inner_product",
                                          "weighted_sums",
                                          "tensor",
                                          "combine",
                                          "automorphism_ntt",
                                          "mod_up",
                                          "key_product",
                                          "rotated_sums",
                                          "key_switch",
                                          "key_switch_add",
                                          "combine_key_switch",
                                          "scale_down",
                                          "scale_down_pair",
                                          "outer_sum",
                                          "rotate",
                                          "from_int64",
                                          "from_double",
                                          "sample_uniform",
                                          "sample_small",
                                          "sample_sparse",
                                          "crt",
                                          "embed",
                                          "unembed",
                                          "icrt"};
  std::vector<std::string> recorded;
  for (const Record& r : trace_->records()) {
    recorded.push_back(r.op);
    u64 read = 0, written = 0;
    for (const Extent& e : r.reads) read += e.bytes;
    for (const Extent& e : r.writes) written += e.bytes;
    EXPECT_EQ(r.bytes_read, read) << r.op;
    EXPECT_EQ(r.bytes_written, written) << r.op;
    EXPECT_EQ(r.bytes_read > 0, !r.op.starts_with("sample_")) << r.op;
    EXPECT_GT(r.bytes_written, 0U) << r.op;
    EXPECT_EQ(r.shape.number("batch"), 2U) << r.op;
  }
  EXPECT_EQ(recorded, names);
  expect_copies(*engine_, *trace_);
  keep_trace("ckks", *trace_);
  EXPECT_EQ(engine_->name(), "trace(ref)");
  EXPECT_EQ(&engine_->config(), &config_);
  EXPECT_EQ(engine_->ring().root(3), ref_->ring().root(3));
}

TEST_F(TraceTest, ShapesBytesAndMultiplications) {
  JALI_SEEDED(rng);
  run_all(*engine_, rng_seed);
  std::map<std::string, Record> by_name;
  for (const Record& r : trace_->records()) by_name[r.op] = r;
  const std::size_t row = kN * 8, residues = 3 * 2 * kN;
  const u64 ntt = kN / 2 * 4, intt = kN / 2 * 5;

  EXPECT_EQ(by_name["ntt"].mults, 6 * ntt);
  EXPECT_EQ(by_name["intt"].mults, 6 * intt);
  EXPECT_EQ(by_name["add"].mults, 0U);
  EXPECT_EQ(by_name["add"].bytes_read, (6 + 3) * row);  // b is broadcast
  EXPECT_EQ(by_name["add"].bytes_written, 6 * row);
  EXPECT_EQ(by_name["mul_scalar_add"].bytes_read, (6 + 6) * row);
  EXPECT_TRUE(by_name["mul_scalar_add"].shape.flag("accumulate"));
  EXPECT_EQ(by_name["inner_product"].mults, 2 * residues);
  EXPECT_EQ(by_name["inner_product"].shape.number("terms"), 2U);
  EXPECT_EQ(by_name["weighted_sums"].mults, 4 * residues);
  EXPECT_EQ(by_name["weighted_sums"].shape.number("terms"), 2U);
  EXPECT_EQ(by_name["weighted_sums"].bytes_written, 12 * row);
  EXPECT_EQ(by_name["weighted_sums"].bytes_read, (4 * 6 + 6 + 3 + 12) * row);
  EXPECT_EQ(by_name["tensor"].mults, 4 * residues);
  EXPECT_EQ(by_name["tensor"].bytes_written, 18 * row);
  EXPECT_EQ(by_name["automorphism_ntt"].shape.list("galois"), (std::vector<u64>{5}));

  // Digits of 2 and 1 limbs are lifted to 4 limbs: 3 inverse transforms, lifts from 2 to 2 and from
  // 1 to 3 limbs, and 5 transforms.
  const Record& up = by_name["mod_up"];
  const u64 up_mults = 3 * intt + kN * (2 + 4 + 2) + kN * (1 + 3 + 3) + 5 * ntt;
  EXPECT_EQ(up.mults, 2 * up_mults);
  EXPECT_EQ(up.shape.list("digits"), (std::vector<u64>{2, 1}));
  EXPECT_EQ(up.shape.list("primes_in"), (std::vector<u64>{0, 1, 2}));
  EXPECT_EQ(up.shape.list("primes_out"), (std::vector<u64>{0, 1, 2, 4}));
  EXPECT_EQ(up.bytes_written, 2 * 4 * 2 * row);
  const Record& product = by_name["key_product"];
  EXPECT_EQ(product.mults, 2U * 2 * 4 * 2 * kN);
  EXPECT_EQ(product.shape.list("galois"), (std::vector<u64>{3}));
  EXPECT_EQ(product.bytes_read, (16 + 2 * 2 * 4 + 2 * 8) * row);  // ext, key, accumulators
  // The terms are one rotation and one ciphertext that is not rotated. Read are ext, c0 and c1, the
  // key, the weights and the accumulators.
  EXPECT_EQ(by_name["rotated_sums"].mults, product.mults + 3 * residues + 4U * 4 * 2 * kN);
  EXPECT_EQ(by_name["rotated_sums"].shape.number("terms"), 2U);
  EXPECT_EQ(by_name["rotated_sums"].shape.list("galois"), (std::vector<u64>{5, 1}));
  EXPECT_EQ(by_name["rotated_sums"].shape.list("sources"), (std::vector<u64>{0, 0}));
  EXPECT_EQ(by_name["rotated_sums"].shape.list("sums"), (std::vector<u64>{2}));
  EXPECT_EQ(by_name["rotated_sums"].shape.list("operands"), (std::vector<u64>{1, 0}));
  EXPECT_EQ(by_name["rotated_sums"].bytes_read, (16 + 2 * 6 + 2 * 2 * 4 + 2 * 8 + 2 * 8) * row);
  EXPECT_EQ(by_name["rotated_sums"].bytes_written, 2 * 8 * row);
  EXPECT_EQ(by_name["key_switch"].mults, up.mults + product.mults);
  EXPECT_EQ(by_name["key_switch"].bytes_read, (6 + 2 * 2 * 4) * row);
  EXPECT_EQ(by_name["key_switch_add"].mults, up.mults + product.mults + 2 * residues);
  EXPECT_EQ(by_name["key_switch_add"].bytes_read, (3 * 6 + 2 * 2 * 4) * row);
  EXPECT_EQ(by_name["combine"].mults, 6 * residues);
  EXPECT_EQ(by_name["combine"].shape.number("terms"), 2U);
  EXPECT_EQ(by_name["combine"].shape.number("products"), 1U);
  EXPECT_EQ(by_name["combine"].bytes_read, 6 * 6 * row);
  EXPECT_EQ(by_name["combine"].bytes_written, 3 * 6 * row);
  EXPECT_EQ(by_name["combine_key_switch"].mults, up.mults + product.mults + 8 * residues);
  EXPECT_EQ(by_name["combine_key_switch"].bytes_read, (6 * 6 + 2 * 2 * 4) * row);
  EXPECT_EQ(by_name["scale_down_pair"].mults, 2 * by_name["scale_down"].mults);
  EXPECT_EQ(by_name["scale_down_pair"].bytes_read, (2 * 6 + 6) * row);
  EXPECT_EQ(by_name["outer_sum"].shape.number("terms"), 2U);
  EXPECT_EQ(by_name["outer_sum"].shape.list("galois"), (std::vector<u64>{5, 3}));
  EXPECT_EQ(by_name["outer_sum"].shape.list("digits"), (std::vector<u64>{2, 1}));
  EXPECT_EQ(by_name["outer_sum"].bytes_read, (2 * 8 + 2 * (2 * 8 + 2 * 2 * 4)) * row);
  EXPECT_EQ(by_name["outer_sum"].bytes_written, 2 * 8 * row);
  EXPECT_GT(by_name["outer_sum"].mults, 2 * by_name["key_switch"].mults);
  EXPECT_EQ(by_name["rotate"].shape.list("galois"), (std::vector<u64>{5}));
  EXPECT_EQ(by_name["rotate"].shape.list("digits"), (std::vector<u64>{2, 1}));
  EXPECT_EQ(by_name["rotate"].bytes_read, (2 * 6 + 2 * 2 * 4) * row);
  EXPECT_EQ(by_name["rotate"].bytes_written, (2 * 6 + 2 * 8) * row);
  EXPECT_GT(by_name["rotate"].mults, by_name["key_switch"].mults);
  // One limb is dropped, two are kept and one is added.
  EXPECT_EQ(by_name["scale_down"].mults, 2 * (intt + kN * (1 + 3 + 3) + 3 * ntt + 2 * kN));
  EXPECT_EQ(by_name["scale_down"].bytes_read, (6 + 6) * row);
  EXPECT_EQ(by_name["crt"].shape.number("terms"), 3U);
  EXPECT_EQ(by_name["icrt"].bytes_written, 3 * 2 * row);
  EXPECT_TRUE(by_name["icrt"].shape.list("primes_out").empty());
  // The slots have 16 bytes each, in two vectors of 8 slots; the FFT has three stages of
  // butterflies.
  EXPECT_EQ(by_name["embed"].mults, residues);
  EXPECT_EQ(by_name["embed"].complex_butterflies, 2U * 4 * 3);
  EXPECT_EQ(by_name["embed"].bytes_read, 2U * 8 * 16);
  EXPECT_EQ(by_name["embed"].bytes_written, 6 * row);
  EXPECT_EQ(by_name["unembed"].mults, residues);
  EXPECT_EQ(by_name["unembed"].complex_butterflies, 2U * 4 * 3);
  EXPECT_EQ(by_name["unembed"].bytes_read, 6 * row);
  EXPECT_EQ(by_name["unembed"].bytes_written, 2U * 8 * 16);
}

TEST_F(TraceTest, BytesOfTheStream) {
  Block x(config_, {0, 1, 2}, 2);
  const std::array<std::uint8_t, 32> seed = {1, 2, 3};
  const auto bytes = [&] { return last().stream_bytes; };
  engine_->ring().sample_uniform(x, seed, 0);  // 8 bytes for a 61-bit prime
  ASSERT_LT(config_.primes[2], u64{1} << 32);
  EXPECT_EQ(bytes(), (8U + 8 + 4) * 2 * kN);
  engine_->ring().sample_small(x, Small::ternary, seed, 0);  // once for all primes
  EXPECT_EQ(bytes(), 2U * kN);
  engine_->ring().sample_small(x, Small::error, seed, 0);
  EXPECT_EQ(bytes(), 2U * kN * 8);
  engine_->ring().sample_sparse(x, 3, seed, 0);
  EXPECT_EQ(bytes(), 2U * kN * 8);
  engine_->ring().intt(x);
  EXPECT_EQ(bytes(), 0U);
  const auto other = std::make_shared<Trace>();
  const auto narrow = make_trace_engine(
      make_ref_engine({Word::w64, kN, primes_for(Word::w32, kN, 2), 1, ""}), other);
  Block y(narrow->config(), {0, 1}, 1);
  narrow->ring().sample_uniform(y, seed, 0);
  EXPECT_EQ(other->records().back().stream_bytes, 2U * kN * 4);
  u64 sum = 0;
  for (const Total& total : trace_->totals()) sum += total.stream_bytes;
  EXPECT_EQ(sum, (20U * 2 + 2 + 2 * 8 + 2 * 8) * kN);
}

TEST_F(TraceTest, ExtentsShowDependencies) {
  JALI_SEEDED(rng);
  Block x(config_, {0, 1}, 1), y(config_, {0, 1}, 1);
  x.random(rng);
  engine_->ring().neg(y, x);
  engine_->ring().ntt(y);
  const std::vector<Record> r = trace_->records();
  EXPECT_EQ(r[0].writes[0].object, r[1].reads[0].object);
  EXPECT_NE(r[0].reads[0].object, r[0].writes[0].object);
  EXPECT_EQ(r[0].writes[0].offset, 0U);
  EXPECT_EQ(r[0].reads[0].bytes, x.bytes());
}

TEST_F(TraceTest, AnObjectOutlivesItsAddress) {
  const std::size_t bytes = 2 * kN * 8;
  const PrimeIndex primes[] = {0, 1};
  const void* before = nullptr;
  u64 object = 0;
  for (int i = 0; i < 2; ++i) {
    device::Buffer block = engine_->pool()->allocate(bytes + 64);
    const View x{static_cast<std::byte*>(block.data()) + 64, primes, 1};
    engine_->ring().sample_uniform(x, std::array<std::uint8_t, 32>{}, 0);
    engine_->ring().ntt(x);
    const auto r = trace_->records();
    const Extent made = r[r.size() - 2].writes[0], changed = last().writes[0];
    EXPECT_EQ(made.object, changed.object);
    EXPECT_EQ(made.offset, 64U);
    EXPECT_EQ(made.bytes, bytes);
    if (i == 1) {
      EXPECT_EQ(block.data(), before);  // so that this tests something
      EXPECT_NE(made.object, object);
    }
    before = block.data();
    object = made.object;
  }
}

TEST_F(TraceTest, KindsOfOperands) {
  JALI_SEEDED(rng);
  run_all(*engine_, rng_seed);
  std::map<std::string, Record> by_name;
  for (const Record& r : trace_->records()) by_name[r.op] = r;
  const auto kinds = [](const std::vector<Extent>& extents) {
    std::vector<std::string> out;
    for (const Extent& e : extents) out.emplace_back(name_of(e.kind));
    return out;
  };
  using Names = std::vector<std::string>;
  const Record& switched = by_name["key_switch"];
  EXPECT_EQ(kinds(switched.reads), (Names{"ciphertext", "key", "key"}));
  EXPECT_EQ(kinds(switched.writes), (Names{"scratch", "scratch"}));
  EXPECT_EQ(kinds(by_name["embed"].reads), Names{"host"});
  EXPECT_EQ(kinds(by_name["embed"].writes), Names{"plaintext"});
  EXPECT_EQ(kinds(by_name["rotated_sums"].reads),
            (Names{"ciphertext", "scratch", "key", "key", "ciphertext", "plaintext", "plaintext",
                   "scratch", "scratch"}));
  EXPECT_EQ(kinds(by_name["sample_small"].writes), Names{"scratch"});

  // An operation that takes any residues calls an object what others called it.
  device::Buffer block = engine_->pool()->allocate(3 * kN * 8);
  const PrimeIndex prime[] = {0};
  const auto part = [&](std::size_t i) {
    return View{static_cast<std::byte*>(block.data()) + i * kN * 8, prime, 1};
  };
  engine_->ring().from_int64(part(0), std::vector<std::int64_t>(kN, 1));
  engine_->ring().ntt(part(0));
  EXPECT_EQ(kinds(last().reads), Names{"plaintext"});
  device::Buffer made = engine_->pool()->allocate(kN * 8);
  engine_->ring().neg({made.data(), prime, 1}, part(0));
  EXPECT_EQ(kinds(last().writes), Names{"plaintext"});
}

TEST_F(TraceTest, OrderOfStartsAndThreads) {
  Block x(config_, {0}, 1);
  std::mt19937_64 rng(1);
  x.random(rng);
  engine_->ring().neg(x, x);
  std::thread([&] { engine_->ring().neg(x, x); }).join();
  engine_->ring().neg(x, x);
  const auto r = trace_->records();
  for (u64 i = 0; i < 3; ++i) EXPECT_EQ(r[i].start, i);
  EXPECT_EQ(r[0].thread, 0U);
  EXPECT_EQ(r[1].thread, 1U);
  EXPECT_EQ(r[2].thread, 0U);
}

TEST_F(TraceTest, AnOperationThatThrowsIsNotRecorded) {
  Block x(config_, {0, 1}, 1);  // poisoned: not below its primes
  EXPECT_THROW(engine_->ring().ntt(x), InternalError);
  EXPECT_EQ(trace_->size(), 0U);
  EXPECT_THROW(make_trace_engine(nullptr, trace_), InvalidArgument);
  EXPECT_THROW(make_trace_engine(ref_, nullptr), InvalidArgument);
}

TEST_F(TraceTest, ATraceIsOfOneEngine) {
  EXPECT_NO_THROW(make_trace_engine(ref_, trace_));
  EXPECT_THROW(
      make_trace_engine(
          make_ref_engine({Word::w64, 2 * kN, primes_for(Word::w64, 2 * kN, 5), 1, ""}), trace_),
      InvalidArgument);
  EXPECT_EQ(trace_->header().number("N"), kN);
  const auto known = std::make_shared<Trace>();
  make_trace_engine(ref_, known, {{2, 1}, 2});
  EXPECT_EQ(known->header().list("digits"), (std::vector<u64>{2, 1}));
  EXPECT_EQ(known->header().number("special_primes"), 2U);
}

TEST_F(TraceTest, TheHeaderSaysTheCommit) {
  const auto known = std::make_shared<Trace>("0123456789ab-dirty");
  make_trace_engine(ref_, known);
  EXPECT_EQ(known->json_lines().find("{\"schema\": 1, \"commit\": \"0123456789ab-dirty\", "), 0U);
  for (const char* bad : {"", "a\"b", "a\\b", "a\nb", "\xc3\xa4"}) {
    EXPECT_THROW(Trace{bad}, InvalidArgument) << bad;
  }
  EXPECT_THROW(Trace{std::string(201, 'a')}, InvalidArgument);
  EXPECT_NO_THROW(Trace{std::string(200, 'a')});
}

TEST_F(TraceTest, JsonLines) {
  Block x(config_, {0, 3}, 2);
  std::mt19937_64 rng(1);
  x.random(rng);
  engine_->ring().ntt(x);
  engine_->ring().add(x, x, x);
  const std::string text = trace_->json_lines();
  EXPECT_EQ(std::ranges::count(text, '\n'), 3);
  EXPECT_EQ(
      text.find(
          "{\"schema\": 1, \"commit\": \"unknown\", \"scheme\": \"ckks\", \"library\": \"jali "),
      0U);
  EXPECT_NE(text.find("\"engine\": \"ref\", \"N\": 16, \"word\": \"w64\", \"word_bytes\": 8, "
                      "\"prime_bits\": ["),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find(
          "], \"digits\": [], \"special_primes\": 0}\n{\"op\": \"ntt\", \"start\": 0, "
          "\"thread\": 0, \"primes_in\": [0, 3], \"primes_out\": [0, 3], "
          "\"batch\": 2, \"digits\": [], \"terms\": 1, \"products\": 0, "
          "\"galois\": [], \"sources\": [], \"sums\": [], \"operands\": [], \"accumulate\": false, "
          "\"reads\": [[\"ciphertext\", "),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("\"bytes_read\": 512, \"bytes_written\": 512, \"mults\": 128, "
                      "\"stream_bytes\": 0, \"complex_butterflies\": 0, \"complex_products\": 0, "
                      "\"seconds\": "),
            std::string::npos);
}

TEST_F(TraceTest, TotalsSummaryAndThreads) {
  constexpr int kThreads = 4, kCalls = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Block x(config_, {0}, 1);
      std::mt19937_64 rng(1);
      x.random(rng);
      for (int i = 0; i < kCalls; ++i) {
        engine_->ring().mul(x, x, x);
        engine_->ring().neg(x, x);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  const std::vector<Total> totals = trace_->totals();
  ASSERT_EQ(totals.size(), 2U);
  EXPECT_EQ(totals[0].op, "mul");
  EXPECT_EQ(totals[0].count, u64{kThreads * kCalls});
  EXPECT_EQ(totals[0].mults, u64{kThreads * kCalls} * kN);
  EXPECT_EQ(totals[0].bytes_read, u64{kThreads * kCalls} * 2 * kN * 8);
  EXPECT_EQ(totals[1].op, "neg");
  EXPECT_EQ(totals[1].mults, 0U);
  const std::string table = trace_->summary();
  EXPECT_NE(table.find("mul                        200"), std::string::npos) << table;
  EXPECT_NE(table.find("total                      400"), std::string::npos) << table;
  trace_->clear();
  EXPECT_EQ(trace_->size(), 0U);
}

}  // namespace
}  // namespace jali::backend::test
