// Secrets and results between the host and the memory of an engine's device.
#pragma once

#include <cstddef>
#include <span>

#include "jali/device/device.h"

namespace jali::lwe {

/// A copy in the device's memory, in a block that is wiped, and nowhere else.
template <class T>
device::Buffer secret_copy(const device::Device& device, std::span<const T> data) {
  device::Buffer out = device.pool()->allocate(data.size_bytes(), true);
  device.memory()->copy_secret_in(out.data(), data.data(), data.size_bytes());
  return out;
}

/// Calls make(address) with memory of the device for `bytes`, and brings what it wrote there to the
/// host. secret: that memory is wiped.
template <class Make>
void make_on_host(const device::Device& device, void* host, std::size_t bytes, bool secret,
                  const Make& make) {
  if (device.memory()->host_accessible()) {
    make(host);
    return;
  }
  device::Buffer made = device.pool()->allocate(bytes, secret);
  make(made.data());
  made.copy_out(host);
}

}  // namespace jali::lwe
