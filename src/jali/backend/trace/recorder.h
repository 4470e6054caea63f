// Runs the operations of an engine and keeps what they were. It knows nothing of what they compute:
// a table's wrapper (ring.cpp, rlwe.cpp, embedding.cpp, tfhe.cpp) says the name, the shape, the
// memory and the arithmetic of each.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include "jali/backend/trace/trace.h"
#include "jali/device/buffer.h"
#include "jali/device/device.h"

namespace jali::backend::trace {

class Recorder {
 public:
  /// device: the one on which the operations run. header: what is the same for all of them; see
  /// Trace::describe.
  Recorder(const device::Device& device, std::shared_ptr<Trace> sink, const Shape& header);

  /// Adds memory that the operation reads, or writes: `bytes` from `data` on. kind: what the
  /// operation itself says. No bytes are no operand.
  void read(Record& record, Kind kind, const void* data, std::size_t bytes) const;
  void write(Record& record, Kind kind, const void* data, std::size_t bytes) const;

  /// Runs the call of an operation, then keeps its record with the time it took. An operation that
  /// throws is not recorded.
  template <class Call>
  void run(Record record, const Call& call) const {
    using Clock = std::chrono::steady_clock;
    begin(record);
    finish();
    const Clock::time_point start = Clock::now();
    call();
    finish();
    record.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    sink_->append(std::move(record));
  }

 private:
  /// Completes the record with everything but the time.
  void begin(Record& record) const;
  /// On a device that is not the host, an operation returns before it is done: waits until it is,
  /// so that the time that is measured is that of the operation.
  void finish() const;

  const std::shared_ptr<Trace> sink_;
  device::Buffer probe_;  // in the device's memory, if the device is not the host
};

}  // namespace jali::backend::trace
