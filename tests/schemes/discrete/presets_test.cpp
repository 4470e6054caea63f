// The named parameter sets, at their real sizes: the circuit that each of them promises.
#include "jali/params/discrete/presets.h"

#include <string>
#include <vector>

#include "jali/params/discrete/choose.h"
#include "world.h"

namespace jali::discrete {
namespace {

class DiscretePreset : public ::testing::TestWithParam<Preset> {};

// `depth` products of sums of two, one after the other, or sums of 16: of the worst message, of the
// largest number in every place and of random residues, encrypted by the public key.
TEST_P(DiscretePreset, DoesWhatItPromises) {
  JALI_SEEDED(rng);
  World w(Params::create(preset(GetParam().name)));
  const Evaluator e = w.evaluator();
  const PlainModulus& t = w.params->modulus();
  const std::size_t n = w.params->n();
  const bool products = w.params->packing() == Packing::slots && w.params->depth() > 0;
  const std::vector<double> budgets = circuit_budgets(*w.params);
  ASSERT_EQ(budgets.size(), 1 + static_cast<std::size_t>(products ? w.params->depth() : 4));
  std::vector<Numbers> messages{worst_message(w)};
  if (w.params->depth() <= 8) {  // a product of a deep preset takes a tenth of a second
    messages.emplace_back(n, t.high());
    messages.push_back(w.numbers(rng, t.low(), t.high(), n));
  }
  for (Numbers& x : messages) {
    Ciphertext a = w.encrypt_residues(x);
    EXPECT_NEAR(e.noise_budget(a), budgets[0], 1e-6);
    for (std::size_t i = 1; i < budgets.size(); ++i) {
      a = e.add(a, a);
      for (auto& v : x) v = residue(Wide{v} * 2, t);
      if (products) {
        a = e.square(a);
        for (auto& v : x) v = residue(Wide{v} * v, t);
      }
      EXPECT_NEAR(e.noise_budget(a), budgets[i], 1e-6) << i;
      EXPECT_GT(budgets[i], 0) << i;
      ASSERT_EQ(w.decrypt(a), x) << i;
    }
    EXPECT_LE(w.decryptor.measure(a).coefficient, a.estimate.largest());
  }
}

INSTANTIATE_TEST_SUITE_P(All, DiscretePreset, ::testing::ValuesIn(presets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace jali::discrete
