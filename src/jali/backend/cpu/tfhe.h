// The CPU engine of TFHE: batches of ciphertexts over threads and, within a thread, over the steps
// of a key, so that what is read of a key serves several ciphertexts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "jali/backend/cpu/scratch.h"
#include "jali/backend/cpu/tfhe_kernels.h"
#include "jali/backend/cpu/tfhe_rotator.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/base/thread_pool.h"

namespace jali::backend::cpu {

class CpuTfhe final : public TfheOps {
 public:
  CpuTfhe(TfheConfig config, std::shared_ptr<device::Device> device);

  std::string name() const override { return "cpu/" + std::string(kernels_.isa); }
  const TfheConfig& config() const override { return config_; }
  std::size_t width() const override { return static_cast<std::size_t>(pool_.threads()); }

  std::size_t rotation_key_bytes() const override;
  void prepare_rotation_key(void* out, const void* ggsws, std::size_t first,
                            std::size_t count) const override;
  std::size_t switch_key_bytes() const override;
  void prepare_switch_key(void* out, const void* rows) const override;

  void key_switch(LweView out, ConstLweView in, const void* switch_key) const override;
  void bootstrap(LweView out, ConstLweView in, const TableView& tables,
                 const void* rotation_key) const override;
  void switch_bootstrap(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* rotation_key) const override;
  void bootstrap_switch(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* rotation_key) const override;
  void blind_rotate(GlweView out, ConstLweView in, const TableView& tables,
                    const void* rotation_key) const override;
  void combine(LweView out, ConstLweView in, const LweCombination& combination) const override;
  void extract(LweView out, ConstGlweView in, std::span<const std::uint32_t> coefficients,
               std::size_t per) const override;
  void pack(GlweView out, ConstLweView in, std::span<const std::uint32_t> coefficients,
            std::size_t per, const void* packing_key) const override;

 private:
  std::size_t switch_rows() const {
    return config_.large().value * static_cast<std::size_t>(config_.switch_gadget.levels);
  }
  std::size_t switch_tiles() const {
    return (config_.n.value + 1 + kSwitchColumns - 1) / kSwitchColumns;
  }
  /// Ciphertexts that one thread rotates together.
  std::size_t together(std::size_t count) const;
  /// Rotates every input and calls done(i, its accumulator).
  template <class Done>
  void rotate(ConstLweView in, const TableView& tables, const void* rotation_key,
              const Done& done) const;
  void begin(std::uint64_t* acc, const TableView& tables, std::size_t i, std::uint32_t body) const;

  const TfheConfig config_;
  const TfheKernels kernels_;
  const DigitRule switch_rule_, packing_rule_;
  const std::unique_ptr<const Rotator> rotator_;
  mutable ThreadPool pool_;
  mutable ScratchPool scratch_{device::host_memory()};
};

}  // namespace jali::backend::cpu
