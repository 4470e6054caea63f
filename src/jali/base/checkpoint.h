// Where long work can be ended from outside.
#pragma once

#include <functional>

namespace jali {

/// A function that is called between pieces of work, each of them far shorter than a second. It
/// decides itself how often it looks for a reason to stop. If it throws, the work ends. If it is
/// null, nothing ends the work.
using Checkpoint = std::function<void()>;

}  // namespace jali
