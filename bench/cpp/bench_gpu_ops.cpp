// Times of the GPU engine's operations: JSON lines of the shape of `jali bench --json`, medians over
// repetitions of 20 operations each. Usage: bench_gpu_ops [COMMIT [transforms|few_rows|key_switch|integers|sampling ...]].
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include "jali/arith/primes.h"
#include "jali/backend/ops.h"
#include "jali/base/error.h"
#include "jali/device/buffer.h"

using namespace jali;

namespace {

std::vector<std::uint64_t> make_primes(Word word, int log_n, std::size_t count, int bits = 0) {
  std::vector<std::uint64_t> primes;
  const std::uint64_t step = std::uint64_t{2} << log_n;
  for (std::uint64_t q =
           (std::uint64_t{1} << (bits != 0 ? bits : word_prime_bits(word))) - step + 1;
       primes.size() < count; q -= step) {
    if (arith::is_prime(q)) primes.push_back(q);
  }
  return primes;
}

template <class F>
double median_us(backend::Engine& engine, void* probe, F&& body) {
  char byte = 0;
  for (int i = 0; i < 3; ++i) body();
  engine.memory()->copy_out(&byte, probe, 1);
  std::vector<double> times;
  for (int rep = 0; rep < 9; ++rep) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) body();
    engine.memory()->copy_out(&byte, probe, 1);
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2] / 20 * 1e6;
}

// One line. bytes: what must cross device memory once, the floor at 2.84 TB/s.
void report(const char* name, const std::string& params, std::size_t batch, double median_us,
            double bytes, const char* commit) {
  const double floor = bytes / 2.84e12;
  std::printf(
      "{\"name\": \"%s\", \"device\": \"cuda\", \"device_name\": \"%s\", \"params\": {%s}, "
      "\"batch\": %zu, \"reps\": 9, \"median_s\": %.8f, \"floor_s\": %.8f, \"floor_kind\": \"every "
      "byte once at 2.84 TB/s\", \"fraction_of_floor\": %.3f, \"commit\": \"%s\"}\n",
      name, backend::cuda_device_name().c_str(), params.c_str(), batch, median_us * 1e-6, floor,
      floor / (median_us * 1e-6), commit);
}

// Transforms of blocks larger than the L2, both directions; every variant at some sizes.
void measure_transforms(const char* commit) {
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    for (const auto& [log_n, limbs, batch] : {std::tuple{12, 8, 1024},
                                              {13, 8, 512},
                                              {14, 16, 128},
                                              {15, 24, 32},
                                              {16, 48, 16},
                                              {17, 24, 16}}) {
      for (const auto& family : backend::cuda_variants()) {
        if (family.family != "ntt") continue;
        for (const auto& variant : family.names) {
          if (variant != family.names.front() && log_n % 2 != 0) continue;
          backend::Config config{word, std::size_t{1} << log_n, make_primes(word, log_n, limbs), 1,
                                 ""};
          config.variants["ntt"] = variant;
          auto engine = backend::make_cuda_engine(config);
          auto pool = device::Pool::create(false, engine->memory());
          std::vector<PrimeIndex> primes(limbs);
          for (int i = 0; i < limbs; ++i) primes[i] = static_cast<PrimeIndex>(i);
          auto x = pool->allocate((std::size_t{1} << log_n) * limbs * batch * word_bytes(word));
          const backend::View view{x.data(), primes, static_cast<std::size_t>(batch)};
          // Residues of one row a limb, over and over.
          const std::uint8_t seed[32] = {1};
          engine->ring().sample_uniform({x.data(), primes, 1}, seed, 0);
          for (std::size_t done = x.bytes() / batch; done < x.bytes(); done *= 2) {
            engine->memory()->copy(static_cast<std::byte*>(x.data()) + done, x.data(),
                                   std::min(done, x.bytes() - done));
          }
          const std::string params = "\"word\": \"" + std::string(word_name(word)) +
                                     "\", \"log_n\": " + std::to_string(log_n) +
                                     ", \"limbs\": " + std::to_string(limbs) + ", \"variant\": \"" +
                                     variant + "\"";
          for (const bool inverse : {false, true}) {
            const double us = median_us(*engine, x.data(), [&] {
              inverse ? engine->ring().intt(view) : engine->ring().ntt(view);
            });
            report(inverse ? "intt" : "ntt", params, static_cast<std::size_t>(batch), us,
                   2.0 * static_cast<double>(x.bytes()), commit);
          }
        }
      }
    }
  }
}

void measure_key_switch(const char* commit) {
  // One key switch at N = 2^16, alpha = 12, W32.
  for (const int q : {41, 22, 11}) {
    const int alpha = 12, total = q + alpha;
    auto engine =
        backend::make_cuda_engine({Word::w32, 65536, make_primes(Word::w32, 16, total), 1, ""});
    auto pool = device::Pool::create(false, engine->memory());
    std::vector<PrimeIndex> all(total);
    for (int i = 0; i < total; ++i) all[i] = static_cast<PrimeIndex>(i);
    const std::span<const PrimeIndex> level(all.data(), q);
    std::vector<std::uint32_t> digits, ids;
    for (int left = q; left > 0; left -= alpha) {
      ids.push_back(static_cast<std::uint32_t>(digits.size()));
      digits.push_back(static_cast<std::uint32_t>(std::min(left, alpha)));
    }
    const std::size_t row = 65536 * 4;
    auto x = pool->allocate(q * row), key = pool->allocate(digits.size() * 2 * total * row);
    auto acc0 = pool->allocate(total * row), acc1 = pool->allocate(total * row);
    auto out = pool->allocate(q * row);
    const std::uint8_t seed[32] = {1};
    engine->ring().sample_uniform({x.data(), level, 1}, seed, 0);
    for (std::size_t part = 0; part < 2 * digits.size(); ++part) {
      auto* at = static_cast<std::byte*>(key.data()) + part * total * row;
      engine->ring().sample_uniform({at, all, 1}, seed, static_cast<std::uint32_t>(part + 1));
    }
    const auto part = [&](auto&& f) { return median_us(*engine, out.data(), f); };
    const double ks = part([&] {
      engine->rlwe().key_switch({acc0.data(), all, 1}, {acc1.data(), all, 1}, {x.data(), level, 1},
                                digits, {key.data(), digits.size(), all}, ids);
    });
    const double down = part(
        [&] { engine->rlwe().scale_down({out.data(), level, 1}, {acc0.data(), all, 1}, nullptr); });
    const auto bytes = static_cast<double>(key.bytes() + 3 * q * row);
    report("hrotate_engine",
           "\"word\": \"w32\", \"log_n\": 16, \"limbs\": " + std::to_string(q) + ", \"alpha\": 12",
           1, ks + 2 * down, bytes, commit);
  }
}

std::vector<PrimeIndex> first_primes(std::size_t count) {
  std::vector<PrimeIndex> primes(count);
  for (std::size_t i = 0; i < count; ++i) primes[i] = static_cast<PrimeIndex>(i);
  return primes;
}
std::string shape_of(Word word, int log_n, std::size_t limbs) {
  return "\"word\": \"" + std::string(word_name(word)) + "\", \"log_n\": " + std::to_string(log_n) +
         ", \"limbs\": " + std::to_string(limbs);
}

// Few rows, as single ciphertexts have.
void measure_few_rows(const char* commit) {
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    for (const int log_n : {12, 13, 14, 15, 16, 17}) {
      auto engine = backend::make_cuda_engine(
          {word, std::size_t{1} << log_n, make_primes(word, log_n, 48), 1, ""});
      auto pool = device::Pool::create(false, engine->memory());
      for (const std::size_t limbs : {1, 4, 12, 24, 48}) {
        const auto primes = first_primes(limbs);
        auto x = pool->allocate((std::size_t{1} << log_n) * limbs * word_bytes(word));
        const std::uint8_t seed[32] = {1};
        const backend::View view{x.data(), primes, 1};
        engine->ring().sample_uniform(view, seed, 0);
        for (const bool inverse : {false, true}) {
          const double us = median_us(*engine, x.data(), [&] {
            inverse ? engine->ring().intt(view) : engine->ring().ntt(view);
          });
          report(inverse ? "intt" : "ntt", shape_of(word, log_n, limbs), 1, us,
                 2.0 * static_cast<double>(x.bytes()), commit);
        }
      }
    }
  }
}

// CRT and its inverse at GIF-FHE's Table IV, integers in the GPU's memory and in the host's.
void measure_integers(const char* commit) {
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    for (const auto& [log_n, limbs, bits] :
         {std::tuple{14, 16, 28}, {15, 32, 28}, {15, 32, word_prime_bits(word)}}) {
      const std::size_t n = std::size_t{1} << log_n;
      auto engine =
          backend::make_cuda_engine({word, n, make_primes(word, log_n, limbs, bits), 1, ""});
      auto pool = device::Pool::create(false, engine->memory());
      const auto primes = first_primes(limbs);
      const std::size_t words = (limbs * static_cast<std::size_t>(bits) + 63) / 64;
      auto x = pool->allocate(n * limbs * word_bytes(word)), there = pool->allocate(words * n * 8);
      std::vector<std::uint64_t> here(words * n);
      const std::span<std::uint64_t> on_device(static_cast<std::uint64_t*>(there.data()),
                                               words * n);
      const std::uint8_t seed[32] = {1};
      const backend::View view{x.data(), primes, 1};
      engine->ring().sample_uniform(view, seed, 0);
      const std::string shape =
          shape_of(word, log_n, limbs) + ", \"prime_bits\": " + std::to_string(bits);
      const auto bytes = static_cast<double>(x.bytes() + there.bytes());
      using backend::CrtMethod, backend::IcrtMethod;
      const auto one = [&](const char* name, auto&& body) {
        report(name, shape, 1, median_us(*engine, x.data(), body), bytes, commit);
      };
      // Without the launches of a stream, which take as long where N is small.
      const auto graph = [&](const char* name, auto&& body) {
        constexpr int kTimes = 10;
        const auto program = engine->capture([&] {
          for (int i = 0; i < kTimes; ++i) body();
        });
        report(name, shape + ", \"graph\": true", 1,
               median_us(*engine, x.data(), [&] { program->run(); }) / kTimes, bytes, commit);
      };
      const auto both = [&](const char* name, auto&& body) { one(name, body), graph(name, body); };
      both("icrt_product_sum",
           [&] { engine->ring().icrt(on_device, words, view, IcrtMethod::product_sum); });
      both("icrt_garner", [&] { engine->ring().icrt(on_device, words, view, IcrtMethod::garner); });
      one("icrt_to_host", [&] { engine->ring().icrt(here, words, view, IcrtMethod::product_sum); });
      both("crt_mul", [&] { engine->ring().crt(view, on_device, words, CrtMethod::mul); });
      both("crt_mod", [&] { engine->ring().crt(view, on_device, words, CrtMethod::mod); });
      one("crt_from_host", [&] { engine->ring().crt(view, here, words, CrtMethod::mul); });
    }
  }
}

void measure_sampling(const char* commit) {
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    const int log_n = 16, limbs = word == Word::w32 ? 44 : 24;
    const std::size_t n = std::size_t{1} << log_n;
    auto engine = backend::make_cuda_engine({word, n, make_primes(word, log_n, limbs), 1, ""});
    auto pool = device::Pool::create(false, engine->memory());
    const auto primes = first_primes(limbs);
    auto x = pool->allocate(n * limbs * word_bytes(word));
    const std::uint8_t seed[32] = {1};
    const backend::View view{x.data(), primes, 1};
    const auto one = [&](const char* name, auto&& body) {
      report(name, shape_of(word, log_n, limbs), 1, median_us(*engine, x.data(), body),
             static_cast<double>(x.bytes()), commit);
    };
    one("sample_uniform", [&] { engine->ring().sample_uniform(view, seed, 0); });
    one("sample_ternary",
        [&] { engine->ring().sample_small(view, backend::Small::ternary, seed, 0); });
    one("sample_error", [&] { engine->ring().sample_small(view, backend::Small::error, seed, 0); });
    const backend::Embedding embedding(n / 2);
    std::vector<backend::Complex> slots(n / 2, {0.5, -0.25});
    one("embed", [&] { engine->embedding().embed(view, embedding, slots, log_n - 1, 0x1p40); });
    one("unembed", [&] { engine->embedding().unembed(slots, embedding, view, log_n - 1, 0x1p40); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const char* commit = argc > 1 ? argv[1] : "unknown";
    const auto wanted = [&](const std::string& part) {
      return argc <= 2 || std::find(argv + 2, argv + argc, part) != argv + argc;
    };
    if (wanted("transforms")) measure_transforms(commit);
    if (wanted("few_rows")) measure_few_rows(commit);
    if (wanted("key_switch")) measure_key_switch(commit);
    if (wanted("integers")) measure_integers(commit);
    if (wanted("sampling")) measure_sampling(commit);
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
