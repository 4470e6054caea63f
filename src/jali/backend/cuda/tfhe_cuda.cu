// TFHE on a GPU: checks, scratch memory, and the families' launchers.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jali/backend/cuda/blind_rotation/any_rotation.cuh"
#include "jali/backend/cuda/blind_rotation/blind_rotation.cuh"
#include "jali/backend/cuda/blind_rotation/cluster_rotation.cuh"
#include "jali/backend/cuda/blind_rotation/key_sums.cuh"
#include "jali/backend/cuda/exact_rotation/exact_rotation.cuh"
#include "jali/backend/cuda/fft/tables.h"
#include "jali/backend/cuda/lwe_key_switch/linear.cuh"
#include "jali/backend/cuda/lwe_key_switch/lwe_key_switch.cuh"
#include "jali/backend/cuda/lwe_key_switch/packing.cuh"
#include "jali/backend/cuda/seeded/expand.cuh"
#include "jali/backend/cuda/tfhe_transform.h"
#include "jali/backend/seeded.h"
#include "jali/backend/tfhe_checks.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/base/error.h"
#include "jali/device/buffer.h"
#include "jali/device/cuda/branch.cuh"
#include "jali/device/cuda/constant.cuh"
#include "jali/device/cuda/device.cuh"

namespace jali::backend {

namespace {

using device::Buffer;

cuda::Constant table(const cuda::Stream& stream, const std::vector<cuda::fft::Root>& roots) {
  return cuda::Constant(stream, roots.data(), roots.size() * sizeof(cuda::fft::Root));
}

class CudaTfhe final : public TfheOps {
 public:
  CudaTfhe(TfheConfig config, std::shared_ptr<device::Device> device)
      : TfheOps(device),
        config_(std::move(config)),
        device_(device::cuda::as_gpu(device)),
        stream_(*device_->cuda_stream()) {
    const auto attribute = [&](cudaDeviceAttr which) {
      int value = 0;
      device::cuda::check(cudaDeviceGetAttribute(&value, which, stream_.device()), "device");
      return value;
    };
    config_.transform = cuda::tfhe_transform(
        config_.transform, stream_.generation(),
        attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio),
        static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)));
    multiprocessors_ = attribute(cudaDevAttrMultiProcessorCount);
    if (config_.transform == "ntt") {
      exact_ = std::make_unique<const cuda::ExactRotation>(stream_, config_);
      return;
    }
    fast_ = cuda::rotation_serves(config_);
    clusters_ = cuda::cluster_key(config_);
    if (clusters_.blocks > 0) cluster_batch_ = cuda::cluster_batch(stream_, config_);
    if (clusters_.blocks > 0 && config_.rotation != Rotation::classic) branch_.emplace(stream_);
    summed_wave_ = cuda::summed_wave(config_) * static_cast<std::size_t>(multiprocessors_);
    const auto threads = static_cast<int>(config_.N.value / 64);
    if (fast_) {
      low_ = table(stream_, cuda::fft::low_table(5, threads, 32 / threads));
      twist_ = table(stream_, cuda::fft::twist_table(threads));
    }
    if (clusters_.blocks > 0 || !fast_)
      tree_ = table(stream_, cuda::fft::tree(config_.N.value / 2));
    roots_ = table(stream_, cuda::fft::roots(config_.N.value));
    stream_.synchronize();
  }

  std::string name() const override { return device()->name(); }
  const TfheConfig& config() const override { return config_; }
  // Until every cluster, or else every multiprocessor, has a ciphertext, a batch takes hardly more
  // time.
  std::size_t width() const override {
    return cluster_batch_ > 0
               ? std::min<std::size_t>(cluster_batch_, static_cast<std::size_t>(multiprocessors_))
               : static_cast<std::size_t>(multiprocessors_);
  }

  void copy_in(void* out, const void* host, std::size_t bytes) const override {
    if (!stream_.recording()) return TfheOps::copy_in(out, host, bytes);
    cuda::upload(stream_, out, host, bytes);
  }
  void copy_in_seeded(LweView out, const SeededKey& rows) const override {
    check_copy_in_seeded(out, rows.bodies);
    stream_.enter();
    expand(out.data, lwe_shape(out.torus, out.dimension, out.count), rows, 0, out.count);
  }

  std::size_t rotation_key_bytes() const override {
    if (exact_ != nullptr) return exact_->key_bytes();
    return (fast_ ? cuda::rotation_key_bytes(config_) : 0) +
           (fast_ && clusters_.blocks == 0 ? 0 : cuda::any_rotation_key_bytes(config_));
  }
  void prepare_rotation_key(void* out, const void* ggsws, std::size_t first,
                            std::size_t count) const override {
    check_prepare_rotation_key(config_, out, ggsws, first, count);
    const std::size_t step = config_.units() * config_.ggsw_words() * torus_bytes(config_.torus);
    prepare_steps(out, first, count, [&](void* staging, std::size_t at, std::size_t now) {
      device()->memory()->copy_in(
          staging, static_cast<const std::byte*>(ggsws) + (at - first) * step, now * step);
    });
  }
  void prepare_seeded_rotation_key(void* out, const SeededKey& key, std::size_t first,
                                   std::size_t count) const override {
    check_prepare_rotation_key(config_, out, key.bodies, first, count);
    const KeyShape shape = rotation_key_shape(config_);
    const std::size_t rows = shape.rows / config_.steps();
    prepare_steps(out, first, count, [&](void* staging, std::size_t at, std::size_t now) {
      expand(staging, shape, key, at * rows, now * rows);
    });
  }
  std::size_t switch_key_bytes() const override { return cuda::switch_key_bytes(config_); }
  void prepare_switch_key(void* out, const void* rows) const override {
    check_prepare_switch_key(out, rows);
    prepare_rows(out, [&](void* staging, const KeyShape& shape) {
      device()->memory()->copy_in(staging, rows, shape.rows * shape.row_bytes());
    });
  }
  void prepare_seeded_switch_key(void* out, const SeededKey& key) const override {
    check_prepare_switch_key(out, key.bodies);
    prepare_rows(out, [&](void* staging, const KeyShape& shape) {
      expand(staging, shape, key, 0, shape.rows);
    });
  }
  void prepare_seeded_packing_key(void* out, LweDimension from,
                                  const SeededKey& key) const override {
    check_prepare_packing_key(config_, out, from, key.bodies);
    stream_.enter();
    const KeyShape shape = packing_key_shape(config_, from);
    expand(out, shape, key, 0, shape.rows);
  }

  void key_switch(LweView out, ConstLweView in, const void* switch_key) const override {
    check_key_switch(config_, out, in, switch_key);
    stream_.enter();
    run_switch(static_cast<std::uint32_t*>(out.data), in.data, in.count, switch_key);
  }
  void bootstrap(LweView out, ConstLweView in, const TableView& tables,
                 const void* rotation_key) const override {
    check_bootstrap(config_, out, in, tables, rotation_key);
    stream_.enter();
    run_rotation(out.data, false, in.data, in.count, tables, rotation_key);
  }
  void switch_bootstrap(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* rotation_key) const override {
    check_switch_bootstrap(config_, out, in, tables, switch_key, rotation_key);
    stream_.enter();
    Buffer small = device()->pool()->allocate(in.count * (config_.n.value + 1) * 4 + 1);
    run_switch(static_cast<std::uint32_t*>(small.data()), in.data, in.count, switch_key);
    run_rotation(out.data, false, small.data(), in.count, tables, rotation_key);
  }
  void bootstrap_switch(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* rotation_key) const override {
    check_bootstrap_switch(config_, out, in, tables, switch_key, rotation_key);
    stream_.enter();
    const std::size_t rows = in.count << tables.log_many;
    Buffer large = device()->pool()->allocate(
        rows * (config_.large().value + 1) * torus_bytes(config_.torus) + 1);
    run_rotation(large.data(), false, in.data, in.count, tables, rotation_key);
    run_switch(static_cast<std::uint32_t*>(out.data), large.data(), rows, switch_key);
  }
  void blind_rotate(GlweView out, ConstLweView in, const TableView& tables,
                    const void* rotation_key) const override {
    check_blind_rotate(config_, out, in, tables, rotation_key);
    stream_.enter();
    run_rotation(out.data, true, in.data, in.count, tables, rotation_key);
  }
  void combine(LweView out, ConstLweView in, const LweCombination& combination) const override {
    check_combine(out, in, combination);
    if (out.count == 0) return;
    stream_.enter();
    const Buffer begin = upload(combination.begin), column = upload(combination.column);
    const Buffer weight = upload(combination.weight), constant = upload(combination.constant);
    cuda::combine(stream_, out, in,
                  {static_cast<const std::uint32_t*>(begin.data()),
                   static_cast<const std::uint32_t*>(column.data()),
                   static_cast<const std::int64_t*>(weight.data()),
                   static_cast<const std::uint64_t*>(constant.data())});
  }
  void extract(LweView out, ConstGlweView in, std::span<const std::uint32_t> coefficients,
               std::size_t per) const override {
    check_extract(config_, out, in, coefficients, per);
    if (out.count == 0) return;
    stream_.enter();
    const Buffer which = upload(coefficients);
    cuda::extract(stream_, config_, out.data, in.data,
                  static_cast<const std::uint32_t*>(which.data()), out.count, per);
  }
  void pack(GlweView out, ConstLweView in, std::span<const std::uint32_t> coefficients,
            std::size_t per, const void* packing_key) const override {
    check_pack(config_, out, in, coefficients, per, packing_key);
    stream_.enter();
    const Buffer where = upload(coefficients);
    cuda::pack(stream_, config_, out.data, out.count, in,
               static_cast<const std::uint32_t*>(where.data()), per, packing_key);
  }

 private:
  cuda::RotationTables tables() const {
    return {low_.as<double2>(), twist_.as<double2>(), roots_.as<double2>()};
  }

  /// fill(staging, step, now): writes the GGSW ciphertexts of `now` steps from `step` on to memory
  /// of the device.
  template <class Fill>
  void prepare_steps(void* out, std::size_t first, std::size_t count, const Fill& fill) const {
    stream_.enter();
    const std::size_t step = config_.units() * config_.ggsw_words() * torus_bytes(config_.torus);
    const std::size_t most = std::clamp<std::size_t>((std::size_t{256} << 20) / step, 1, count + 1);
    for (std::size_t i = 0; i < count; i += most) {
      const std::size_t now = std::min(most, count - i);
      Buffer staging = device()->pool()->allocate(now * step);
      fill(staging.data(), first + i, now);
      if (exact_ != nullptr) {
        Buffer scratch = device()->pool()->allocate(exact_->prepare_scratch_bytes() + 1);
        exact_->prepare(stream_, static_cast<std::uint32_t*>(out), staging.data(), first + i, now,
                        scratch.data());
        continue;
      }
      if (fast_) {
        cuda::prepare_rotation_key(stream_, config_, tables(), static_cast<double2*>(out),
                                   staging.data(), first + i, now);
      }
      if (!fast_ || clusters_.blocks > 0) {
        Buffer scratch = device()->pool()->allocate(cuda::any_scratch_bytes(config_, 0) + 1);
        cuda::prepare_any_rotation_key(stream_, config_, any_tables(),
                                       second_key(static_cast<double2*>(out)), staging.data(),
                                       first + i, now, scratch.data(), clusters_);
      }
    }
  }
  /// fill(staging, shape): writes the rows of the key-switching key to memory of the device.
  template <class Fill>
  void prepare_rows(void* out, const Fill& fill) const {
    stream_.enter();
    const KeyShape shape = switch_key_shape(config_);
    Buffer staging = device()->pool()->allocate(shape.rows * shape.row_bytes());
    fill(staging.data(), shape);
    cuda::prepare_switch_key(stream_, config_, out,
                             static_cast<const std::uint32_t*>(staging.data()));
  }
  /// Ciphertexts [first, first + count) of a key whose bodies are in host memory.
  void expand(void* out, const KeyShape& shape, const SeededKey& key, std::size_t first,
              std::size_t count) const {
    Buffer bodies = device()->pool()->allocate(count * shape.body_bytes);
    device()->memory()->copy_in(
        bodies.data(), static_cast<const std::byte*>(key.bodies) + first * shape.body_bytes,
        count * shape.body_bytes);
    cuda::expand_rows(stream_, out, key.seed, first, bodies.data(), shape.mask_bytes,
                      shape.body_bytes, count);
  }
  /// The key in the order of the kernels for few ciphertexts follows that of the kernels for many.
  template <class Numbers>
  Numbers* second_key(Numbers* key) const {
    return key + (fast_ ? cuda::rotation_key_bytes(config_) / sizeof(Numbers) : 0);
  }

  cuda::AnyTables any_tables() const { return {tree_.as<double2>(), roots_.as<double2>()}; }

  /// Small data of the caller on the device; empty if the span is.
  template <class T>
  Buffer upload(std::span<const T> data) const {
    if (data.empty()) return {};
    Buffer buffer = device()->pool()->allocate(data.size_bytes());
    copy_in(buffer.data(), data.data(), data.size_bytes());
    return buffer;
  }

  void run_switch(std::uint32_t* out, const void* in, std::size_t count, const void* key) const {
    if (count == 0) return;
    Buffer digits = device()->pool()->allocate(cuda::digit_bytes(config_, count));
    cuda::key_switch(stream_, config_, out, in, count, key, digits.data());
  }
  void run_rotation(void* out, bool glwe, const void* in, std::size_t count, const TableView& view,
                    const void* key) const {
    if (count == 0) return;
    const Buffer of_input = upload(view.of_input);
    const auto fill = [&]<class Number>(cuda::RotationBatch<Number>& batch) {
      batch.in = static_cast<const std::uint32_t*>(in);
      batch.count = static_cast<std::uint32_t>(count);
      batch.tables = view.data;
      batch.of_input = static_cast<const std::uint32_t*>(of_input.data());
      batch.encrypted = view.encrypted;
      batch.log_many = view.log_many;
      batch.out = out;
      batch.glwe = glwe;
      batch.key = static_cast<const Number*>(key);
    };
    if (exact_ != nullptr) {
      cuda::exact::Batch batch;
      fill(batch);
      const unsigned blocks = exact_->blocks(count);
      Buffer scratch = device()->pool()->allocate(exact_->scratch_bytes(blocks) + 1);
      exact_->rotate(stream_, batch, blocks, scratch.data());
      return;
    }
    cuda::RotationCall call;
    fill(call);
    if (clusters_.blocks > 0 && count <= cluster_batch_) {
      call.key = second_key(call.key);
      if (config_.rotation != Rotation::classic) return rotate_summed(call, false);
      cuda::rotate_in_clusters(stream_, config_, any_tables(), call);
    } else if (summed_wave_ > 0) {
      // Waves of equal size.
      const std::size_t waves = (count + summed_wave_ - 1) / summed_wave_;
      for (std::size_t wave = 0, from = 0; wave < waves; ++wave) {
        const std::size_t to = count * (wave + 1) / waves;
        rotate_summed(part(call, from, to - from), true);
        from = to;
      }
    } else if (fast_) {
      cuda::rotate(stream_, config_, tables(), call);
    } else {
      const unsigned blocks = cuda::any_blocks(stream_, config_, count);
      Buffer scratch = device()->pool()->allocate(cuda::any_scratch_bytes(config_, blocks));
      cuda::rotate_any(stream_, config_, any_tables(), call, blocks, scratch.data());
    }
  }

  /// The ciphertexts [from, from + count) of a call.
  cuda::RotationCall part(cuda::RotationCall call, std::size_t from, std::size_t count) const {
    const std::size_t k = config_.k.value, N = config_.N.value;
    const std::size_t words = call.glwe ? (k + 1) * N : (k * N + 1) << call.log_many;
    call.in += from * (config_.n.value + 1);
    if (call.of_input != nullptr) call.of_input += from;
    call.out = static_cast<std::byte*>(call.out) + from * words * torus_bytes(config_.torus);
    call.count = static_cast<std::uint32_t>(count);
    return call;
  }
  /// Sums the key for as many steps as memory takes, rotates by them, and so on. many: by the
  /// kernel for many ciphertexts. Few ciphertexts, if memory takes all steps, rotate by the first
  /// quarter while the other multiprocessors sum the rest.
  void rotate_summed(cuda::RotationCall call, bool many) const {
    const std::size_t steps = config_.steps(), step_bytes = call.count * cuda::sum_bytes(config_);
    std::size_t at_once = std::clamp<std::size_t>(kMostSumBytes / step_bytes, 1, steps);
    at_once = (steps + (steps + at_once - 1) / at_once - 1) / ((steps + at_once - 1) / at_once);
    Buffer sums;
    while (sums.data() == nullptr) {
      try {
        sums = device()->pool()->allocate(at_once * step_bytes);
      } catch (const OutOfMemory&) {
        if (at_once == 1) throw;
        at_once = (at_once + 1) / 2;
      }
    }
    const bool beside = !many && at_once == steps && steps >= 4;
    if (beside) at_once = steps / 4;
    Buffer between;
    if (at_once < steps) {
      between = device()->pool()->allocate(call.count * (config_.k.value + 1) * config_.N.value *
                                           sizeof(std::uint32_t));
    }
    cuda::SumCall sum{call.in,
                      call.count,
                      call.log_many,
                      call.key,
                      roots_.as<double2>(),
                      0,
                      0,
                      static_cast<double2*>(sums.data())};
    call.key = sum.out;
    call.between = between.data();
    const auto take = [&](std::size_t first, std::size_t now) {
      call.first = sum.first = static_cast<std::uint32_t>(first);
      call.steps = sum.steps = static_cast<std::uint32_t>(now);
      call.last = first + now == steps;
    };
    if (beside) {
      take(0, at_once);
      cuda::sum_keys(stream_, stream_.get(), config_, clusters_, false, sum);
      const device::cuda::Mark summed(stream_, stream_.get());
      cuda::rotate_in_clusters(stream_, config_, any_tables(), call);
      summed.before(branch_->get());
      take(at_once, steps - at_once);
      sum.out += at_once * step_bytes / sizeof(double2);
      cuda::sum_keys(stream_, branch_->get(), config_, clusters_, false, sum);
      device::cuda::Mark(stream_, branch_->get()).before(stream_.get());
      call.key = sum.out;
      cuda::rotate_in_clusters(stream_, config_, any_tables(), call);
      return;
    }
    for (std::size_t first = 0; first < steps; first += at_once) {
      take(first, std::min(at_once, steps - first));
      cuda::sum_keys(stream_, stream_.get(), config_, clusters_, many, sum);
      if (many)
        cuda::rotate(stream_, config_, tables(), call);
      else
        cuda::rotate_in_clusters(stream_, config_, any_tables(), call);
    }
  }

  /// Of summed keys at once. More would gain little: a rotation of some dozens of steps takes much
  /// longer than its launch.
  static constexpr std::size_t kMostSumBytes = std::size_t{2} << 30;

  TfheConfig config_;  // whose transform is the one that was chosen
  const std::shared_ptr<const device::cuda::Device> device_;
  const cuda::Stream& stream_;
  cuda::Constant low_, twist_, tree_, roots_;
  int multiprocessors_ = 0;
  bool fast_ = false;  // blind_rotation.cuh serves the configuration
  cuda::ClusterKey clusters_;
  // Of the transform "ntt", which then takes every rotation.
  std::unique_ptr<const cuda::ExactRotation> exact_;
  std::size_t cluster_batch_ = 0;  // larger batches take the kernel for many ciphertexts
  std::optional<device::cuda::Branch> branch_;  // if the rotation takes summed keys
  // If that kernel takes summed keys: how many ciphertexts it rotates at once.
  std::size_t summed_wave_ = 0;
};

}  // namespace

std::unique_ptr<TfheOps> make_cuda_tfhe(TfheConfig config, std::shared_ptr<device::Device> device) {
  return std::make_unique<CudaTfhe>(validated(std::move(config)), std::move(device));
}

}  // namespace jali::backend
