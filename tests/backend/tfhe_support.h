// What tests of TFHE engines need: small configurations of every kind, secrets, encryption with a
// chosen noise, keys in standard form, phases and tables. tfhe_compare.h holds an engine against
// the oracle. The sizes are far from secure. All arithmetic is that of 64-bit words, whose low w
// bits are the torus's: independent of the engines.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../seeded.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/device/buffer.h"

namespace jali::backend::test {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// --- blocks of words -----------------------------------------------------------------------------

/// `count` rows of `row` torus words in host memory: LWE ciphertexts (n + 1 words a row), GLWE
/// ciphertexts ((k + 1) N), clear tables (N) or keys. Poisoned until it is written.
class TorusBlock {
 public:
  TorusBlock() = default;
  TorusBlock(Torus torus, std::size_t count, std::size_t row)
      : torus_(torus), count_(count), row_(row), words_((size() * torus_bytes(torus) + 7) / 8) {
    std::memset(words_.data(), 0xAB, words_.size() * 8);
  }

  Torus torus() const { return torus_; }
  std::size_t count() const { return count_; }
  std::size_t row() const { return row_; }
  std::size_t size() const { return count_ * row_; }
  std::size_t bytes() const { return size() * torus_bytes(torus_); }
  void* data() { return words_.data(); }
  const void* data() const { return words_.data(); }

  u64 at(std::size_t i) const {
    if (torus_ == Torus::t64) return words_[i];
    u32 word = 0;
    std::memcpy(&word, bytes_at(i), 4);
    return word;
  }
  u64 at(std::size_t r, std::size_t i) const { return at(r * row_ + i); }
  /// Keeps the low bits of the value.
  void set(std::size_t i, u64 value) {
    if (torus_ == Torus::t64) {
      words_[i] = value;
    } else {
      const u32 word = static_cast<u32>(value);
      std::memcpy(const_cast<std::byte*>(bytes_at(i)), &word, 4);
    }
  }
  void set(std::size_t r, std::size_t i, u64 value) { set(r * row_ + i, value); }

  LweView lwe() { return {data(), torus_, LweDimension(row_ - 1), count_}; }
  ConstLweView lwe() const { return {data(), torus_, LweDimension(row_ - 1), count_}; }
  GlweView glwe() { return {data(), count_}; }
  ConstGlweView glwe() const { return {data(), count_}; }

  friend bool operator==(const TorusBlock& a, const TorusBlock& b) {
    return a.torus_ == b.torus_ && a.count_ == b.count_ && a.row_ == b.row_ &&
           std::memcmp(a.data(), b.data(), a.bytes()) == 0;
  }

 private:
  const std::byte* bytes_at(std::size_t i) const {
    return reinterpret_cast<const std::byte*>(words_.data()) + i * torus_bytes(torus_);
  }
  Torus torus_ = Torus::t64;
  std::size_t count_ = 0, row_ = 0;
  std::vector<u64> words_;
};

/// Compares bit for bit; a failure names the first difference.
inline testing::AssertionResult same(const TorusBlock& have, const TorusBlock& want) {
  if (have == want) return testing::AssertionSuccess();
  if (have.count() != want.count() || have.row() != want.row()) {
    return testing::AssertionFailure() << "shapes differ";
  }
  for (std::size_t i = 0; i < have.size(); ++i) {
    if (have.at(i) != want.at(i)) {
      return testing::AssertionFailure() << "row " << i / have.row() << ", word " << i % have.row()
                                         << ": " << have.at(i) << " is not " << want.at(i);
    }
  }
  return testing::AssertionFailure() << "toruses differ";
}

/// The signed representative of a word.
inline std::int64_t centred(Torus torus, u64 word) {
  return torus == Torus::t64 ? static_cast<std::int64_t>(word)
                             : static_cast<std::int32_t>(static_cast<u32>(word));
}
/// A word as a real number in [-1/2, 1/2).
inline double real(Torus torus, u64 word) {
  return std::ldexp(static_cast<double>(centred(torus, word)), -torus_bits(torus));
}

// --- configurations and secrets ------------------------------------------------------------------

/// The noise of keys that leaves bootstraps of the configurations below correct: standard
/// deviations on the torus.
struct TfheNoise {
  double rotation = 0;
  double switching = 0;
};
inline TfheNoise small_noise(Torus torus) {
  return {std::ldexp(1.0, torus == Torus::t64 ? -48 : -30), std::ldexp(1.0, -29)};
}

/// A configuration of small sizes, with n in 16 .. 40. Its gadgets have about 16 bits in all, so
/// that a bootstrap with small_noise gives the right one of 8 values with 10 standard deviations to
/// spare.
inline TfheConfig small_config(std::mt19937_64& rng, Torus torus, Rotation rotation, int group,
                               GlweDimension k, int levels, PolynomialSize N) {
  const auto from = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(rng);
  };
  TfheConfig config;
  config.torus = torus;
  config.rotation = rotation;
  config.group = group;
  config.n = LweDimension(static_cast<std::size_t>(group * from((15 + group) / group, 40 / group)));
  config.k = k;
  config.N = N;
  config.rotation_gadget.levels = levels;
  config.rotation_gadget.base_log = from((15 + levels) / levels, (torus == Torus::t64 ? 22
                                                                  : levels == 1       ? 16
                                                                                      : 18) /
                                                                     levels);
  config.switch_gadget.levels = from(1, 4);
  config.switch_gadget.base_log = 16 / config.switch_gadget.levels;
  config.mean_bit = rotation == Rotation::block_binary ? 1.0 / (group + 1) : 0.5;
  return config;
}

/// Every kind of rotation with every group, and both toruses, k from 1 to 4, N from 256 to 1024 and
/// 1 to 3 levels among them.
inline std::vector<TfheConfig> small_configs(std::mt19937_64& rng) {
  struct Kind {
    Torus torus;
    Rotation rotation;
    int group;
    std::size_t k;
    int levels;
    std::size_t N;
  };
  constexpr auto classic = Rotation::classic, multi = Rotation::multi_bit,
                 block = Rotation::block_binary;
  constexpr auto t32 = Torus::t32, t64 = Torus::t64;
  std::vector<TfheConfig> configs;
  for (const Kind& kind : {Kind{t64, classic, 1, 1, 1, 1024}, Kind{t32, classic, 1, 1, 2, 512},
                           Kind{t64, classic, 1, 2, 3, 256}, Kind{t32, classic, 1, 4, 1, 256},
                           Kind{t64, multi, 2, 1, 2, 512}, Kind{t32, multi, 2, 3, 1, 256},
                           Kind{t64, multi, 3, 1, 1, 512}, Kind{t64, multi, 4, 2, 1, 256},
                           Kind{t32, block, 2, 1, 3, 512}, Kind{t64, block, 3, 1, 1, 512},
                           Kind{t32, block, 5, 2, 2, 256}, Kind{t64, block, 8, 1, 2, 256}}) {
    configs.push_back(small_config(rng, kind.torus, kind.rotation, kind.group,
                                   GlweDimension(kind.k), kind.levels, PolynomialSize(kind.N)));
  }
  return configs;
}

inline std::string describe(const TfheConfig& c) {
  const char* kinds[] = {"classic", "multi-bit ", "block-binary "};
  return "torus " + std::to_string(torus_bits(c.torus)) + ", n " + std::to_string(c.n.value) +
         ", k " + std::to_string(c.k.value) + ", N " + std::to_string(c.N.value) + ", gadget " +
         std::to_string(c.rotation_gadget.levels) + " x " +
         std::to_string(c.rotation_gadget.base_log) + ", switch " +
         std::to_string(c.switch_gadget.levels) + " x " + std::to_string(c.switch_gadget.base_log) +
         ", " + kinds[static_cast<int>(c.rotation)] + (c.group > 1 ? std::to_string(c.group) : "");
}

/// Bits: of the small secret, and of the polynomials S_0 .. S_{k-1}, which are the large secret.
struct TfheSecret {
  std::vector<std::uint8_t> small, large;
};

/// Uniform bits; for block_binary, a uniform choice of one bit or none in every block.
inline TfheSecret random_secret(const TfheConfig& config, std::mt19937_64& rng) {
  TfheSecret secret;
  secret.small.resize(config.n.value);
  secret.large.resize(config.large().value);
  for (auto& bit : secret.large) bit = rng() >> 63;
  if (config.rotation != Rotation::block_binary) {
    for (auto& bit : secret.small) bit = rng() >> 63;
    return secret;
  }
  const auto group = static_cast<std::size_t>(config.group);
  for (std::size_t at = 0; at < secret.small.size(); at += group) {
    const std::size_t set = std::uniform_int_distribution<std::size_t>(0, group)(rng);
    if (set < group) secret.small[at + set] = 1;
  }
  return secret;
}

// --- encryption and phases -----------------------------------------------------------------------

/// A rounded normal variable of standard deviation `noise` on the torus, as a word.
inline u64 noise_word(std::mt19937_64& rng, Torus torus, double noise) {
  if (noise == 0) return 0;
  std::normal_distribution<double> normal(0, std::ldexp(noise, torus_bits(torus)));
  return static_cast<u64>(static_cast<std::int64_t>(std::llround(normal(rng))));
}

/// acc += a s modulo X^N + 1, for bits s.
inline void add_times_bits(std::span<u64> acc, std::span<const u64> a,
                           std::span<const std::uint8_t> s) {
  const std::size_t N = acc.size();
  for (std::size_t i = 0; i < N; ++i) {
    if (s[i] == 0) continue;
    for (std::size_t j = 0; j < N - i; ++j) acc[i + j] += a[j];
    for (std::size_t j = N - i; j < N; ++j) acc[i + j - N] -= a[j];
  }
}

/// One LWE ciphertext for each message, which is the word that the phase is to be.
inline TorusBlock encrypt_lwe(std::mt19937_64& rng, Torus torus,
                              std::span<const std::uint8_t> secret, std::span<const u64> messages,
                              double noise) {
  const std::size_t n = secret.size();
  TorusBlock out(torus, messages.size(), n + 1);
  for (std::size_t r = 0; r < messages.size(); ++r) {
    u64 body = messages[r] + noise_word(rng, torus, noise);
    for (std::size_t i = 0; i < n; ++i) {
      const u64 a = rng();
      out.set(r, i, a);
      if (secret[i] != 0) body += a;
    }
    out.set(r, n, body);
  }
  return out;
}

inline std::vector<u64> lwe_phases(const TorusBlock& in, std::span<const std::uint8_t> secret) {
  const std::size_t n = secret.size();
  std::vector<u64> phases(in.count());
  for (std::size_t r = 0; r < in.count(); ++r) {
    u64 phase = in.at(r, n);
    for (std::size_t i = 0; i < n; ++i) {
      if (secret[i] != 0) phase -= in.at(r, i);
    }
    phases[r] = in.torus() == Torus::t64 ? phase : static_cast<u32>(phase);
  }
  return phases;
}

/// Writes one GLWE ciphertext of the polynomial `message` at word `at` of out.
inline void encrypt_glwe_at(std::mt19937_64& rng, const TfheConfig& config,
                            const TfheSecret& secret, std::span<const u64> message, double noise,
                            TorusBlock& out, std::size_t at) {
  const std::size_t N = config.N.value, k = config.k.value;
  std::vector<u64> body(message.begin(), message.end()), a(N);
  for (u64& word : body) word += noise_word(rng, config.torus, noise);
  for (std::size_t c = 0; c < k; ++c) {
    for (std::size_t i = 0; i < N; ++i) {
      a[i] = rng();
      out.set(at + c * N + i, a[i]);
    }
    add_times_bits(body, a, std::span(secret.large).subspan(c * N, N));
  }
  for (std::size_t i = 0; i < N; ++i) out.set(at + k * N + i, body[i]);
}

/// One GLWE ciphertext for each N of the messages.
inline TorusBlock encrypt_glwe(std::mt19937_64& rng, const TfheConfig& config,
                               const TfheSecret& secret, std::span<const u64> messages,
                               double noise) {
  const std::size_t N = config.N.value, words = (config.k.value + 1) * N;
  TorusBlock out(config.torus, messages.size() / N, words);
  for (std::size_t r = 0; r < out.count(); ++r) {
    encrypt_glwe_at(rng, config, secret, messages.subspan(r * N, N), noise, out, r * words);
  }
  return out;
}

/// The N coefficients of every ciphertext's phase.
inline std::vector<u64> glwe_phases(const TorusBlock& in, const TfheConfig& config,
                                    const TfheSecret& secret) {
  const std::size_t N = config.N.value, k = config.k.value;
  std::vector<u64> phases(in.count() * N), a(N);
  for (std::size_t r = 0; r < in.count(); ++r) {
    const std::span<u64> phase(&phases[r * N], N);
    for (std::size_t c = 0; c < k; ++c) {
      for (std::size_t i = 0; i < N; ++i) a[i] = 0 - in.at(r, c * N + i);
      add_times_bits(phase, a, std::span(secret.large).subspan(c * N, N));
    }
    for (std::size_t i = 0; i < N; ++i) {
      phase[i] += in.at(r, k * N + i);
      if (config.torus == Torus::t32) phase[i] = static_cast<u32>(phase[i]);
    }
  }
  return phases;
}

/// One GGSW ciphertext in standard form for each of the small integers.
inline TorusBlock encrypt_ggsw(std::mt19937_64& rng, const TfheConfig& config,
                               const TfheSecret& secret, std::span<const std::int64_t> messages,
                               double noise) {
  const std::size_t N = config.N.value, k = config.k.value;
  const int w = torus_bits(config.torus);
  TorusBlock out(config.torus, messages.size(), config.ggsw_words());
  std::size_t at = 0;
  std::vector<u64> message(N);
  for (const std::int64_t m : messages) {
    for (std::size_t c = 0; c <= k; ++c) {
      for (int j = 1; j <= config.rotation_gadget.levels; ++j) {
        const u64 scaled = static_cast<u64>(m) << (w - j * config.rotation_gadget.base_log);
        std::fill(message.begin(), message.end(), 0);
        if (c == k) {
          message[0] = scaled;
        } else {
          for (std::size_t i = 0; i < N; ++i) message[i] = 0 - scaled * secret.large[c * N + i];
        }
        encrypt_glwe_at(rng, config, secret, message, noise, out, at);
        at += (k + 1) * N;
      }
    }
  }
  return out;
}

// --- keys ----------------------------------------------------------------------------------------

/// Evaluation keys in standard form: units() GGSW ciphertexts for each step, and the rows of the
/// switching key.
struct TfheKeys {
  TorusBlock rotation, switching;
};

/// What the GGSW ciphertexts of a bootstrapping key hold, as Rotation says.
inline std::vector<std::int64_t> rotation_messages(const TfheConfig& config,
                                                   const TfheSecret& secret) {
  std::vector<std::int64_t> messages;
  const auto group = static_cast<std::size_t>(config.group);
  for (std::size_t step = 0; step < config.steps(); ++step) {
    const std::span bits = std::span(secret.small).subspan(step * group, group);
    if (config.rotation != Rotation::multi_bit) {
      messages.insert(messages.end(), bits.begin(), bits.end());
      continue;
    }
    std::size_t number = 0;  // of the set of bits that the secret sets
    for (std::size_t j = 0; j < group; ++j) number |= std::size_t{bits[j]} << j;
    for (std::size_t set = 1; set <= config.units(); ++set) messages.push_back(set == number);
  }
  return messages;
}

inline TfheKeys standard_keys(std::mt19937_64& rng, const TfheConfig& config,
                              const TfheSecret& secret, TfheNoise noise) {
  TfheKeys keys;
  keys.rotation =
      encrypt_ggsw(rng, config, secret, rotation_messages(config, secret), noise.rotation);
  std::vector<u64> rows;
  for (const std::uint8_t bit : secret.large) {
    for (int j = 1; j <= config.switch_gadget.levels; ++j) {
      rows.push_back(u64{bit} << (32 - j * config.switch_gadget.base_log));
    }
  }
  keys.switching = encrypt_lwe(rng, Torus::t32, secret.small, rows, noise.switching);
  return keys;
}

// --- messages and tables -------------------------------------------------------------------------

/// Messages m in [0, p) lie at m / (2p) on the torus: the highest bit is the padding. p is a power
/// of two.
inline u64 encoded(Torus torus, u64 m, u64 p) {
  return m << (torus_bits(torus) - std::countr_zero(2 * p));
}
/// The closest message in [0, 2p), with the padding bit.
inline u64 decoded(Torus torus, u64 phase, u64 p) {
  const int shift = torus_bits(torus) - std::countr_zero(2 * p);
  return ((phase + (u64{1} << (shift - 1))) >> shift) & (2 * p - 1);
}

/// Accumulators, and how they are used.
struct Tables {
  TorusBlock data;  // clear: rows of N words; encrypted: GLWE ciphertexts
  bool encrypted = false;
  std::vector<u32> of_input;
  int log_many = 0;
};

/// One clear table of 2^log_many functions, each given by its p values in [0, 2p). Coefficient i
/// holds function i mod 2^log_many of the message whose box begins half a box before its centre m N
/// / p.
inline std::vector<u64> table_polynomial(const TfheConfig& config, u64 p, int log_many,
                                         std::span<const std::vector<u64>> functions) {
  const std::size_t N = config.N.value, box = N / p;
  std::vector<u64> table(N);
  for (std::size_t i = 0; i < N; ++i) {
    const std::size_t j = i & ((std::size_t{1} << log_many) - 1);
    const std::size_t m = (i - j + box / 2) / box;  // m = p lies at the end: there -f(0)
    const u64 value = encoded(config.torus, functions[j][m % p], p);
    table[i] = m < p ? value : 0 - value;
  }
  return table;
}

/// The function values of one table: f[j][m].
using Functions = std::vector<std::vector<u64>>;
inline Functions random_functions(std::mt19937_64& rng, u64 p, int log_many) {
  Functions f(std::size_t{1} << log_many, std::vector<u64>(p));
  for (auto& values : f) {
    for (u64& v : values) v = rng() % (2 * p);
  }
  return f;
}

inline Tables clear_tables(const TfheConfig& config, u64 p, int log_many,
                           std::span<const Functions> all) {
  Tables tables;
  tables.log_many = log_many;
  tables.data = TorusBlock(config.torus, all.size(), config.N.value);
  for (std::size_t t = 0; t < all.size(); ++t) {
    const std::vector<u64> polynomial = table_polynomial(config, p, log_many, all[t]);
    for (std::size_t i = 0; i < polynomial.size(); ++i) tables.data.set(t, i, polynomial[i]);
  }
  return tables;
}

inline Tables encrypted_tables(std::mt19937_64& rng, const TfheConfig& config,
                               const TfheSecret& secret, const Tables& clear, double noise) {
  std::vector<u64> messages(clear.data.size());
  for (std::size_t i = 0; i < messages.size(); ++i) messages[i] = clear.data.at(i);
  Tables tables = clear;
  tables.data = encrypt_glwe(rng, config, secret, messages, noise);
  tables.encrypted = true;
  return tables;
}

/// What function j of the table gives for message m in [0, 2p): a value in [0, 2p). With the
/// padding bit set, the negative.
inline u64 table_value(const Functions& f, std::size_t j, u64 m, u64 p) {
  return m < p ? f[j][m] : (2 * p - f[j][m - p]) % (2 * p);
}

// --- an engine with keys -------------------------------------------------------------------------

/// Runs the operations of an engine on blocks in host memory, which are copied to its device and
/// back. Outputs are poisoned before.
class TfheRunner {
 public:
  /// The engine must outlive it. The bootstrapping key is prepared in two ranges of steps, the
  /// later first. copies: bootstraps take the inputs so often, and all must give the same; for
  /// engines whose kernels depend on the size of a batch.
  TfheRunner(const TfheOps& engine, const TfheKeys& keys, std::size_t copies = 1)
      : engine_(engine),
        copies_(copies),
        rotation_(allocate(engine.rotation_key_bytes())),
        switching_(allocate(engine.switch_key_bytes())) {
    const std::size_t steps = engine.config().steps(), first = steps / 3;
    const std::size_t step = keys.rotation.bytes() / steps;
    const auto* ggsws = static_cast<const std::byte*>(keys.rotation.data());
    engine.prepare_rotation_key(rotation_.data(), ggsws + first * step, first, steps - first);
    if (first > 0) engine.prepare_rotation_key(rotation_.data(), ggsws, 0, first);
    engine.prepare_switch_key(switching_.data(), keys.switching.data());
  }

  const TfheOps& engine() const { return engine_; }
  const TfheConfig& config() const { return engine_.config(); }
  const void* rotation_key() const { return rotation_.data(); }
  const void* switch_key() const { return switching_.data(); }

  TorusBlock key_switch(const TorusBlock& in) const {
    return lwe_to(small(in.count()), in, [&](LweView out, ConstLweView from) {
      engine_.key_switch(out, from, switch_key());
    });
  }
  TorusBlock bootstrap(const TorusBlock& in, const Tables& tables) const {
    return with_tables(large(in.count() << tables.log_many), in, tables,
                       [&](LweView out, ConstLweView from, const TableView& view) {
                         engine_.bootstrap(out, from, view, rotation_key());
                       });
  }
  TorusBlock switch_bootstrap(const TorusBlock& in, const Tables& tables) const {
    return with_tables(large(in.count() << tables.log_many), in, tables,
                       [&](LweView out, ConstLweView from, const TableView& view) {
                         engine_.switch_bootstrap(out, from, view, switch_key(), rotation_key());
                       });
  }
  TorusBlock bootstrap_switch(const TorusBlock& in, const Tables& tables) const {
    return with_tables(small(in.count() << tables.log_many), in, tables,
                       [&](LweView out, ConstLweView from, const TableView& view) {
                         engine_.bootstrap_switch(out, from, view, switch_key(), rotation_key());
                       });
  }
  /// Rows of (k + 1) N words.
  TorusBlock blind_rotate(const TorusBlock& in, const Tables& tables) const {
    const TorusBlock out(config().torus, in.count(), (config().k.value + 1) * config().N.value);
    return with_tables(out, in, tables, [&](LweView to, ConstLweView from, const TableView& view) {
      engine_.blind_rotate({to.data, to.count}, from, view, rotation_key());
    });
  }
  TorusBlock combine(const TorusBlock& in, const LweCombination& sum) const {
    return lwe_to(TorusBlock(in.torus(), sum.begin.size() - 1, in.row()), in,
                  [&](LweView out, ConstLweView from) { engine_.combine(out, from, sum); });
  }
  TorusBlock extract(const TorusBlock& in, std::span<const u32> coefficients,
                     std::size_t per) const {
    return lwe_to(large(coefficients.size()), in, [&](LweView out, ConstLweView from) {
      engine_.extract(out, {from.data, from.count}, coefficients, per);
    });
  }
  /// key: GLWE ciphertexts in standard form.
  TorusBlock pack(const TorusBlock& in, std::span<const u32> coefficients, std::size_t per,
                  const TorusBlock& key) const {
    const std::size_t outputs = (in.count() + per - 1) / per;
    const TorusBlock out(config().torus, outputs, (config().k.value + 1) * config().N.value);
    const device::Buffer packing = upload(key);
    return lwe_to(out, in, [&](LweView to, ConstLweView from) {
      engine_.pack({to.data, to.count}, from, coefficients, per, packing.data());
    });
  }

 private:
  device::Buffer allocate(std::size_t bytes) const {
    return engine_.device()->pool()->allocate(bytes);
  }
  device::Buffer upload(const TorusBlock& block) const {
    device::Buffer buffer = allocate(block.bytes());
    engine_.device()->memory()->copy_in(buffer.data(), block.data(), block.bytes());
    return buffer;
  }
  TorusBlock small(std::size_t count) const {
    return TorusBlock(Torus::t32, count, config().n.value + 1);
  }
  TorusBlock large(std::size_t count) const {
    return TorusBlock(config().torus, count, config().large().value + 1);
  }

  template <class Run>
  TorusBlock lwe_to(TorusBlock out, const TorusBlock& in, Run run) const {
    const device::Buffer from = upload(in);
    device::Buffer to = upload(out);
    LweView out_view = out.lwe();
    ConstLweView in_view = in.lwe();
    out_view.data = to.data();
    in_view.data = from.data();
    run(out_view, in_view);
    engine_.device()->memory()->copy_out(out.data(), to.data(), out.bytes());
    return out;
  }
  template <class Run>
  TorusBlock with_tables(TorusBlock out, const TorusBlock& in, const Tables& tables,
                         Run run) const {
    const device::Buffer data = upload(tables.data);
    std::vector<u32> of_input;
    for (std::size_t i = 0; i < copies_; ++i) {
      of_input.insert(of_input.end(), tables.of_input.begin(), tables.of_input.end());
    }
    const TableView view{data.data(), tables.data.count(), tables.encrypted, of_input,
                         tables.log_many};
    const TorusBlock all = lwe_to(repeated(out), repeated(in),
                                  [&](LweView to, ConstLweView from) { run(to, from, view); });
    for (std::size_t i = 0; i < out.size(); ++i) out.set(i, all.at(i));
    EXPECT_TRUE(all == repeated(out)) << "copies of the same inputs differ";
    return out;
  }
  TorusBlock repeated(const TorusBlock& block) const {
    TorusBlock all(block.torus(), block.count() * copies_, block.row());
    for (std::size_t i = 0; i < all.size(); ++i) all.set(i, block.at(i % block.size()));
    return all;
  }

  const TfheOps& engine_;
  const std::size_t copies_;
  device::Buffer rotation_, switching_;
};

}  // namespace jali::backend::test
