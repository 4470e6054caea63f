// Holds an engine of the operations under a secret key against another: every operation, bit for
// bit.
#pragma once

#include <random>
#include <vector>

#include "jali/backend/secret/tfhe_client_ops.h"
#include "jali/random/prng.h"
#include "tfhe_support.h"

namespace jali::backend::test {

using Bits = std::vector<std::uint8_t>;

/// Random bits; now and then all 0 or all 1, which give the smallest and the largest sums.
inline Bits some_bits(std::mt19937_64& rng, std::size_t count) {
  const auto kind = rng() % 8;
  Bits out(count, static_cast<std::uint8_t>(kind == 1));
  if (kind > 1) {
    for (auto& bit : out) bit = rng() >> 63;
  }
  return out;
}
inline random::Seed random_seed(std::mt19937_64& rng) {
  random::Seed seed;
  for (auto& byte : seed) byte = static_cast<std::uint8_t>(rng());
  return seed;
}

/// The seeds of a batch, and a first stream that may be beyond 32 bits.
struct OwnDraws {
  random::Seed masks, errors;
  u64 first = 0;

  explicit OwnDraws(std::mt19937_64& rng)
      : masks(random_seed(rng)),
        errors(random_seed(rng)),
        first(rng() % 3 == 0 ? (u64{1} << 33) - rng() % 40 : rng() % 1000) {}
  Draws of(int noise_bits) const { return {masks, errors, noise_bits, first}; }
};

/// Runs the operations of an engine on data in host memory. Outputs are poisoned before.
class ClientRunner {
 public:
  explicit ClientRunner(const TfheClientOps& engine) : engine_(engine) {}

  TorusBlock encrypt_bodies(Torus torus, const Bits& secret, const std::vector<u64>& messages,
                            const Draws& draws) const {
    TorusBlock out(torus, messages.size(), 1);
    device::Buffer to = upload(out.data(), out.bytes());
    engine_.encrypt_bodies(to.data(), out.count(), torus, LweDimension(secret.size()),
                           words<std::uint8_t>(upload(secret)), words<u64>(upload(messages)),
                           draws);
    return download(to, std::move(out));
  }
  /// N words a row.
  TorusBlock encrypt_gadget(std::size_t count, const Bits& secret, const Bits& bits, bool ggsw,
                            const Draws& draws) const {
    TorusBlock out(engine_.config().torus, count, engine_.config().N.value);
    device::Buffer to = upload(out.data(), out.bytes());
    engine_.encrypt_gadget(to.data(), count, words<std::uint8_t>(upload(secret)),
                           {words<std::uint8_t>(upload(bits)), ggsw}, draws);
    return download(to, std::move(out));
  }
  TorusBlock expand(const TorusBlock& bodies, LweDimension dimension, const random::Seed& masks,
                    u64 first) const {
    TorusBlock out(bodies.torus(), bodies.count(), dimension.value + 1);
    device::Buffer to = upload(out.data(), out.bytes());
    const device::Buffer from = upload(bodies.data(), bodies.bytes());
    engine_.expand({to.data(), out.torus(), dimension, out.count()}, from.data(), masks, first);
    return download(to, std::move(out));
  }
  /// Words of 64 bits.
  TorusBlock phases(const TorusBlock& in, const Bits& secret) const {
    TorusBlock out(Torus::t64, in.count(), 1);
    device::Buffer to = upload(out.data(), out.bytes());
    const device::Buffer from = upload(in.data(), in.bytes());
    engine_.phases(static_cast<u64*>(to.data()),
                   {from.data(), in.torus(), LweDimension(in.row() - 1), in.count()},
                   words<std::uint8_t>(upload(secret)));
    return download(to, std::move(out));
  }

 private:
  device::Buffer upload(const void* data, std::size_t bytes) const {
    device::Buffer out = engine_.device()->pool()->allocate(bytes);
    engine_.device()->memory()->copy_in(out.data(), data, bytes);
    return out;
  }
  template <class T>
  device::Buffer upload(const std::vector<T>& data) const {
    return upload(data.data(), data.size() * sizeof(T));
  }
  template <class T>
  static const T* words(const device::Buffer& buffer) {
    return static_cast<const T*>(buffer.data());
  }
  TorusBlock download(const device::Buffer& from, TorusBlock out) const {
    engine_.device()->memory()->copy_out(out.data(), from.data(), out.bytes());
    return out;
  }

  const TfheClientOps& engine_;
};

/// LWE operations at dimensions around the widths of kernels, and at those of the configuration.
inline void expect_same_lwe(const TfheClientOps& engine, const TfheClientOps& oracle,
                            std::mt19937_64& rng) {
  const ClientRunner have(engine), want(oracle);
  const TfheConfig& config = oracle.config();
  for (const Torus torus : {Torus::t32, Torus::t64}) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{129},
                                std::size_t{513}, config.n.value, config.large().value}) {
      const std::size_t count = std::vector<std::size_t>{1, 3, 64, 131}[rng() % 4];
      SCOPED_TRACE(std::to_string(count) + " of dimension " + std::to_string(n) + ", " +
                   std::to_string(torus_bits(torus)) + " bits");
      const Bits secret = some_bits(rng, n);
      std::vector<u64> messages(count);
      for (u64& m : messages) m = rng();
      const OwnDraws draws(rng);
      TorusBlock bodies;
      for (const int noise_bits : {0, static_cast<int>(rng() % 30) + 1, 30, 31, 62}) {
        bodies = have.encrypt_bodies(torus, secret, messages, draws.of(noise_bits));
        ASSERT_TRUE(
            same(bodies, want.encrypt_bodies(torus, secret, messages, draws.of(noise_bits))))
            << noise_bits << " bits of noise";
      }
      const TorusBlock rows = have.expand(bodies, LweDimension(n), draws.masks, draws.first);
      ASSERT_TRUE(same(rows, want.expand(bodies, LweDimension(n), draws.masks, draws.first)));
      TorusBlock words(torus, count, n + 1);
      for (std::size_t i = 0; i < words.size(); ++i) words.set(i, rng());
      ASSERT_TRUE(same(have.phases(rows, secret), want.phases(rows, secret)));
      ASSERT_TRUE(same(have.phases(words, secret), want.phases(words, secret)));
    }
  }
}

/// Rows of keys: of GGSW ciphertexts, and of those that hold a bit in coefficient 0.
inline void expect_same_gadgets(const TfheClientOps& engine, const TfheClientOps& oracle,
                                std::size_t count, std::mt19937_64& rng) {
  const ClientRunner have(engine), want(oracle);
  const TfheConfig& config = oracle.config();
  SCOPED_TRACE(describe(config));
  const Bits secret = some_bits(rng, config.large().value);
  for (const bool ggsw : {true, false}) {
    const std::size_t levels = static_cast<std::size_t>(config.rotation_gadget.levels);
    const std::size_t rows = (ggsw ? config.k.value + 1 : 1) * levels;
    OwnDraws draws(rng);
    draws.first %= 100 * rows;  // the bits of the rows before it are memory, too
    const Bits bits = some_bits(rng, (draws.first + count) / rows + 1);
    const int most = torus_bits(config.torus) - 2;
    for (const int noise_bits : {0, static_cast<int>(rng() % 30) + 1, most}) {
      const Draws of = draws.of(noise_bits);
      ASSERT_TRUE(same(have.encrypt_gadget(count, secret, bits, ggsw, of),
                       want.encrypt_gadget(count, secret, bits, ggsw, of)))
          << (ggsw ? "GGSW rows, " : "rows, ") << noise_bits << " bits of noise";
    }
  }
}

inline void compare_clients(const TfheClientOps& engine, const TfheClientOps& oracle,
                            std::mt19937_64& rng) {
  expect_same_lwe(engine, oracle, rng);
  expect_same_gadgets(engine, oracle, 1 + rng() % 5, rng);
}

}  // namespace jali::backend::test
