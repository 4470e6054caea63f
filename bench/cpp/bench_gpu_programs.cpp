// Times the client's side and recorded programs on a GPU. Prints JSON lines in the form of `jali
// bench --json`. The ciphertexts are compared with the CPU's before anything is printed of them.
// Usage: bench_gpu_programs [COMMIT].
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/cpp/json.h"
#include "jali/backend/engines.h"
#include "jali/base/error.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/ckks/batcher.h"
#include "jali/schemes/ckks/make_ring.h"
#include "jali/schemes/ckks/program.h"
#include "jali/schemes/ckks/secret/decryptor.h"
#include "jali/schemes/ckks/secret/encryptor.h"

using namespace jali;
using bench::Json;
using Clock = std::chrono::steady_clock;

namespace {

const char* commit = "unknown";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Seconds of a call, for the whole batch.
struct Times {
  double median, least;
  int reps;
};

// Times `reps` groups of `group` calls each, and waits for the GPU at the end of each group.
Times measure(const ring::Ring& ring, int group, const std::function<void()>& body, int reps = 9) {
  body();
  ring.memory().synchronize();
  std::vector<double> times;
  for (int rep = 0; rep < reps; ++rep) {
    const auto start = Clock::now();
    for (int i = 0; i < group; ++i) body();
    ring.memory().synchronize();
    times.push_back(seconds_since(start) / group);
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[0], reps};
}

/// `more` holds what belongs to the parameters besides word and log_n.
void report(const std::string& name, const ckks::Params& p, const Json& more, std::size_t batch,
            const Times& times) {
  Json about;
  about.set("word", word_name(p.word())).set("log_n", p.log_n()).append(more);
  Json()
      .set("name", name)
      .set("device", "cuda")
      .set("device_name", backend::cuda_device_name())
      .set("params", about)
      .set("batch", batch)
      .set("reps", times.reps)
      .set("median_s", times.median)
      .set("min_s", times.least)
      .set("commit", commit)
      .print();
}

void require_same(const ckks::Ciphertext& a, const ckks::Ciphertext& b) {
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    require<InternalError>(
        a.parts[i].bytes() == b.parts[i].bytes() &&
            std::memcmp(a.parts[i].data(), b.parts[i].data(), a.parts[i].bytes()) == 0,
        "the GPU's result differs from the CPU's");
  }
}

struct Side {
  std::shared_ptr<const ring::Ring> ring;
  std::unique_ptr<rlwe::KeyGenerator> keygen;
  std::shared_ptr<const rlwe::SecretKey> sk;
  std::shared_ptr<const rlwe::EvaluationKeys> keys;
  std::shared_ptr<const ckks::Evaluator> evaluator;
  std::unique_ptr<ckks::SecretEncryptor> encryptor;
  double key_seconds = 0;

  Side(const ckks::ParamsPtr& p, const char* device) : ring(ckks::make_ring(*p, device, 2)) {
    keygen = std::make_unique<rlwe::KeyGenerator>(p, ring, random::Seed{1});
    const auto start = Clock::now();
    sk = std::make_shared<const rlwe::SecretKey>(keygen->secret_key());
    const int rotations[] = {1};
    keys = std::make_shared<const rlwe::EvaluationKeys>(keygen->evaluation_keys(*sk, rotations));
    ring->memory().synchronize();
    key_seconds = seconds_since(start);
    evaluator = std::make_shared<const ckks::Evaluator>(p, ring, keys);
    encryptor = std::make_unique<ckks::SecretEncryptor>(sk, ring, random::Seed{2});
  }
};

ckks::ParamsPtr create(Word word, int log_n, int depth, double scale_bits, int dnum) {
  ckks::Literal literal;
  literal.name = "insecure_bench";
  literal.security = 0;
  literal.word = word;
  literal.log_n = log_n;
  literal.depth = depth;
  literal.scale_bits = scale_bits;
  literal.dnum = dnum;
  return ckks::Params::create(literal);
}

void client(const ckks::ParamsPtr& p, Side& cpu, Side& gpu) {
  const int top = p->depth();
  const double scale = p->scale(top);
  std::vector<std::complex<double>> z(p->slots());
  for (std::size_t j = 0; j < z.size(); ++j) z[j] = {1.0 / (1.0 + static_cast<double>(j)), 0.5};
  const auto plain = gpu.evaluator->encoder().encode(z, 1, top, scale);
  const auto c = gpu.encryptor->encrypt(plain);
  require_same(cpu.encryptor->encrypt(cpu.evaluator->encoder().encode(z, 1, top, scale)),
               gpu.evaluator->send_back(c));
  const ckks::Decryptor open(gpu.sk, gpu.ring);
  const Json limbs = Json().set("limbs", p->level(top).primes.size());
  report("keygen_3_keys_first", *p, limbs, 1, {gpu.key_seconds, gpu.key_seconds, 1});
  const int one[] = {1};
  report("keygen_2_keys", *p, limbs, 1,
         measure(*gpu.ring, 1, [&] { gpu.keygen->evaluation_keys(*gpu.sk, one); }, 5));
  auto a = gpu.ring->make(p->all_primes());
  const random::Seed seed{};
  report("sample_uniform", *p, Json().set("limbs", p->all_primes().size()), 1,
         measure(*gpu.ring, 20, [&] { gpu.ring->sample_uniform(a, seed, 0); }));
  report("sample_ternary", *p, limbs, 1, measure(*gpu.ring, 20, [&] {
           gpu.ring->ops().sample_small(a.view(), backend::Small::ternary, seed, 0);
         }));
  report("sample_error", *p, limbs, 1, measure(*gpu.ring, 20, [&] {
           gpu.ring->ops().sample_small(a.view(), backend::Small::error, seed, 0);
         }));
  report("encode", *p, limbs, 1,
         measure(*gpu.ring, 10, [&] { gpu.evaluator->encoder().encode(z, 1, top, scale); }));
  report("encrypt", *p, limbs, 1, measure(*gpu.ring, 10, [&] { gpu.encryptor->encrypt(plain); }));
  report("decrypt", *p, limbs, 1, measure(*gpu.ring, 10, [&] { open.decrypt(c); }));
  const auto opened = open.decrypt(c);
  report("decode", *p, limbs, 1,
         measure(*gpu.ring, 10, [&] { gpu.evaluator->encoder().decode(opened); }));
}

using One = std::function<ckks::Ciphertext(const ckks::Evaluator&, const ckks::Ciphertext&)>;

void programs(const ckks::ParamsPtr& p, Side& cpu, Side& gpu, int level, const char* name,
              const One& f) {
  std::vector<std::complex<double>> z(p->slots(), {0.5, 0.25});
  const auto host =
      cpu.encryptor->encrypt(cpu.evaluator->encoder().encode(z, 1, level, p->scale(level)));
  const auto here = gpu.evaluator->bring(host);
  const ckks::Ciphertext* inputs[] = {&here};
  ckks::Program program(
      gpu.evaluator,
      [&](std::span<const ckks::Ciphertext> in) {
        std::vector<ckks::Ciphertext> out;
        out.push_back(f(*gpu.evaluator, in[0]));
        return out;
      },
      inputs);
  const auto want = f(*cpu.evaluator, host);
  require_same(want, gpu.evaluator->send_back(program.run(inputs)[0]));
  const Json limbs = Json().set("limbs", p->level(level).primes.size());
  report(std::string(name) + "_stream", *p, limbs, 1,
         measure(*gpu.ring, 20, [&] { f(*gpu.evaluator, here); }));
  report(std::string(name) + "_program", *p, limbs, 1,
         measure(*gpu.ring, 20, [&] { program.run(inputs); }));
}

void batches(const ckks::ParamsPtr& p, Side& cpu, Side& gpu, std::size_t count) {
  const int top = p->depth();
  std::vector<std::complex<double>> z(p->slots(), {0.5, 0.25});
  const auto host =
      cpu.encryptor->encrypt(cpu.evaluator->encoder().encode(z, 1, top, p->scale(top)));
  const auto here = gpu.evaluator->bring(host);
  const std::vector<const ckks::Ciphertext*> inputs(count, &here);
  ckks::Batcher batcher(gpu.evaluator, [&](const ckks::Ciphertext& x) {
    return gpu.evaluator->multiply_relinearise_rescale(x, x);
  });
  const auto got = batcher.run(inputs);
  require_same(cpu.evaluator->multiply_relinearise_rescale(host, host),
               gpu.evaluator->send_back(got[count / 2]));
  const Json limbs = Json().set("limbs", p->level(top).primes.size());
  for (const auto& point : batcher.curve()) {
    const double seconds = point.seconds * static_cast<double>(point.batch);
    report("hmult_batched", *p, Json(limbs).set("bytes", point.bytes), point.batch,
           {seconds, seconds, point.runs});
  }
  gpu.ring->memory().synchronize();
  const auto start = Clock::now();
  batcher.run(inputs);
  gpu.ring->memory().synchronize();
  const double seconds =
      seconds_since(start) * static_cast<double>(batcher.batch()) / static_cast<double>(count);
  report("hmult_batcher", *p, limbs, batcher.batch(), {seconds, seconds, 1});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) commit = argv[1];
  try {
    {
      const auto p = create(Word::w32, 16, 20, 40, 3);  // digits of a dozen limbs
      Side cpu(p, "cpu"), gpu(p, "cuda");
      client(p, cpu, gpu);
      for (const int level : {20, 10, 4}) {
        programs(p, cpu, gpu, level, "hrot",
                 [](const auto& e, const auto& x) { return e.rotate(x, 1); });
        programs(p, cpu, gpu, level, "hmult",
                 [](const auto& e, const auto& x) { return e.multiply_relinearise_rescale(x, x); });
      }
    }
    for (const auto& [log_n, depth, count] :
         {std::tuple{12, 1, 4096}, {13, 4, 2048}, {14, 9, 512}}) {
      const auto p = create(Word::w32, log_n, depth, 28, 0);
      Side cpu(p, "cpu"), gpu(p, "cuda");
      programs(p, cpu, gpu, depth, "hmult",
               [](const auto& e, const auto& x) { return e.multiply_relinearise_rescale(x, x); });
      batches(p, cpu, gpu, static_cast<std::size_t>(count));
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "bench_gpu_programs: %s\n", error.what());
    return 1;
  }
  return 0;
}
