// trace/ passes the operations of TFHE on unchanged and records them.
#include <map>

#include "jali/backend/trace/cost.h"
#include "jali/backend/trace/trace.h"
#include "jali/base/error.h"
#include "keep_trace.h"
#include "tfhe_compare.h"

namespace jali::backend::test {
namespace {

/// 6 bits in steps of 3, k 2, N 256, 2 levels; a key switch with 3 levels.
TfheConfig config_of(Rotation rotation) {
  TfheConfig config;
  config.n = LweDimension(6);
  config.k = GlweDimension(2);
  config.N = PolynomialSize(256);
  config.rotation_gadget = {10, 2};
  config.switch_gadget = {5, 3};
  config.rotation = rotation;
  config.group = rotation == Rotation::classic ? 1 : 3;
  return config;
}

/// The oracle, and the same oracle under a tracer.
struct Traced {
  explicit Traced(std::mt19937_64& rng, Rotation rotation)
      : config(config_of(rotation)),
        secret(random_secret(config, rng)),
        keys(standard_keys(rng, config, secret, {})),
        ref(make_ref_tfhe(config)),
        engine(make_trace_tfhe(ref, trace)),
        want(*ref, keys),
        have(*engine, keys) {}

  const TfheConfig config;
  const TfheSecret secret;
  const TfheKeys keys;
  const std::shared_ptr<Trace> trace = std::make_shared<Trace>();
  const std::shared_ptr<const TfheOps> ref;
  const std::unique_ptr<TfheOps> engine;
  const TfheRunner want, have;
};

constexpr std::size_t kBatch = 3;

TEST(TfheTrace, HandsEveryOperationOnAndRecordsIt) {
  JALI_SEEDED(rng);
  for (const Rotation rotation : {Rotation::classic, Rotation::multi_bit, Rotation::block_binary}) {
    const Traced t(rng, rotation);
    const auto random = [&](Torus torus, std::size_t row) {
      return detail::random_words(rng, torus, kBatch, row);
    };
    const TorusBlock small = random(Torus::t32, 7), large = random(Torus::t64, 513);
    const TorusBlock glwe = random(Torus::t64, 768);
    Tables tables;
    tables.data = random(Torus::t64, 256);
    tables.of_input = {2, 0, 2};
    tables.log_many = 1;
    const detail::RandomCombination sum(rng, 4, kBatch, true);
    const std::vector<u32> coefficients{0, 255, 7, 8, 9};
    const TorusBlock packing = detail::random_words(rng, Torus::t64, 6 * 2, 768);
    const auto run = [&](const TfheRunner& by) {
      return std::vector<TorusBlock>{by.key_switch(large),
                                     by.bootstrap(small, tables),
                                     by.switch_bootstrap(large, tables),
                                     by.bootstrap_switch(small, tables),
                                     by.blind_rotate(small, tables),
                                     by.combine(large, sum.view()),
                                     by.extract(glwe, coefficients, 2),
                                     by.pack(small, std::span(coefficients).first(3), 2, packing)};
    };
    const auto have = run(t.have), want = run(t.want);
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same(have[i], want[i])) << i;

    std::vector<std::string> recorded;
    for (const Record& r : t.trace->records()) {
      recorded.push_back(r.op);
      u64 read = 0, written = 0;
      for (const Extent& e : r.reads) read += e.bytes;
      for (const Extent& e : r.writes) written += e.bytes;
      EXPECT_EQ(r.bytes_read, read) << r.op;
      EXPECT_EQ(r.bytes_written, written) << r.op;
    }
    const trace::Shape header = t.trace->header();
    EXPECT_EQ(header.number("n"), 6U);
    EXPECT_EQ(header.number("k"), 2U);
    EXPECT_EQ(header.number("N"), 256U);
    EXPECT_EQ(header.number("torus"), 64U);
    EXPECT_EQ(header.number("group"), rotation == Rotation::classic ? 1U : 3U);
    EXPECT_EQ(header.list("rotation_gadget"), (std::vector<u64>{10, 2}));
    EXPECT_EQ(header.list("switch_gadget"), (std::vector<u64>{5, 3}));
    std::vector<std::string> names = {"prepare_rotation_key", "prepare_switch_key"};
    if (t.config.steps() >= 3) names.insert(names.begin(), names[0]);  // in two ranges
    names.insert(names.end(), {"key_switch", "bootstrap", "switch_bootstrap", "bootstrap_switch",
                               "blind_rotate", "combine", "extract", "pack"});
    EXPECT_EQ(recorded, names);
    detail::expect_same_seeded_keys(*t.engine, rng);
    expect_copies(*t.engine, *t.trace);
    keep_trace("tfhe_" + std::to_string(static_cast<int>(rotation)), *t.trace);
    EXPECT_EQ(t.engine->name(), "trace(ref)");
    EXPECT_EQ(&t.engine->config(), &t.ref->config());
  }
}

TEST(TfheTrace, HandsKeysFromSeedsOn) {
  JALI_SEEDED(rng);
  const Traced t(rng, Rotation::classic);
  const std::size_t before = t.trace->records().size();
  detail::expect_writes(*t.engine, rng);  // which is not recorded
  EXPECT_EQ(t.trace->records().size(), before);
  detail::expect_same_seeded_keys(*t.engine, rng);
  std::map<std::string, Record> by_name;
  for (const Record& r : t.trace->records()) by_name[r.op] = r;
  // Bodies of 256 words of 8 bytes in 3 of 6 steps of 6 rows, and of one word of 4 bytes in 512
  // times 3 rows.
  EXPECT_EQ(by_name["prepare_seeded_rotation_key"].bytes_read, 3U * 6 * 256 * 8);
  EXPECT_EQ(by_name["prepare_seeded_switch_key"].bytes_read, 512U * 3 * 4);
  // 3 words of 2 levels: ciphertexts of 3 polynomials of 256 words of 8 bytes, of which one is the
  // body.
  EXPECT_EQ(by_name["prepare_seeded_packing_key"].bytes_read, 3U * 2 * 256 * 8);
  EXPECT_EQ(by_name["prepare_seeded_packing_key"].bytes_written, 3U * 2 * 3 * 256 * 8);
  EXPECT_EQ(by_name["prepare_seeded_switch_key"].bytes_written,
            by_name["prepare_switch_key"].bytes_written);
}

TEST(TfheTrace, ShapesBytesAndArithmetic) {
  JALI_SEEDED(rng);
  const Traced t(rng, Rotation::classic);
  const TorusBlock small = detail::random_words(rng, Torus::t32, kBatch, 7);
  const TorusBlock large = detail::random_words(rng, Torus::t64, kBatch, 513);
  Tables tables;
  tables.data = detail::random_words(rng, Torus::t64, 2, 256);
  tables.log_many = 1;
  const TorusBlock rotated = t.have.blind_rotate(small, tables);
  t.have.switch_bootstrap(large, tables);
  t.have.bootstrap_switch(small, tables);
  t.have.key_switch(large);
  const std::vector<u32> begin{0, 2, 3}, column{0, 1, 2};
  const std::vector<std::int64_t> weight{1, -2, 3};
  t.have.combine(large, {begin, column, weight, {}});
  const std::vector<u32> coefficients{1, 2, 3, 4};
  t.have.extract(rotated, coefficients, 2);
  t.have.pack(small, std::span(coefficients).first(kBatch), 2,
              detail::random_words(rng, Torus::t64, 6 * 2, 768));
  std::map<std::string, Record> by_name;
  for (const Record& r : t.trace->records()) by_name[r.op] = r;

  // 6 steps. In each, 3 polynomials have 2 digits, and 3 come back: 9 transforms of 128 points, of
  // 64 log2(128) butterflies; and 6 rows of 3 polynomials are multiplied.
  const u64 butterflies = 6U * 9 * 64 * 7, products = 6U * 6 * 3 * 128;
  const u64 table = 256 * 8, rows = 512U * 3, switch_key = rows * 7 * 4;
  const u64 rotation_key = 6U * 6 * 3 * 256 * 8;
  const Record& rotate = by_name["blind_rotate"];
  EXPECT_EQ(rotate.complex_butterflies, kBatch * butterflies);
  EXPECT_EQ(rotate.complex_products, kBatch * products);
  EXPECT_EQ(rotate.mults, 0U);
  EXPECT_EQ(rotate.shape.number("batch"), kBatch);
  EXPECT_EQ(rotate.shape.number("steps"), 6U);
  EXPECT_EQ(rotate.shape.number("tables"), 1U);  // all inputs take the first
  EXPECT_EQ(rotate.shape.number("log_many"), 1U);
  EXPECT_EQ(rotate.bytes_read, kBatch * 7 * 4 + table + rotation_key);
  EXPECT_EQ(rotate.bytes_written, kBatch * 768 * 8);

  const Record& both = by_name["switch_bootstrap"];
  EXPECT_EQ(both.complex_butterflies, kBatch * butterflies);
  EXPECT_EQ(both.mults, kBatch * rows * 7);
  EXPECT_EQ(both.bytes_read, kBatch * 513 * 8 + table + rotation_key + switch_key);
  EXPECT_EQ(both.bytes_written, 2 * kBatch * 513 * 8);  // two results of each rotation
  // Every result of a rotation is switched.
  EXPECT_EQ(by_name["bootstrap_switch"].mults, 2 * kBatch * rows * 7);
  EXPECT_EQ(by_name["bootstrap_switch"].shape.number("batch"), kBatch);
  EXPECT_EQ(by_name["key_switch"].mults, kBatch * rows * 7);
  EXPECT_EQ(by_name["key_switch"].complex_butterflies, 0U);
  EXPECT_EQ(by_name["key_switch"].bytes_read, kBatch * 513 * 8 + switch_key);
  EXPECT_EQ(by_name["key_switch"].bytes_written, kBatch * 7 * 4);
  EXPECT_EQ(by_name["prepare_switch_key"].bytes_written, switch_key);

  EXPECT_EQ(by_name["combine"].shape.number("batch"), 2U);
  EXPECT_EQ(by_name["combine"].shape.number("terms"), 3U);
  EXPECT_EQ(by_name["combine"].mults, 3U * 513);
  EXPECT_EQ(by_name["combine"].bytes_read, kBatch * 513 * 8 + 3 * 4 + 3 * 4 + 3 * 8);
  EXPECT_EQ(by_name["extract"].shape.number("batch"), 4U);
  EXPECT_EQ(by_name["extract"].shape.number("per"), 2U);
  EXPECT_EQ(by_name["extract"].bytes_read, rotate.bytes_written);
  EXPECT_EQ(by_name["extract"].bytes_written, 4U * 513 * 8);
  const Record& pack = by_name["pack"];
  EXPECT_EQ(pack.shape.number("batch"), kBatch);
  EXPECT_EQ(pack.shape.number("per"), 2U);
  EXPECT_EQ(pack.shape.number("dimension"), 6U);
  EXPECT_EQ(pack.mults, kBatch * 6 * 2 * 768);
  EXPECT_EQ(pack.bytes_read, 6U * 2 * 768 * 8 + kBatch * 7 * 4);
  EXPECT_EQ(pack.bytes_written, 2U * 768 * 8);
}

TEST(TfheTrace, ProductsOfEveryRotation) {
  // 2 steps of 3 bits. An external product has 6 rows of 3 polynomials of 128 points.
  const u64 product = 6U * 3 * 128;
  EXPECT_EQ(cost::rotation_products(config_of(Rotation::classic)), 6 * product);
  EXPECT_EQ(cost::rotation_products(config_of(Rotation::multi_bit)), 2 * (1 + 7) * product);
  EXPECT_EQ(cost::rotation_products(config_of(Rotation::block_binary)),
            2U * 3 * (product + 3 * 128));
  EXPECT_EQ(cost::rotation_butterflies(config_of(Rotation::multi_bit)), 2U * 9 * 64 * 7);
}

TEST(TfheTrace, AnOperationThatThrowsIsNotRecorded) {
  JALI_SEEDED(rng);
  const Traced t(rng, Rotation::classic);
  const std::size_t before = t.trace->size();
  const TorusBlock wrong = detail::random_words(rng, Torus::t64, 2, 100);
  EXPECT_THROW(t.have.key_switch(wrong), InvalidArgument);
  EXPECT_EQ(t.trace->size(), before);
  EXPECT_THROW(make_trace_tfhe(nullptr, t.trace), InvalidArgument);
  EXPECT_THROW(make_trace_tfhe(t.ref, nullptr), InvalidArgument);
}

TEST(TfheTrace, JsonLines) {
  JALI_SEEDED(rng);
  const Traced t(rng, Rotation::block_binary);
  t.trace->clear();
  t.have.key_switch(detail::random_words(rng, Torus::t64, kBatch, 513));
  const std::string text = t.trace->json_lines();
  EXPECT_EQ(
      text.find(
          "{\"schema\": 1, \"commit\": \"unknown\", \"scheme\": \"tfhe\", \"library\": \"jali "),
      0U);
  EXPECT_NE(text.find("\"engine\": \"ref\", \"n\": 6, \"k\": 2, \"N\": 256, \"torus\": 64, "
                      "\"rotation\": \"block_binary\", \"group\": 3, \"rotation_gadget\": [10, 2], "
                      "\"switch_gadget\": [5, 3]}\n{\"op\": \"key_switch\", \"start\": "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(", \"thread\": 0, \"batch\": 3, \"reads\": [[\"key\", "), std::string::npos)
      << text;
}

}  // namespace
}  // namespace jali::backend::test
