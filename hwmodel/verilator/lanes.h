// Ports of several lanes, of any width: Verilator makes integers of those up to 64 bits, and arrays
// of wider ones.
#pragma once

#include <type_traits>

#include "stream.h"

namespace rtl {

/// Writes bits [low, low + width) of a port; width <= 64.
template <class Port>
void set_range(Port& port, int low, int width, u64 value) {
  if constexpr (std::is_integral_v<Port>) {
    const u64 mask = (~u64{0} >> (64 - width)) << low;
    port = static_cast<Port>((port & ~mask) | ((value << low) & mask));
  } else {
    set_bits(port, low, width, value);
  }
}
template <class Port>
void set_lane(Port& port, int lane, int width, u64 value) {
  set_range(port, lane * width, width, value);
}

template <class Port>
u64 lane_of(const Port& port, int lane, int width) {
  if constexpr (std::is_integral_v<Port>) {
    return (port >> (lane * width)) & (~u64{0} >> (64 - width));
  } else {
    return bits(port, lane * width, width);
  }
}

}  // namespace rtl
