// The names of parameters, which are shown and logged wherever their bytes arrive.
#pragma once

#include <string_view>

namespace jali::params {

/// Whether it is UTF-8 (RFC 3629) without control characters.
bool is_name(std::string_view name);

}  // namespace jali::params
