// Every gate on every input.
#include "jali/schemes/tfhe/gates.h"

#include <gtest/gtest.h>

#include <functional>

#include "jali/base/error.h"
#include "world.h"

namespace jali::tfhe {
namespace {

using test::TfheShape;
using test::TfheWorld;
using test::Values;

struct Named {
  const char* name;
  Gate gate;
  std::function<bool(bool, bool)> of;
};

const std::vector<Named>& gates() {
  static const std::vector<Named> all{
      {"and", Gate::and_gate, [](bool a, bool b) { return a && b; }},
      {"nand", Gate::nand_gate, [](bool a, bool b) { return !(a && b); }},
      {"or", Gate::or_gate, [](bool a, bool b) { return a || b; }},
      {"nor", Gate::nor_gate, [](bool a, bool b) { return !(a || b); }},
      {"xor", Gate::xor_gate, [](bool a, bool b) { return a != b; }},
      {"xnor", Gate::xnor_gate, [](bool a, bool b) { return a == b; }},
      {"andny", Gate::andny_gate, [](bool a, bool b) { return !a && b; }},
      {"andyn", Gate::andyn_gate, [](bool a, bool b) { return a && !b; }},
      {"orny", Gate::orny_gate, [](bool a, bool b) { return !a || b; }},
      {"oryn", Gate::oryn_gate, [](bool a, bool b) { return a || !b; }}};
  return all;
}

TEST(Gates, HaveTheirTruthTables) {
  for (const TfheShape& shape : test::every_shape(1, 0)) {
    // 2: two operands, and three bootstrappings for a multiplexer. 6: two.
    for (const double norm2 : {2.0, 6.0}) {
      if (norm2 == 6 && shape.torus == Torus::t64) continue;
      SCOPED_TRACE(test::name_of(shape));
      Literal literal = test::insecure_literal(shape);
      ASSERT_GE(literal.max_norm2, norm2);
      literal.max_norm2 = norm2;
      TfheWorld world(Params::create(literal));
      const Gates circuit(world.evaluator);
      Ciphertext a = world.encrypt({0, 0, 1, 1}), b = world.encrypt({0, 1, 0, 1});
      // Fresh encryptions, then results of gates.
      for (int depth = 0; depth < (shape.k == 1 ? 1 : 2); ++depth) {
        for (const Named& gate : gates()) {
          Values expected;
          for (int i = 0; i < 4; ++i) expected.push_back(gate.of(i / 2, i % 2));
          EXPECT_EQ(world.decrypt(circuit.apply(gate.gate, a, b)), expected) << gate.name;
          // With one operand twice, whose errors add up.
          const Values same{gate.of(false, false), gate.of(true, true)};
          const Ciphertext x = world.evaluator->gather(a, std::vector<std::uint32_t>{0, 3});
          EXPECT_EQ(world.decrypt(circuit.apply(gate.gate, x, x)), same) << gate.name;
          const Values half{gate.of(false, true), gate.of(true, true)};
          const Ciphertext one = world.evaluator->gather(b, std::vector<std::uint32_t>{1});
          EXPECT_EQ(world.decrypt(circuit.apply(gate.gate, x, one)), half) << gate.name;
        }
        EXPECT_EQ(world.decrypt(circuit.not_gate(a)), (Values{1, 1, 0, 0}));
        const Ciphertext c = circuit.not_gate(b);
        EXPECT_EQ(world.decrypt(circuit.mux(a, b, c)), (Values{1, 0, 0, 1}));
        EXPECT_EQ(world.decrypt(circuit.mux(b, a, a)), (Values{0, 0, 1, 1}));
        a = circuit.apply(Gate::and_gate, a, world.encrypt({1, 1, 1, 1}));
        b = circuit.apply(Gate::or_gate, b, world.encrypt({0, 0, 0, 0}));
      }
    }
  }
}

TEST(Gates, RefuseWhatIsNoBit) {
  TfheWorld world;
  EXPECT_THROW(Gates{world.evaluator}, InvalidArgument);
  TfheShape shape;
  shape.message_bits = 1;
  shape.carry_bits = 0;
  TfheWorld bits(shape), other(shape);
  const Gates circuit(bits.evaluator);
  const Ciphertext a = bits.encrypt({0, 1});
  EXPECT_THROW(circuit.apply(Gate::and_gate, a, other.encrypt({0, 1})), KeyMismatch);
  EXPECT_THROW(circuit.apply(Gate::and_gate, a, bits.encrypt({0, 1, 1})), InvalidArgument);
  EXPECT_THROW(circuit.apply(static_cast<Gate>(10), a, a), InvalidArgument);
}

}  // namespace
}  // namespace jali::tfhe
