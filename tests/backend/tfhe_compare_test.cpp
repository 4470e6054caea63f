#include "tfhe_compare.h"

#include <gtest/gtest-spi.h>

namespace jali::backend::test {
namespace {

TEST(TfheCompare, TheOracleAgreesWithItself) {
  JALI_SEEDED(rng);
  for (const TfheConfig& config : small_configs(rng)) {
    if (config.N.value > 256 || config.k.value > 2) continue;  // the oracle is slow
    const auto ref = make_ref_tfhe(config);
    const TfheMeasured measured = compare(*ref, *ref, {.exact = true}, rng);
    EXPECT_EQ(measured.product_worst, 0);
    EXPECT_EQ(measured.rotation_rms, measured.oracle_rms);
  }
}

enum class Fault {
  none,
  switched_bit,    // the lowest bit of one word of a key switch
  combined_bit,    // the lowest bit of one word of a combination
  extracted_sign,  // the sign of one word of an extraction
  packed_bit,      // the lowest bit of one word of a packing
  value,           // one result of a bootstrap, by one message
  product          // every coefficient of a blind rotation's body, by 2^-20
};

/// The oracle with a fault.
class Faulty final : public TfheOps {
 public:
  Faulty(TfheConfig config, Fault fault)
      : TfheOps(device::host_device()), ref_(make_ref_tfhe(std::move(config))), fault_(fault) {}

  std::string name() const override { return "faulty"; }
  const TfheConfig& config() const override { return ref_->config(); }
  std::size_t rotation_key_bytes() const override { return ref_->rotation_key_bytes(); }
  void prepare_rotation_key(void* out, const void* ggsws, std::size_t first,
                            std::size_t count) const override {
    ref_->prepare_rotation_key(out, ggsws, first, count);
  }
  std::size_t switch_key_bytes() const override { return ref_->switch_key_bytes(); }
  void prepare_switch_key(void* out, const void* rows) const override {
    ref_->prepare_switch_key(out, rows);
  }
  void key_switch(LweView out, ConstLweView in, const void* key) const override {
    ref_->key_switch(out, in, key);
    if (fault_ == Fault::switched_bit) add(out.data, Torus::t32, out.count / 2, 1);
  }
  void bootstrap(LweView out, ConstLweView in, const TableView& tables,
                 const void* key) const override {
    ref_->bootstrap(out, in, tables, key);
    if (fault_ == Fault::value) {
      const std::size_t body = out.count * (out.dimension.value + 1) - 1;
      add(out.data, out.torus, body, u64{1} << (torus_bits(out.torus) - 3));
    }
  }
  void switch_bootstrap(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* rotation_key) const override {
    ref_->switch_bootstrap(out, in, tables, switch_key, rotation_key);
  }
  void bootstrap_switch(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* rotation_key) const override {
    ref_->bootstrap_switch(out, in, tables, switch_key, rotation_key);
  }
  void blind_rotate(GlweView out, ConstLweView in, const TableView& tables,
                    const void* key) const override {
    ref_->blind_rotate(out, in, tables, key);
    if (fault_ != Fault::product) return;
    const std::size_t N = config().N.value, words = (config().k.value + 1) * N;
    for (std::size_t i = 0; i < out.count * N; ++i) {
      add(out.data, config().torus, i / N * words + words - N + i % N,
          u64{1} << (torus_bits(config().torus) - 20));
    }
  }
  void combine(LweView out, ConstLweView in, const LweCombination& combination) const override {
    ref_->combine(out, in, combination);
    if (fault_ == Fault::combined_bit) add(out.data, out.torus, out.count - 1, 1);
  }
  void extract(LweView out, ConstGlweView in, std::span<const u32> coefficients,
               std::size_t per) const override {
    ref_->extract(out, in, coefficients, per);
    if (fault_ == Fault::extracted_sign) add(out.data, out.torus, 1, u64{1} << 31);
  }
  void pack(GlweView out, ConstLweView in, std::span<const u32> coefficients, std::size_t per,
            const void* packing_key) const override {
    ref_->pack(out, in, coefficients, per, packing_key);
    if (fault_ == Fault::packed_bit) add(out.data, config().torus, out.count, 1);
  }

 private:
  static void add(void* data, Torus torus, std::size_t at, u64 what) {
    if (torus == Torus::t32) {
      static_cast<u32*>(data)[at] += static_cast<u32>(what);
    } else {
      static_cast<u64*>(data)[at] += what;
    }
  }
  const std::unique_ptr<TfheOps> ref_;
  const Fault fault_;
};

/// The failures that compare reports of a faulty engine.
int failures(const TfheConfig& config, Fault fault, std::mt19937_64& rng) {
  const Faulty engine(config, fault);
  const auto ref = make_ref_tfhe(config);
  testing::TestPartResultArray results;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
    compare(engine, *ref, {.exact = false, .product_error = std::ldexp(1.0, -22)}, rng);
  }
  int count = 0;
  for (int i = 0; i < results.size(); ++i) count += results.GetTestPartResult(i).failed();
  return count;
}

TEST(TfheCompare, EveryFaultIsFound) {
  JALI_SEEDED(rng);
  for (const Torus torus : {Torus::t32, Torus::t64}) {
    const TfheConfig config =
        small_config(rng, torus, Rotation::classic, 1, GlweDimension(2), 1, PolynomialSize(256));
    EXPECT_EQ(failures(config, Fault::none, rng), 0);
    for (const Fault fault : {Fault::switched_bit, Fault::combined_bit, Fault::extracted_sign,
                              Fault::packed_bit, Fault::value, Fault::product}) {
      EXPECT_GT(failures(config, fault, rng), 0) << "fault " << static_cast<int>(fault);
    }
  }
}

}  // namespace
}  // namespace jali::backend::test
