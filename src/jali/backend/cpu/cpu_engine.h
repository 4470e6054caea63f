// The CPU engine: its tables around what they share.
#pragma once

#include <memory>
#include <string>

#include "jali/backend/cpu/core.h"
#include "jali/backend/cpu/embedding.h"
#include "jali/backend/cpu/ring.h"
#include "jali/backend/cpu/rlwe.h"
#include "jali/backend/engine.h"

namespace jali::backend::cpu {

class CpuEngine final : public Engine {
 public:
  /// device: a host, whatever its memory says (device::host_device).
  CpuEngine(Config config, std::string name, std::shared_ptr<device::Device> device);

  std::string name() const override { return name_; }
  const Config& config() const override { return core_.config; }
  const RingOps& ring() const override { return ring_; }
  const RlweOps& rlwe() const override { return rlwe_; }
  const EmbeddingOps& embedding() const override { return embedding_; }
  int threads() const override { return core_.pool.threads(); }

 private:
  const std::string name_;
  const Core core_;
  const CpuRing ring_{*this, core_};
  const CpuRlwe rlwe_{*this, core_};
  const CpuEmbedding embedding_{*this, core_};
};

}  // namespace jali::backend::cpu
