// Texts about parameters. Names are shown and logged wherever the bytes of parameters arrive, so
// they have no control characters.
#pragma once

#include <string>
#include <string_view>

namespace jali::params {

/// Whether the name is UTF-8 (RFC 3629) without control characters.
bool is_name(std::string_view name);

/// The number with at most six digits: 3 -> "3", 37.5 -> "37.5".
std::string number(double x);

}  // namespace jali::params
