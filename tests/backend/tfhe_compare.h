// Holds an engine of TFHE against the oracle.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <thread>

#include "tfhe_support.h"

namespace jali::backend::test {

struct TfheExpectation {
  /// Every operation gives the oracle's bits.
  bool exact = false;
  /// If it is not exact: the most that one step of the blind rotation may differ from the oracle's,
  /// as a standard deviation of the phase on the torus. A single coefficient may differ by 8 times
  /// as much.
  double product_error = 0;
  TfheNoise noise{};  // of the keys, if it is not to be small_noise
  u64 p = 4;  // messages; the encoding has a padding bit
  /// Inputs of a batch beyond the 2 p messages. Of an engine that is not exact, a large batch is
  /// cheap, because the oracle runs but one such batch.
  std::size_t more = 1;
  std::size_t copies = 1;  // of the inputs of the engine's bootstraps, see TfheRunner
};

struct TfheMeasured {
  double product_rms = 0,
         product_worst = 0;  // difference from the oracle in the phase after one step
  /// Noise of a whole blind rotation: root mean square over all coefficients.
  double rotation_rms = 0, oracle_rms = 0;
};

namespace detail {

inline TorusBlock random_words(std::mt19937_64& rng, Torus torus, std::size_t count,
                               std::size_t row) {
  TorusBlock block(torus, count, row);
  for (std::size_t i = 0; i < block.size(); ++i) block.set(i, rng());
  return block;
}

/// Words at which roundings and carries turn: 0, the largest, and neighbours of powers of two and
/// of their sums.
inline u64 edge_word(std::mt19937_64& rng, int bits) {
  const u64 power = u64{1} << (rng() % static_cast<u64>(bits));
  const u64 offset = rng() % 3 - 1;
  switch (rng() % 4) {
    case 0: return power + offset;
    case 1: return 0 - power + offset;
    case 2: return (0 - power) / 2 + offset;
    default: return power + (u64{1} << (rng() % static_cast<u64>(bits))) + offset;
  }
}

inline void expect_same_key_switch(const TfheRunner& have, const TfheRunner& want,
                                   std::mt19937_64& rng) {
  const TfheConfig& config = want.config();
  const std::size_t row = config.large().value + 1;
  for (const std::size_t count : {1, 2, 3, 37}) {
    const TorusBlock in = random_words(rng, config.torus, count, row);
    EXPECT_TRUE(same(have.key_switch(in), want.key_switch(in))) << "key_switch of " << count;
  }
  TorusBlock edges(config.torus, 5, row);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    edges.set(i, i < row ? 0 : i < 2 * row ? ~u64{0} : edge_word(rng, torus_bits(config.torus)));
  }
  EXPECT_TRUE(same(have.key_switch(edges), want.key_switch(edges))) << "key_switch of edges";
}

/// A matrix with empty rows, rows of one entry and long ones, and the largest weights.
struct RandomCombination {
  std::vector<u32> begin{0}, column;
  std::vector<std::int64_t> weight;
  std::vector<u64> constant;

  RandomCombination(std::mt19937_64& rng, std::size_t rows, std::size_t inputs,
                    bool with_constant) {
    constexpr std::int64_t extreme[] = {std::numeric_limits<std::int64_t>::min(),
                                        std::numeric_limits<std::int64_t>::max(), -1, 0, 1};
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t entries = r == 0 ? 0 : r == 1 ? 1 : rng() % 6;
      for (std::size_t e = 0; e < entries; ++e) {
        column.push_back(static_cast<u32>(rng() % inputs));
        weight.push_back(rng() % 8 == 0 ? extreme[rng() % 5]
                                        : static_cast<std::int64_t>(rng() % 33) - 16);
      }
      begin.push_back(static_cast<u32>(column.size()));
      if (with_constant) constant.push_back(rng());
    }
  }
  LweCombination view() const { return {begin, column, weight, constant}; }
};

inline void expect_same_combine(const TfheRunner& have, const TfheRunner& want,
                                std::mt19937_64& rng) {
  const TfheConfig& config = want.config();
  for (const bool large : {false, true}) {
    const Torus torus = large ? config.torus : Torus::t32;
    const std::size_t row = (large ? config.large() : config.n).value + 1;
    for (const bool with_constant : {false, true}) {
      const std::size_t inputs = 1 + rng() % 7, rows = 1 + rng() % 40;
      const TorusBlock in = random_words(rng, torus, inputs, row);
      const RandomCombination sum(rng, rows, inputs, with_constant);
      EXPECT_TRUE(same(have.combine(in, sum.view()), want.combine(in, sum.view())))
          << "combine of " << rows << " rows from " << inputs << (large ? " large" : " small")
          << " ciphertexts";
    }
  }
}

inline void expect_same_extract(const TfheRunner& have, const TfheRunner& want,
                                std::mt19937_64& rng) {
  const TfheConfig& config = want.config();
  const std::size_t N = config.N.value;
  for (const std::size_t per : {1, 3}) {
    const TorusBlock in = random_words(rng, config.torus, 3, (config.k.value + 1) * N);
    std::vector<u32> coefficients;
    for (std::size_t j = 0; j < 3 * per - (per > 1); ++j) {
      coefficients.push_back(static_cast<u32>(j == 0 ? 0 : j == 1 ? N - 1 : rng() % N));
    }
    EXPECT_TRUE(same(have.extract(in, coefficients, per), want.extract(in, coefficients, per)))
        << "extract of " << per << " from each";
  }
}

/// Ciphertexts of several dimensions, of words of 32 bits and of the torus, with words at which the
/// digits turn, of which the last output takes what is left. The bits do not depend on what the key
/// holds.
inline void expect_same_pack(const TfheRunner& have, const TfheRunner& want, std::mt19937_64& rng) {
  const TfheConfig& config = want.config();
  const std::size_t N = config.N.value;
  const auto levels = static_cast<std::size_t>(config.rotation_gadget.levels);
  struct Case {
    Torus torus;
    std::size_t dimension, count, per;
  };
  for (const Case& x : {Case{Torus::t32, config.n.value, 5, 2},
                        {config.torus, 3, 7, 7},
                        {config.torus, 17, 1, N},
                        {Torus::t32, 2, N + 3, N}}) {
    TorusBlock in = random_words(rng, x.torus, x.count, x.dimension + 1);
    for (std::size_t i = 0; i < in.size(); i += 3) {
      in.set(i, edge_word(rng, torus_bits(x.torus)));
    }
    const TorusBlock key =
        random_words(rng, config.torus, x.dimension * levels, (config.k.value + 1) * N);
    std::vector<u32> where(N), coefficients;
    for (std::size_t i = 0; i < N; ++i) where[i] = static_cast<u32>(i);
    for (std::size_t t = 0; t < x.count; ++t) {
      if (t % x.per == 0) std::shuffle(where.begin(), where.end(), rng);
      coefficients.push_back(where[t % x.per]);
    }
    EXPECT_TRUE(
        same(have.pack(in, coefficients, x.per, key), want.pack(in, coefficients, x.per, key)))
        << "pack of " << x.count << " ciphertexts of dimension " << x.dimension;
  }
}

/// What is written arrives, whatever its length.
inline void expect_writes(const TfheOps& engine, std::mt19937_64& rng) {
  for (const std::size_t bytes : {1, 4, 3968, 3969, 20000}) {
    std::vector<std::uint8_t> want(bytes), have(bytes);
    for (auto& byte : want) byte = static_cast<std::uint8_t>(rng());
    device::Buffer block = engine.device()->pool()->allocate(bytes);
    engine.copy_in(block.data(), want.data(), bytes);
    engine.device()->memory()->copy_out(have.data(), block.data(), bytes);
    EXPECT_TRUE(have == want) << bytes << " bytes written";
  }
  std::array<std::uint8_t, 32> seed{};
  for (auto& byte : seed) byte = static_cast<std::uint8_t>(rng());
  const TfheConfig& config = engine.config();
  for (const auto& [torus, dimension] : {std::pair(Torus::t32, config.n),
                                         {config.torus, config.large()},
                                         {Torus::t64, LweDimension(1)}}) {
    for (const std::size_t count : {1, 3, 170}) {  // the last is more than one part
      const KeyShape shape = lwe_shape(torus, dimension, count);
      std::vector<u64> bodies(count);
      for (u64& word : bodies) word = rng();
      std::vector<std::uint8_t> want(count * shape.row_bytes()), have(want.size());
      expand_rows(want.data(), seed, 0, bodies.data(), shape.mask_bytes, shape.body_bytes, count);
      device::Buffer block = engine.device()->pool()->allocate(want.size());
      engine.device()->memory()->fill(block.data(), 0x5a, want.size());
      engine.copy_in_seeded({block.data(), torus, dimension, count}, {seed, bodies.data()});
      engine.device()->memory()->copy_out(have.data(), block.data(), have.size());
      EXPECT_TRUE(have == want) << count << " ciphertexts of dimension " << dimension.value
                                << " written from a seed";
    }
  }
}

/// Keys that are prepared from a seed are those that are prepared from what the seed expands to.
inline void expect_same_seeded_keys(const TfheOps& engine, std::mt19937_64& rng) {
  const TfheConfig& config = engine.config();
  std::array<std::uint8_t, 32> seed{};
  for (auto& byte : seed) byte = static_cast<std::uint8_t>(rng());
  const auto expect = [&](const KeyShape& shape, std::size_t key_bytes, auto prepare,
                          auto prepare_seeded) {
    std::vector<u64> bodies(shape.rows * shape.body_bytes / 8 + 1),
        rows(shape.rows * shape.row_bytes() / 8 + 1);
    for (u64& word : bodies) word = rng();
    expand_rows(rows.data(), seed, 0, bodies.data(), shape.mask_bytes, shape.body_bytes,
                shape.rows);
    std::vector<std::uint8_t> have(key_bytes), want(key_bytes);
    const auto key = [&](std::vector<std::uint8_t>& host, auto make) {
      device::Buffer out = engine.device()->pool()->allocate(key_bytes);
      engine.device()->memory()->fill(out.data(), 0x5a, key_bytes);
      make(out.data());
      engine.device()->memory()->copy_out(host.data(), out.data(), key_bytes);
    };
    key(want, [&](void* out) { prepare(out, rows.data()); });
    key(have, [&](void* out) { prepare_seeded(out, SeededKey{seed, bodies.data()}); });
    EXPECT_TRUE(have == want) << "a key from a seed of " << shape.rows << " rows";
  };
  const std::size_t steps = config.steps(), half = steps / 2;
  expect(
      rotation_key_shape(config), engine.rotation_key_bytes(),
      [&](void* out, const void* rows) { engine.prepare_rotation_key(out, rows, 0, steps); },
      [&](void* out, const SeededKey& key) {
        engine.prepare_seeded_rotation_key(out, key, half, steps - half);
        if (half > 0) engine.prepare_seeded_rotation_key(out, key, 0, half);
      });
  const LweDimension from(3);
  const KeyShape packing = packing_key_shape(config, from);
  expect(
      packing, packing.rows * packing.row_bytes(),
      [&](void* out, const void* rows) {
        engine.device()->memory()->copy_in(out, rows, packing.rows * packing.row_bytes());
      },
      [&](void* out, const SeededKey& key) { engine.prepare_seeded_packing_key(out, from, key); });
  expect(
      switch_key_shape(config), engine.switch_key_bytes(),
      [&](void* out, const void* rows) { engine.prepare_switch_key(out, rows); },
      [&](void* out, const SeededKey& key) { engine.prepare_seeded_switch_key(out, key); });
}

/// Every message with and without the padding bit, and a few more.
struct Inputs {
  std::vector<u64> messages;
  TorusBlock small, large;

  Inputs(std::mt19937_64& rng, const TfheConfig& config, const TfheSecret& secret, u64 p,
         std::size_t more) {
    for (u64 m = 0; m < 2 * p; ++m) messages.push_back(m);
    for (std::size_t i = 0; i < more; ++i) messages.push_back(rng() % (2 * p));
    std::vector<u64> of_small, of_large;
    for (const u64 m : messages) {
      of_small.push_back(encoded(Torus::t32, m, p));
      of_large.push_back(encoded(config.torus, m, p));
    }
    const double noise = small_noise(Torus::t32).switching;
    small = encrypt_lwe(rng, Torus::t32, secret.small, of_small, noise);
    large = encrypt_lwe(rng, config.torus, secret.large, of_large, noise);
  }
};

/// A way to bootstrap: which inputs it takes and which secret its outputs have.
struct Way {
  const char* name;
  TorusBlock (TfheRunner::*run)(const TorusBlock&, const Tables&) const;
  bool small_in, small_out;
};
inline constexpr Way kWays[] = {
    {"bootstrap", &TfheRunner::bootstrap, true, false},
    {"switch_bootstrap", &TfheRunner::switch_bootstrap, false, false},
    {"bootstrap_switch", &TfheRunner::bootstrap_switch, true, true},
};

inline void expect_values(const Way& way, const TfheSecret& secret, const TorusBlock& out,
                          const Inputs& inputs, const Tables& tables,
                          std::span<const Functions> functions, u64 p) {
  const std::size_t many = std::size_t{1} << tables.log_many;
  const std::vector<u64> phases = lwe_phases(out, way.small_out ? secret.small : secret.large);
  for (std::size_t i = 0; i < inputs.messages.size(); ++i) {
    const Functions& f = functions[tables.of_input.empty() ? 0 : tables.of_input[i]];
    for (std::size_t j = 0; j < many; ++j) {
      EXPECT_EQ(decoded(out.torus(), phases[i * many + j], p),
                table_value(f, j, inputs.messages[i], p))
          << way.name << ": message " << inputs.messages[i] << ", result " << j;
    }
  }
}

/// The phase of the blind rotation of a clear table, without its noise: the table times X^(-p'),
/// from the exponents that `switched` gives.
inline std::vector<u64> rotated_table(const TfheConfig& config, const TfheSecret& secret,
                                      const u32* ciphertext, const TorusBlock& tables,
                                      std::size_t table, int log_many) {
  const std::size_t N = config.N.value, n = config.n.value;
  std::vector<u32> exponents(n + 1);
  switched(exponents, ciphertext, config, log_many);
  std::size_t phase = exponents[n];
  for (std::size_t i = 0; i < n; ++i) {
    if (secret.small[i] != 0) phase += 2 * N - exponents[i];
  }
  std::vector<u64> out(N);
  for (std::size_t i = 0; i < N; ++i) {  // coefficient i is that at i + p'
    const std::size_t from = (i + phase) % (2 * N);
    out[i] = from < N ? tables.at(table, from) : 0 - tables.at(table, from - N);
  }
  return out;
}

/// The noise of every coefficient of blind_rotate's result.
inline std::vector<double> rotation_noise(const TfheConfig& config, const TfheSecret& secret,
                                          const TorusBlock& in, const Tables& clear,
                                          const TorusBlock& out) {
  const std::size_t N = config.N.value;
  const std::vector<u64> phases = glwe_phases(out, config, secret);
  std::vector<double> noise(phases.size());
  for (std::size_t r = 0; r < out.count(); ++r) {
    const u32* ciphertext = static_cast<const u32*>(in.data()) + r * in.row();
    const std::size_t table = clear.of_input.empty() ? 0 : clear.of_input[r];
    const std::vector<u64> want =
        rotated_table(config, secret, ciphertext, clear.data, table, clear.log_many);
    for (std::size_t i = 0; i < N; ++i) {
      noise[r * N + i] = real(config.torus, phases[r * N + i] - want[i]);
    }
  }
  return noise;
}

inline double rms(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return std::sqrt(sum / static_cast<double>(values.size()));
}
inline double worst(std::span<const double> values) {
  double most = 0;
  for (const double v : values) most = std::max(most, std::abs(v));
  return most;
}

/// blind_rotate of uniform accumulators by ciphertexts whose mask is 0 outside one step. Where all
/// exponents of a step are 0, an engine adds exactly 0, so that the results differ by the external
/// products of one step. The differences of the phases are returned.
inline std::vector<double> one_step_errors(const TfheRunner& have, const TfheRunner& want,
                                           const TfheSecret& secret, bool exact,
                                           std::mt19937_64& rng) {
  const TfheConfig& config = want.config();
  const std::size_t n = config.n.value, N = config.N.value;
  const auto group = static_cast<std::size_t>(config.group);
  std::vector<std::size_t> steps{0, config.steps() - 1};
  for (int i = 0; i < 3; ++i) steps.push_back(rng() % config.steps());
  const int log_t = 32 - std::countr_zero(2 * N);
  TorusBlock in(Torus::t32, steps.size(), n + 1);
  for (std::size_t i = 0; i < in.size(); ++i) in.set(i, 0);
  for (std::size_t r = 0; r < steps.size(); ++r) {
    for (std::size_t j = 0; j < group; ++j) in.set(r, steps[r] * group + j, rng() << log_t);
    in.set(r, n, rng());
  }
  Tables tables;
  tables.encrypted = true;
  tables.data = random_words(rng, config.torus, steps.size(), (config.k.value + 1) * N);
  for (std::size_t r = 0; r < steps.size(); ++r) tables.of_input.push_back(static_cast<u32>(r));
  const TorusBlock a = have.blind_rotate(in, tables), b = want.blind_rotate(in, tables);
  if (exact) {
    EXPECT_TRUE(same(a, b)) << "one step of blind_rotate";
  }
  const std::vector<u64> x = glwe_phases(a, config, secret), y = glwe_phases(b, config, secret);
  std::vector<double> errors(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) errors[i] = real(config.torus, x[i] - y[i]);
  return errors;
}

/// Two threads at once get what one gets.
inline void expect_threads(const TfheRunner& have, const TorusBlock& large, const Tables& tables) {
  const TorusBlock want = have.switch_bootstrap(large, tables);
  TorusBlock out[2];
  std::thread other([&] { out[1] = have.switch_bootstrap(large, tables); });
  out[0] = have.switch_bootstrap(large, tables);
  other.join();
  for (const TorusBlock& block : out) EXPECT_TRUE(same(block, want)) << "from two threads";
}

/// Bootstraps of every message in one way.
inline void expect_bootstraps(const TfheRunner& have, const TfheRunner& want, const Way& way,
                              const TfheSecret& secret, const Inputs& inputs, const Tables& tables,
                              std::span<const Functions> functions, const TfheExpectation& expect) {
  const TorusBlock& in = way.small_in ? inputs.small : inputs.large;
  const TorusBlock out = (have.*way.run)(in, tables);
  expect_values(way, secret, out, inputs, tables, functions, expect.p);
  if (expect.exact) {
    EXPECT_TRUE(same(out, (want.*way.run)(in, tables))) << way.name;
  }
}

/// The noise of every coefficient of a blind rotation, of both.
inline void expect_rotations(const TfheRunner& have, const TfheRunner& want,
                             const TfheSecret& secret, const TorusBlock& in, const Tables& tables,
                             const Tables& clear, const TfheExpectation& expect,
                             TfheMeasured& measured) {
  const TorusBlock out = have.blind_rotate(in, tables), oracle = want.blind_rotate(in, tables);
  if (expect.exact) {
    EXPECT_TRUE(same(out, oracle)) << "blind_rotate";
  }
  const TfheConfig& config = want.config();
  const std::vector<double> noise = rotation_noise(config, secret, in, clear, out);
  EXPECT_LT(worst(noise), 0.25 / static_cast<double>(expect.p)) << "noise of blind_rotate";
  measured.rotation_rms = rms(noise);
  measured.oracle_rms = rms(rotation_noise(config, secret, in, clear, oracle));
}

}  // namespace detail

/// Compares an engine with the oracle of the same configuration, with fresh keys. Exact operations
/// agree in every bit. Bootstraps of every message give the table's value, and if the engine is
/// exact, the oracle's bits. One step of the blind rotation differs in its phase by no more than is
/// expected.
inline TfheMeasured compare(const TfheOps& engine, const TfheOps& oracle,
                            const TfheExpectation& expect, std::mt19937_64& rng) {
  const TfheConfig& config = oracle.config();
  SCOPED_TRACE(engine.name() + ": " + describe(config));
  EXPECT_GE(engine.width(), 1u);
  const TfheSecret secret = random_secret(config, rng);
  const bool given = expect.noise.rotation != 0 || expect.noise.switching != 0;
  const TfheKeys keys =
      standard_keys(rng, config, secret, given ? expect.noise : small_noise(config.torus));
  const TfheRunner have(engine, keys, expect.copies), want(oracle, keys);

  detail::expect_writes(engine, rng);
  detail::expect_same_seeded_keys(engine, rng);
  detail::expect_same_key_switch(have, want, rng);
  detail::expect_same_combine(have, want, rng);
  detail::expect_same_extract(have, want, rng);
  detail::expect_same_pack(have, want, rng);

  const detail::Inputs inputs(rng, config, secret, expect.p, expect.more);
  TfheMeasured measured;
  const auto bootstraps = [&](std::size_t count, int log_many, bool encrypted,
                              std::initializer_list<detail::Way> ways, bool rotations) {
    SCOPED_TRACE(std::to_string(count) + (encrypted ? " encrypted" : " clear") +
                 " tables, log_many " + std::to_string(log_many));
    std::vector<Functions> functions;
    while (functions.size() < count) {
      functions.push_back(random_functions(rng, expect.p, log_many));
    }
    Tables clear = clear_tables(config, expect.p, log_many, functions);
    for (std::size_t i = 0; count > 1 && i < inputs.messages.size(); ++i) {
      clear.of_input.push_back(static_cast<u32>(rng() % count));
    }
    Tables tables = clear;
    if (encrypted) {
      tables = encrypted_tables(rng, config, secret, clear, small_noise(config.torus).rotation);
    }
    for (const detail::Way& way : ways) {
      detail::expect_bootstraps(have, want, way, secret, inputs, tables, functions, expect);
    }
    if (rotations) {
      detail::expect_rotations(have, want, secret, inputs.small, tables, clear, expect, measured);
    }
  };
  using detail::kWays;
  bootstraps(3, 0, false, {kWays[0]}, false);
  bootstraps(2, 2, false, {kWays[1]}, false);
  bootstraps(3, 1, true, {kWays[2]}, true);
  bootstraps(1, 0, false, {kWays[0], kWays[1], kWays[2]}, true);

  const std::vector<Functions> one{random_functions(rng, expect.p, 0)};
  const Tables table = clear_tables(config, expect.p, 0, one);
  const detail::Inputs single(rng, config, secret, 1, 0);  // 0 and 1/2
  for (std::size_t i = 0; i < 2; ++i) {  // a batch of one
    TorusBlock in(Torus::t32, 1, config.n.value + 1);
    for (std::size_t j = 0; j < in.row(); ++j) in.set(j, single.small.at(i, j));
    const TorusBlock out = have.bootstrap(in, table);
    EXPECT_EQ(decoded(config.torus, lwe_phases(out, secret.large)[0], expect.p),
              table_value(one[0], 0, i * expect.p, expect.p));
  }
  detail::expect_threads(have, single.large, table);

  const std::vector<double> errors = detail::one_step_errors(have, want, secret, expect.exact, rng);
  measured.product_rms = detail::rms(errors);
  measured.product_worst = detail::worst(errors);
  EXPECT_LE(measured.product_rms, expect.product_error) << "error of one step";
  EXPECT_LE(measured.product_worst, 8 * expect.product_error) << "error of one coefficient";
  return measured;
}

/// So many LWE ciphertexts, which repeat those of `in`.
inline TorusBlock repeated(const TorusBlock& in, std::size_t count) {
  TorusBlock many(Torus::t32, count, in.row());
  for (std::size_t i = 0; i < many.size(); ++i) {
    many.set(i, in.at(i / in.row() % in.count(), i % in.row()));
  }
  return many;
}

}  // namespace jali::backend::test
