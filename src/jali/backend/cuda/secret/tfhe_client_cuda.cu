// The operations under a secret key on a GPU: checks, memory for masks, and the families'
// launchers.
#include <algorithm>
#include <string>
#include <utility>

#include "jali/backend/cuda/secret/glwe.cuh"
#include "jali/backend/cuda/secret/lwe.cuh"
#include "jali/backend/cuda/seeded/expand.cuh"
#include "jali/backend/secret/tfhe_client_checks.h"
#include "jali/backend/secret/tfhe_client_ops.h"
#include "jali/device/buffer.h"
#include "jali/device/cuda/device.cuh"

namespace jali::backend {

namespace {

class CudaTfheClient final : public TfheClientOps {
 public:
  CudaTfheClient(TfheConfig config, std::shared_ptr<device::Device> device)
      : TfheClientOps(device),
        config_(validated(std::move(config))),
        device_(device::cuda::as_gpu(device)),
        stream_(*device_->cuda_stream()) {}

  std::string name() const override { return device()->name(); }
  const TfheConfig& config() const override { return config_; }
  // 2^35 masked sums take about 10 ms.
  std::size_t glwe_batch() const override {
    const std::size_t sums = config_.k.value * config_.N.value * config_.N.value;
    return std::clamp<std::size_t>((std::size_t{1} << 35) / sums, 16, 4096);
  }

  void encrypt_bodies(void* out, std::size_t count, Torus torus, LweDimension dimension,
                      const std::uint8_t* secret, const std::uint64_t* messages,
                      const Draws& draws) const override {
    check_encrypt_bodies(out, count, torus, dimension, secret, messages, draws);
    enter();
    cuda::encrypt_bodies(stream_, out, count, torus, dimension, secret, messages, draws);
  }

  void encrypt_gadget(void* out, std::size_t count, const std::uint8_t* secret,
                      const GadgetBits& bits, const Draws& draws) const override {
    check_encrypt_gadget(out, count, secret, bits, draws);
    enter();
    const std::size_t body = config_.N.value * torus_bytes(config_.torus);
    const std::size_t mask = config_.k.value * body;
    // Masks of so many ciphertexts are in memory at once.
    const std::size_t most = std::clamp<std::size_t>((std::size_t{256} << 20) / mask, 1, count);
    const device::Buffer masks = device()->pool()->allocate(most * mask);
    void* const words = const_cast<void*>(masks.data());
    for (std::size_t i = 0; i < count; i += most) {
      const std::size_t now = std::min(most, count - i);
      Draws mine = draws;
      mine.first += i;
      cuda::expand_rows(stream_, words, draws.masks, mine.first, nullptr, mask, 0, now);
      cuda::encrypt_gadget(stream_, config_, static_cast<std::byte*>(out) + i * body, now, words,
                           secret, bits, mine);
    }
  }

  void expand(LweView out, const void* bodies, std::span<const std::uint8_t, 32> masks,
              std::uint64_t first) const override {
    check_expand(out, bodies);
    enter();
    const std::size_t word = torus_bytes(out.torus);
    cuda::expand_rows(stream_, out.data, masks, first, bodies, out.dimension.value * word, word,
                      out.count);
  }

  void phases(std::uint64_t* out, ConstLweView in, const std::uint8_t* secret) const override {
    check_phases(out, in, secret);
    enter();
    cuda::phases(stream_, out, in, secret);
  }

 private:
  void enter() const {
    stream_.enter();
    stream_.refuse_recording("encrypting or decrypting");
  }

  const TfheConfig config_;
  const std::shared_ptr<const device::cuda::Device> device_;
  const cuda::Stream& stream_;
};

}  // namespace

std::unique_ptr<TfheClientOps> make_cuda_tfhe_client(TfheConfig config,
                                                     std::shared_ptr<device::Device> device) {
  return std::make_unique<CudaTfheClient>(std::move(config), std::move(device));
}

}  // namespace jali::backend
