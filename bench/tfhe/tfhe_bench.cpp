// Bootstraps a second of a TFHE engine, as JSON lines. Keys and inputs are real: fresh secrets,
// normal noise of the set's size. Every output of the timed batches is decrypted and compared, and
// the noise of the outputs is measured. Usage: tfhe_bench [--device cuda|cpu] [--sets a,b]
// [--commit C] [--curve] [--seconds S] [--batch B]
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "jali/backend/tfhe_ops.h"
#include "jali/device/buffer.h"
#include "jali/device/gpu.h"

namespace {

using namespace jali;
using namespace jali::backend;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Clock = std::chrono::steady_clock;

struct Set {
  std::string name;
  std::size_t n, k, N;
  int base, levels, switch_base, switch_levels;
  Rotation rotation;
  int group;
  double small_noise, large_noise;  // log2 of standard deviations on the torus
  u64 p;  // messages, with a padding bit
};

// Dimensions and levels of strix_*: table IV of the Strix paper, which gives neither bases nor
// noise: those of the TFHE library for i and ii, and others of the same kind. Those of 2_2 and 1_1:
// tfhe-rs's published constants, a uniform noise of 2^b being one of 2^(b - 0.8).
const std::vector<Set>& sets() {
  static const std::vector<Set> all = {
      {"strix_i", 500, 1, 1024, 10, 2, 2, 8, Rotation::classic, 1, -15.3, -26.7, 2},
      {"strix_ii", 630, 1, 1024, 7, 3, 2, 8, Rotation::classic, 1, -15, -25, 2},
      {"strix_iii", 592, 1, 2048, 8, 3, 3, 5, Rotation::classic, 1, -14.5, -50, 2},
      {"strix_iv", 991, 1, 16384, 14, 2, 4, 5, Rotation::classic, 1, -22.5, -60, 32},
      {"2_2", 918, 1, 2048, 23, 1, 4, 4, Rotation::classic, 1, -19.8, -47.8, 16},
      {"2_2_block_binary_3", 1002, 1, 2048, 23, 1, 4, 4, Rotation::block_binary, 3, -20.5, -47.8,
       16},
      {"2_2_block_binary_2", 960, 1, 2048, 23, 1, 4, 4, Rotation::block_binary, 2, -20.2, -47.8,
       16},
      {"2_2_multi_bit_2", 918, 1, 2048, 22, 1, 4, 4, Rotation::multi_bit, 2, -19.8, -47.8, 16},
      {"2_2_multi_bit_3", 918, 1, 2048, 22, 1, 4, 4, Rotation::multi_bit, 3, -19.8, -47.8, 16},
      {"2_2_multi_bit_4", 920, 1, 2048, 22, 1, 3, 5, Rotation::multi_bit, 4, -19.8, -47.8, 16},
      {"1_1", 879, 4, 512, 23, 1, 4, 4, Rotation::classic, 1, -18.8, -47.8, 4},
      {"boolean", 805, 3, 512, 10, 2, 3, 5, Rotation::classic, 1, -17.5, -38, 2},
  };
  return all;
}

struct Rng {
  u64 state;
  u64 operator()() {  // splitmix64: these keys protect nothing
    u64 z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return (static_cast<double>((*this)() >> 11) + 0.5) * 0x1p-53; }
  u64 normal(double log_noise) {  // as a word of 64 bits
    const double z = std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform());
    return static_cast<u64>(std::llround(z * std::ldexp(std::exp2(log_noise), 64)));
  }
};

void parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t) {
    threads.emplace_back([&] {
      for (std::size_t i; (i = next++) < count;) work(i);
    });
  }
  for (auto& thread : threads) thread.join();
}

// acc += a s modulo X^N + 1, s bits.
void add_times(u64* acc, const u64* a, const std::uint8_t* s, std::size_t N) {
  for (std::size_t i = 0; i < N; ++i) {
    if (!s[i]) continue;
    for (std::size_t j = 0; j < N - i; ++j) acc[i + j] += a[j];
    for (std::size_t j = N - i; j < N; ++j) acc[i + j - N] -= a[j];
  }
}

class Bench {
 public:
  Bench(const Set& set, std::shared_ptr<device::Device> device, bool gpu, u64 seed)
      : set_(set), device_(std::move(device)), seed_(seed) {
    config_.n = LweDimension(set.n);
    config_.k = GlweDimension(set.k);
    config_.N = PolynomialSize(set.N);
    config_.rotation_gadget = {set.base, set.levels};
    config_.switch_gadget = {set.switch_base, set.switch_levels};
    config_.rotation = set.rotation;
    config_.group = set.group;
    if (set.rotation == Rotation::block_binary) config_.mean_bit = 1.0 / (set.group + 1);
    config_.threads = gpu ? 1 : static_cast<int>(std::thread::hardware_concurrency());
    engine_ = gpu ? make_cuda_tfhe(config_, device_) : make_cpu_tfhe(config_);
    if (!gpu) device_ = engine_->device();
    make_keys();
  }

  // Seconds of `runs` calls for a batch, after one that is not counted, and a check of what the
  // last one wrote.
  struct Result {
    double seconds = 0, noise = 0, bias = 0;
    std::size_t wrong = 0, checked = 0;
  };
  Result run(std::size_t batch, bool with_switch, double least_seconds, bool check) {
    Rng rng{seed_ ^ batch ^ 0x1234};
    std::vector<u64> messages(batch);
    for (u64& m : messages) m = rng() % set_.p;
    const std::size_t large = config_.large().value + 1, small = set_.n + 1;
    std::vector<u64> in64;
    std::vector<u32> in32;
    if (with_switch) {
      in64.resize(batch * large);
      parallel(batch, [&](std::size_t i) {
        Rng r{seed_ + 77 + i * 1234567};
        u64 body = encoded(messages[i]) + r.normal(set_.large_noise);
        for (std::size_t j = 0; j + 1 < large; ++j) {
          const u64 a = in64[i * large + j] = r();
          if (large_[j]) body += a;
        }
        in64[(i + 1) * large - 1] = body;
      });
    } else {
      in32.resize(batch * small);
      parallel(batch, [&](std::size_t i) {
        Rng r{seed_ + 99 + i * 7654321};
        u64 body = encoded(messages[i]) + r.normal(set_.small_noise);
        for (std::size_t j = 0; j + 1 < small; ++j) {
          const u64 a = (r() >> 32) << 32;
          in32[i * small + j] = static_cast<u32>(a >> 32);
          if (small_[j]) body += a;
        }
        in32[(i + 1) * small - 1] = static_cast<u32>((body + 0x80000000u) >> 32);
      });
    }
    const std::size_t in_bytes = with_switch ? in64.size() * 8 : in32.size() * 4;
    device::Buffer in = device_->pool()->allocate(in_bytes);
    device::Buffer out = device_->pool()->allocate(batch * large * 8);
    device_->memory()->copy_in(
        in.data(), with_switch ? static_cast<void*>(in64.data()) : in32.data(), in_bytes);
    device_->memory()->fill(out.data(), 0xa5, batch * large * 8);
    TableView tables;
    tables.data = table_.data();
    tables.count = 1;
    const LweView to{out.data(), Torus::t64, config_.large(), batch};
    const auto call = [&] {
      if (with_switch) {
        engine_->switch_bootstrap(to, {in.data(), Torus::t64, config_.large(), batch}, tables,
                                  switch_key_.data(), rotation_key_.data());
      } else {
        engine_->bootstrap(to, {in.data(), Torus::t32, config_.n, batch}, tables,
                           rotation_key_.data());
      }
    };
    Result result;
    call();
    device_->stream().synchronize();
    std::size_t runs = 1;
    for (;;) {
      const auto begin = Clock::now();
      for (std::size_t i = 0; i < runs; ++i) call();
      device_->stream().synchronize();
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      result.seconds = seconds / static_cast<double>(runs);
      if (seconds >= least_seconds) break;
      runs =
          std::max(2 * runs, static_cast<std::size_t>(std::ceil(least_seconds / result.seconds)));
    }
    if (check) {
      std::vector<u64> have(batch * large);
      device_->memory()->copy_out(have.data(), out.data(), have.size() * 8);
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < batch; ++i) {
        u64 phase = have[(i + 1) * large - 1];
        for (std::size_t j = 0; j + 1 < large; ++j) {
          if (large_[j]) phase -= have[i * large + j];
        }
        const u64 want = encoded(function(messages[i]));
        const double error = static_cast<double>(static_cast<std::int64_t>(phase - want)) * 0x1p-64;
        sum += error;
        squares += error * error;
        if (std::abs(error) * 4 * static_cast<double>(set_.p) >= 1) ++result.wrong;
      }
      const auto count = static_cast<double>(batch);
      result.checked = batch;
      result.bias = sum / count;
      result.noise = std::sqrt(squares / count);
    }
    return result;
  }
  const TfheConfig& config() const { return config_; }
  TfheOps& engine() { return *engine_; }
  double key_seconds() const { return key_seconds_; }

 private:
  u64 encoded(u64 m) const { return m << (63 - std::bit_width(set_.p - 1)); }
  u64 function(u64 m) const { return (m * m + 1) % set_.p; }

  void encrypt_glwe(Rng& rng, u64* out) const {  // of zero
    const std::size_t N = set_.N;
    u64* const body = out + set_.k * N;
    for (std::size_t i = 0; i < N; ++i) body[i] = rng.normal(set_.large_noise);
    for (std::size_t c = 0; c < set_.k; ++c) {
      for (std::size_t i = 0; i < N; ++i) out[c * N + i] = rng();
      add_times(body, out + c * N, &large_[c * N], N);
    }
  }

  void make_keys() {
    Rng rng{seed_};
    large_.resize(config_.large().value);
    small_.assign(set_.n, 0);
    for (auto& bit : large_) bit = static_cast<std::uint8_t>(rng() >> 63);
    const auto group = static_cast<std::size_t>(set_.group);
    if (set_.rotation == Rotation::block_binary) {
      for (std::size_t i = 0; i < set_.n; i += group) {
        const std::size_t set = rng() % (group + 1);
        if (set < group) small_[i + set] = 1;
      }
    } else {
      for (auto& bit : small_) bit = static_cast<std::uint8_t>(rng() >> 63);
    }
    const std::size_t N = set_.N, units = config_.units(), words = config_.ggsw_words();
    const auto levels = static_cast<std::size_t>(set_.levels);
    rotation_key_ = device_->pool()->allocate(engine_->rotation_key_bytes());
    const std::size_t steps = config_.steps(),
                      most = std::max<std::size_t>(1, (std::size_t{1} << 31) / (units * words * 8));
    std::vector<u64> ggsws;
    for (std::size_t first = 0; first < steps; first += most) {
      const std::size_t now = std::min(most, steps - first);
      ggsws.assign(now * units * words, 0);
      const std::size_t rows = (set_.k + 1) * levels;
      parallel(now * units * rows, [&](std::size_t t) {
        const std::size_t row = t % rows, unit = t / rows % units, step = first + t / rows / units;
        u64 m = 0;
        const std::uint8_t* const bits = &small_[step * group];
        if (set_.rotation == Rotation::multi_bit) {
          m = 1;
          for (std::size_t j = 0; j < group; ++j) m &= ((unit + 1) >> j & 1) == bits[j];
        } else {
          m = bits[unit];
        }
        Rng r{seed_ * 31 + (step * units + unit) * rows + row};
        u64* const to = &ggsws[((step - first) * units + unit) * words + row * (set_.k + 1) * N];
        encrypt_glwe(r, to);
        const std::size_t c = row / levels, j = row % levels + 1;
        // Adding m 2^(64 - j base) to polynomial c adds that times -S_c to the phase, or, if c = k,
        // itself.
        to[c * N] += m << (64 - j * static_cast<std::size_t>(set_.base));
      });
      engine_->prepare_rotation_key(rotation_key_.data(), ggsws.data(), first, now);
      device_->stream().synchronize();
    }
    const auto switch_levels = static_cast<std::size_t>(set_.switch_levels);
    std::vector<u32> rows(large_.size() * switch_levels * (set_.n + 1));
    parallel(large_.size(), [&](std::size_t i) {
      Rng r{seed_ * 17 + i + 5};
      for (std::size_t j = 1; j <= switch_levels; ++j) {
        u32* const row = &rows[(i * switch_levels + j - 1) * (set_.n + 1)];
        u32 body = static_cast<u32>((r.normal(set_.small_noise) + 0x80000000u) >> 32);
        if (large_[i]) body += u32{1} << (32 - j * static_cast<std::size_t>(set_.switch_base));
        for (std::size_t t = 0; t < set_.n; ++t) {
          row[t] = static_cast<u32>(r() >> 32);
          if (small_[t]) body += row[t];
        }
        row[set_.n] = body;
      }
    });
    switch_key_ = device_->pool()->allocate(engine_->switch_key_bytes());
    engine_->prepare_switch_key(switch_key_.data(), rows.data());
    // Table: coefficient i is f of the message whose box holds i; boxes have N / p coefficients
    // around their centres.
    std::vector<u64> table(N);
    const std::size_t box = N / set_.p;
    for (std::size_t i = 0; i < N; ++i) {
      const std::size_t at = i + box / 2;
      table[i] = at < N ? encoded(function(at / box)) : 0 - encoded(function(0));
    }
    table_ = device_->pool()->allocate(N * 8);
    device_->memory()->copy_in(table_.data(), table.data(), N * 8);
    device_->stream().synchronize();
  }

  const Set& set_;
  std::shared_ptr<device::Device> device_;
  const u64 seed_;
  TfheConfig config_;
  std::unique_ptr<TfheOps> engine_;
  std::vector<std::uint8_t> large_, small_;
  device::Buffer rotation_key_, switch_key_, table_;
  double key_seconds_ = 0;
};

void print(const Bench::Result& r, const Set& set, const char* what, std::size_t batch,
           const std::string& device, const std::string& commit) {
  std::printf(
      "{\"bench\":\"tfhe\",\"set\":\"%s\",\"what\":\"%s\",\"batch\":%zu,\"ms\":%.4f,\"per_second\":"
      "%.0f,"
      "\"wrong\":%zu,\"checked\":%zu,\"noise_log2\":%.2f,\"bias\":%.3g,\"n\":%zu,\"k\":%zu,\"N\":%"
      "zu,"
      "\"base_log\":%d,\"levels\":%d,\"switch_base_log\":%d,\"switch_levels\":%d,\"device\":\"%s\","
      "\"commit\":\"%s\"}\n",
      set.name.c_str(), what, batch, r.seconds * 1e3, static_cast<double>(batch) / r.seconds,
      r.wrong, r.checked, r.checked ? std::log2(r.noise) : 0.0, r.bias, set.n, set.k, set.N,
      set.base, set.levels, set.switch_base, set.switch_levels, device.c_str(), commit.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string device_name = "cuda", wanted = "all", commit = "unknown";
  bool curve = false;
  double seconds = 0.2;
  std::size_t only_batch = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (a == "--device")
      device_name = value();
    else if (a == "--sets")
      wanted = value();
    else if (a == "--commit")
      commit = value();
    else if (a == "--curve")
      curve = true;
    else if (a == "--seconds")
      seconds = std::stod(value());
    else if (a == "--batch")
      only_batch = std::stoul(value());
    else {
      std::fprintf(stderr, "tfhe_bench does not know %s\n", a.c_str());
      return 2;
    }
  }
  const bool gpu = device_name != "cpu";
  auto device = gpu ? device::gpu_device({}) : device::host_device();
  const std::string shown = gpu ? device::cuda_device_name(0) : "cpu";
  std::size_t wrong = 0;
  for (const Set& set : sets()) {
    if (wanted != "all" && ("," + wanted + ",").find("," + set.name + ",") == std::string::npos)
      continue;
    try {
      const u64 seed = (u64{std::random_device{}()} << 32) | std::random_device{}();
      Bench bench(set, device, gpu, seed);
      const auto run = [&](const char* what, std::size_t batch, bool with_switch) {
        const auto result = bench.run(batch, with_switch, seconds, true);
        wrong += result.wrong;
        print(result, set, what, batch, shown, commit);
      };
      if (only_batch != 0) {
        run("pbs", only_batch, false);
        run("ks_pbs", only_batch, true);
        continue;
      }
      run("pbs", 1, false);
      run("ks_pbs", 1, true);
      run("pbs", set.N > 4096 ? 528 : 4224, false);
      run("ks_pbs", set.N > 4096 ? 528 : 4224, true);
      if (curve) {
        for (const std::size_t batch :
             {2,   8,   16,   24,   32,   48,   64,   80,   96,   112,  132,
              133, 198, 264,  265,  330,  396,  462,  528,  529,  594,  660,
              792, 924, 1056, 1057, 1320, 1584, 2048, 3072, 4096, 6144, 8192}) {
          run("pbs", batch, false);
        }
      }
    } catch (const std::exception& error) {
      std::printf("{\"bench\":\"tfhe\",\"set\":\"%s\",\"error\":\"%s\"}\n", set.name.c_str(),
                  error.what());
    }
  }
  return wrong == 0 ? 0 : 1;
}
