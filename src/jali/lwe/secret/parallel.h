// Work in many pieces on several threads.
#pragma once

#include <cstddef>
#include <functional>

#include "jali/base/checkpoint.h"
#include "jali/base/progress.h"

namespace jali::lwe {

/// Calls work(first, count) for ranges of `piece` items that cover [0, total), on this thread and threads - 1 others, which
/// end before this returns. After each of its pieces this thread calls checkpoint and progress, with the items done by
/// all. If one of these or a piece throws, the others stop at their next piece, and the first exception is thrown again.
void in_parallel(std::size_t total, std::size_t piece, int threads,
                 const std::function<void(std::size_t first, std::size_t count)>& work,
                 const Progress& progress = {}, const Checkpoint& checkpoint = {});

}  // namespace jali::lwe
