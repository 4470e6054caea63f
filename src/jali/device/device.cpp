#include "jali/device/device.h"

#include <utility>

#include "jali/base/error.h"

namespace jali::device {

void Stream::refuse_recording(const char* what) const {
  require<InvalidArgument>(!recording(), [&] {
    return std::string(what) +
           " cannot be part of a program, which runs again without the host: encode plaintexts and "
           "encrypt before, decrypt after";
  });
}

Device::Device(std::string name, std::shared_ptr<const Stream> stream,
               std::shared_ptr<Memory> memory, std::shared_ptr<Pool> pool)
    : name_(std::move(name)),
      stream_(std::move(stream)),
      memory_(std::move(memory)),
      pool_(std::move(pool)) {}

namespace {

/// Work on the host is done when the call returns.
class HostStream final : public Stream {
 public:
  void synchronize() const override {}
  bool recording() const override { return false; }
};

class Rerun final : public Graph {
 public:
  explicit Rerun(std::function<void()> work) : work_(std::move(work)) {}
  void run() override { work_(); }

 private:
  const std::function<void()> work_;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(const std::shared_ptr<Memory>& memory)
      : Device("cpu", std::make_shared<const HostStream>(), memory,
               Pool::create(/*wipe=*/false, memory)) {}
  std::unique_ptr<Graph> record(std::function<void()> work) const override {
    work();
    return std::make_unique<Rerun>(std::move(work));
  }
};

}  // namespace

std::shared_ptr<Device> host_device(std::shared_ptr<Memory> memory) {
  return std::make_shared<HostDevice>(memory);
}

}  // namespace jali::device
