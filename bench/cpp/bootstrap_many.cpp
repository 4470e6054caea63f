// Runs thousands of bootstrappings and compares every slot of every result with the plain values.
//   bootstrap_many [--device D] [--log-n N] [--count C] [--batch B] [--preset NAME [--word
//   w32|w52|w64]]
//     [--commit HASH]
// For each configuration it prints one JSON object: how many bootstrappings ran, how many failed,
// the worst slot in predicted standard deviations, and the measured and the predicted precision. A
// bootstrapping has failed if the error of a slot exceeds 20 predicted standard deviations plus the
// bound of the sine's error. Without --preset the configurations are the circuits of all presets on
// w32 and w52, and other orders, words, packings and iterations, all on small rings that are not
// secure. With --preset it is that preset alone, in its own ring. The exit status is 1 if any
// failed.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/cpp/json.h"
#include "jali/api/jali.h"

namespace {

using namespace jali;
using bench::Json;
using params::BootstrapOrder;
using Clock = std::chrono::steady_clock;
using Complex = std::complex<double>;

struct Configuration {
  std::string name;
  ckks::Literal literal;
  int sparse = 0;  // log2 of (N/2) / slots
  bool real = false, minimum = false;
  int iterations = 1;
};

/// A circuit on a small ring.
ckks::Literal small(BootstrapOrder order, Word word, double precision, int log_n,
                    double scale_bits = 0, int iterations = 1, int cts_levels = 0) {
  params::BootstrapRequest request;
  request.precision_bits = precision;
  request.levels_after = 2;
  request.order = order;
  request.scale_bits = scale_bits;
  request.word = word;
  request.security = 0;
  request.cts_levels = cts_levels;
  request.name = "insecure_many";
  request.iterations = iterations;
  return params::bootstrap_literal(request, log_n);
}

/// The circuit of a preset (its cosine, levels, head bits and digits) on a small ring, with fewer
/// levels left.
ckks::Literal small(const params::BootstrapPreset& p, Word word, int log_n) {
  auto literal = small(p.order, word, p.precision_bits, log_n, p.scale_bits, 1,
                       params::preset(p.name, word).bootstrap->cts_levels);
  literal.dnum = static_cast<int>((word == Word::w32 ? p.w32 : p.w52).digits);
  return literal;
}

std::vector<Configuration> small_rings(int log_n) {
  constexpr auto kRaise = BootstrapOrder::raise_first, kSlots = BootstrapOrder::slots_first;
  const auto w32 = Word::w32, w52 = Word::w52, w64 = Word::w64;
  std::vector<Configuration> out = {
      {"raise_first", small(kRaise, w52, 22, log_n)},
      {"raise_first_precise", small(kRaise, w52, 28, log_n)},
      {"raise_first_sparse", small(kRaise, w52, 22, log_n), 4},
      {"raise_first_w64", small(kRaise, w64, 22, log_n)},
      {"raise_first_w32", small(kRaise, w32, 22, log_n, 50)},
      {"raise_first_minimum", small(kRaise, w52, 22, log_n), 0, false, true},
      {"raise_first_twice", small(kRaise, w52, 35, log_n, 0, 2), 0, false, false, 2},
      {"slots_first_real", small(kSlots, w52, 22, log_n), 0, true},
      {"slots_first_complex", small(kSlots, w52, 22, log_n)},
      {"slots_first_sparse", small(kSlots, w64, 22, log_n), 3},
  };
  for (const auto& p : params::bootstrap_presets()) {
    for (const Word word : {w32, w52}) {
      const std::string name = std::string(p.name) + "_" + std::string(word_name(word));
      out.push_back({name, small(p, word, log_n), 0, p.name == "n16_real"});
      if (p.name == "n16_fast") out.push_back({name + "_sparse", small(p, word, log_n), 4});
    }
  }
  return out;
}

/// Runs a configuration, prints its line and returns how many bootstrappings failed.
std::size_t run(const Configuration& c, const std::string& device, std::size_t count,
                std::size_t batch, const std::string& commit) {
  const auto params = ckks::Params::create(c.literal);
  const int log_n = params->log_n();
  const auto ring = ckks::make_ring(*params, device, 2);
  const int log_slots = log_n - 1 - c.sparse;
  bootstrap::BootstrapPlan plan(params, {log_slots, c.real, c.minimum});
  rlwe::KeyGenerator generator(params, ring);
  const auto sk = std::make_shared<const rlwe::SecretKey>(generator.secret_key());
  const auto evaluator = std::make_shared<const ckks::Evaluator>(
      params, ring,
      std::make_shared<const rlwe::EvaluationKeys>(
          bootstrap::evaluation_keys(generator, *sk, {&plan, 1})));
  bootstrap::Bootstrapper bootstrapper(evaluator, std::move(plan));
  bootstrapper.prepare();
  ckks::SecretEncryptor encryptor(sk, ring);
  const ckks::Decryptor decryptor(sk, ring);
  const int level = params->bootstrap()->input_level();
  const std::size_t slots = std::size_t{1} << log_slots;

  std::mt19937_64 random(std::random_device{}());
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<Complex> v(batch * slots);
  std::size_t done = 0, failed = 0;
  double sum = 0, worst = 0, predicted = 0;
  const auto start = Clock::now();
  while (done < count) {
    for (auto& z : v) z = {uniform(random), c.real ? 0 : uniform(random)};
    const auto x = encryptor.encrypt(
        evaluator->encoder().encode(v, batch, level, params->scale(level), log_slots),
        c.real ? 0.58 : 0.82);
    const auto y = bootstrapper.apply(x, -1, {}, c.iterations);
    predicted = evaluator->noise().precision_bits(y.estimate, y.scale);
    const double deviation = std::exp2(-predicted);
    const double sine = c.iterations > 1 ? 0 : bootstrapper.plan().worst_sine_error(1);
    const auto got = evaluator->encoder().decode(decryptor.decrypt(y));
    for (std::size_t b = 0; b < batch; ++b) {
      double most = 0;
      for (std::size_t j = b * slots; j < (b + 1) * slots; ++j) {
        const Complex e = got[j] - v[j];
        sum += c.real ? e.real() * e.real() : std::norm(e) / 2;
        most = std::max({most, std::fabs(e.real()), c.real ? 0 : std::fabs(e.imag())});
      }
      failed += !(most < 20 * deviation + sine);
      worst = std::max(worst, most / deviation);
    }
    done += batch;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const auto& b = *params->bootstrap();
  // log2 of the bound on the probability that one application fails. If there are several, a later
  // one corrects the sine's error that rare large integers leave after an earlier one; only
  // integers beyond the range remain.
  const double one = c.iterations > 1
                         ? params::log2_bootstrap_failure(b.weight, b.range, params->n())
                         : bootstrap::log2_beyond(*params, 20 * std::exp2(-predicted), log_slots);
  const auto engine = ring->engine().name();
  Json()
      .set("name", "bootstrap_many")
      .set("configuration", c.name)
      .set("device", engine)
      .set("device_name", engine.starts_with("cuda") ? device::device_name(engine) : engine)
      .set("params", Json()
                         .set("log_n", log_n)
                         .set("slots", slots)
                         .set("word", word_name(params->word()))
                         .set("weight", b.weight)
                         .set("range", b.range)
                         .set("minimum", c.minimum)
                         .set("iterations", c.iterations))
      .set("batch", batch)
      .set("count", done)
      .set("failed", failed)
      .set("log2_failure_bound",
           one + std::log2(static_cast<double>(done * static_cast<std::size_t>(c.iterations))))
      .set("worst_deviations", worst)
      .set("precision_bits", -std::log2(std::sqrt(sum / static_cast<double>(done * slots))))
      .set("predicted_bits", predicted)
      .set("seconds", seconds)
      .set("commit", commit)
      .print();
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "auto", preset, word, commit = "unknown";
  int log_n = 11;
  std::size_t count = 10000, batch = 64;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const char* value = i + 1 < argc ? argv[++i] : "";
    if (option == "--device") {
      device = value;
    } else if (option == "--log-n") {
      log_n = std::atoi(value);
    } else if (option == "--count") {
      count = std::strtoul(value, nullptr, 10);
    } else if (option == "--batch") {
      batch = std::strtoul(value, nullptr, 10);
    } else if (option == "--preset") {
      preset = value;
    } else if (option == "--word") {
      word = value;
    } else if (option == "--commit") {
      commit = value;
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[i - 1]);
      return 2;
    }
  }
  std::vector<Configuration> configurations;
  try {
    if (preset.empty()) {
      configurations = small_rings(log_n);
    } else {
      std::optional<Word> of;
      if (!word.empty()) of = word == "w32" ? Word::w32 : word == "w52" ? Word::w52 : Word::w64;
      configurations.push_back({preset, params::preset(preset, of), 0, preset == "n16_real"});
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::size_t failed = 0;
  for (const Configuration& c : configurations) {
    try {
      failed += run(c, device, (count - 1) / configurations.size() + 1, batch, commit);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s: %s\n", c.name.c_str(), error.what());
      ++failed;
    }
  }
  return failed == 0 ? 0 : 1;
}
