// Bootstrapping stage by stage on either device; one JSON object a line, in the shape of `jali bench --json`.
//   bench_bootstrap [--preset NAME] [--device cpu|cuda] [--word w32|w52|w64] [--batch B] [--reps R]
//                   [--precision BITS] [--order raise_first|slots_first] [--cts LEVELS] [--stc LEVELS]
//                   [--dnum D] [--log-n N] [--minimum] [--target LEVEL]
//                   [--threads T] [--stream] [--bytes] [--operations] [--profile] [--commit C]
// --precision, --order, --cts, --stc, --dnum: other than the preset's. --log-n: the preset's precision, levels and
// digits on another ring, without its security. --minimum: the fewest keys. --target: restores levels up to this one. --stream: diagonals are encoded
// whenever they are used, for little memory. --profile: the kernels of a bootstrapping on a GPU by their times. Prints nothing that was not
// decrypted first. --bytes: what each stage's operations read and write. On a GPU the time is that of the recorded program (--operations: of its operations one by one), and each stage's that of its operations
// waited for at the stage's end; a stage's floor is the bytes that its operations read and write, each operand
// and result once, over the rate of a copy. Exit status 3 where the memory is too small.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "jali/api/jali.h"
#include "jali/backend/trace/trace.h"

namespace {

using namespace jali;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string preset = "n15_small", device = "cpu", word, order, commit = "unknown";
  int log_n = 0, threads = 1, reps = 1, cts = 0, stc = 0, dnum = 0, target = -1;
  double precision = 0;
  std::size_t batch = 1;
  bool minimum = false, stream = false, profile = false, bytes = false, operations = false;
};

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double peak_gb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e9;
}

params::CkksParamsPtr make_params(const Options& o) {
  for (const auto& p : params::bootstrap_presets()) {
    if (p.name != o.preset) continue;
    params::BootstrapRequest request;
    request.precision_bits = o.precision > 0 ? o.precision : p.precision_bits;
    request.levels_after = p.levels_after;
    request.order = o.order.empty()            ? p.order
                    : o.order == "slots_first" ? params::BootstrapOrder::slots_first
                                               : params::BootstrapOrder::raise_first;
    request.scale_bits = p.scale_bits;
    request.name = o.preset;
    request.cts_levels = o.cts;
    request.stc_levels = o.stc;
    if (!o.word.empty()) {
      request.word = o.word == "w32" ? Word::w32 : o.word == "w52" ? Word::w52 : Word::w64;
    }
    params::CkksLiteral literal = params::bootstrap_literal(request, p.log_n);
    literal.dnum = o.dnum;
    if (o.log_n == 0) return params::CkksParams::create(literal);
    // As many digits as the preset has, which without a bound on log PQ would be one.
    const int digits = static_cast<int>(params::CkksParams::create(literal)->dnum());
    request.security = 0;
    request.name = "insecure_" + o.preset;
    literal = params::bootstrap_literal(request, o.log_n);
    literal.dnum = digits;
    return params::CkksParams::create(literal);
  }
  throw InvalidArgument("no bootstrapping preset " + o.preset);
}

struct Stage {
  double seconds = 0;
  double bytes = 0;
};

/// The bytes that each stage's operations read and write: a second evaluator records them.
void count_bytes(const bootstrap::BootstrapPlan& plan,
                 const std::shared_ptr<const ring::Ring>& ring,
                 const std::shared_ptr<const rlwe::EvaluationKeys>& keys, const ckks::Ciphertext& x,
                 std::map<std::string, Stage>& stages) {
  const auto trace = std::make_shared<backend::Trace>();
  const auto traced = std::make_shared<const ring::Ring>(
      backend::make_trace_engine({ring, &ring->engine()}, trace));
  bootstrap::Bootstrapper bootstrapper(
      std::make_shared<const ckks::Evaluator>(plan.params(), traced, keys),
      bootstrap::BootstrapPlan(plan.params(), plan.options()));
  bootstrapper.prepare();
  trace->clear();
  bootstrapper.apply(x, -1, [&](const char* name) {
    for (const auto& r : trace->records()) {
      stages[name].bytes += static_cast<double>(r.bytes_read + r.bytes_written);
    }
    trace->clear();
  });
}

struct Errors {
  double mean = 0, worst = 0;
};

int run(const Options& o) {
  auto start = Clock::now();
  const auto lap = [&start] {
    const double s = since(start);
    start = Clock::now();
    return s;
  };
  const auto params = make_params(o);
  const double params_s = lap();
  const auto ring = ckks::make_ring(*params, o.device, o.threads);
  const double ring_s = lap();
  const bool cuda = o.device != "cpu";
  const bool slots_first = params->bootstrap()->order == params::BootstrapOrder::slots_first;
  const bool real = slots_first && o.preset == "n16_real";
  const auto wait = [&] { ring->memory().synchronize(); };

  bootstrap::BootstrapPlan plan(params, {-1, real, o.minimum, o.target});
  const double plan_s = lap();
  const int depth = plan.depth();
  const auto part = params->with_depth(depth);
  const params::CkksParams& restored = part ? *part : *params;
  rlwe::KeyGenerator generator(params, ring);
  const auto sk = std::make_shared<const rlwe::SecretKey>(generator.secret_key());
  const std::size_t key_bytes = bootstrap::key_bytes(*params, {&plan, 1});
  std::shared_ptr<const ckks::Evaluator> evaluator;
  auto keys = std::make_shared<const rlwe::EvaluationKeys>(
      bootstrap::evaluation_keys(generator, *sk, {&plan, 1}));
  wait();
  const double keys_s = lap();
  // What the engine's memory holds: expanded keys, diagonals, and the most at once from then on.
  const auto held = [&] { return static_cast<double>(ring->engine().pool()->bytes_in_use()); };
  const double before_keys = held();
  evaluator = std::make_shared<const ckks::Evaluator>(params, ring, keys);
  wait();
  const double expand_s = lap(), key_device_bytes = held() - before_keys;
  bootstrap::Bootstrapper bootstrapper(evaluator, std::move(plan));
  if (!o.stream) bootstrapper.prepare();
  wait();
  const double prepare_s = lap(), diagonal_device_bytes = held() - before_keys - key_device_bytes;

  std::mt19937_64 random(std::random_device{}());
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<std::complex<double>> v(params->slots() * o.batch);
  for (auto& z : v) z = {uniform(random), real ? 0 : uniform(random)};
  const int level = params->bootstrap()->input_level();
  ckks::SecretEncryptor encryptor(sk, ring);
  const ckks::Decryptor decryptor(sk, ring);
  const auto x =
      encryptor.encrypt(evaluator->encoder().encode(v, o.batch, level, params->level(level).scale),
                        real ? 0.58 : 0.82);
  wait();

  const auto check = [&](const ckks::Ciphertext& y) {
    const auto got = evaluator->encoder().decode(decryptor.decrypt(y));
    Errors e;
    for (std::size_t j = 0; j < v.size(); ++j) {
      const auto d = got[j] - v[j];
      e.mean += std::fabs(d.real()) + (real ? 0 : std::fabs(d.imag()));
      e.worst = std::max({e.worst, std::fabs(d.real()), real ? 0 : std::fabs(d.imag())});
    }
    e.mean /= (real ? 1.0 : 2.0) * static_cast<double>(v.size());
    if (!(e.mean < 0.03)) throw InternalError("the bootstrapped values are wrong");
    return e;
  };

  // Stages: operations one by one.
  const auto first_start = Clock::now();
  std::map<std::string, Stage> stages;
  std::vector<double> times;
  Errors errors;
  double predicted = 0, first_s = 0;
  for (int rep = 0; rep < (cuda && !o.operations ? 3 : o.reps); ++rep) {
    std::map<std::string, Stage> now;
    auto last = Clock::now();
    const auto begin = last;
    const auto y = bootstrapper.apply(x, -1, [&](const char* name) {
      wait();
      Stage& stage = now[name];
      stage.seconds += since(last);
      last = Clock::now();
    });
    wait();
    const double total = since(begin);
    if (rep == 0) first_s = since(first_start);
    errors = check(y);
    predicted = evaluator->noise().precision_bits(y.estimate, y.scale);
    if (times.empty() || total < *std::ranges::min_element(times)) stages = now;
    times.push_back(total);
  }
  if (o.bytes) count_bytes(bootstrapper.plan(), ring, keys, x, stages);
  keys.reset();
  const double peak_device_bytes = static_cast<double>(ring->engine().pool()->peak_bytes());
  const double stream_s = *std::ranges::min_element(times);
  double bandwidth = 0;
  std::size_t program_bytes = 0;
  if (cuda) bandwidth = backend::cuda_peak(params->word()).bytes;
  if (cuda && !o.operations) {
    ckks::Ciphertext out;
    const auto program = ring->engine().capture([&] { out = bootstrapper.apply(x); });
    times.clear();
    for (int rep = 0; rep < std::max(o.reps, 5); ++rep) {
      const auto begin = Clock::now();
      program->run();
      wait();
      times.push_back(since(begin));
    }
    errors = check(out);
    program_bytes = program->bytes();
    if (o.profile) {
      std::map<std::string, std::pair<int, double>> kernels;
      double sum = 0;
      int count = 0;
      for (const auto& step : program->steps()) {
        ++kernels[step.name].first;
        kernels[step.name].second += step.seconds;
        sum += step.seconds;
        ++count;
      }
      std::vector<std::pair<std::string, std::pair<int, double>>> sorted(kernels.begin(),
                                                                         kernels.end());
      std::ranges::sort(sorted, [](auto& a, auto& b) { return a.second.second > b.second.second; });
      std::fprintf(stderr, "%s %s: %d steps, %.2f ms alone\n", o.preset.c_str(),
                   std::string(word_name(params->word())).c_str(), count, sum * 1e3);
      for (const auto& [name, total] : sorted) {
        std::fprintf(stderr, "%8.3f ms %5.1f%% %6d x %8.2f us  %s\n", total.second * 1e3,
                     100 * total.second / sum, total.first, total.second / total.first * 1e6,
                     name.substr(0, 110).c_str());
      }
    }
  }
  std::ranges::sort(times);
  double bytes = 0;
  for (const auto& [name, stage] : stages) bytes += stage.bytes;
  const auto each = static_cast<double>(o.batch);
  std::printf(
      "{\"name\": \"bootstrap\", \"preset\": \"%s\", \"device\": \"%s\", \"device_name\": \"%s\", "
      "\"params\": {\"log_n\": %d, \"slots\": %zu, \"word\": \"%s\", \"log_q\": %.1f, \"log_qp\": "
      "%.1f, "
      "\"levels_left\": %d, \"target_level\": %d, \"dnum\": %zu, \"limbs\": %zu, \"special\": %zu, "
      "\"order\": \"%s\", "
      "\"real\": %s, \"cts_levels\": %d, \"stc_levels\": %d, \"threads\": %d}, \"batch\": %zu, "
      "\"reps\": %zu, \"median_s\": %.6f, "
      "\"min_s\": %.6f, \"p95_s\": %.6f, \"each_s\": %.6f, \"stream_s\": %.6f, ",
      o.preset.c_str(), o.device.c_str(),
      cuda ? backend::cuda_device_name().c_str() : ring->engine().name().c_str(), params->log_n(),
      params->slots(), std::string(word_name(params->word())).c_str(), params->log_q(),
      params->log_qp(), depth - params->bootstrap()->input_level(), depth, params->dnum(),
      restored.level(restored.top()).primes.size(), params->p_count(),
      slots_first ? "slots_first" : "raise_first", real ? "true" : "false",
      params->bootstrap()->cts_levels, params->bootstrap()->stc_levels, o.threads, o.batch,
      times.size(), times[times.size() / 2], times[0], times[times.size() * 95 / 100],
      times[times.size() / 2] / each, stream_s);
  if (bytes > 0 && cuda) {
    std::printf(
        "\"floor_s\": %.6f, \"floor_kind\": \"bytes of the operations\", \"fraction_of_floor\": "
        "%.3f, ",
        bytes / bandwidth, bytes / bandwidth / times[0]);
  }
  std::printf(
      "\"precision_bits\": %.2f, \"mean_error\": %.3e, \"max_error\": %.3e, \"predicted_bits\": "
      "%.2f, \"key_gb\": %.2f, \"plaintext_gb\": %.2f, \"program_gb\": %.2f, \"peak_gb\": %.2f, "
      "\"device_gb\": {\"keys\": %.3f, \"diagonals\": %.3f, \"most\": %.2f}, \"keys\": \"%s\", "
      "\"setup_s\": {\"parameters\": %.2f, \"engine\": %.2f, \"matrices\": %.2f, \"keys\": %.2f, "
      "\"expanding_keys\": %.2f, \"diagonals\": %.2f, \"first_bootstrap\": %.3f}, "
      "\"diagonals\": \"%s\", \"program\": %s, \"commit\": \"%s\", \"stages\": {",
      -std::log2(errors.mean), errors.mean, errors.worst, predicted,
      static_cast<double>(key_bytes) / 1e9,
      static_cast<double>(bootstrapper.plan().plaintext_bytes()) / 1e9,
      static_cast<double>(program_bytes) / 1e9, peak_gb(), key_device_bytes / 1e9,
      diagonal_device_bytes / 1e9, peak_device_bytes / 1e9, o.minimum ? "minimum" : "all", params_s,
      ring_s, plan_s, keys_s, expand_s, prepare_s, first_s,
      o.stream ? "encoded at each use" : "encoded beforehand",
      cuda && !o.operations ? "true" : "false", o.commit.c_str());
  bool first = true;
  for (const auto& [name, stage] : stages) {
    std::printf("%s\"%s\": {\"s\": %.6f", first ? "" : ", ", name.c_str(), stage.seconds);
    if (stage.bytes > 0) std::printf(", \"gb\": %.3f", stage.bytes / 1e9);
    if (stage.bytes > 0 && cuda) {
      const double floor = stage.bytes / bandwidth;
      std::printf(", \"floor_s\": %.6f, \"fraction\": %.3f", floor, floor / stage.seconds);
    }
    std::printf("}");
    first = false;
  }
  std::printf("}}\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (option == "--preset") {
      o.preset = value();
    } else if (option == "--device") {
      o.device = value();
    } else if (option == "--word") {
      o.word = value();
    } else if (option == "--batch") {
      o.batch = static_cast<std::size_t>(std::atoi(value()));
    } else if (option == "--precision") {
      o.precision = std::atof(value());
    } else if (option == "--order") {
      o.order = value();
    } else if (option == "--cts") {
      o.cts = std::atoi(value());
    } else if (option == "--stc") {
      o.stc = std::atoi(value());
    } else if (option == "--dnum") {
      o.dnum = std::atoi(value());
    } else if (option == "--log-n") {
      o.log_n = std::atoi(value());
    } else if (option == "--target") {
      o.target = std::atoi(value());
    } else if (option == "--threads") {
      o.threads = std::atoi(value());
    } else if (option == "--reps") {
      o.reps = std::atoi(value());
    } else if (option == "--commit") {
      o.commit = value();
    } else if (option == "--minimum") {
      o.minimum = true;
    } else if (option == "--stream") {
      o.stream = true;
    } else if (option == "--operations") {
      o.operations = true;
    } else if (option == "--bytes") {
      o.bytes = true;
    } else if (option == "--profile") {
      o.profile = true;
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      return 2;
    }
  }
  try {
    return run(o);
  } catch (const OutOfMemory& error) {
    std::fprintf(stderr, "%s: %s\n", o.preset.c_str(), error.what());
    return 3;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
