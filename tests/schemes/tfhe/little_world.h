// A client, and an evaluator on a host that has only so much memory.
#pragma once

#include <cstdint>
#include <memory>

#include "../../tfhe_literals.h"
#include "jali/backend/tfhe_resolve.h"
#include "jali/device/memory.h"
#include "jali/schemes/tfhe/evaluator.h"
#include "jali/schemes/tfhe/secret/client.h"

namespace jali::test {

/// Host memory of which only so much can be had.
class LittleMemory final : public device::Memory {
 public:
  void* allocate(std::size_t bytes) override {
    const bool refused = refusals > 0;
    if (refused) --refusals;
    if (refused || bytes > most - used) return nullptr;
    used += bytes;
    return host->allocate(bytes);
  }
  void free(void* data, std::size_t bytes) noexcept override {
    used -= bytes;
    host->free(data, bytes);
  }
  void fill(void* data, std::uint8_t byte, std::size_t bytes) noexcept override {
    host->fill(data, byte, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override { host->copy(to, from, bytes); }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    host->copy_in(to, from, bytes);
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    host->copy_out(to, from, bytes);
  }
  std::size_t available() const override { return most - used; }
  bool host_accessible() const override { return true; }

  std::shared_ptr<device::Memory> host = device::host_memory();
  std::size_t most = ~std::size_t{0} / 2, used = 0;
  int refusals = 0;  // so many allocations are refused, whatever there is
};

/// A client, and an evaluator whose engine has such memory.
struct LittleWorld {
  std::shared_ptr<LittleMemory> memory = std::make_shared<LittleMemory>();
  tfhe::ParamsPtr params = insecure_params();
  tfhe::Client client{params};
  std::shared_ptr<const backend::TfheOps> engine =
      backend::make_cpu_tfhe(params->config(), device::host_device(memory));
  std::shared_ptr<const tfhe::Evaluator> evaluator =
      std::make_shared<const tfhe::Evaluator>(engine, client.evaluation_keys());
};

}  // namespace jali::test
