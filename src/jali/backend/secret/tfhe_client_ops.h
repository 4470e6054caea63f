// The operations of TFHE that take a secret key: encryption with masks from a seed, and phases, of
// batches.
//
// This table is a sibling of TfheOps, on the same devices. torus.h says how ciphertexts lie. All
// sums and products are those of words, modulo 2^w, so that all engines agree on every bit.
//
// Secrets. A secret key is one byte a bit, 0 or 1. An engine keeps nothing of it and wipes its own
// working memory. No branch and no address depends on a secret, a message, an error or a phase. The
// caller takes blocks for secrets, messages and phases that the pool wipes
// (device::Pool::allocate). Arguments. Everything lies in the device's memory, except seeds. Every
// batch has at least one ciphertext. tfhe_client_checks.h refuses what is wrong; every engine calls
// it. Aliasing. An output never overlaps an input. Threads. Every operation may be called from
// several threads at once on disjoint outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "jali/backend/tfhe_config.h"
#include "jali/backend/torus.h"
#include "jali/device/device.h"

namespace jali::backend {

/// What is drawn for the ciphertexts i = 0, 1, .. of a batch: ciphertext i takes stream first + i
/// of both seeds (random/prng.h).
struct Draws {
  /// Public. The mask is the first words of the stream, with the least significant byte first. Mask
  /// polynomial c of a GLWE ciphertext is words c N to (c + 1) N - 1.
  std::span<const std::uint8_t, 32> masks;
  /// Secret. The errors are the first values of random::sample_tuniform(noise_bits): one of an LWE
  /// ciphertext; of a GLWE ciphertext N, that of coefficient t being value t.
  std::span<const std::uint8_t, 32> errors;
  int noise_bits = 0;  // 0 to 62
  std::uint64_t first = 0;
};

/// Bits that GLWE ciphertexts hold for a decomposition. Ciphertext i of a batch is row r =
/// draws.first + i of a key.
struct GadgetBits {
  const std::uint8_t* bits = nullptr;  // of the whole key, one byte each, 0 or 1
  /// true: bit m has the (k + 1) l rows of a GGSW ciphertext of m. false: it has the last l of
  /// them, c = k, alone.
  bool ggsw = true;
};

class TfheClientOps {
 public:
  explicit TfheClientOps(std::shared_ptr<device::Device> device) : device_(std::move(device)) {}
  TfheClientOps(const TfheClientOps&) = delete;
  TfheClientOps& operator=(const TfheClientOps&) = delete;
  virtual ~TfheClientOps() = default;

  virtual std::string name() const = 0;  // "ref", "cpu", "cuda:0"
  virtual const TfheConfig& config() const = 0;
  const std::shared_ptr<device::Device>& device() const { return device_; }
  /// So many GLWE ciphertexts are a batch of some milliseconds that keeps the device busy.
  virtual std::size_t glwe_batch() const = 0;

  /// out: one word of the torus for each of `count` LWE ciphertexts, the bodies b_i = sum_j a_ij
  /// secret_j + messages_i + e_i. messages: of which a torus of 32 bits takes the low halves.
  /// secret: `dimension` bytes.
  virtual void encrypt_bodies(void* out, std::size_t count, Torus torus, LweDimension dimension,
                              const std::uint8_t* secret, const std::uint64_t* messages,
                              const Draws& draws) const = 0;
  /// out: N words of the torus for each of `count` GLWE ciphertexts, the bodies B_i = sum_c A_ic
  /// S_c + M_i + E_i. M_i is the phase that torus.h gives to its row, with
  /// config().rotation_gadget. secret: k N bytes, those of S_c from byte c N on.
  virtual void encrypt_gadget(void* out, std::size_t count, const std::uint8_t* secret,
                              const GadgetBits& bits, const Draws& draws) const = 0;
  /// out: whole ciphertexts, those with these bodies and masks. masks, first: as in Draws.
  virtual void expand(LweView out, const void* bodies, std::span<const std::uint8_t, 32> masks,
                      std::uint64_t first) const = 0;
  /// out: the phases of the ciphertexts, in the low bits of the words, whose other bits are 0.
  /// secret: `in.dimension` bytes.
  virtual void phases(std::uint64_t* out, ConstLweView in, const std::uint8_t* secret) const = 0;

 private:
  const std::shared_ptr<device::Device> device_;
};

/// The engines there are.
std::unique_ptr<TfheClientOps> make_ref_tfhe_client(TfheConfig config);
std::unique_ptr<TfheClientOps> make_cpu_tfhe_client(
    TfheConfig config, std::shared_ptr<device::Device> device = device::host_device());
/// Throws NoDevice if this build has no CUDA.
std::unique_ptr<TfheClientOps> make_cuda_tfhe_client(TfheConfig config,
                                                     std::shared_ptr<device::Device> device);

/// device: "auto" (what device::resolve finds, or the CPU, if that is a GPU which the engine does
/// not serve), "cpu", "cuda" or "cuda:K", or "ref", the slow oracle. config.threads counts on the
/// CPU alone. Throws NoDevice for a device that this build or machine lacks, and InvalidArgument
/// for other names.
std::unique_ptr<TfheClientOps> make_tfhe_client_engine(TfheConfig config,
                                                       const std::string& device);

}  // namespace jali::backend
