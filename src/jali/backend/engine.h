// An engine implements the tables of operations for one ring, on a device that it borrows. ref/ is
// the oracle, cpu/ and cuda/ are fast, trace/ records what another engine does, and dry/ does
// nothing.
//
// Tables of another scheme are siblings of these: a header of their own, and a method here that
// offers them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "jali/backend/config.h"
#include "jali/device/device.h"
#include "jali/device/graph.h"

namespace jali::backend {

class RingOps;  // ring_ops.h
class RlweOps;  // rlwe_ops.h
class EmbeddingOps;  // embedding_ops.h

using Captured = device::Graph;
using device::StepTime;

class Engine {
 public:
  /// device: borrowed; other engines may share it.
  explicit Engine(std::shared_ptr<device::Device> device = device::host_device())
      : device_(std::move(device)) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  virtual std::string name() const = 0;  // "ref", "cpu/ifma", ...
  virtual const Config& config() const = 0;

  // --- the tables -------------------------------------------------------------------------------
  virtual const RingOps& ring() const = 0;
  virtual const RlweOps& rlwe() const = 0;
  virtual const EmbeddingOps& embedding() const = 0;

  // --- the device -------------------------------------------------------------------------------
  const std::shared_ptr<device::Device>& device() const { return device_; }
  /// Threads of the host that work on an operation: config().threads, or those that the system
  /// gave.
  virtual int threads() const { return config().threads; }
  /// Where this engine's views point: the device's memory.
  const std::shared_ptr<device::Memory>& memory() const { return device_->memory(); }
  /// By which layers above copy within that memory: the memory itself, or trace/'s, which records
  /// copies.
  virtual device::Memory& copies() const { return *memory(); }
  /// Where its blocks come from: the device's pool.
  const std::shared_ptr<device::Pool>& pool() const { return device_->pool(); }
  /// Device::record of the device.
  virtual std::unique_ptr<Captured> capture(std::function<void()> work) const {
    return device_->record(std::move(work));
  }

 private:
  const std::shared_ptr<device::Device> device_;
};

}  // namespace jali::backend
