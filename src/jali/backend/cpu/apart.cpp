// The CPU behind memory of its own, as a GPU has: what crosses between host and device can be
// tested on any machine.
#include <utility>

#include "jali/backend/cpu/cpu_engine.h"
#include "jali/backend/engines.h"

namespace jali::backend {

namespace {

class ApartMemory final : public device::Memory {
 public:
  void* allocate(std::size_t bytes) override { return host_->allocate(bytes); }
  void free(void* data, std::size_t bytes) noexcept override { host_->free(data, bytes); }
  void fill(void* data, std::uint8_t byte, std::size_t bytes) noexcept override {
    host_->fill(data, byte, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    host_->copy(to, from, bytes);
  }
  void copy_in(void* to, const void* host, std::size_t bytes) override {
    host_->copy_in(to, host, bytes);
  }
  void copy_out(void* host, const void* from, std::size_t bytes) override {
    host_->copy_out(host, from, bytes);
  }
  bool host_accessible() const override { return false; }

 private:
  std::shared_ptr<device::Memory> host_ = device::host_memory();
};

}  // namespace

std::unique_ptr<Engine> make_apart_engine(Config config) {
  return std::make_unique<cpu::CpuEngine>(std::move(config), "cpu/apart",
                                          device::host_device(std::make_shared<ApartMemory>()));
}

}  // namespace jali::backend
