// Keys made for the lower levels alone. They are right at those levels, they are refused above, and
// they have the stated size.
#include <algorithm>

#include "fixture.h"

namespace jali::testing {
namespace {

class CutKeys : public ::testing::TestWithParam<Scheme> {};

TEST_P(CutKeys, ServeTheirLevelsAndNoOthers) {
  World w(GetParam(), {});
  const auto& params = *w.params;
  const int top = params.depth();
  for (int cut = 0; cut < top; ++cut) {
    // Steps 1 and -(slots - 1) are the same rotation, requested at two levels. Its one key serves
    // the higher of them.
    const int same = 1 - static_cast<int>(params.slots());
    auto keys = w.keygen->evaluation_keys(*w.sk, {{1, 0}, {same, cut}, {3, -1}}, cut, cut);
    EXPECT_EQ(keys.galois.size(), 3u);
    const std::size_t small = params.switch_key_bytes(cut);
    EXPECT_EQ(keys.bytes(), 3 * small + params.switch_key_bytes());
    EXPECT_LE(small, params.switch_key_bytes());
    const ckks::Evaluator evaluator(w.params, w.ring,
                                    std::make_shared<const rlwe::EvaluationKeys>(std::move(keys)));
    for (int level = 0; level <= top; ++level) {
      SCOPED_TRACE("cut " + std::to_string(cut) + " level " + std::to_string(level));
      const auto v = w.vector();
      const auto x = w.encrypt(v, level);
      std::vector<Complex> turned(v), conjugate(v), square(v);
      std::rotate(turned.begin(), turned.begin() + 1, turned.end());
      for (auto& z : conjugate) z = std::conj(z);
      for (auto& z : square) z *= z;
      EXPECT_EQ(evaluator.has_rotation(1, level), level <= cut);
      EXPECT_EQ(evaluator.has_relinearisation(level), level <= cut);
      EXPECT_TRUE(evaluator.has_rotation(3, level));
      if (level <= cut) {
        w.expect(evaluator.rotate(x, 1), turned);
        w.expect(evaluator.conjugate(x), conjugate);
        w.expect(evaluator.rotate_hoisted(evaluator.hoist(x), 1), turned);
        if (level > 0) w.expect(evaluator.multiply_relinearise_rescale(x, x), square, 0.3);
      } else {
        EXPECT_THROW(evaluator.rotate(x, 1), KeyMissing);
        EXPECT_THROW(evaluator.conjugate(x), KeyMissing);
        EXPECT_THROW(evaluator.rotate_hoisted(evaluator.hoist(x), 1), KeyMissing);
        EXPECT_THROW(evaluator.rotate_extended(evaluator.hoist(x), 1), KeyMissing);
        EXPECT_THROW(evaluator.relinearise(evaluator.square(x)), KeyMissing);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, CutKeys, ::testing::ValuesIn(all_setups()),
                         [](const auto& test_info) { return test_info.param.label; });

}  // namespace
}  // namespace jali::testing
