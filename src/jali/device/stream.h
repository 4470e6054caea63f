// The order of a device's work.
#pragma once

namespace jali::device {

/// What engines ask of one device runs in this order, whichever engine and thread asked.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Returns when all work that was asked for before is done. Throws what went wrong with it.
  virtual void synchronize() const = 0;
  /// Whether the calling thread's work is recorded (Device::record) and runs later.
  virtual bool recording() const = 0;
  /// Throws InvalidArgument if it is: `what` cannot be part of a graph.
  void refuse_recording(const char* what) const;
};

}  // namespace jali::device
