// The progress of long work.
#pragma once

#include <cstddef>
#include <functional>

namespace jali {

/// Called after each piece of work: `done` of `total` pieces are done.
using Progress = std::function<void(std::size_t done, std::size_t total)>;

}  // namespace jali
