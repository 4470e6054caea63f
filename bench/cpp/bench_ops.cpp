// Times the operations of the cpu engine; one JSON object a line, in the shape of `jali bench --json`.
//   bench_ops [--n LOG_N] [--word w32|w52|w64] [--isa ISA] [--threads T] [--only NAME]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "jali/arith/primes.h"
#include "jali/backend/ops.h"
#include "jali/device/buffer.h"

namespace {

using namespace jali;
using backend::ConstView;
using backend::View;
using Clock = std::chrono::steady_clock;

struct Options {
  int log_n = 14;
  std::string word = "w52", isa, only;
  int threads = 1;
};

/// A block of random residues.
class Block {
 public:
  Block(const backend::Config& config, std::vector<PrimeIndex> list, std::size_t blocks = 1)
      : primes_(std::move(list)) {
    const std::size_t words = blocks * primes_.size() * config.n;
    buffer_ = device::Pool::create()->allocate(words * word_bytes(config.word));
    std::mt19937_64 rng(1);
    for (std::size_t i = 0; i < words; ++i) {
      const std::uint64_t x = rng() % config.primes[primes_[i / config.n % primes_.size()]];
      if (config.word == Word::w32) {
        static_cast<std::uint32_t*>(buffer_.data())[i] = static_cast<std::uint32_t>(x);
      } else {
        static_cast<std::uint64_t*>(buffer_.data())[i] = x;
      }
    }
  }
  View view() { return {buffer_.data(), primes_, 1}; }

 private:
  std::vector<PrimeIndex> primes_;
  device::Buffer buffer_;
};

std::vector<PrimeIndex> range(std::size_t from, std::size_t to) {
  std::vector<PrimeIndex> list;
  for (std::size_t i = from; i < to; ++i) list.push_back(static_cast<PrimeIndex>(i));
  return list;
}

void report(const Options& options, const backend::Engine& engine, const std::string& name,
            std::size_t limbs, const std::function<void()>& body) {
  if (!options.only.empty() && options.only != name) return;
  body();
  std::vector<double> seconds;
  const auto start = Clock::now();
  while (seconds.size() < 20000 &&
         std::chrono::duration<double>(Clock::now() - start).count() < 0.5) {
    const auto before = Clock::now();
    body();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf(
      "{\"name\": \"%s\", \"device\": \"cpu\", \"device_name\": \"%s\", \"params\": {\"log_n\": "
      "%d, "
      "\"word\": \"%s\", \"limbs\": %zu, \"threads\": %d}, \"batch\": 1, \"reps\": %zu, "
      "\"median_s\": %.4g, \"min_s\": %.4g, \"p95_s\": %.4g}\n",
      name.c_str(), engine.name().c_str(), options.log_n, options.word.c_str(), limbs,
      options.threads, seconds.size(), seconds[seconds.size() / 2], seconds[0],
      seconds[seconds.size() * 95 / 100]);
  std::fflush(stdout);
}

void run(const Options& options) {
  backend::Config config;
  config.word = options.word == "w32" ? Word::w32 : options.word == "w52" ? Word::w52 : Word::w64;
  config.n = std::size_t{1} << options.log_n;
  config.threads = options.threads;
  config.isa = options.isa;
  // Six limbs and two special ones: log Q about 285 at w52, as the peers' benchmark has it. w32
  // holds the same modulus in ten and three limbs.
  const bool narrow = config.word == Word::w32;
  const std::size_t kept = narrow ? 10 : 6, special = narrow ? 4 : 2, all = kept + special;
  arith::PrimesNear near(std::uint64_t{1} << (narrow                     ? 29
                                              : config.word == Word::w52 ? 48
                                                                         : 58),
                         2 * config.n, 1, std::uint64_t{1} << word_prime_bits(config.word));
  while (config.primes.size() < all) config.primes.push_back(near.next().value());
  const auto engine = backend::make_cpu_engine(config);

  Block one(config, range(0, 1)), other(config, range(0, 1)), product(config, range(0, 1));
  report(options, *engine, "ntt", 1, [&] { engine->ring().ntt(one.view()); });
  report(options, *engine, "intt", 1, [&] { engine->ring().intt(one.view()); });
  report(options, *engine, "add", 1,
         [&] { engine->ring().add(product.view(), one.view(), other.view()); });
  report(options, *engine, "mul", 1,
         [&] { engine->ring().mul(product.view(), one.view(), other.view()); });

  const auto block = [&](std::size_t limbs) { return Block(config, range(0, limbs)); };
  Block a0 = block(kept), a1 = block(kept), b0 = block(kept), b1 = block(kept);
  Block d0 = block(kept), d1 = block(kept), d2 = block(kept);
  Block e0 = block(all), e1 = block(all), lower0 = block(kept - 1), lower1 = block(kept - 1);
  std::vector<std::uint32_t> sizes, ids;
  for (std::size_t left = kept; left > 0;) {
    const std::size_t size = std::min(special, left);
    sizes.push_back(static_cast<std::uint32_t>(size));
    ids.push_back(static_cast<std::uint32_t>(ids.size()));
    left -= size;
  }
  Block key(config, range(0, all), 2 * sizes.size());
  Block ext(config, range(0, all), sizes.size());
  const backend::KeyView key_view{key.view().data, sizes.size(), key.view().primes};
  const auto tensor = [&] {
    engine->rlwe().tensor(d0.view(), d1.view(), d2.view(), a0.view(), a1.view(), b0.view(),
                          b1.view());
  };
  const auto key_switch = [&] {
    engine->rlwe().key_switch(e0.view(), e1.view(), d2.view(), sizes, key_view, ids);
  };
  const auto mod_down = [&](Block& out, Block& in, Block& addend) {
    const ConstView view = addend.view();
    engine->rlwe().scale_down(out.view(), in.view(), &view);
  };
  const auto rescale = [&](Block& out, Block& in) {
    engine->rlwe().scale_down(out.view(), in.view(), nullptr);
  };
  report(options, *engine, "tensor", kept, tensor);
  report(options, *engine, "key_switch", kept, key_switch);
  report(options, *engine, "mod_up", kept,
         [&] { engine->rlwe().mod_up(ext.view(), d2.view(), sizes); });
  report(options, *engine, "key_product", all, [&] {
    engine->rlwe().key_product(e0.view(), e1.view(), ext.view(), key_view, ids, 5, false);
  });
  report(options, *engine, "mod_down", kept, [&] { mod_down(d0, e0, a0); });
  report(options, *engine, "rescale", kept, [&] { rescale(lower0, a0); });
  report(options, *engine, "automorphism_ntt", kept,
         [&] { engine->ring().automorphism_ntt(d0.view(), a0.view(), 5); });
  report(options, *engine, "hmult_relin_rescale", kept, [&] {
    tensor();
    key_switch();
    mod_down(b0, e0, d0);
    mod_down(b1, e1, d1);
    rescale(lower0, b0);
    rescale(lower1, b1);
  });
  report(options, *engine, "hmult_relin_rescale_merged", kept, [&] {
    // (key switch + P (d0, d1)) / (P q_last) in one division.
    std::vector<std::uint64_t> p(kept, 12345);
    tensor();
    key_switch();
    View top0{e0.view().data, d0.view().primes, 1}, top1{e1.view().data, d1.view().primes, 1};
    engine->ring().mul_scalar_add(top0, d0.view(), p);
    engine->ring().mul_scalar_add(top1, d1.view(), p);
    rescale(lower0, e0);
    rescale(lower1, e1);
  });
  std::vector<std::int64_t> integers(config.n);
  std::vector<double> reals(config.n);
  for (std::size_t k = 0; k < config.n; ++k) {
    integers[k] = static_cast<std::int64_t>(k * 0x9E3779B97F4A7C15u) >> 20;
    reals[k] = static_cast<double>(integers[k]);
  }
  report(options, *engine, "from_int64", kept,
         [&] { engine->ring().from_int64(a0.view(), integers); });
  report(options, *engine, "from_double", kept,
         [&] { engine->ring().from_double(a0.view(), reals); });
  std::vector<std::uint64_t> wide(6 * config.n);
  for (const bool first : {true, false}) {
    report(options, *engine, first ? "icrt_product_sum" : "icrt_garner", kept, [&] {
      engine->ring().icrt(wide, 6, a0.view(),
                          first ? backend::IcrtMethod::product_sum : backend::IcrtMethod::garner);
    });
    report(options, *engine, first ? "crt_mod" : "crt_mul", kept, [&] {
      engine->ring().crt(a0.view(), wide, 6,
                         first ? backend::CrtMethod::mod : backend::CrtMethod::mul);
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--n") options.log_n = std::atoi(argv[i + 1]);
    if (flag == "--word") options.word = argv[i + 1];
    if (flag == "--isa") options.isa = argv[i + 1];
    if (flag == "--threads") options.threads = std::atoi(argv[i + 1]);
    if (flag == "--only") options.only = argv[i + 1];
  }
  try {
    run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_ops: %s\n", error.what());
    return 1;
  }
  return 0;
}
