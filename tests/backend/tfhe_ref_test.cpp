#include "tfhe_support.h"

namespace jali::backend::test {
namespace {

class TfheRef : public testing::Test {
 protected:
  const u64 seed_ = jali::test::test_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "JALI_TEST_SEED=" + std::to_string(seed_)};
  std::mt19937_64 rng_{seed_};
};

TEST_F(TfheRef, BootstrapsGiveEveryValueOfEveryTable) {
  for (const TfheConfig& config : small_configs(rng_)) {
    SCOPED_TRACE(describe(config));
    const TfheSecret secret = random_secret(config, rng_);
    const TfheKeys keys = standard_keys(rng_, config, secret, small_noise(config.torus));
    const auto ref = make_ref_tfhe(config);
    const TfheRunner run(*ref, keys);
    const u64 p = 4;
    std::vector<u64> messages;
    for (u64 m = 0; m < 2 * p; ++m) messages.push_back(encoded(Torus::t32, m, p));
    const TorusBlock in = encrypt_lwe(rng_, Torus::t32, secret.small, messages, 0);
    const std::vector<Functions> f{random_functions(rng_, p, 0)};
    const TorusBlock out = run.bootstrap(in, clear_tables(config, p, 0, f));
    const std::vector<u64> phases = lwe_phases(out, secret.large);
    for (u64 m = 0; m < 2 * p; ++m) {
      EXPECT_EQ(decoded(config.torus, phases[m], p), table_value(f[0], 0, m, p)) << "m " << m;
    }
  }
}

}  // namespace
}  // namespace jali::backend::test
