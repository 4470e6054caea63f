// Checks of fields of a manifest. A text says "FIELD: what it must be"; check(Manifest) adds whose
// field it is.
#pragma once

#include <stdexcept>
#include <string>

namespace jali::client {

[[noreturn]] inline void fail(const std::string& why) { throw std::invalid_argument(why); }

inline void check_that(bool condition, const char* why) {
  if (!condition) fail(why);
}

}  // namespace jali::client
