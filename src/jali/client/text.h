// Text for sentences, and names that are safe to print.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace jali::client {

/// A number of things: "1 example", "2 examples", "1,000 examples".
std::string counted(std::uint64_t count, std::string_view what);
/// A number of bytes: 1536 is "1.5 KiB".
std::string bytes_text(double count);
/// A time: 0.00123 is "1.23 ms".
std::string seconds_text(double seconds);
/// As C's %g.
std::string number_text(double x);

/// Whether a name has 1 to 1,000 characters of UTF-8 and none on which a terminal acts: no control
/// or format character, no separator but the space, no surrogate and none of private use. Names are
/// part of error messages.
bool is_printable_name(std::string_view name);

}  // namespace jali::client
