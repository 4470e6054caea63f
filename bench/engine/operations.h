// The table of the operations that are measured below the level of ciphertexts.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "bench/engine/operands.h"

namespace jali::bench {

/// One call, on operands that are there; on the engine itself, or on one that records.
using Body = std::function<void(const backend::Engine&)>;

struct Operation {
  const char* name;
  const char* about;
  /// Makes the operands anew.
  Body (*prepare)(Operands& operands);
};

/// All of them, in the order in which they are listed.
std::span<const Operation> operations();
/// Throws InvalidArgument for a name that no operation has.
const Operation& operation(const std::string& name);

}  // namespace jali::bench
