#include "jali/backend/trace/recorder.h"

namespace jali::backend::trace {

Recorder::Recorder(const device::Device& device, std::shared_ptr<Trace> sink, const Shape& header)
    : sink_(std::move(sink)) {
  for (const auto& [name, value] : header.values()) sink_->describe(name, value);
  device.pool()->watch(sink_->objects().ids());
  const auto& memory = device.memory();
  if (!memory->host_accessible()) probe_ = device::Pool::create(false, memory)->allocate(1);
}

void Recorder::begin(Record& record) const {
  sink_->objects().settle(record.writes, record.reads);
  sink_->start(record);
}

void Recorder::finish() const {
  char byte = 0;
  if (!probe_.host_accessible()) probe_.copy_out(&byte);
}

void Recorder::read(Record& record, Kind kind, const void* data, std::size_t bytes) const {
  if (bytes == 0) return;
  record.reads.push_back(sink_->objects().read(kind, data, bytes));
  record.bytes_read += bytes;
}

void Recorder::write(Record& record, Kind kind, const void* data, std::size_t bytes) const {
  if (bytes == 0) return;
  record.writes.push_back(sink_->objects().write(kind, data, bytes));
  record.bytes_written += bytes;
}

}  // namespace jali::backend::trace
