// Programs give what their functions give, and count noise as the functions do.
#include "jali/schemes/tfhe/program.h"

#include <gtest/gtest.h>

#include "as_read.h"
#include "jali/base/error.h"
#include "world.h"

namespace jali::tfhe {
namespace {

using test::counting;
using test::TfheShape;
using test::TfheWorld;
using test::Values;

using Inputs = std::vector<const Ciphertext*>;

TEST(Program, GivesWhatTheFunctionGives) {
  for (const Order order : {Order::switch_first, Order::bootstrap_first}) {
    TfheShape shape;
    shape.order = order;
    TfheWorld w(shape);
    const Evaluator& e = *w.evaluator;
    const auto f = [&](std::span<const Ciphertext> in) {
      const Ciphertext sum = e.add(in[0], in[1]);
      return std::vector<Ciphertext>{
          sum, e.apply(sum, LookUpTable(w.params, [](std::uint64_t v) { return v * v % 16; })),
          in[0]};
    };
    const Ciphertext a = w.encrypt(Values(4)), b = w.encrypt(Values(4));
    Program program(w.evaluator, f, Inputs{&a, &b});
    EXPECT_EQ(program.arity(), 2u);
    EXPECT_GE(program.bytes(), 2 * a.data->bytes());
    for (std::uint64_t run = 0; run < 3; ++run) {
      // One in host memory, or a seed that was read; one bound.
      const Ciphertext whole = w.client.encrypt(counting(4)), y = w.encrypt(Values(4, run));
      const Ciphertext x = run == 0 ? whole : test::as_read(whole);
      const std::vector<Ciphertext> out = program.run(Inputs{&x, &y});
      ASSERT_EQ(out.size(), 3u);
      for (std::uint64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(w.decrypt(out[0])[i], i + run);
        EXPECT_EQ(w.decrypt(out[1])[i], (i + run) * (i + run) % 16);
      }
      EXPECT_EQ(w.decrypt(out[2]), counting(4));
      EXPECT_EQ(out[0].history.norm2(), 2);
      EXPECT_EQ(out[1].history.norm2(), 1);
      EXPECT_EQ(out[0].max_degree(), 6u);
    }
  }
}

// Errors that results of one run, or a result and an input, have in common add up before they are
// squared; those of runs on different inputs are independent, and those of runs on the same are
// equal, also to what is computed outside.
TEST(Program, CountsTheNoiseOfItsResults) {
  TfheWorld w;
  const Evaluator& e = *w.evaluator;
  const auto f = [&](std::span<const Ciphertext> in) {
    const Ciphertext fresh = e.refresh(in[0]);
    return std::vector<Ciphertext>{e.add(in[0], fresh), fresh};
  };
  const Ciphertext example = w.encrypt(Values{1});
  Program program(w.evaluator, f, Inputs{&example});
  const Ciphertext x = w.encrypt(Values{1}), y = w.encrypt(Values{2});
  const auto a = program.run(Inputs{&x}), b = program.run(Inputs{&y});
  EXPECT_EQ(a[0].history.norm2(), 2);
  EXPECT_EQ(e.add(a[0], x).history.norm2(), 5);  // 2 x + fresh
  EXPECT_EQ(e.add(a[0], a[1]).history.norm2(), 5);  // x + 2 fresh
  EXPECT_EQ(e.add(a[1], b[1]).history.norm2(), 2);
  EXPECT_EQ(e.add(a[1], program.run(Inputs{&x})[1]).history.norm2(), 4);
  EXPECT_EQ(e.add(a[1], e.refresh(x)).history.norm2(), 4);
  EXPECT_EQ(e.add(a[1], e.refresh(y)).history.norm2(), 2);
  EXPECT_EQ(e.add(a[0], y).history.norm2(), 3);
  EXPECT_EQ(w.decrypt(e.add(a[1], b[1])), Values{3});
}

TEST(Program, RefusesOtherInputs) {
  TfheWorld w;
  const Evaluator& e = *w.evaluator;
  const auto f = [&](std::span<const Ciphertext> in) {
    return std::vector<Ciphertext>{e.add(in[0], in[1])};
  };
  const Ciphertext x = w.encrypt(Values{1, 2}), y = w.encrypt(Values{3, 0});
  Program program(w.evaluator, f, Inputs{&x, &y});
  EXPECT_NO_THROW(program.run(Inputs{&x, &y}));
  EXPECT_THROW(program.run(Inputs{&x}), InvalidArgument);
  EXPECT_THROW(program.run(Inputs{&x, &x}), InvalidArgument);  // their errors are the same
  const Ciphertext longer = w.encrypt(Values{1, 2, 3}), sum = e.add(x, y),
                   repeated = e.gather(x, std::vector<std::uint32_t>{0, 0}),
                   large = w.evaluator->bind(w.client.encrypt(Values{1, 2}, 9)),
                   twice = e.scale(x, 2);
  for (const Ciphertext* bad : {&longer, &sum, &repeated, &large, &twice}) {
    EXPECT_THROW(program.run(Inputs{bad, &y}), InvalidArgument);
  }
  const Ciphertext refreshed = e.refresh(sum), clear = e.clear(Values{3, 3});
  EXPECT_NO_THROW(program.run(Inputs{&refreshed, &y}));
  EXPECT_THROW(program.run(Inputs{&clear, &y}), KeyMismatch);
  TfheWorld other(w.params);
  const Ciphertext foreign = other.encrypt(Values{1, 2});
  EXPECT_THROW(program.run(Inputs{&foreign, &y}), KeyMismatch);
  EXPECT_THROW(
      Program(
          w.evaluator, [&](auto) { return std::vector<Ciphertext>{Ciphertext{}}; }, Inputs{&x}),
      InvalidArgument);
}

TEST(Program, ItsFunctionCannotRunIt) {
  TfheWorld w;
  const Ciphertext x = w.encrypt(Values{1});
  std::unique_ptr<Program> program;
  const auto f = [&](std::span<const Ciphertext> in) {
    if (program != nullptr) return program->run(Inputs{&x});
    return std::vector<Ciphertext>{in[0]};
  };
  program = std::make_unique<Program>(w.evaluator, f, Inputs{&x});
  for (int i = 0; i < 2; ++i) EXPECT_THROW(program->run(Inputs{&x}), InvalidArgument);
}

TEST(Program, TakesVectorsWithoutElements) {
  TfheWorld w;
  const Ciphertext none = w.encrypt(Values{});
  Program program(
      w.evaluator,
      [&](std::span<const Ciphertext> in) {
        return std::vector<Ciphertext>{w.evaluator->add(in[0], in[0])};
      },
      Inputs{&none});
  EXPECT_EQ(program.run(Inputs{&none})[0].size(), 0u);
}

// What the function computes of its first input may be what it is given as the second one.
TEST(Program, RefusesInputsThatItComputesItself) {
  TfheWorld w;
  const Evaluator& e = *w.evaluator;
  const auto f = [&](std::span<const Ciphertext> in) {
    return std::vector<Ciphertext>{e.add(e.refresh(in[0]), in[1])};
  };
  const Ciphertext x = w.encrypt(Values{1}), y = w.encrypt(Values{1}), z = e.refresh(x);
  Program program(w.evaluator, f, Inputs{&x, &y});
  EXPECT_EQ(program.run(Inputs{&x, &y})[0].history.norm2(), 2);
  EXPECT_THROW(program.run(Inputs{&x, &z}), InvalidArgument);
}

}  // namespace
}  // namespace jali::tfhe
