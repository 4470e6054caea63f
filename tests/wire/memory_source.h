// A stream of bytes that lie in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "jali/wire/stream.h"

namespace jali::testing {

/// `in` must outlive the source. It holds what was not read yet.
inline wire::Source memory_source(std::span<const std::uint8_t>& in) {
  return {[&in](std::span<std::uint8_t> out) {
            const auto given = in.first(std::min(out.size(), in.size()));
            std::ranges::copy(given, out.begin());
            in = in.subspan(given.size());
            return given.size();
          },
          std::nullopt};
}

}  // namespace jali::testing
