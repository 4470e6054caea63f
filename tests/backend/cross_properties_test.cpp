// Checks cpu/ by mathematical properties alone, also at sizes for which the oracle is too slow.
#include "engines.h"
#include "properties.h"

namespace jali::backend::test {
namespace {

class CpuProperties : public testing::TestWithParam<std::tuple<Word, std::string>> {};
INSTANTIATE_TEST_SUITE_P(Engines, CpuProperties,
                         testing::Combine(testing::ValuesIn(kWords), testing::ValuesIn(cpu_isas())),
                         [](const auto& info) {
                           return std::string(word_name(std::get<0>(info.param))) + "_" +
                                  std::get<1>(info.param);
                         });

TEST_P(CpuProperties, All) {
  JALI_SEEDED(rng);
  const auto& [word, isa] = GetParam();
  const std::size_t n = 1024;
  const auto engine = make_cpu_engine({word, n, primes_for(word, n, 9), 2, isa});
  check_transforms(*engine, rng);
  check_automorphisms(*engine, rng);
  check_mod_up(*engine, rng);
  check_scale_down(*engine, rng);
  check_key_switch(*engine, rng);
  check_weighted_sums(*engine, rng);
  check_integers(*engine, rng);
}

TEST_P(CpuProperties, LargeRings) {
  JALI_SEEDED(rng);
  const auto& [word, isa] = GetParam();
  for (const std::size_t n : {16384, 131072}) {
    if (n > 16384 && (kSanitized || isa != cpu_isas().front())) continue;
    SCOPED_TRACE(n);
    const auto engine = make_cpu_engine({word, n, primes_for(word, n, 9), 2, isa});
    check_transforms(*engine, rng);
    check_key_switch(*engine, rng);
  }
}

}  // namespace
}  // namespace jali::backend::test
