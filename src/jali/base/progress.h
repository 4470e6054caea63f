// How far long work is.
#pragma once

#include <cstddef>
#include <functional>

namespace jali {

/// Called after each piece of work with how many pieces are done and how many there are.
using Progress = std::function<void(std::size_t done, std::size_t total)>;

}  // namespace jali
