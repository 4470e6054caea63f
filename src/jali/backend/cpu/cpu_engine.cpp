#include "jali/backend/cpu/cpu_engine.h"

#include <utility>

#include "jali/backend/cpu/isa.h"
#include "jali/backend/engines.h"

namespace jali::backend {

namespace cpu {

CpuEngine::CpuEngine(Config config, std::string name, std::shared_ptr<device::Memory> memory)
    : name_(std::move(name)), memory_(std::move(memory)), core_(std::move(config)) {}

}  // namespace cpu

std::unique_ptr<Engine> make_cpu_engine(Config config) {
  const std::string isa = config.isa.empty() ? cpu::supported_isas().front() : config.isa;
  return std::make_unique<cpu::CpuEngine>(std::move(config), "cpu/" + isa, device::host_memory());
}

}  // namespace jali::backend
