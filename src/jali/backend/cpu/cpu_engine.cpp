#include "jali/backend/cpu/cpu_engine.h"

#include <utility>

#include "jali/backend/cpu/isa.h"
#include "jali/backend/engines.h"
#include "jali/base/error.h"

namespace jali::backend {

namespace cpu {

CpuEngine::CpuEngine(Config config, std::string name, std::shared_ptr<device::Device> device)
    : Engine(std::move(device)), name_(std::move(name)), core_(std::move(config)) {}

}  // namespace cpu

std::unique_ptr<Engine> make_cpu_engine(Config config) {
  return make_cpu_engine(std::move(config), device::host_device());
}

std::unique_ptr<Engine> make_cpu_engine(Config config, std::shared_ptr<device::Device> device) {
  require<InvalidArgument>(device != nullptr && device->memory()->host_accessible(),
                           "a CPU engine needs a device whose memory is the host's "
                           "(device::host_device)");
  const std::string isa = config.isa.empty() ? cpu::supported_isas().front() : config.isa;
  return std::make_unique<cpu::CpuEngine>(std::move(config), "cpu/" + isa, std::move(device));
}

}  // namespace jali::backend
