// Chooses the kernels of a size.
#include "jali/backend/cuda/blind_rotation/blind_rotation.cuh"
#include "jali/backend/cuda/blind_rotation/rotation_size.cuh"

namespace jali::backend::cuda {

namespace {

// Calls f with the size of a configuration. Returns false if it has no kernels of its own.
template <class F>
bool with_size(const TfheConfig& config, F&& f) {
  const auto N = config.N.value, k = config.k.value;
  if (N == 2048 && k == 1) return f(RotationSize<11, 2>{}), true;
  if (N == 1024 && k == 1) return f(RotationSize<10, 2>{}), true;
  if (N == 1024 && k == 2) return f(RotationSize<10, 3>{}), true;
  if (N == 512 && k == 3) return f(RotationSize<9, 4>{}), true;
  if (N == 512 && k == 4) return f(RotationSize<9, 5>{}), true;
  return false;
}

}  // namespace

bool rotation_serves(const TfheConfig& config) {
  bool serves = false;
  with_size(config, [&](auto size) { serves = size.serves(config); });
  return serves;
}
std::size_t rotation_key_bytes(const TfheConfig& config) {
  std::size_t bytes = 0;
  with_size(config, [&](auto size) { bytes = size.key_bytes(config); });
  return bytes;
}
void prepare_rotation_key(const Stream& stream, const TfheConfig& config,
                          const RotationTables& tables, double2* key, const void* ggsws,
                          std::size_t first, std::size_t count) {
  with_size(config,
            [&](auto size) { size.prepare(stream, config, tables, key, ggsws, first, count); });
}
std::size_t summed_wave(const TfheConfig& config) {
  std::size_t most = 0;
  with_size(config, [&](auto size) { most = size.summed_wave(config); });
  return most;
}
void rotate(const Stream& stream, const TfheConfig& config, const RotationTables& tables,
            const RotationCall& call) {
  if (call.count == 0) return;
  with_size(config, [&](auto size) { size.rotate(stream, config, tables, call); });
}

}  // namespace jali::backend::cuda
