// The table of the operations that are measured below the level of ciphertexts.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "bench/engine/operands.h"

namespace jali::bench {

/// One call of an operation on operands that exist, on the engine that it is given: the operands'
/// own, or one that traces it.
using Body = std::function<void(const backend::Engine&)>;

struct Operation {
  const char* name;
  const char* about;
  /// Makes new operands and returns the call.
  Body (*prepare)(Operands& operands);
};

/// All operations, in the order in which `jali bench list` shows them.
std::span<const Operation> operations();
/// The operation of this name. Throws InvalidArgument if there is none.
const Operation& operation(const std::string& name);

}  // namespace jali::bench
