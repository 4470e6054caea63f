// Times bootstrapping and each of its stages, on a CPU or a GPU. Prints one JSON object in the form
// of `jali bench --json`, and nothing before the result was decrypted and compared.
//   bench_bootstrap [--preset NAME] [--device cpu|cuda] [--word w32|w52|w64] [--batch B] [--reps R]
//                   [--precision BITS] [--order raise_first|slots_first] [--cts LEVELS] [--stc
//                   LEVELS]
//                   [--dnum D] [--log-n N] [--minimum] [--target LEVEL]
//                   [--threads T] [--stream] [--bytes] [--operations] [--profile] [--commit C]
//
//   --precision, --order, --cts, --stc, --dnum   replace what the preset says
//   --log-n        takes the preset's precision, levels and digits on another ring, which is then
//   not secure
//   --minimum      uses the fewest keys
//   --target       restores levels up to this one
//   --stream       encodes diagonals at each use, which needs little memory
//   --bytes        adds the bytes that each stage's operations read and write
//   --operations   times the operations one by one on a GPU too, not the recorded program
//   --profile      prints the kernels of a bootstrapping on a GPU, sorted by their time, to stderr
//
// On a GPU the time of a bootstrapping is that of the recorded program. The time of a stage is that
// of its operations one by one, with a wait at the end of the stage. The floor of a stage is the
// number of bytes that its operations read and write, each operand and result once, divided by the
// rate of a copy. The exit status is 3 if the memory is too small.
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

#include "bench/cpp/json.h"
#include "jali/api/jali.h"
#include "jali/backend/trace/trace.h"

namespace {

using namespace jali;
using bench::Json;
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

ckks::ParamsPtr make_params(const Options& o) {
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
    ckks::Literal literal = params::bootstrap_literal(request, p.log_n);
    literal.dnum = o.dnum;
    if (o.log_n == 0) return ckks::Params::create(literal);
    // The number of digits is the preset's. Without a bound on log PQ a single digit would be
    // chosen.
    const int digits = static_cast<int>(ckks::Params::create(literal)->dnum());
    request.security = 0;
    request.name = "insecure_" + o.preset;
    literal = params::bootstrap_literal(request, o.log_n);
    literal.dnum = digits;
    return ckks::Params::create(literal);
  }
  throw InvalidArgument("no bootstrapping preset " + o.preset);
}

struct Stage {
  double seconds = 0;
  double bytes = 0;
};

/// Adds the bytes that each stage's operations read and write. A second evaluator on a tracing
/// engine records them.
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
  const bool cuda = ring->engine().name().starts_with("cuda");
  const bool slots_first = params->bootstrap()->order == params::BootstrapOrder::slots_first;
  const bool real = slots_first && o.preset == "n16_real";
  const auto wait = [&] { ring->memory().synchronize(); };

  bootstrap::BootstrapPlan plan(params, {-1, real, o.minimum, o.target});
  const double plan_s = lap();
  const int depth = plan.depth();
  const auto part = params->with_depth(depth);
  const ckks::Params& restored = part ? *part : *params;
  rlwe::KeyGenerator generator(params, ring);
  const auto sk = std::make_shared<const rlwe::SecretKey>(generator.secret_key());
  const std::size_t key_bytes = bootstrap::key_bytes(*params, {&plan, 1});
  std::shared_ptr<const ckks::Evaluator> evaluator;
  auto keys = std::make_shared<const rlwe::EvaluationKeys>(
      bootstrap::evaluation_keys(generator, *sk, {&plan, 1}));
  wait();
  const double keys_s = lap();
  // Bytes in use in the engine's memory. The differences are what the expanded keys and the
  // diagonals take.
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
  const auto x = encryptor.encrypt(
      evaluator->encoder().encode(v, o.batch, level, params->scale(level)), real ? 0.58 : 0.82);
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

  // The stages are timed with operations called one by one.
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
  const auto& boot = *params->bootstrap();
  Json about;
  about.set("log_n", params->log_n())
      .set("slots", params->slots())
      .set("word", word_name(params->word()))
      .set("log_q", params->log_q())
      .set("log_qp", params->log_qp())
      .set("levels_left", depth - boot.input_level())
      .set("target_level", depth)
      .set("dnum", params->dnum())
      .set("limbs", restored.level(restored.top()).primes.size())
      .set("special", params->p_count())
      .set("order", slots_first ? "slots_first" : "raise_first")
      .set("real", real)
      .set("cts_levels", boot.cts_levels)
      .set("stc_levels", boot.stc_levels)
      .set("threads", o.threads);
  Json row;
  row.set("name", "bootstrap")
      .set("preset", o.preset)
      .set("device", o.device)
      .set("device_name", cuda ? device::device_name(ring->engine().name()) : ring->engine().name())
      .set("params", about)
      .set("batch", o.batch)
      .set("reps", times.size())
      .set("median_s", times[times.size() / 2])
      .set("min_s", times[0])
      .set("p95_s", times[times.size() * 95 / 100])
      .set("each_s", times[times.size() / 2] / each)
      .set("stream_s", stream_s);
  if (bytes > 0 && cuda) {
    row.set("floor_s", bytes / bandwidth)
        .set("floor_kind", "bytes of the operations")
        .set("fraction_of_floor", bytes / bandwidth / times[0]);
  }
  row.set("precision_bits", -std::log2(errors.mean))
      .set("mean_error", errors.mean)
      .set("max_error", errors.worst)
      .set("predicted_bits", predicted)
      .set("key_gb", static_cast<double>(key_bytes) / 1e9)
      .set("plaintext_gb", static_cast<double>(bootstrapper.plan().plaintext_bytes()) / 1e9)
      .set("program_gb", static_cast<double>(program_bytes) / 1e9)
      .set("peak_gb", peak_gb())
      .set("device_gb", Json()
                            .set("keys", key_device_bytes / 1e9)
                            .set("diagonals", diagonal_device_bytes / 1e9)
                            .set("most", peak_device_bytes / 1e9))
      .set("keys", o.minimum ? "minimum" : "all")
      .set("setup_s", Json()
                          .set("parameters", params_s)
                          .set("engine", ring_s)
                          .set("matrices", plan_s)
                          .set("keys", keys_s)
                          .set("expanding_keys", expand_s)
                          .set("diagonals", prepare_s)
                          .set("first_bootstrap", first_s))
      .set("diagonals", o.stream ? "encoded at each use" : "encoded beforehand")
      .set("program", cuda && !o.operations)
      .set("commit", o.commit);
  Json of_stages;
  for (const auto& [name, stage] : stages) {
    Json one;
    one.set("s", stage.seconds);
    if (stage.bytes > 0) one.set("gb", stage.bytes / 1e9);
    if (stage.bytes > 0 && cuda) {
      const double floor = stage.bytes / bandwidth;
      one.set("floor_s", floor).set("fraction", floor / stage.seconds);
    }
    of_stages.set(name, one);
  }
  row.set("stages", of_stages).print();
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
