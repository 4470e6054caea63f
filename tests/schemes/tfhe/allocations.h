// Lets operator new fail, as it does if the machine has no memory left.
#pragma once

namespace jali::test {

/// How many more allocations of this thread succeed; below 0 for all.
extern thread_local int allocations_left;

}  // namespace jali::test
