// Names of parameters. They are shown and logged wherever the bytes of parameters arrive, so they
// have no control characters.
#pragma once

#include <string_view>

namespace jali::params {

/// Whether the name is UTF-8 (RFC 3629) without control characters.
bool is_name(std::string_view name);

}  // namespace jali::params
