// Bootstrapping on the CPU, stage by stage; one JSON object a line, in the shape of `jali bench --json`.
//   bench_bootstrap [--preset NAME] [--log-n N] [--threads T] [--reps R] [--stream]
// --log-n: the preset's precision, levels and digits on another ring, without its security. --stream: diagonals
// are encoded whenever they are used, for little memory. Prints nothing that was not decrypted first.
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "jali/api/jali.h"

namespace {

using namespace jali;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double peak_gb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e9;
}

params::CkksParamsPtr make_params(const std::string& name, int log_n) {
  if (log_n == 0) return params::CkksParams::create(params::preset(name));
  for (const auto& p : params::bootstrap_presets()) {
    if (p.name != name) continue;
    params::BootstrapRequest request{p.precision_bits, p.levels_after, p.order, p.scale_bits,
                                     log_n};
    request.security = 0;
    request.name = "insecure_" + name;
    auto literal = params::bootstrap_literal(request, log_n);
    // As many digits as the preset has, which without a bound on log PQ would be one.
    literal.dnum = static_cast<int>(params::CkksParams::create(params::preset(name))->dnum());
    return params::CkksParams::create(literal);
  }
  throw InvalidArgument("no bootstrapping preset " + name);
}

int run(const std::string& name, int log_n, int threads, int reps, bool stream) {
  const auto params = make_params(name, log_n);
  const auto ring = ckks::make_ring(*params, "cpu", threads);
  const bool real = params->bootstrap()->order == params::BootstrapOrder::slots_first;
  bootstrap::BootstrapPlan plan(params, {-1, real});
  rlwe::KeyGenerator generator(params, ring);
  auto start = Clock::now();
  const auto sk = std::make_shared<const rlwe::SecretKey>(generator.secret_key());
  const std::size_t key_bytes = bootstrap::key_bytes(*params, {&plan, 1});
  std::shared_ptr<const ckks::Evaluator> evaluator;
  {
    auto keys = std::make_shared<const rlwe::EvaluationKeys>(
        bootstrap::evaluation_keys(generator, *sk, {&plan, 1}));
    evaluator = std::make_shared<const ckks::Evaluator>(params, ring, keys);
  }
  const double keys_s = since(start);
  start = Clock::now();
  bootstrap::Bootstrapper bootstrapper(evaluator, std::move(plan));
  if (!stream) bootstrapper.prepare();
  const double prepare_s = since(start);

  std::mt19937_64 random(std::random_device{}());
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<std::complex<double>> v(params->slots());
  for (auto& z : v) z = {uniform(random), real ? 0 : uniform(random)};
  const int level = params->bootstrap()->input_level();
  ckks::SecretEncryptor encryptor(sk, ring);
  const auto x = encryptor.encrypt(
      evaluator->encoder().encode(v, 1, level, params->level(level).scale), real ? 0.58 : 0.82);

  std::map<std::string, double> stages;
  double best = 1e9, total_bits = 0, worst = 0, predicted = 0;
  for (int rep = 0; rep < reps; ++rep) {
    std::map<std::string, double> seconds;
    auto last = Clock::now();
    const auto begin = last;
    const auto y = bootstrapper.apply(x, -1, [&](const char* stage) {
      seconds[stage] += since(last);
      last = Clock::now();
    });
    const double total = since(begin);
    const auto got = evaluator->encoder().decode(ckks::Decryptor(sk, ring).decrypt(y));
    double sum = 0;
    worst = 0;
    for (std::size_t j = 0; j < v.size(); ++j) {
      const auto e = got[j] - v[j];
      sum += std::fabs(e.real()) + (real ? 0 : std::fabs(e.imag()));
      worst = std::max({worst, std::fabs(e.real()), std::fabs(e.imag())});
    }
    total_bits = -std::log2(sum / (real ? 1.0 : 2.0) / static_cast<double>(v.size()));
    predicted = evaluator->noise().precision_bits(y.estimate, y.scale);
    if (total_bits < 5) throw InternalError("the bootstrapped values are wrong");
    if (total < best) best = total, stages = seconds;
  }
  std::printf(
      "{\"name\": \"bootstrap\", \"preset\": \"%s\", \"device\": \"cpu\", \"device_name\": \"%s\", "
      "\"params\": {\"log_n\": %d, \"slots\": %zu, \"word\": \"%s\", \"log_qp\": %.1f, "
      "\"levels_left\": "
      "%d, \"dnum\": %zu, \"threads\": %d}, \"reps\": %d, \"min_s\": %.3f, \"precision_bits\": "
      "%.2f, "
      "\"worst_bits\": %.2f, \"predicted_bits\": %.2f, \"key_gb\": %.2f, \"peak_gb\": %.2f, "
      "\"keys_s\": %.1f, \"prepare_s\": %.1f, \"diagonals\": \"%s\", \"stages\": {",
      name.c_str(), ring->ops().name().c_str(), params->log_n(), params->slots(),
      std::string(word_name(params->word())).c_str(), params->log_qp(), params->depth(),
      params->dnum(), threads, reps, best, total_bits, -std::log2(worst), predicted,
      static_cast<double>(key_bytes) / 1e9, peak_gb(), keys_s, prepare_s,
      stream ? "encoded at each use" : "encoded beforehand");
  bool first = true;
  for (const auto& [stage, seconds] : stages) {
    std::printf("%s\"%s\": %.3f", first ? "" : ", ", stage.c_str(), seconds);
    first = false;
  }
  std::printf("}}\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = "n15_small";
  int log_n = 0, threads = 1, reps = 1;
  bool stream = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (option == "--preset") {
      name = value();
    } else if (option == "--log-n") {
      log_n = std::atoi(value());
    } else if (option == "--threads") {
      threads = std::atoi(value());
    } else if (option == "--reps") {
      reps = std::atoi(value());
    } else if (option == "--stream") {
      stream = true;
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      return 2;
    }
  }
  try {
    return run(name, log_n, threads, reps, stream);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
