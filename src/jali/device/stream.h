// The order of a device's work.
#pragma once

namespace jali::device {

/// The work that engines ask of one device runs in one order, whichever engine and thread asked for
/// it.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Returns when all work that was asked for before is done. Throws the error if this work failed.
  virtual void synchronize() const = 0;
  /// Whether the calling thread's work is recorded (Device::record) and runs later.
  virtual bool recording() const = 0;
  /// Throws InvalidArgument if the calling thread is recording, because `what` cannot be part of a
  /// graph.
  void refuse_recording(const char* what) const;
};

}  // namespace jali::device
