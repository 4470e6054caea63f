// Integers on TFHE: small parameters of every kind, recorded circuits, and devices with little
// memory.
#include "jali/integers/tfhe_machine.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../schemes/tfhe/little_world.h"
#include "../schemes/tfhe/world.h"
#include "../seeded.h"
#include "jali/base/error.h"
#include "jali/integers/arithmetic.h"
#include "tfhe_world.h"

namespace jali::integers::test {
namespace {

using jali::test::LittleWorld;
using jali::test::TfheWorld;

template <class F>
Numbers each(const Numbers& x, const Numbers& y, const F& f) {
  Numbers out;
  for (std::size_t i = 0; i < x.size(); ++i) out.push_back(f(x[i], y[i]) & 255);
  return out;
}

Numbers random_numbers(std::mt19937_64& rng, std::size_t count) {
  Numbers out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<Wide>(rng() % 256));
  return out;
}

constexpr IntegerType u8{8, false};

TEST(TfheMachine, ComputesOnEveryKindOfParameters) {
  JALI_SEEDED(rng);
  for (const jali::test::TfheShape& shape : jali::test::every_shape()) {
    SCOPED_TRACE(name_of(shape));
    TfheWorld world(shape);
    if (world.params->max_norm2() < 17) continue;  // no integers
    const std::size_t wave = rng() % 2 ? 1 : 1000;  // carries one by one, or by trees
    SCOPED_TRACE(wave);
    IntegerWorld w(world.evaluator, world.client, {.wave = wave});
    const Numbers u = random_numbers(rng, 1), v = random_numbers(rng, 1);
    const Integers x = w.encrypt(u, u8), y = w.encrypt(v, u8);
    EXPECT_EQ(w.decrypt(w.arithmetic.add(x, y)), each(u, v, std::plus<Wide>()));
    EXPECT_EQ(w.decrypt(w.arithmetic.multiply(x, y)), each(u, v, std::multiplies<Wide>()));
  }
}

// 30 bits have carries that pass through chains of more than 2^p numbers.
TEST(TfheMachine, LooksUpTheWholeCircle) {
  JALI_SEEDED(rng);
  constexpr IntegerType u30{30, false};
  TfheWorld world;
  IntegerWorld w(world.evaluator, world.client, {.wave = 1000});
  Numbers u, v, want;
  for (int i = 0; i < 4; ++i) {
    u.push_back(static_cast<Wide>(rng() % (1 << 30)));
    v.push_back(i % 2 ? u30.highest() - u.back() + i / 2 : static_cast<Wide>(rng() % (1 << 30)));
    want.push_back((u.back() + v.back()) % (1 << 30));
  }
  EXPECT_EQ(w.decrypt(w.arithmetic.add(w.encrypt(u, u30), w.encrypt(v, u30))), want);
}

TEST(TfheMachine, RecordsWhatRunsAgain) {
  JALI_SEEDED(rng);
  TfheWorld world;
  IntegerWorld w(world.evaluator, world.client, {.records = true});
  for (int run = 0; run < 4; ++run) {
    const Numbers u = random_numbers(rng, 3), v = random_numbers(rng, 3);
    EXPECT_EQ(w.decrypt(w.arithmetic.add(w.encrypt(u, u8), w.encrypt(v, u8))),
              each(u, v, std::plus<Wide>()));
    EXPECT_EQ(w.machine->recorded(), run > 0 ? 1u : 0u);
  }
  // Another number of integers, and one integer for all, are other shapes.
  for (int run = 0; run < 3; ++run) {
    const Numbers u = random_numbers(rng, 3), v = random_numbers(rng, 1);
    EXPECT_EQ(w.decrypt(w.arithmetic.add(w.encrypt(u, u8), w.encrypt(v, u8))),
              each(u, {v[0], v[0], v[0]}, std::plus<Wide>()));
  }
  EXPECT_EQ(w.machine->recorded(), 2u);
  // What has clear vectors is not recorded.
  const Numbers u = random_numbers(rng, 3), v = random_numbers(rng, 3);
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(w.decrypt(w.arithmetic.add(w.encrypt(u, u8), Clear(v))),
              each(u, v, std::plus<Wide>()));
  }
  EXPECT_EQ(w.machine->recorded(), 2u);
}

TEST(TfheMachine, TellsWhatItHasNoMemoryToRecord) {
  JALI_SEEDED(rng);
  LittleWorld world;
  int told = 0;
  IntegerWorld w(world.evaluator, world.client, {.records = true, .unrecorded = [&] { ++told; }});
  const Numbers u = random_numbers(rng, 3), v = random_numbers(rng, 3);
  const Integers x = w.encrypt(u, u8), y = w.encrypt(v, u8);
  const auto expect_sum = [&] {
    EXPECT_EQ(w.decrypt(w.arithmetic.add(x, y)), each(u, v, std::plus<Wide>()));
  };
  expect_sum();
  EXPECT_EQ(told, 0) << "the first time it is not recorded";
  world.engine->device()->pool()->trim();
  world.memory->refusals = 2;  // the pool asks twice for the first block of the recording
  for (int again = 0; again < 3; ++again) {
    expect_sum();
    EXPECT_EQ(told, 1) << "once";
  }
  EXPECT_EQ(w.machine->recorded(), 0U);
}

TEST(TfheMachine, TakesNoMoreMemoryThanThereIs) {
  JALI_SEEDED(rng);
  LittleWorld world;
  IntegerWorld w(world.evaluator, world.client);
  constexpr std::size_t count = 300;
  const Numbers u = random_numbers(rng, count), v = random_numbers(rng, count);
  const Integers x = w.encrypt(u, u8), y = w.encrypt(v, u8);
  const std::size_t vector = count * 4 * world.params->ciphertext_bytes();
  // Room for the result, and for a quarter of it: products of all integers at once would take many
  // times as much.
  world.engine->device()->pool()->trim();
  world.memory->most = world.memory->used + vector + vector / 4 + (1 << 20);
  EXPECT_EQ(w.decrypt(w.arithmetic.multiply(x, y)), each(u, v, std::multiplies<Wide>()));
  // Not even the result fits.
  world.engine->device()->pool()->trim();
  world.memory->most = world.memory->used + vector / 2;
  try {
    w.arithmetic.add(x, y);
    FAIL() << "computed without memory";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("at a time"), std::string::npos) << error.what();
  }
  // And then it goes on.
  world.memory->most = ~std::size_t{0} / 2;
  EXPECT_EQ(w.decrypt(w.arithmetic.add(x, y)), each(u, v, std::plus<Wide>()));
}

}  // namespace
}  // namespace jali::integers::test
