// The client's side of TFHE on a device, and the loading of keys, as JSON lines. With what was
// made, values are encrypted, bootstrapped and decrypted, and every one is compared. Usage:
// tfhe_keys_bench [--device cuda|cpu] [--presets a,b] [--values COUNT] [--runs R] [--threads T]
// [--commit C]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "jali/backend/secret/tfhe_client_ops.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/device/gpu.h"
#include "jali/params/tfhe_presets.h"
#include "jali/schemes/tfhe/evaluator.h"
#include "jali/schemes/tfhe/secret/client.h"

namespace {

using namespace jali;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string device = "cuda", presets = "boolean,message_2_carry_2", commit = "unknown";
  std::size_t values = 4096, runs = 5;
  int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 1024u));
};

/// Whether every value came back.
bool measure(const tfhe::Preset& preset, const Options& options) {
  const auto params = tfhe::Params::create(tfhe::literal_of(preset));
  const auto config = params->config(options.threads);
  const bool gpu = options.device != "cpu";
  const auto device = gpu ? device::gpu_device({}) : device::host_device();
  const std::string shown = gpu ? device::cuda_device_name(0) : "cpu";
  const std::shared_ptr<const backend::TfheClientOps> client_engine =
      gpu ? backend::make_cuda_tfhe_client(config, device)
          : backend::make_cpu_tfhe_client(config, device);
  const std::shared_ptr<const backend::TfheOps> engine =
      gpu ? backend::make_cuda_tfhe(config, device) : backend::make_cpu_tfhe(config, device);

  // Seconds of a call, the least and the median, after one that is not counted.
  const auto report = [&](const char* what, std::size_t bytes, const std::function<void()>& work) {
    std::vector<double> seconds;
    for (std::size_t run = 0; run <= options.runs; ++run) {
      const auto begin = Clock::now();
      work();
      device->stream().synchronize();
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    seconds.erase(seconds.begin());
    std::sort(seconds.begin(), seconds.end());
    std::printf(
        "{\"bench\":\"tfhe_keys\",\"preset\":\"%s\",\"what\":\"%s\",\"min_s\":%.6f,"
        "\"median_s\":%.6f,\"bytes\":%zu,\"threads\":%d,\"device\":\"%s\",\"commit\":\"%s\"}\n",
        params->name().c_str(), what, seconds.front(), seconds[seconds.size() / 2], bytes,
        gpu ? 1 : options.threads, shown.c_str(), options.commit.c_str());
    std::fflush(stdout);
  };

  tfhe::Client client(params, client_engine);
  lwe::KeyGenerator generator(params, client_engine);
  const lwe::SecretKey& secret = client.secret_key();
  report("switch_key", params->switch_key_bytes(), [&] { generator.switch_key(secret); });
  report("rotation_key", params->rotation_key_bytes(), [&] { generator.rotation_key(secret); });
  lwe::EvaluationKeys keys;
  report("evaluation_keys", params->key_bytes(), [&] { keys = client.evaluation_keys(); });
  std::unique_ptr<tfhe::Evaluator> evaluator;
  report("load_keys", params->key_bytes(),
         [&] { evaluator = std::make_unique<tfhe::Evaluator>(engine, keys); });
  std::vector<std::uint64_t> values(options.values), decrypted;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % params->message_modulus();
  const std::size_t bytes = params->ciphertext_bytes(values.size());
  tfhe::Ciphertext x;
  report("encrypt", bytes, [&] { x = client.encrypt(values); });
  report("decrypt", bytes, [&] { decrypted = client.decrypt(x); });
  const tfhe::Ciphertext bound = evaluator->bind(x);
  report("decrypt_here", bytes, [&] { decrypted = client.decrypt(bound); });
  return decrypted == values && client.decrypt(evaluator->refresh(bound)) == values;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--device") options.device = value;
    if (name == "--presets") options.presets = value;
    if (name == "--values") options.values = std::stoul(value);
    if (name == "--runs") options.runs = std::max<std::size_t>(std::stoul(value), 1);
    if (name == "--threads") options.threads = std::stoi(value);
    if (name == "--commit") options.commit = value;
  }
  bool right = true;
  for (const tfhe::Preset& preset : tfhe::presets()) {
    const std::string listed = std::string(",").append(options.presets).append(",");
    if (listed.find("," + std::string(preset.name) + ",") == std::string::npos) continue;
    if (measure(preset, options)) continue;
    std::fprintf(stderr, "%s: wrong values\n", std::string(preset.name).c_str());
    right = false;
  }
  return right ? 0 : 1;
}
