// Engines: what evaluators of several keys share.
#include "jali/schemes/ckks/engine.h"

#include <gtest/gtest.h>

#include "fixture.h"

namespace jali::testing {
namespace {

TEST(Engine, EvaluatorsOfSeveralKeysShareIt) {
  World one({"w64_scale50", Word::w64, 50}), other({"w64_scale50", Word::w64, 50});
  const auto engine = ckks::Engine::make(one.params, one.ring);
  const ckks::Evaluator a(engine, one.keys), b(engine, other.keys);
  EXPECT_EQ(a.engine(), engine);
  EXPECT_EQ(&a.encoder(), &b.encoder());
  EXPECT_EQ(&a.noise(), &b.noise());
  EXPECT_NE(a.key_id(), b.key_id());
  const auto x = one.encrypt(one.vector(), 1);
  EXPECT_NO_THROW(a.rotate(x, 1));
  EXPECT_THROW(b.rotate(x, 1), KeyMismatch);
}

TEST(Engine, AnEvaluatorAddsTheBytesOfItsKeysAlone) {
  World w({"w64_scale50", Word::w64, 50});
  const auto engine = ckks::Engine::make(w.params, w.ring);
  const std::size_t before = w.ring->pool()->bytes_in_use();
  const ckks::Evaluator none(engine, nullptr);
  EXPECT_EQ(none.key_bytes(), 0u);
  EXPECT_EQ(w.ring->pool()->bytes_in_use(), before);
  const ckks::Evaluator e(engine, w.keys);
  EXPECT_GT(e.key_bytes(), 0u);
  EXPECT_EQ(w.ring->pool()->bytes_in_use() - before, e.key_bytes());
}

TEST(Engine, MonomialsAndPartsAreMadeOnce) {
  World w({"w64_scale50", Word::w64, 50});
  const auto engine = ckks::Engine::make(w.params, w.ring);
  EXPECT_EQ(&engine->monomial(3), &engine->monomial(3));
  EXPECT_NE(&engine->monomial(3), &engine->monomial(4));
  EXPECT_THROW(engine->monomial(2 * w.params->n()), InvalidArgument);
  EXPECT_EQ(engine->part(w.params), engine);
  EXPECT_THROW(engine->part(nullptr), ParamsMismatch);
}

}  // namespace
}  // namespace jali::testing
