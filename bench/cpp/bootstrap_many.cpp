// Thousands of bootstrappings on a small ring, every slot of every one compared in the clear.
//   bootstrap_many [--device D] [--log-n N] [--count C] [--batch B]
// One JSON object a configuration and line: how many, how many failed (a slot beyond 16 predicted standard
// deviations and the sine's bound), the worst slot in predicted standard deviations, precision measured and
// predicted. The rings protect nobody; orders, words, packings and circuits are those of presets. Exit status 1
// if any failed.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "jali/api/jali.h"

namespace {

using namespace jali;
using params::BootstrapOrder;
using Clock = std::chrono::steady_clock;
using Complex = std::complex<double>;

struct Configuration {
  const char* name;
  BootstrapOrder order;
  Word word;
  double precision;
  int sparse;  // log2 of N/2 over the slots
  bool real = false, minimum = false;
  int iterations = 1;
  double scale_bits = 0;
};

constexpr Configuration kConfigurations[] = {
    {"raise_first", BootstrapOrder::raise_first, Word::w52, 22, 0},
    {"raise_first_precise", BootstrapOrder::raise_first, Word::w52, 28, 0},
    {"raise_first_sparse", BootstrapOrder::raise_first, Word::w52, 22, 4},
    {"raise_first_w64", BootstrapOrder::raise_first, Word::w64, 22, 0},
    {"raise_first_w32", BootstrapOrder::raise_first, Word::w32, 22, 0, false, false, 1, 50},
    {"raise_first_minimum", BootstrapOrder::raise_first, Word::w52, 22, 0, false, true},
    {"raise_first_twice", BootstrapOrder::raise_first, Word::w52, 35, 0, false, false, 2},
    {"slots_first_real", BootstrapOrder::slots_first, Word::w52, 22, 0, true},
    {"slots_first_complex", BootstrapOrder::slots_first, Word::w52, 22, 0},
    {"slots_first_sparse", BootstrapOrder::slots_first, Word::w64, 22, 3},
};

/// How many failed.
std::size_t run(const Configuration& c, const std::string& device, int log_n, std::size_t count,
                std::size_t batch) {
  params::BootstrapRequest request;
  request.precision_bits = c.precision;
  request.levels_after = 2;
  request.order = c.order;
  request.log_n = log_n;
  request.word = c.word;
  request.security = 0;
  request.name = "insecure_many";
  request.iterations = c.iterations;
  request.scale_bits = c.scale_bits;
  const auto params = params::create_with_bootstrap(request);
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
        evaluator->encoder().encode(v, batch, level, params->level(level).scale, log_slots),
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
      failed += !(most < 16 * deviation + sine);
      worst = std::max(worst, most / deviation);
    }
    done += batch;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const auto& b = *params->bootstrap();
  std::printf(
      "{\"name\": \"bootstrap_many\", \"configuration\": \"%s\", \"device\": \"%s\", \"params\": "
      "{\"log_n\": %d, \"slots\": %zu, \"word\": \"%s\", \"weight\": %d, \"range\": %d, "
      "\"minimum\": %s, \"iterations\": %d}, \"batch\": %zu, \"count\": %zu, \"failed\": %zu, "
      "\"log2_failure_bound\": %.1f, \"worst_deviations\": %.2f, \"precision_bits\": %.2f, "
      "\"predicted_bits\": %.2f, \"seconds\": %.2f}\n",
      c.name, ring->ops().name().c_str(), log_n, slots, std::string(word_name(c.word)).c_str(),
      b.weight, b.range, c.minimum ? "true" : "false", c.iterations, batch, done, failed,
      params::log2_bootstrap_failure(b.weight, b.range, params->n()) +
          std::log2(static_cast<double>(done * static_cast<std::size_t>(c.iterations))),
      worst, -std::log2(std::sqrt(sum / static_cast<double>(done * slots))), predicted, seconds);
  std::fflush(stdout);
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "auto";
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
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[i - 1]);
      return 2;
    }
  }
  std::size_t failed = 0;
  for (const Configuration& c : kConfigurations) {
    try {
      failed += run(c, device, log_n, (count - 1) / std::size(kConfigurations) + 1, batch);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s: %s\n", c.name, error.what());
      ++failed;
    }
  }
  return failed == 0 ? 0 : 1;
}
