#include "jali/backend/trace/recorder.h"

#include <cstdint>

namespace jali::backend::trace {

Recorder::Recorder(const device::Device& device, std::shared_ptr<Trace> sink)
    : sink_(std::move(sink)) {
  const auto& memory = device.memory();
  if (!memory->host_accessible()) probe_ = device::Pool::create(false, memory)->allocate(1);
}

void Recorder::finish() const {
  char byte = 0;
  if (!probe_.host_accessible()) probe_.copy_out(&byte);
}

void read(Record& record, const void* data, std::size_t bytes) {
  record.reads.push_back({reinterpret_cast<std::uintptr_t>(data), bytes});
  record.bytes_read += bytes;
}

void write(Record& record, const void* data, std::size_t bytes) {
  record.writes.push_back({reinterpret_cast<std::uintptr_t>(data), bytes});
  record.bytes_written += bytes;
}

}  // namespace jali::backend::trace
