// Times of key switching and what is built on it, on the GPU: JSON lines of the shape of
// `jali bench --json`, medians over repetitions. Every row is first compared with the CPU engine.
// Usage: bench_gpu_switch COMMIT [PART OF A NAME] [FAMILY=VARIANT ...].
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "jali/arith/primes.h"
#include "jali/backend/ops.h"
#include "jali/base/error.h"
#include "jali/device/buffer.h"

using namespace jali;
using backend::ConstView;
using backend::View;

namespace {

struct Options {
  const char* commit = "unknown";
  std::string filter;
  std::map<std::string, std::string> variants;
};

// Ciphertexts of `limbs` limbs in digits of alpha, P of `special` limbs.
struct Set {
  const char* name;
  Word word;
  int log_n, prime_bits, limbs, alpha, special, drop;
  std::size_t batch;
};

std::vector<std::uint64_t> make_primes(int bits, int log_n, std::size_t count) {
  std::vector<std::uint64_t> primes;
  const std::uint64_t step = std::uint64_t{2} << log_n;
  for (std::uint64_t q = (std::uint64_t{1} << bits) - step + 1; primes.size() < count; q -= step) {
    if (arith::is_prime(q)) primes.push_back(q);
  }
  return primes;
}

// The same residues on the host, for a batch of one, and on the device, for all entries alike.
class Operand {
 public:
  Operand(const backend::Engine& gpu, device::Pool& pool, std::span<const PrimeIndex> primes,
          std::size_t batch, std::size_t blocks, std::mt19937_64& random)
      : primes_(primes), batch_(batch) {
    const auto& config = gpu.config();
    const std::size_t width = word_bytes(config.word), row = config.n * width;
    host_.resize(primes.size() * blocks * row);
    device_ = pool.allocate(host_.size() * batch);
    for (std::size_t i = 0; i < primes.size() * blocks; ++i) {
      const std::uint64_t q = config.primes[primes[i % primes.size()]];
      for (std::size_t k = 0; k < config.n; ++k) {
        const std::uint64_t x = random() % q;
        std::memcpy(host_.data() + i * row + k * width, &x, width);
      }
      auto* at = static_cast<std::byte*>(device_.data()) + i * batch * row;
      gpu.memory()->copy_in(at, host_.data() + i * row, row);
      for (std::size_t b = 1; b < batch; ++b) gpu.memory()->copy(at + b * row, at, row);
    }
    std::byte last{};
    gpu.memory()->copy_out(&last, device_.data(), 1);
  }
  View host() { return {host_.data(), primes_, 1}; }
  View device() { return {device_.data(), primes_, batch_}; }
  void* host_data() { return host_.data(); }
  void* device_data() { return device_.data(); }
  std::size_t bytes() const { return device_.bytes(); }
  /// Whether every entry on the device is what the host has.
  bool same(const backend::Engine& gpu) const {
    const std::size_t row = host_.size() / primes_.size();
    std::vector<std::byte> got(row * batch_);
    for (std::size_t i = 0; i < primes_.size(); ++i) {
      gpu.memory()->copy_out(
          got.data(), static_cast<const std::byte*>(device_.data()) + i * got.size(), got.size());
      for (std::size_t b = 0; b < batch_; ++b) {
        if (std::memcmp(got.data() + b * row, host_.data() + i * row, row) != 0) return false;
      }
    }
    return true;
  }

 private:
  std::span<const PrimeIndex> primes_;
  std::size_t batch_;
  std::vector<std::byte> host_;
  device::Buffer device_;
};

class Bench {
 public:
  Bench(const Set& set, const Options& options)
      : set_(set), options_(options), total_(set.limbs + set.special) {
    backend::Config config{set.word, std::size_t{1} << set.log_n,
                           make_primes(set.prime_bits, set.log_n, total_), 2, ""};
    cpu_ = backend::make_cpu_engine(config);
    config.variants = options.variants;
    gpu_ = backend::make_cuda_engine(config);
    pool_ = device::Pool::create(false, gpu_->memory());
    for (std::size_t i = 0; i < total_; ++i) all_.push_back(static_cast<PrimeIndex>(i));
    level_ = std::span(all_).first(set.limbs);
    down_ = level_.first(set.limbs - set.drop);
    for (int left = set.limbs; left > 0; left -= set.alpha) {
      ids_.push_back(static_cast<std::uint32_t>(digits_.size()));
      digits_.push_back(static_cast<std::uint32_t>(std::min(left, set.alpha)));
    }
  }

  void run() {
    auto a0 = random(level_), a1 = random(level_), b0 = random(level_), b1 = random(level_);
    auto acc0 = random(all_), acc1 = random(all_), out0 = random(level_), out1 = random(level_);
    auto down0 = random(down_), down1 = random(down_);
    Operand key(*gpu_, *pool_, all_, 1, 2 * digits_.size(), random_);
    std::vector<std::uint64_t> s;
    for (const auto i : level_) s.push_back(random_() % cpu_->config().primes[i]);
    // A rotation: sigma(c0) + P^-1 <digits of sigma(c1), key>.
    const auto rotate = [&](const backend::Engine& engine, auto side) {
      const backend::KeyView k{side == 0 ? key.host_data() : key.device_data(), digits_.size(),
                               all_};
      const auto v = [&](Operand& x) { return side == 0 ? x.host() : x.device(); };
      engine.rlwe().rotate(v(out0), v(out1), v(acc0), v(acc1), v(a0), v(a1), 5, digits_, k, ids_);
    };
    // A product, relinearised and rescaled in one division.
    const auto multiply = [&](const backend::Engine& engine, auto side) {
      const backend::KeyView k{side == 0 ? key.host_data() : key.device_data(), digits_.size(),
                               all_};
      const auto v = [&](Operand& x) { return side == 0 ? x.host() : x.device(); };
      const backend::Combination::Product product{v(a0), v(a1), v(b0), v(b1)};
      engine.rlwe().combine_key_switch(v(acc0), v(acc1), {{&product, 1}}, s, digits_, k, ids_);
      engine.rlwe().scale_down_pair(v(down0), v(down1), v(acc0), v(acc1), nullptr, nullptr);
    };
    // What GIF-FHE calls key switching: up to the division by P.
    const auto key_switch = [&](const backend::Engine& engine, auto side) {
      const backend::KeyView k{side == 0 ? key.host_data() : key.device_data(), digits_.size(),
                               all_};
      const auto v = [&](Operand& x) { return side == 0 ? x.host() : x.device(); };
      engine.rlwe().key_switch(v(acc0), v(acc1), v(a0), digits_, k, ids_);
      engine.rlwe().scale_down_pair(v(out0), v(out1), v(acc0), v(acc1), nullptr, nullptr);
    };
    const auto parts = [&](const backend::Engine& engine, auto side) {
      const backend::KeyView k{side == 0 ? key.host_data() : key.device_data(), digits_.size(),
                               all_};
      const auto v = [&](Operand& x) { return side == 0 ? x.host() : x.device(); };
      engine.rlwe().key_switch(v(acc0), v(acc1), v(a0), digits_, k, ids_);
    };
    const double in = static_cast<double>(a0.bytes()), kb = static_cast<double>(key.bytes());
    measure("hrotate", {&out0, &out1}, kb + 4 * in, rotate);
    measure("hmult", {&down0, &down1}, kb + 4 * in + 2 * static_cast<double>(down0.bytes()),
            multiply);
    measure("keyswitch", {&out0, &out1}, kb + 3 * in, key_switch);
    measure("keyproduct", {&acc0, &acc1}, kb + in + 2 * static_cast<double>(acc0.bytes()), parts);
    // The uniform half of the key: from its seed, and moved within memory, which reads and writes it.
    if (set_.log_n < 16 || set_.batch > 1) return;
    Operand half(*gpu_, *pool_, all_, 1, digits_.size(), random_);
    const std::vector<std::uint8_t> seed(32, static_cast<std::uint8_t>(random_()));
    const double bytes = static_cast<double>(half.bytes());
    measure("keyexpand", {&half}, bytes, [&](const backend::Engine& engine, auto side) {
      void* to = side == 0 ? half.host_data() : half.device_data();
      engine.ring().sample_uniform({to, all_, digits_.size()},
                                   std::span<const std::uint8_t, 32>(seed), 0);
    });
    measure("keycopy", {&half}, 2 * bytes, [&](const backend::Engine& engine, auto side) {
      if (side == 0) return void(std::memcpy(half.host_data(), key.host_data(), half.bytes()));
      engine.memory()->copy(half.device_data(), key.device_data(), half.bytes());
    });
  }

 private:
  Operand random(std::span<const PrimeIndex> primes) {
    return Operand(*gpu_, *pool_, primes, set_.batch, 1, random_);
  }

  template <class F>
  void measure(const std::string& name, std::vector<Operand*> outputs, double bytes, F&& f) {
    if ((name + "/" + set_.name).find(options_.filter) == std::string::npos) return;
    f(*cpu_, 0);
    f(*gpu_, 1);
    for (const Operand* out : outputs) {
      if (!out->same(*gpu_)) throw InternalError(name + ": the result differs from the CPU's");
    }
    char byte = 0;
    const auto wait = [&] { gpu_->memory()->copy_out(&byte, outputs[0]->device_data(), 1); };
    const int inner = set_.batch > 1 || set_.log_n > 14 ? 10 : 50;
    for (int i = 0; i < 3; ++i) f(*gpu_, 1);
    std::vector<double> times;
    for (int rep = 0; rep < 15; ++rep) {
      wait();
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < inner; ++i) f(*gpu_, 1);
      wait();
      times.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / inner);
    }
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2], floor = bytes / 2.84e12;
    std::printf(
        "{\"name\": \"%s\", \"device\": \"cuda\", \"device_name\": \"%s\", \"params\": {\"set\": "
        "\"%s\", \"word\": \"%s\", \"log_n\": %d, \"limbs\": %d, \"alpha\": %d, \"special\": %d, "
        "\"dropped\": %d}, \"batch\": %zu, \"reps\": %zu, \"median_s\": %.9f, \"min_s\": %.9f, "
        "\"p95_s\": %.9f, \"floor_s\": %.9f, \"floor_kind\": \"every byte once at 2.84 TB/s\", "
        "\"fraction_of_floor\": %.3f, \"bytes\": %.0f, \"bytes_per_s\": %.4g, \"commit\": "
        "\"%s\"}\n",
        name.c_str(), backend::cuda_device_name().c_str(), set_.name,
        std::string(word_name(set_.word)).c_str(), set_.log_n, set_.limbs, set_.alpha, set_.special,
        set_.drop, set_.batch, times.size(), median, times.front(), times[times.size() * 95 / 100],
        floor, floor / median, bytes, bytes / median, options_.commit);
    std::fflush(stdout);
  }

  Set set_;
  Options options_;
  std::size_t total_;
  std::unique_ptr<backend::Engine> cpu_, gpu_;
  std::shared_ptr<device::Pool> pool_;
  std::vector<PrimeIndex> all_;
  std::span<const PrimeIndex> level_, down_;
  std::vector<std::uint32_t> digits_, ids_;
  std::mt19937_64 random_{std::random_device{}()};
};

// N = 2^16 as Cheddar's figures; TensorFHE's sets with as many 30-bit limbs as the 128-bit table leaves
// room for; GIF-FHE's key switching with single-limb digits, its sizes inside the table.
const std::vector<Set> kSets{
    {"level41", Word::w32, 16, 30, 41, 12, 12, 2, 1},
    {"level37", Word::w32, 16, 30, 37, 12, 12, 2, 1},
    {"level22", Word::w32, 16, 30, 22, 12, 12, 2, 1},
    {"level11", Word::w32, 16, 30, 11, 12, 12, 2, 1},
    {"level41x64", Word::w32, 16, 30, 41, 12, 12, 2, 64},
    {"tensorfhe_a", Word::w32, 12, 26, 3, 1, 1, 1, 1024},
    {"tensorfhe_b", Word::w32, 13, 26, 6, 2, 2, 1, 512},
    {"tensorfhe_c", Word::w32, 14, 28, 12, 3, 3, 1, 128},
    {"gif_13", Word::w32, 13, 23, 8, 1, 1, 1, 1},
    {"gif_14", Word::w32, 14, 25, 16, 1, 1, 1, 1},
    {"gif_15", Word::w32, 15, 27, 31, 1, 1, 1, 1},
    {"w52level25", Word::w52, 16, 50, 25, 8, 8, 1, 1},
    {"w64level20", Word::w64, 16, 60, 20, 6, 6, 1, 1},
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto equals = argument.find('=');
    if (i == 1) {
      options.commit = argv[i];
    } else if (equals != std::string::npos) {
      options.variants[argument.substr(0, equals)] = argument.substr(equals + 1);
    } else {
      options.filter = argument;
    }
  }
  try {
    for (const Set& set : kSets) {
      const bool wanted = [&] {
        for (const char* name :
             {"hrotate/", "hmult/", "keyswitch/", "keyproduct/", "keyexpand/", "keycopy/"}) {
          if ((name + std::string(set.name)).find(options.filter) != std::string::npos) return true;
        }
        return false;
      }();
      if (wanted) Bench(set, options).run();
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
