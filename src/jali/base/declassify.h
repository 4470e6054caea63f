// What secrets may decide.
#pragma once

#include <cstddef>

#ifdef JALI_TIMING
#include <valgrind/memcheck.h>
#endif

namespace jali {

/// Declares that a value computed from secrets may decide a branch or an address, because it is
/// public or tells nothing about them. A comment at the call says why. The function does nothing,
/// except in `make timing`, which looks for such branches under valgrind.
inline void declassify([[maybe_unused]] const void* data,
                       [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef JALI_TIMING
  VALGRIND_MAKE_MEM_DEFINED(data, bytes);
#endif
}
template <class T>
void declassify(const T& value) noexcept {
  declassify(&value, sizeof(value));
}

}  // namespace jali
