// Where long work can be ended from outside.
#pragma once

#include <functional>

namespace jali {

/// Called between pieces of work, each far below a second; it decides itself how often it looks. What it throws
/// ends the work. Null: nothing does.
using Checkpoint = std::function<void()>;

}  // namespace jali
