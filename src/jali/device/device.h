// A device, as engines borrow it. Engines of one scheme or of several that share a device share its order of work, its
// memory and its pool, and one graph may hold what all of them do.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "jali/device/buffer.h"
#include "jali/device/graph.h"
#include "jali/device/memory.h"
#include "jali/device/stream.h"

namespace jali::device {

class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// "cpu", "cuda:0"
  const std::string& name() const { return name_; }
  const Stream& stream() const { return *stream_; }
  /// Where views of its engines point. It lives as long as a block of it.
  const std::shared_ptr<Memory>& memory() const { return memory_; }
  /// Where blocks of its engines come from.
  const std::shared_ptr<Pool>& pool() const { return pool_; }
  /// What `work` asks of this device's engines, to run again. work runs once or twice before this returns; what it
  /// leaves in blocks is undefined until Graph::run, and blocks that it allocates from pool() and keeps are written by
  /// every run. On the host work is simply called again; a GPU plays back a graph that has the addresses and
  /// constants of the last call, and work may then neither copy between host and device nor draw random residues
  /// (InvalidArgument).
  virtual std::unique_ptr<Graph> record(std::function<void()> work) const = 0;

 protected:
  Device(std::string name, std::shared_ptr<const Stream> stream, std::shared_ptr<Memory> memory,
         std::shared_ptr<Pool> pool);

 private:
  const std::string name_;
  const std::shared_ptr<const Stream> stream_;
  const std::shared_ptr<Memory> memory_;
  const std::shared_ptr<Pool> pool_;
};

/// The host. memory: what its blocks are made in, which tests replace; the host computes in it all the same.
std::shared_ptr<Device> host_device(std::shared_ptr<Memory> memory = host_memory());

}  // namespace jali::device
