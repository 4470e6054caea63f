// An engine: one device's implementation of the tables of operations, for one ring, with the memory that they
// work in. ref/ is the oracle, cpu/ and cuda/ are fast, trace/ records what another engine does.
//
// Tables of another scheme are siblings of these: a header of their own, and a method here that offers them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "jali/backend/config.h"
#include "jali/device/buffer.h"
#include "jali/device/memory.h"

namespace jali::backend {

class RingOps;  // ring_ops.h
class RlweOps;  // rlwe_ops.h
class EmbeddingOps;  // embedding_ops.h

/// A step of a recorded sequence, e.g. a kernel of a GPU, and the time that it takes alone.
struct StepTime {
  std::string name;
  double seconds = 0;
};

/// A sequence of operations that runs again on the same blocks. Not for use by two threads at once.
class Captured {
 public:
  virtual ~Captured() = default;
  virtual void run() = 0;
  /// Memory of the device that it keeps.
  virtual std::size_t bytes() const { return 0; }
  /// Each step of it, measured now with warm caches; what its blocks hold is undefined until the next
  /// run. Empty where an engine has no such steps.
  virtual std::vector<StepTime> steps() { return {}; }
};

class Engine {
 public:
  Engine() = default;
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
  /// Threads of the host that work on an operation: config().threads, or those that the system gave.
  virtual int threads() const { return config().threads; }
  /// Where this engine's views point. The host's unless an engine says otherwise.
  virtual std::shared_ptr<device::Memory> memory() const { return device::host_memory(); }
  /// Where its blocks come from; every user of an engine shares the one that it has.
  virtual std::shared_ptr<device::Pool> pool() const;
  /// The operations that `work` asks for, to run again. work runs once or twice before this returns; what
  /// it leaves in blocks is undefined until Captured::run, and blocks that it allocates from pool() and
  /// keeps are written by every run. Here it is simply called again; the CUDA engine plays back a graph
  /// that has the addresses and constants of the last call. work may then neither copy between host
  /// and device nor draw random residues (InvalidArgument).
  virtual std::unique_ptr<Captured> capture(std::function<void()> work) const;
};

}  // namespace jali::backend
