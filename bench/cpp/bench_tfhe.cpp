// Times the operations of the CPU engine of TFHE with real keys, and checks every result.
//   bench_tfhe [--set NAME] [--isa ISA] [--transform fft|ntt] [--threads T] [--seconds S]
//   [--batches 1,8,32]
//     [--commit HASH]
// For each set of parameters, operation and batch it prints one JSON object. Times are processor
// time of the whole process for the batch (with one thread: what one core works), so that other
// programs on the machine disturb them little. "right" counts the results that decrypt to the value
// of the table; the exit status is 1 if one is wrong.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "bench/cpp/json.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/base/error.h"

namespace {

using namespace jali::backend;
using jali::bench::Json;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Set {
  const char* name;
  std::size_t n, k, N;
  Gadget rotation, switching;
  double lwe_noise, glwe_noise;  // log2 of the standard deviation on the torus
  u64 p;  // messages; the encoding has a padding bit
  Rotation kind = Rotation::classic;
  int group = 1;
};

// The first two are those that tfhe-rs names PARAM_MESSAGE_2_CARRY_2 and the default of its
// booleans.
const Set kSets[] = {
    {"message_2_carry_2", 918, 1, 2048, {23, 1}, {4, 4}, -19.8, -47.8, 16},
    {"boolean", 805, 3, 512, {10, 2}, {3, 5}, -17.4, -30, 4},
    {"block_binary_3", 1002, 1, 2048, {23, 1}, {4, 4}, -19.8, -47.8, 16, Rotation::block_binary, 3},
    {"multi_bit_4", 920, 1, 2048, {22, 1}, {3, 5}, -19.8, -47.8, 16, Rotation::multi_bit, 4},
    {"wide", 1077, 1, 8192, {15, 2}, {4, 5}, -21, -58, 64},
};

double processor_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Keys for measuring: the generator is no secure one.
struct Keys {
  std::vector<std::uint8_t> small, large;
  std::vector<u64> rotation;
  std::vector<u32> switching;

  Keys(const Set& set, const TfheConfig& config, std::mt19937_64& rng) {
    const std::size_t n = set.n, N = set.N, k = set.k, group = static_cast<std::size_t>(set.group);
    small.resize(n);
    large.resize(k * N);
    for (auto& bit : large) bit = rng() >> 63;
    for (std::size_t i = 0; i < n; i += group) {
      if (set.kind == Rotation::block_binary) {
        const std::size_t at = rng() % (group + 1);
        if (at < group) small[i + at] = 1;
      } else {
        for (std::size_t j = 0; j < group; ++j) small[i + j] = rng() >> 63;
      }
    }
    std::normal_distribution<double> lwe(0, std::exp2(32 + set.lwe_noise));
    std::normal_distribution<double> glwe(0, std::exp2(64 + set.glwe_noise));
    const std::size_t units = config.units();
    const auto levels = static_cast<std::size_t>(set.rotation.levels);
    rotation.resize(config.steps() * units * config.ggsw_words());
    u64* row = rotation.data();
    for (std::size_t u = 0; u < config.steps() * units; ++u) {
      u64 message = 0;
      if (set.kind == Rotation::multi_bit) {
        std::size_t number = 0;
        for (std::size_t j = 0; j < group; ++j) {
          number |= static_cast<std::size_t>(small[u / units * group + j]) << j;
        }
        message = number == u % units + 1;
      } else {
        message = small[u];
      }
      for (std::size_t c = 0; c < (k + 1) * levels; ++c, row += (k + 1) * N) {
        u64* const body = row + k * N;
        for (std::size_t i = 0; i < N; ++i) {
          body[i] = static_cast<u64>(static_cast<std::int64_t>(glwe(rng)));
        }
        for (std::size_t a = 0; a < k; ++a) {
          u64* const mask = row + a * N;
          for (std::size_t i = 0; i < N; ++i) mask[i] = rng();
          for (std::size_t i = 0; i < N; ++i) {
            if (large[a * N + i] == 0) continue;
            for (std::size_t j = 0; j < N - i; ++j) body[i + j] += mask[j];
            for (std::size_t j = N - i; j < N; ++j) body[i + j - N] -= mask[j];
          }
        }
        // A message m in row (c, j) adds m 2^(64 - j g) to component c of an encryption of 0.
        const int shift = 64 - (static_cast<int>(c % levels) + 1) * set.rotation.base_log;
        row[c / levels * N] += message << shift;
      }
    }
    for (const auto bit : large) {
      for (int j = 1; j <= set.switching.levels; ++j) {
        u32 body = static_cast<u32>(static_cast<std::int64_t>(lwe(rng)));
        body += static_cast<u32>(bit) << (32 - j * set.switching.base_log);
        for (std::size_t i = 0; i < n; ++i) {
          switching.push_back(static_cast<u32>(rng()));
          if (small[i] != 0) body += switching.back();
        }
        switching.push_back(body);
      }
    }
  }

  template <class W>
  std::vector<W> encrypt(std::span<const u64> messages, const std::vector<std::uint8_t>& secret,
                         u64 p, std::mt19937_64& rng) const {
    std::vector<W> out;
    for (const u64 m : messages) {
      W body = static_cast<W>(m * ((W{1} << (sizeof(W) * 8 - 1)) / p));
      for (const auto bit : secret) {
        out.push_back(static_cast<W>(rng()));
        if (bit != 0) body += out.back();
      }
      out.push_back(body);
    }
    return out;
  }
  template <class W>
  u64 decrypt(const W* ciphertext, const std::vector<std::uint8_t>& secret, u64 p) const {
    W phase = ciphertext[secret.size()];
    for (std::size_t i = 0; i < secret.size(); ++i) {
      if (secret[i] != 0) phase -= ciphertext[i];
    }
    const W step = (W{1} << (sizeof(W) * 8 - 1)) / static_cast<W>(p);
    return static_cast<u64>(static_cast<W>(phase + step / 2) / step) % (2 * p);
  }
};

struct Options {
  std::string set, isa, transform, commit = "unknown";
  int threads = 1;
  double seconds = 3;
  std::vector<std::size_t> batches = {1, 8, 32};
};

std::size_t measure(const Set& set, const Options& options) {
  TfheConfig config;
  config.n = LweDimension(set.n);
  config.k = GlweDimension(set.k);
  config.N = PolynomialSize(set.N);
  config.rotation_gadget = set.rotation;
  config.switch_gadget = set.switching;
  config.rotation = set.kind;
  config.group = set.group;
  config.mean_bit = set.kind == Rotation::block_binary ? 1.0 / (set.group + 1) : 0.5;
  config.threads = options.threads;
  config.isa = options.isa;
  config.transform = options.transform;
  const auto engine = make_cpu_tfhe(config);
  std::mt19937_64 rng(std::random_device{}());
  const Keys keys(set, config, rng);

  const auto block = [&](std::size_t bytes) {
    const auto memory = engine->device()->memory();
    return std::shared_ptr<void>(memory->allocate(bytes),
                                 [memory, bytes](void* data) { memory->free(data, bytes); });
  };
  const auto rotation = block(engine->rotation_key_bytes());
  const auto switching = block(engine->switch_key_bytes());
  double start = processor_seconds();
  engine->prepare_rotation_key(rotation.get(), keys.rotation.data(), 0, config.steps());
  engine->prepare_switch_key(switching.get(), keys.switching.data());
  const double prepared = processor_seconds() - start;

  // The table of v -> (v^2 + 1) mod p, in boxes of N / p coefficients around the messages.
  const auto function = [&](u64 m) { return (m * m + 1) % set.p; };
  std::vector<u64> table(set.N);
  const std::size_t box = set.N / set.p;
  for (std::size_t i = 0; i < set.N; ++i) {
    const std::size_t m = (i + box / 2) / box;
    const u64 value = function(m % set.p) * ((u64{1} << 63) / set.p);
    table[i] = m < set.p ? value : 0 - value;
  }
  const TableView tables{table.data(), 1};

  std::size_t wrong_in_all = 0;
  for (const std::size_t batch : options.batches) {
    std::vector<u64> messages(batch);
    for (u64& m : messages) m = rng() % set.p;
    const auto small = keys.encrypt<u32>(messages, keys.small, set.p, rng);
    const auto large = keys.encrypt<u64>(messages, keys.large, set.p, rng);
    std::vector<u32> small_out(small.size());
    std::vector<u64> large_out(large.size());
    const LweView in_small{const_cast<u32*>(small.data()), Torus::t32, config.n, batch};
    const LweView in_large{const_cast<u64*>(large.data()), Torus::t64, config.large(), batch};
    const LweView out_small{small_out.data(), Torus::t32, config.n, batch};
    const LweView out_large{large_out.data(), Torus::t64, config.large(), batch};
    struct Operation {
      const char* name;
      bool small_out, looks_up;
      std::function<void()> run;
    };
    const Operation operations[] = {
        {"key_switch", true, false,
         [&] { engine->key_switch(out_small, in_large, switching.get()); }},
        {"bootstrap", false, true,
         [&] { engine->bootstrap(out_large, in_small, tables, rotation.get()); }},
        {"switch_bootstrap", false, true,
         [&] {
           engine->switch_bootstrap(out_large, in_large, tables, switching.get(), rotation.get());
         }},
        {"bootstrap_switch", true, true,
         [&] {
           engine->bootstrap_switch(out_small, in_small, tables, switching.get(), rotation.get());
         }},
    };
    for (const Operation& operation : operations) {
      std::vector<double> times;
      std::size_t right = 0, results = 0;
      double total = 0;
      operation.run();  // the first run takes memory
      while (times.size() < 5 || (total < options.seconds && times.size() < 1000)) {
        std::fill(small_out.begin(), small_out.end(), 0xABABABABu);
        std::fill(large_out.begin(), large_out.end(), 0xABABABABABABABABu);
        start = processor_seconds();
        operation.run();
        times.push_back(processor_seconds() - start);
        total += times.back();
        for (std::size_t i = 0; i < batch; ++i, ++results) {
          const u64 got =
              operation.small_out
                  ? keys.decrypt(&small_out[i * (set.n + 1)], keys.small, set.p)
                  : keys.decrypt(&large_out[i * (set.k * set.N + 1)], keys.large, set.p);
          right += got == (operation.looks_up ? function(messages[i]) : messages[i]);
        }
      }
      wrong_in_all += results - right;
      std::sort(times.begin(), times.end());
      const auto at = [&](double share) {
        return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
      };
      Json()
          .set("name", std::string("tfhe_") + operation.name)
          .set("device", engine->name())
          .set("params",
               Json()
                   .set("set", set.name)
                   .set("n", set.n)
                   .set("k", set.k)
                   .set("N", set.N)
                   .set("transform", options.transform.empty() ? "fft" : options.transform)
                   .set("threads", options.threads))
          .set("batch", batch)
          .set("reps", times.size())
          .set("time", "processor")
          .set("median_s", at(0.5))
          .set("min_s", times.front())
          .set("p95_s", at(0.95))
          .set("each_ms", 1e3 * at(0.5) / static_cast<double>(batch))
          .set("right", right)
          .set("results", results)
          .set("key_mb", static_cast<double>(engine->rotation_key_bytes()) * 1e-6)
          .set("prepare_s", prepared)
          .set("commit", options.commit)
          .print();
    }
  }
  return wrong_in_all;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const char* value = i + 1 < argc ? argv[++i] : "";
    if (option == "--set") {
      options.set = value;
    } else if (option == "--isa") {
      options.isa = value;
    } else if (option == "--transform") {
      options.transform = value;
    } else if (option == "--threads") {
      options.threads = std::atoi(value);
    } else if (option == "--seconds") {
      options.seconds = std::atof(value);
    } else if (option == "--commit") {
      options.commit = value;
    } else if (option == "--batches") {
      options.batches.clear();
      for (const char* at = value; *at != 0;) {
        char* end = nullptr;
        options.batches.push_back(std::strtoul(at, &end, 10));
        at = *end == ',' ? end + 1 : end;
      }
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[i - 1]);
      return 2;
    }
  }
  std::size_t wrong = 0;
  try {
    for (const Set& set : kSets) {
      if (options.set.empty() || options.set == set.name) wrong += measure(set, options);
    }
  } catch (const jali::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return wrong == 0 ? 0 : 1;
}
