// What tests of exact rotations need: single steps by keys of any words, and the largest products
// that there are.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <numeric>

#include "tfhe_compare.h"

namespace jali::backend::test {

inline TfheConfig one_step(Torus torus, std::size_t k, std::size_t N, Gadget gadget,
                           Rotation rotation = Rotation::classic, int group = 1) {
  TfheConfig config;
  config.torus = torus;
  config.rotation = rotation;
  config.group = group;
  config.n = LweDimension(static_cast<std::size_t>(group));
  config.k = GlweDimension(k);
  config.N = PolynomialSize(N);
  config.rotation_gadget = gadget;
  config.switch_gadget = {4, 4};
  return config;
}

/// Blind rotations, input i of accumulator i modulo their number, by a key of any words.
inline TorusBlock rotated(const TfheOps& engine, const TorusBlock& key,
                          const TorusBlock& accumulators, const TorusBlock& in) {
  const TfheConfig& config = engine.config();
  const auto memory = engine.device()->memory();
  const auto uploaded = [&](const TorusBlock& block) {
    device::Buffer buffer = engine.device()->pool()->allocate(block.bytes());
    memory->copy_in(buffer.data(), block.data(), block.bytes());
    return buffer;
  };
  device::Buffer prepared = engine.device()->pool()->allocate(engine.rotation_key_bytes());
  engine.prepare_rotation_key(prepared.data(), key.data(), 0, config.steps());
  TorusBlock out(config.torus, in.count(), accumulators.row());
  const device::Buffer tables = uploaded(accumulators), inputs = uploaded(in);
  device::Buffer outputs = uploaded(out);
  std::vector<u32> of_input;
  for (std::size_t i = 0; i < in.count(); ++i) {
    of_input.push_back(static_cast<u32>(i % accumulators.count()));
  }
  engine.blind_rotate({outputs.data(), in.count()},
                      {inputs.data(), Torus::t32, config.n, in.count()},
                      {tables.data(), accumulators.count(), true, of_input, 0}, prepared.data());
  memory->copy_out(out.data(), outputs.data(), out.bytes());
  return out;
}

/// Batches of so many inputs, which repeat those of `in`, have the words of `want`, the rotations
/// of `in`. As many accumulators as inputs.
inline void expect_repeated(const TfheOps& engine, const TorusBlock& key,
                            const TorusBlock& accumulators, const TorusBlock& in,
                            const TorusBlock& want, std::initializer_list<std::size_t> counts) {
  for (const std::size_t count : counts) {
    const TorusBlock out = rotated(engine, key, accumulators, repeated(in, count));
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out.at(i), want.at(i / out.row() % in.count(), i % out.row()))
          << count << " inputs, word " << i;
    }
  }
}

/// Configurations whose largest product is between 0.93 and 0.98 of what so many primes of 27 bits
/// hold.
struct LargestProduct {
  TfheConfig config;
  u32 primes;
};
inline std::vector<LargestProduct> largest_products() {
  return {{one_step(Torus::t32, 4, 512, {7, 3}, Rotation::block_binary, 4), 2},
          {one_step(Torus::t64, 6, 256, {7, 1}), 3},
          {one_step(Torus::t64, 6, 256, {4, 1}, Rotation::block_binary, 4), 3},
          {one_step(Torus::t64, 12, 1024, {31, 1}), 4}};
}

/// Accumulators whose digits are all the largest, keys whose words are all the same, and exponents
/// with which X^e - 1 is -2: then every product has the same sign, and their sum is the largest
/// that there is. Of a classic rotation, whose difference is cut, the accumulator is half of that
/// word, negative.
inline void hold_largest(const TfheOps& engine) {
  const TfheConfig& config = engine.config();
  const std::size_t N = config.N.value;
  const int w = torus_bits(config.torus), g = config.rotation_gadget.base_log;
  u64 largest = 0;  // whose digits are 2^(g-1)
  for (int j = 1; j <= config.rotation_gadget.levels; ++j) largest += u64{1} << (w - j * g + g - 1);
  TorusBlock accumulators(config.torus, 1, (config.k.value + 1) * N);
  for (std::size_t i = 0; i < accumulators.size(); ++i) {
    accumulators.set(i, config.rotation == Rotation::classic ? 0 - largest / 2 : largest);
  }
  TorusBlock in(Torus::t32, 1, config.n.value + 1);
  for (std::size_t i = 0; i < in.size(); ++i) in.set(i, 0);
  for (std::size_t i = 0; i < config.n.value; ++i) in.set(i, u64{1} << 31);  // N of 2N
  const u64 least = u64{1} << (w - 1);  // the most negative word
  for (const u64 word : {least, least - 1, least + 1}) {
    TorusBlock key(config.torus, config.units(), config.ggsw_words());
    for (std::size_t i = 0; i < key.size(); ++i) key.set(i, word);
    EXPECT_TRUE(same(rotated(engine, key, accumulators, in),
                     rotated(*make_ref_tfhe(config), key, accumulators, in)))
        << describe(config) << ", key of words " << word;
  }
}

}  // namespace jali::backend::test
