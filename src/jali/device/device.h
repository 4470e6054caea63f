// A device, which engines borrow. Engines that share a device, of one scheme or of several, share
// its order of work, its memory and its pool. One graph may hold what all of them do.
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
  /// The memory to which the views of its engines point. It lives as long as a block of it.
  const std::shared_ptr<Memory>& memory() const { return memory_; }
  /// The pool from which the blocks of its engines come.
  const std::shared_ptr<Pool>& pool() const { return pool_; }
  /// Records what `work` asks of this device's engines, so that it can run again. work runs once or
  /// twice before this returns. What it leaves in blocks is undefined until Graph::run. Every run
  /// writes the blocks that work allocated from pool() and kept. On the host a run calls work
  /// again. On a GPU it plays back a graph with the addresses and constants of the last call of
  /// work. There, work may neither copy between host and device nor draw random residues, which
  /// throws InvalidArgument.
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

/// The host as a device. memory: where its blocks lie. Tests replace it by a memory in which the
/// host can compute, too.
std::shared_ptr<Device> host_device(std::shared_ptr<Memory> memory = host_memory());

}  // namespace jali::device
